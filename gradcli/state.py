"""The state of a session: everything that changes while programs run and is not a tensor or a node.

One slotted object per session, reached as `active.state`; sessions do not share it, and one thread
runs one session. Nothing else in gradcli holds state. This module imports nothing of gradcli but
`errors` and `limits`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ReferenceType, WeakSet, WeakValueDictionary

from gradcli.errors import Warned
from gradcli.limits import Limits, Steps

if TYPE_CHECKING:
    from gradcli.errors import Label, Span


LAZY_FROM = 1 << 19
"""Elements from which on a pass over memory costs more than planning one."""


_TENSOR_STEPS = 4
"""Loop iterations without tensors in the time that one of many tensors takes."""


class PrintOptions:
    """How tensors are written; the defaults are those of `torch.set_printoptions`."""

    __slots__ = ("edgeitems", "linewidth", "precision", "sci_mode", "threshold")

    def __init__(self) -> None:
        self.precision = 4
        self.threshold: float = 1000
        self.edgeitems = 3
        self.linewidth = 80
        self.sci_mode: bool | None = None


class State:
    """What a session remembers between two operations.

    Attributes:
        addition: the node in C by which `sum` adds; None before it was made.
        autocast: what casts operands inside `torch.autocast`; None outside.
        addresses: the memory whose address a program has seen, and its number, by the array's `id`.
        arrays: what NumPy keeps for the session, None before its first use.
        grad_enabled: whether operations are recorded in the graph.
        inference: whether `torch.inference_mode` is on.
        sequence_nr: the number of the node made last; a node's own number orders the backward pass.
        object_ids: how many objects have been given a printed number (`<MulBackward0 object at
            0x3>`).
        place: the span of the current operation, None outside a program.
        stack: the language functions that are running, outermost first: `(name, span of the call)`.
        compiles: whether loops and backward passes that run often are compiled.
        calls: the calls of modules that are running, outermost first; kept while something records.
        modules: every module that is alive, by how many had been made with it; None before the
            first.
        values: the program's names.
        frames: the variables of each function as its last call left them, by the function's
            qualified name, the call that ended last behind the others; None where none are kept.
        born: the tensors made inside the innermost function that `torch.func` differentiates, by
            their `id`; None outside such functions.
        backward_pass: the running backward pass, None outside of one.
        batch: the running `vmap`, the innermost one, which computes ops on batched values; None
            outside.
        data_replaced: told of a leaf whose data is replaced by data of another shape, so that what
            was compiled for the old one lets go of the graphs that it holds; None without.
        default_device: where new tensors are made, None for the CPU.
        default_dtype: the dtype of new floating tensors, as the name of a dtype.
        hook_count: how many hooks were registered.
        lazy_from: pointwise ops on arrays of so many elements are lazy.
        lazy_sums: the sums that are not computed yet.
        print_options: how tensors are written.
        printed: objects without an attribute for their printed number, with it, by `id`.
        recorder: receives every operation and every backward step; None while nothing records.
        duals: the levels of forward mode, None while no program asked for one.
        emit: receives what a program shows (text, traces) as it runs.
        generators: random generators by device, made when first used.
        pending_readers: the pending readers of the write barrier: lazy arrays over memory that
            plans read, by the `id` of its array; None before the first.
        library: what modules of libraries keep, by module: `random`'s generator.
        limits: how much the session may use, and whether it may touch files.
        narrow_draws: whether float64 numbers are those that float32 would draw, of a program that
            runs in float64 to be compared with itself.
        manual_seed: what all random generators start from, None where nobody asked.
        steps: what is left of the limit of steps.
        outermost: the iterator of the outermost loop over a sequence, with the length of that; None
            outside of one.
        is_in_effects: whether a compiled iteration is in the middle of its effects, where it is not
            interrupted.
        interruption: what wanted to interrupt it, and is raised when it has ended.
        transforms: the transforms of `torch.func` that are running their function, outermost
            first.
        transform_count: how many of them have begun.
        temporary: the files and folders that do not outlive the process: what is being written, and
            what programs make with `tempfile`, by whatever session.
        warned: the warnings that were emitted, by code and span.
    """

    __slots__ = (
        "addition",
        "addresses",
        "arrays",
        "autocast",
        "backward_pass",
        "batch",
        "born",
        "calls",
        "closure_calls",
        "compiles",
        "data_replaced",
        "default_device",
        "default_dtype",
        "duals",
        "emit",
        "frames",
        "generators",
        "grad_enabled",
        "hook_count",
        "inference",
        "interruption",
        "is_in_effects",
        "lazy_from",
        "lazy_sums",
        "library",
        "limits",
        "manual_seed",
        "module_count",
        "modules",
        "narrow_draws",
        "notes_creation",
        "object_ids",
        "outermost",
        "pending_readers",
        "place",
        "print_options",
        "printed",
        "recorder",
        "sequence_nr",
        "stack",
        "steps",
        "transform_count",
        "transforms",
        "values",
        "warned",
    )

    temporary: ClassVar[set[str]] = set()

    def __init__(
        self, emit: Callable[[Any], None] | None = None, limits: Limits | None = None
    ) -> None:
        self.addition: Any = None
        self.addresses: dict[int, tuple[ReferenceType[Any], int]] = {}
        self.arrays: Any = None
        self.autocast: Any = None
        self.compiles = True
        self.data_replaced: Callable[[Any], None] | None = None
        self.grad_enabled = True
        self.inference = False
        self.born: WeakValueDictionary[int, Any] | None = None
        self.notes_creation = False
        self.sequence_nr = 0
        self.object_ids = 0
        self.hook_count = 0
        self.place: Span | None = None
        self.outermost: tuple[Any, int] | None = None
        self.stack: list[tuple[str, Span | None]] = []
        self.calls: list[Any] = []
        self.closure_calls: Callable[[Any], Callable[[], Any]] | None = None
        self.module_count = 0
        self.modules: WeakValueDictionary[int, Any] | None = None
        self.values: dict[str, Any] = {}
        self.frames: dict[str, dict[str, Any]] | None = None
        self.default_device: str | None = None
        self.default_dtype = "float32"
        self.lazy_from = LAZY_FROM
        self.lazy_sums: WeakSet[Any] = WeakSet()
        self.pending_readers: WeakValueDictionary[int, Any] | None = None
        self.print_options = PrintOptions()
        self.backward_pass: Any = None
        self.batch: Any = None
        self.printed: dict[int, tuple[Any, int]] = {}
        self.recorder: Any = None
        self.duals: Any = None
        self.emit: Callable[[Any], None] = emit or (lambda event: None)
        self.generators: dict[str, Any] = {}
        self.library: dict[str, Any] = {}
        self.limits = limits or Limits()
        self.manual_seed: int | None = None
        self.narrow_draws = False
        self.steps = Steps(self.limits.steps)
        self.is_in_effects = False
        self.interruption: BaseException | None = None
        self.transforms: list[Any] = []
        self.transform_count = 0
        self.warned: set[tuple[Any, ...]] = set()

    def names(self) -> dict[str, Any]:
        """The program's names, and behind them those of its functions' variables; of two alike, the
        program's or else that of the call that ended last.
        """
        values = dict(self.values)
        for variables in reversed((self.frames or {}).values()):
            for name, value in variables.items():
                if name:  # and not what leads to the variables around
                    values.setdefault(name, value)
        return values

    def forget_methods(self, name: str) -> None:
        """Forget the variables of the methods of a class, which would keep what they hold alive."""
        frames = self.frames or {}
        for path in list(frames):
            if path.rpartition(".")[0].rpartition(".")[2] == name:
                del frames[path]

    def warn(
        self,
        code: str,
        message: str,
        *,
        text: str | None = None,
        category: str = "UserWarning",
        help: str | None = None,
        span: Span | None = None,
        labels: tuple[Label, ...] = (),
    ) -> None:
        """Emit a warning about the current operation, or about `span`: once for each span.

        Args:
            text: what PyTorch's own warning says, of the class `category`; None where PyTorch does
                not warn. A program that catches, hides or raises warnings gets this one.
        """
        filters = self.library.get("warnings")
        if text is not None and filters is not None and filters.takes(category, text):
            return
        place = span or self.place
        where = message if place is None else (place.source, place.start, place.end)
        if (code, where) not in self.warned:
            self.warned.add((code, where))
            self.emit(Warned(code, message, place, help, labels))


class _Active(threading.local):
    """The state of the session that this thread runs; a thread outside any session has one of its
    own.
    """

    def __init__(self) -> None:
        self.state = State()


active = _Active()


def is_unobserved(state: State) -> bool:
    """Whether nobody listens, and operations have no other meaning than always."""
    return (
        state.recorder is None
        and state.batch is None
        and state.duals is None
        and state.backward_pass is None
        and not state.inference
        and not state.transforms
    )


def charge_steps(count: int) -> None:
    """Count steps before they are made, such as the parts of a tensor that an operation is about to
    make; raises E605 where the steps are used up.
    """
    steps = active.state.steps
    steps.left -= count
    steps.charged += count
    if steps.left < 0:
        raise active.state.limits.too_many_steps()


def charge_tensors(count: int) -> None:
    """Count as steps the tensors that an operation is about to make or read in one go."""
    charge_steps(count * _TENSOR_STEPS)


def computed(function: Any, *operands: Any) -> Any:
    """The array that a function other than an op returns for arrays and settings; reported to the
    recorder. A function that draws random numbers takes them from the session's generator.
    """
    result = function(*operands)
    recorder = active.state.recorder
    if recorder is not None:
        recorder.computed(function, operands, result)
    return result


def created(function: Any, *operands: Any) -> Any:
    """The array that a function makes of arrays and settings for a new tensor, or for the op that
    is to return it; reported to a recorder of loops, which makes it anew in every iteration. One
    that draws random numbers takes them from the session's generator or from one it is given.
    """
    result = function(*operands)
    recorder = active.state.recorder
    if recorder is not None:
        recorder.created(function, operands, result)
    return result


def look(check: Any, *operands: Any) -> None:
    """Report a read of values outside the ops to the recorder: a check that passed, or, where that
    is None, the number that was taken out of an array.
    """
    recorder = active.state.recorder
    if recorder is not None:
        recorder.read_value(check, operands)
