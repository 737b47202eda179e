"""Functions that iterations make, which hold variables or graphs of theirs: see `functions.txt`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.late.loop import LATE, ROUNDS, Late
from tests.late.reading import HEAD
from tests.late.texts import groups


def lates() -> Iterator[Late]:
    """The programs."""
    for title, lines in groups("functions.txt"):
        body = "\n".join(lines).replace("ROUNDS", str(ROUNDS)).replace("LATE", str(LATE))
        yield Late(f"functions: {title}", f"{HEAD}{body}\n")
