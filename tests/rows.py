"""Long tables, whose rows are tested many to a test: pytest and its workers take two milliseconds
for a test, which is more than most rows take.

Each row still has a session's state of its own, and all that fail are told. `--apart` makes a test
of each row, to choose among them with `-k`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from gradcli.state import State, active

_MARKED = type(pytest.param(None))
"""A row with marks of its own, such as one that is a sweep already."""


class Size:
    """How many rows make a test, at most."""

    most: int | None = None


@contextmanager
def fresh() -> Iterator[State]:
    """A session's state of its own within the block, in which inf and nan come without warnings."""
    before = active.state
    active.state = State()
    try:
        with np.errstate(all="ignore"):
            yield active.state
    finally:
        active.state = before


def each_row(
    names: str | Sequence[str],
    rows: Iterable[Any],
    ids: Callable[[Any], str] | None = None,
    size: int = 24,
    every: int = 1,
) -> Callable[[Callable[..., None]], Any]:
    """Like `pytest.mark.parametrize`, with so many rows to a test.

    The rows of a test share its fixtures, but for `monkeypatch`: none may keep what a row did.

    Args:
        names: what the values of a row are called; one name for rows of one value.
        ids: what a row is called; by its first value where nothing else is said.
        every: which rows are in the suite, the second or third each time; the others are a sweep.
    """
    listed = list(rows)
    called_by = ids or (repr if isinstance(names, str) else lambda row: repr(row[0]))
    step = min(size, Size.most or size)
    kept = _parts(listed[::every], step)
    swept = _parts([row for at, row in enumerate(listed) if at % every], step)
    called = [
        called_by(part[0]) if step == 1 else f"{called_by(part[0])} to {called_by(part[-1])}"
        for part in (*kept, *swept)
    ]
    parts = [*kept, *(pytest.param(part, marks=pytest.mark.sweep) for part in swept)]

    def decorate(test: Callable[..., None]) -> Any:
        values = {names} if isinstance(names, str) else set(names)
        asked = [name for name in inspect.signature(test).parameters if name not in values]
        patches = "monkeypatch" in asked

        def tested(part: list[Any], **fixtures: Any) -> None:
            outcomes = [
                (called_by(row), _outcome(test, {**_arguments(names, row), **fixtures}, patches))
                for row in part
            ]
            _conclude([(row, raised) for row, raised in outcomes if raised is not None], len(part))

        for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(tested, attribute, getattr(test, attribute))
        shared = ["part", *(name for name in asked if name != "monkeypatch")]
        vars(tested)["__signature__"] = inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in shared]
        )
        return pytest.mark.parametrize("part", parts, ids=called)(tested)

    return decorate


def _parts(rows: list[Any], size: int) -> list[list[Any]]:
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def sampled(rows: Iterable[Any], every: int) -> list[Any]:
    """The values of one parameter, of which each second or third is in the suite; the others are a
    sweep.
    """
    return [
        row
        if at % every == 0 or isinstance(row, _MARKED)
        else pytest.param(row, marks=pytest.mark.sweep)
        for at, row in enumerate(rows)
    ]


def _arguments(names: str | Sequence[str], row: Any) -> dict[str, Any]:
    return {names: row} if isinstance(names, str) else dict(zip(names, row, strict=True))


def _outcome(
    test: Callable[..., None], arguments: dict[str, Any], patches: bool
) -> BaseException | None:
    """What the test of a row raises; None where it passes."""
    try:
        with fresh(), pytest.MonkeyPatch.context() as monkeypatch:
            test(**arguments, **({"monkeypatch": monkeypatch} if patches else {}))
    except (Exception, pytest.fail.Exception, pytest.skip.Exception, pytest.xfail.Exception) as end:
        return end
    return None


def _conclude(raised: list[tuple[str, BaseException]], count: int) -> None:
    """End a test as its rows did: failed where one failed, and skipped where all were."""
    excused = (pytest.skip.Exception, pytest.xfail.Exception)
    failed = [each for each in raised if not isinstance(each[1], excused)]
    for row, failure in failed:
        failure.add_note(f"in the row {row}")
    if len(failed) == 1:
        raise failed[0][1]
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} of {count} rows", [each for _, each in failed])
    misfits = [row for row, each in raised if isinstance(each, pytest.xfail.Exception)]
    if misfits:
        pytest.xfail(f"known misfits: {', '.join(misfits)}")
    if len(raised) == count:
        pytest.skip(str(raised[0][1]))
