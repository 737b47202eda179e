"""A program with a loop in which something happens late, and what becomes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from gradcli.errors import GradcliError, Warned
from gradcli.language.events import Printed
from gradcli.session import Session
from gradcli.show.diagnostics.human import diagnostic
from tests.late.leavings import left_by
from tests.running import ADDRESS, time_limit

Row = TypeVar("Row")

ROUNDS = 120
"""Iterations of a loop: so many that it is compiled, and that many follow what happens."""

LATE = 100
"""The iteration in which something happens."""

SECONDS = 20.0
"""What one program may take."""


class Late(NamedTuple):
    """A program, and what it is called in a report."""

    name: str
    program: str


class Run(NamedTuple):
    """What became of a program: what it printed and warned, its error, what it left."""

    printed: str
    warned: str
    error: str
    left: list[str]
    compiled: int

    def differences(self, other: Run) -> Iterator[str]:
        """How two runs of one program differ, in words."""
        for what in ("error", "printed", "warned"):
            here, there = getattr(self, what), getattr(other, what)
            if here != there:
                yield f"{what}: {_part(here, there)!r}, interpreted {_part(there, here)!r}"
        if self.left != other.left:
            found, expected = (
                dict(line.split(" ", 1) for line in each.left) for each in (self, other)
            )
            yield from _left_differently(found, expected)


def _left_differently(found: dict[str, str], expected: dict[str, str]) -> Iterator[str]:
    """How what was left differs; where it is only what is shared, the first name of those."""
    shared = []
    for name in {**expected, **found}:
        here, there = found.get(name, "nothing"), expected.get(name, "nothing")
        if _NUMBERED.sub("", here) != _NUMBERED.sub("", there):
            here, there = _NUMBERED.sub("", here), _NUMBERED.sub("", there)
            yield f"{name}: {_part(here, there)}, interpreted {_part(there, here)}"
        elif here != there:
            shared.append(f"{name} shares: {_part(here, there)}, interpreted {_part(there, here)}")
    yield from shared[:1]


_NUMBERED = re.compile(r"[#@]\d+")


class Verdict(NamedTuple):
    """What running a program both ways showed."""

    late: Late
    compiled: int
    differs: list[str]


def _part(text: str, other: str, width: int = 160) -> str:
    """What a text says from where it begins to differ from another."""
    if len(text) <= width:
        return text
    start = next((n for n, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), 0)
    start = max(0, start - 20)
    return f"…{text[start : start + width]}…"


def run(program: str, compiles: bool = True) -> Run:
    """Run a program, compiled or interpreted."""
    printed: list[str] = []
    warned: list[str] = []

    def emit(event: object) -> None:
        if isinstance(event, Printed):
            printed.append(event.text)
        elif isinstance(event, Warned):
            place = "" if event.span is None else f"{event.span.line}:{event.span.column} "
            warned.append(f"{place}{event.code} {event.message}")

    session = Session(emit, compiles=compiles)
    error = ""
    try:
        with time_limit(SECONDS):
            for _ in session.run(program, "late"):
                pass
    except GradcliError as failure:
        error = diagnostic(failure)
    with session.running():
        left = left_by(session)
    compiled = sum(each.compiled_count for each in session.interpreter.hot_loops.values())
    shown = ADDRESS.sub("0x", "".join(printed))
    return Run(shown, "\n".join(warned), ADDRESS.sub("0x", error), left, compiled)


def judged(late: Late) -> Verdict:
    """A program run both ways."""
    compiled, interpreted = run(late.program), run(late.program, compiles=False)
    differs = list(compiled.differences(interpreted))
    return Verdict(late if differs else Late(late.name, ""), compiled.compiled, differs)


def sample(rows: Sequence[Row], count: int, first: int = 0) -> list[Row]:
    """So many rows of a table, at even distances, from the one of a number on."""
    if count >= len(rows):
        return list(rows)
    return [rows[(first + n * len(rows) // count) % len(rows)] for n in range(count)]
