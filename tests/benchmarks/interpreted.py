"""`python -m tests.benchmarks --interpreted [NAME…]`: statements that no loop repeats, beside
CPython that calls the same ops.

Each program of `statements/` runs in this process twice: by the interpreter, with no loop compiled,
and by CPython, for which `torch` is the catalogue's table and tensors have its methods. What stands
behind the line `# --- measured` is timed, parsed and with its functions made before, but with its
closures still to be made. A clock runs in every op, so what a side takes outside of ops is known
for each run; the table has the least of many runs.
"""

from __future__ import annotations

import gc
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import wraps
from pathlib import Path
from statistics import geometric_mean
from time import thread_time
from types import ModuleType
from typing import Any, NamedTuple

from gradcli.autograd.tensor import Tensor
from gradcli.language.events import Printed
from gradcli.language.objects.classes.special_methods import ARITHMETIC
from gradcli.library import namespace
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.functions import operators
from gradcli.session import Session

STATEMENTS = {
    path.stem: path for path in sorted((Path(__file__).parent / "statements").glob("*.grad"))
}

BAR = 3.0
"""How many times what CPython takes outside of ops the interpreter may take."""

_LINE = "# --- measured\n"

_CALLS = 10_000
"""Calls by which the clock itself is measured."""


class Spent(NamedTuple):
    """What one run took: its seconds, those of them in ops, the calls of ops, and its output."""

    whole: float
    ops: float
    calls: int
    printed: str

    def outside(self, clock: float) -> float:
        """The seconds outside of ops, without those of a clock that takes so much for a call."""
        return self.whole - self.ops - self.calls * clock


class Clock:
    """Counts the outermost calls of ops, and their seconds: those of the thread alone, which other
    processes disturb little.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0
        self._runs = False

    def timed(self, op: Any) -> Any:
        """A function that is counted."""

        @wraps(op)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._runs:
                return op(*args, **kwargs)
            self._runs = True
            began = thread_time()
            try:
                return op(*args, **kwargs)
            finally:
                self.seconds += thread_time() - began
                self.calls += 1
                self._runs = False

        return call

    def own(self) -> float:
        """The seconds that it takes for one call itself."""
        nothing = self.timed(lambda left, right: None)
        least = min(self._of_calls(nothing) for _ in range(20))
        return least / _CALLS

    def _of_calls(self, nothing: Callable[[Any, Any], None]) -> float:
        self.seconds = 0.0
        began = thread_time()
        for _ in range(_CALLS):
            nothing(1, 2)
        return thread_time() - began - self.seconds

    @contextmanager
    def in_tables(self) -> Iterator[None]:
        """Count the calls of what stands in the tables now."""
        tables: list[dict[str, Any]] = [
            catalogue.modules["torch"],
            catalogue.methods,
            catalogue.operators,
            catalogue.inplace_operators,
            catalogue.unary_operators,
        ]
        former = [dict(table) for table in tables]
        for table in tables:
            for name, op in table.items():
                if callable(op) and not isinstance(op, type) and name not in _NO_OPS:
                    table[name] = self.timed(op)
        vars(operators).clear()
        try:
            yield
        finally:
            for table, kept in zip(tables, former, strict=True):
                table.update(kept)
            vars(operators).clear()


_NO_OPS = frozenset({"no_grad"})
"""What stands among them and is entered by a `with`."""


# --- the two sides -------------------------------------------------------------------------------

Timed = Callable[[Callable[[], None]], None]
"""Runs something and notes how long it took."""


def by_interpreter(setup: str, text: str, timed: Timed) -> str:
    """Run a program by the interpreter, in a session of its own; gives what it prints."""
    printed: list[str] = []

    def emit(event: Any) -> None:
        assert type(event) is Printed
        printed.append(event.text)

    session = Session(emit, compiles=False)
    for _ in session.run(setup, "program"):
        pass
    statements = session.parse(text, "program")
    timed(lambda: [None for _ in session.execute(statements)].clear())
    return "".join(printed)


def by_cpython(setup: str, text: str, timed: Timed) -> str:
    """Run a program by CPython, with the same ops; gives what it prints."""
    names: dict[str, Any] = {"__name__": "program"}
    code = compile(text, "program", "exec")
    session = Session(compiles=False)
    with _ops_of_python(), session.running(), redirect_stdout(io.StringIO()) as printed:
        exec(compile(setup, "program", "exec"), names)
        timed(lambda: exec(code, names))
    return printed.getvalue()


@contextmanager
def _ops_of_python() -> Iterator[None]:
    """Let CPython find the ops: in a module `torch`, and as the methods of tensors."""
    torch = ModuleType("torch")
    vars(torch).update(catalogue.modules["torch"], no_grad=namespace.module("torch").get("no_grad"))
    own = dict(vars(Tensor))
    added: dict[str, Any] = {**catalogue.methods}
    added |= {name: property(read) for name, read in catalogue.properties.items()}
    added = {name: each for name, each in added.items() if name not in own}
    for symbol, name in ARITHMETIC.items():
        op = catalogue.operators[symbol]
        added[f"__{name}__"] = op
        added[f"__r{name}__"] = lambda self, other, op=op: op(other, self)
        if symbol in catalogue.inplace_operators:
            added[f"__i{name}__"] = catalogue.inplace_operators[symbol]
    added["__getitem__"] = catalogue.operators["[]"]
    added["__neg__"] = catalogue.unary_operators["-"]
    added["grad"] = property(own["grad"].fget, catalogue.setters["grad"])
    for name, each in added.items():
        setattr(Tensor, name, each)
    sys.modules["torch"] = torch
    try:
        yield
    finally:
        del sys.modules["torch"]
        for name in added:
            if name in own:
                setattr(Tensor, name, own[name])
            else:
                delattr(Tensor, name)


Side = Callable[[str, str, Timed], str]

SIDES: dict[str, Side] = {"gradcli": by_interpreter, "CPython": by_cpython}


def spent(side: Side, setup: str, text: str, clock: Clock) -> Spent:
    """What one run of a program takes, under a clock whose ops are in the tables."""
    seconds = 0.0

    def timed(run: Callable[[], None]) -> None:
        nonlocal seconds
        gc.collect()
        gc.disable()  # the command line's thresholds are so high that it would not run either
        clock.seconds, clock.calls = 0.0, 0
        began = thread_time()
        run()
        seconds = thread_time() - began
        gc.enable()

    printed = side(setup, text, timed)
    return Spent(seconds, clock.seconds, clock.calls, printed)


# --- the table -----------------------------------------------------------------------------------


def interpreted(names: list[str], quick: bool, times: int) -> int:
    """Print the table; 1 where the sides print different things."""
    gc.set_threshold(100_000, 20, 100)  # as on the command line
    times = 1 if quick else 10 * times
    print(
        f"{'ms':<22}{'ops':>7}{'gradcli':>9}{'in ops':>8}{'outside':>9}"
        f"{'CPython':>9}{'in ops':>8}{'outside':>9}{'ratio':>7}{'must':>6}"
    )
    ratios, differ = [], []
    for name in names or list(STATEMENTS):
        setup, text = STATEMENTS[name].read_text(encoding="utf-8").split(_LINE)
        found, clock = measured(setup, text, times)
        if len({each[0].printed for each in found.values()}) > 1:
            differ.append(name)
        outside = {side: min(run.outside(clock) for run in runs) for side, runs in found.items()}
        line = f"{name:<22}{found['gradcli'][0].calls:>7}"
        for side, runs in found.items():
            whole, ops = min(run.whole for run in runs), min(run.ops for run in runs)
            line += f"{whole * 1e3:>9.2f}{ops * 1e3:>8.2f}{outside[side] * 1e3:>9.3f}"
        ratios.append(outside["gradcli"] / outside["CPython"])
        missed = "" if ratios[-1] <= BAR or quick else " missed"
        print(f"{line}{ratios[-1]:>7.1f}{BAR:>6.0f}{missed}", flush=True)
    print(f"{'geometric mean':<81}{geometric_mean(ratios):>14.1f}")
    for name in differ:
        print(f"{name} prints different things")
    return 1 if differ else 0


def measured(setup: str, text: str, times: int) -> tuple[dict[str, list[Spent]], float]:
    """The runs of each side, in turn, and what the clock takes for a call."""
    clock = Clock()
    for side in SIDES.values():  # at its first call an op is generated, and enters the tables
        side(setup, text, lambda run: run())
    found: dict[str, list[Spent]] = {name: [] for name in SIDES}
    with clock.in_tables():
        for _ in range(times):
            for name, side in SIDES.items():
                found[name].append(spent(side, setup, text, clock))
    return found, clock.own()
