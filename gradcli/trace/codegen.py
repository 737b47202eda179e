"""The functions that straight-line text comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from gradcli.trace.builder import Line, StraightLine, variables_in
from gradcli.trace.ufuncs import Variable


def functions_of(
    text: StraightLine, wanted: Sequence[Variable], changed: Sequence[Any]
) -> tuple[Callable[[], Any], Callable[[], Any], Callable[[Any], Any]]:
    """The text as three functions: the first makes what is the same in all rounds until an ordinary
    one comes, the second has all effects, the third makes the values of some variables of what the
    second returns, when somebody wants to see them.

    Args:
        wanted: the variables.
        changed: the arrays that the text writes to.
    """
    lasting, lines = _lasting(text, changed)
    names = dict.fromkeys(line.name for line in lasting)
    for variable in (*chain.from_iterable(map(_read, text.lines)), *wanted):
        variable.constant |= variable.name in names
    early, late = _parted(text, lines, wanted, changed)
    made = {line.name for line in late}
    read = [*chain.from_iterable(map(_read, late)), *wanted]
    kept = {each.name: each for each in read if not each.constant and each.name not in made}
    return (
        _compiled(
            text,
            "begin()",
            [f"global {', '.join(names)}", *map(text.statement, lasting)] if lasting else [],
            (),
        ),
        _compiled(text, "run_round()", _body(text, early, list(kept.values())), kept),
        _compiled(
            text,
            "finish(kept)",
            [f"({''.join(f'{name}, ' for name in kept)}) = kept", *map(text.statement, late)],
            [variable.name for variable in wanted],
        ),
    )


def _compiled(
    text: StraightLine, head: str, body: Iterable[str], names: Iterable[str]
) -> Callable[..., Any]:
    """A function of that head and body, which returns what has these names."""
    lines = [f"def {head}:", *body, f"return ({''.join(f'{name}, ' for name in names)})"]
    exec(compile("\n    ".join(lines), "<round of a loop>", "exec"), text.namespace)
    function: Callable[..., Any] = text.namespace[head.partition("(")[0]]
    return function


def _lasting(text: StraightLine, changed: Sequence[Any]) -> tuple[list[Line], list[Line]]:
    """The lines that give the same in every round, as what they read stays as it is; and the
    others. What an effect reads is not among the former: it may be changed or kept there.
    """
    effects = [variable for line in text.lines if not line.call for variable in _read(line)]
    moving = [*changed, *(variable.value for variable in effects)]
    lasting, others = [], []
    names: set[str] = set()
    for line in text.lines:
        read = _read(line)
        values = [line.value, *(variable.value for variable in read)]
        if (
            line.call
            and isinstance(line.value, (np.ndarray, np.generic))
            and all(variable.constant or variable.name in names for variable in read)
            and not any(np.may_share_memory(one, other) for one in values for other in moving)
        ):
            lasting.append(line)
            names.add(line.name)
        else:
            others.append(line)
    return lasting, others


def _read(line: Line) -> list[Variable]:
    return list(variables_in(line.operands))


def _parted(
    text: StraightLine, lines: list[Line], wanted: Sequence[Variable], changed: Sequence[Any]
) -> tuple[list[Line], list[Line]]:
    """The lines of a round, and those that only what is wanted needs: their operands are the
    same after it, and with floating numbers no call fails. What nothing needs is left out.
    """
    dtypes = {array.dtype for array in changed}
    # What a round is given may lie where the text writes to.
    given = [array for array in text.given if array.dtype in dtypes]
    moving = [*changed, *given]
    needed: set[str] = set()
    shown = {variable.name for variable in wanted}
    early, late = [], []
    for line in reversed(lines):
        read = _read(line)
        if (
            not line.call
            or line.name in needed
            or getattr(line.value, "dtype", _NOTHING).kind != "f"
            or any(np.may_share_memory(v.value, each) for v in read for each in moving)
        ):
            early.append(line)
            needed.update(variable.name for variable in read)
        elif line.name in shown:
            late.append(line)
            shown.update(variable.name for variable in read)
    return early[::-1], late[::-1]


def _body(text: StraightLine, lines: list[Line], returned: Sequence[Variable]) -> Iterator[str]:
    """Some lines; the memory of large arrays is used again, or let go, when they were read for
    the last time.
    """
    last: dict[str, int] = {}
    alive: dict[str, Any] = {}
    constants = text.constants()
    for number, line in enumerate(lines):
        for variable in variables_in(line.operands):
            last[variable.name] = number
            alive[variable.name] = variable.value
    for variable in returned:
        last[variable.name] = len(lines)
        alive[variable.name] = variable.value
    for number, line in enumerate(lines):
        dying = [
            variable
            for variable in dict.fromkeys(variables_in(line.operands))
            if not variable.constant
            and last[variable.name] == number
            and variable.value.nbytes >= _LARGE
        ]
        for variable in dying:
            del alive[variable.name]
        memory = ""
        if line.elementwise:
            for variable in dying:
                if variable.own and _may_take_over(
                    variable.value, line.value, (*alive.values(), *constants)
                ):
                    memory = variable.name
                    break
        yield text.statement(line, memory)
        for variable in dying:
            if variable.name != line.name:
                yield f"{variable.name} = None"


def _may_take_over(old: Any, new: Any, alive: Iterable[Any]) -> bool:
    """Whether a result may have an operand's memory: it lies the same way, and nothing that is read
    later lies there.
    """
    return (
        old.shape == new.shape
        and old.strides == new.strides
        and old.dtype is new.dtype
        and not any(np.may_share_memory(old, each) for each in alive)
    )


_LARGE = 1 << 12
"""Bytes from which on memory is worth keeping an eye on."""

_NOTHING = np.dtype(np.void)
"""The dtype of what is no array."""
