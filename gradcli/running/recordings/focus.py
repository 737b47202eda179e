"""Which lines of a recording's program one operation needs, so that a question about it runs these
alone: a recording may hold a model of any size.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.tensor import Tensor
from gradcli.record import Record

_WORD = r"[A-Za-z_]\w*"
_NAMES = re.compile(rf"\b{_WORD}")
_PATHS = re.compile(rf"\b{_WORD}(?:\[\w+\])*(?:\.{_WORD}(?:\[\w+\])*)+")
_UNDER = re.compile(r"with [^:]*: ")
_ASSIGNED = re.compile(rf"({_WORD}(?:, {_WORD})*),? = (.*)")
_HELD = re.compile(r"(\S+) = (?:nn\.Parameter|torch\.empty)\(|(\S+)\.register_buffer\('(\w+)'")
_MADE = re.compile(r"(\S+) = \w+\(\)$|class |\S+\.add_module\(|\S+ = nn\.Sequential\(\)$")
_OUTSIDE = re.compile(r"\S+\.grad = |\w+\.(?:state|param_groups)\[|\w+\.step\(\)|recorded_step\(")
_CHOOSES = re.compile(r"\bwhere\(")
_MASKS = re.compile(r"\b(?:where|masked_fill)\(")


_DATA = re.compile(r"\w+ = recorded\('[^']*'(, .*)?\)(\.requires_grad_\(\))?$")
_WRITES = re.compile(r"_\(|inplace=True|\] = ")

NEAR = 12
"""So many lines ahead of an operation are run again where what they read is known."""

BIG = 1 << 16
"""Elements from which on a parameter is too big to be run with what stands behind it alone."""

_MODERATE = 1e6
"""Larger numbers may have grown in lines that are further ahead."""


class Focus(Record):
    """An operation that is asked about.

    Attributes:
        line: its line of the program.
        lines: the lines that it needs, with its own.
        operands: what names hold that these lines read and others make, and whether that requires
            grad.
    """

    line: int
    lines: frozenset[int]
    operands: Mapping[str, tuple[Any, bool]] = {}  # never written to


def focus_on(program: str, line: int, output: str) -> Focus | None:
    """The lines that the operation of a line needs; None where that cannot be read off them: where
    a backward pass stands ahead of it, its result goes through a `where()`, or the output of the
    program does not depend on it.
    """
    texts = program.split("\n")
    assigned = _ASSIGNED.match(_UNDER.sub("", texts[line - 1], count=1))
    if assigned is None or any(".backward(" in text for text in texts[:line]):
        return None
    names = set(_NAMES.findall(assigned[1]))
    if any(_CHOOSES.search(text) and names & _words(text) for text in texts[line:]):
        return None
    last = next((n for n in range(len(texts), line, -1) if ".backward(" in texts[n - 1]), None)
    if last is None or line not in _needed(texts[: last - 1], {output}):
        return None
    return Focus(line, frozenset(_needed(texts[:line], names)))


def writes(program: str) -> bool:
    """Whether a recording's program writes to a tensor in place ahead of its optimizers' steps."""
    texts = (text for text in program.split("\n") if not _DATA.match(text))
    return any(_WRITES.search(text) and not _OUTSIDE.match(text) for text in texts)


def choosing_lines(program: str) -> frozenset[int]:
    """The lines that choose among values by a mask."""
    texts = program.split("\n")
    return frozenset(n for n, text in enumerate(texts, 1) if _MASKS.search(text))


def last_choice(program: str, line: int) -> int:
    """The last line, of those near behind an operation, that chooses by a mask among values that
    are computed from its result; without one its own.
    """
    names: set[str] = set()
    end = line
    texts = program.split("\n")[line - 1 : line + NEAR]
    for number, text in enumerate(texts, line):
        assigned = _ASSIGNED.match(_UNDER.sub("", text, count=1))
        if assigned is None or (number > line and not names & _words(assigned[2])):
            continue
        names |= set(_NAMES.findall(assigned[1]))
        if _MASKS.search(text):
            end = number
    return end


def near(
    program: str,
    focus: Focus,
    recent: Iterable[tuple[int, Mapping[str, Any]]],
    big: Container[str] = (),
    least: int = 0,
) -> Focus:
    """The same operation with the lines alone that stand just ahead of it, and what they read of
    others.

    It is the same where what they read was written to, or is so large that what made it matters.

    Args:
        recent: the lines that ran last, with the tensors that each read, by name.
        big: the paths of parameters of many elements, to which no line ahead leads.
        least: the first of the lines that are kept in any case, by default its own.
    """
    texts = [_UNDER.sub("", text, count=1) for text in program.split("\n")]
    held = {n for n in focus.lines if _HELD.match(texts[n - 1]) or _MADE.match(texts[n - 1])}
    data = {n for n in focus.lines if _DATA.match(texts[n - 1])}
    close = [(n, values) for n, values in recent if n in focus.lines - held - data]
    for number, _ in reversed(close):
        ahead = number < (least or focus.line)
        if ahead and any(path in big for path in _PATHS.findall(texts[number - 1])):
            close = [(n, values) for n, values in close if n > number]
            break
    operands: dict[str, tuple[Any, bool]] = {}
    read: set[str] = set()
    assigned_names: set[str] = set()
    for number, values in close:
        assigned = _ASSIGNED.match(texts[number - 1])
        if assigned is None or _WRITES.search(texts[number - 1]):
            return focus
        for name in values.keys() - assigned_names - operands.keys():
            if values[name].version or _is_large(values[name]):
                return focus
            operands[name] = values[name].array, values[name].requires_grad
        read |= _words(assigned[2])
        assigned_names |= set(_NAMES.findall(assigned[1]))
        if number == focus.line and any(map(_is_large, values.values())):
            return focus
    parameters = _needed(texts[: focus.line], read - operands.keys() - assigned_names) & held
    return Focus(focus.line, frozenset({*(n for n, _ in close), *parameters}), operands)


def _is_large(tensor: Tensor) -> bool:
    """Whether a tensor of floating numbers holds a finite one that is large."""
    array = np.asarray(to_host(forced(tensor.array)))
    if not tensor.dtype.is_floating_point:
        return False
    with np.errstate(invalid="ignore"):
        return bool((np.isfinite(array) & (np.abs(array) > _MODERATE)).any())


def _needed(texts: Sequence[str], names: set[str]) -> set[int]:
    """The numbers of the lines that some names are computed from, read from the last line back."""
    wanted, lines = set(names), set()
    for number in range(len(texts), 0, -1):
        text = _UNDER.sub("", texts[number - 1], count=1)
        held = _HELD.match(text)
        assigned = _ASSIGNED.match(text)
        if not text or _OUTSIDE.match(text):
            continue
        if held is not None:
            path = held[1] or f"{held[2]}.{held[3]}"
            if path not in wanted:
                continue
        elif assigned is not None and not _MADE.match(text):
            targets = set(_NAMES.findall(assigned[1]))
            if not targets & wanted:
                continue
            wanted -= targets
        lines.add(number)
        wanted |= _words(text) if assigned is None else _words(assigned[2])
    return lines


def _words(text: str) -> set[str]:
    """The names and the paths of parameters in a text."""
    return {*_NAMES.findall(text), *_PATHS.findall(text)}
