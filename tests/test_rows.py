"""The helper that tests many rows in one test tells of each row that fails."""

from __future__ import annotations

from typing import Any

import pytest

from gradcli.state import active
from tests.rows import Size, each_row

SEEN: list[Any] = []


@each_row(("number", "text"), [(each, f"row {each}") for each in range(7)], str, size=3)
def test_rows_have_a_state_of_their_own(
    number: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert text == f"row {number}"
    assert active.state not in SEEN
    SEEN.append(active.state)
    monkeypatch.setattr(active.state, "place", text)


@pytest.fixture
def shared() -> list[int]:
    return []


@pytest.mark.parametrize("start", [0, 10])
@each_row("number", range(3))
def test_rows_share_what_else_a_test_asks_for(
    start: int, number: int, shared: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    print(start + number)
    shared.append(number)
    assert shared == list(range(number if Size.most == 1 else 0, number + 1))
    assert capsys.readouterr().out == f"{start + number}\n"


def _ended(outcomes: dict[str, str]) -> BaseException | None:
    """What the test of rows raises that end so."""

    def test(row: str) -> None:
        if outcomes[row] == "fails":
            raise ValueError(row)
        if outcomes[row] != "passes":
            getattr(pytest, outcomes[row])(row)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Size, "most", None)  # in one test also where each row is to have its own
        (mark,) = (tested := each_row("row", outcomes, str)(test)).pytestmark
    try:
        for part in mark.args[1]:
            tested(part)
    except (BaseExceptionGroup, Exception, pytest.skip.Exception, pytest.xfail.Exception) as end:
        return end
    except pytest.fail.Exception as end:
        return end
    return None


def test_a_row_that_fails_fails_the_test() -> None:
    assert _ended({"a": "passes", "b": "passes"}) is None
    one = _ended({"a": "passes", "b": "fails", "c": "xfail"})
    assert isinstance(one, ValueError)
    assert one.__notes__ == ["in the row b"]
    both = _ended({"a": "fails", "b": "fail", "c": "skip"})
    assert isinstance(both, BaseExceptionGroup)
    assert [str(each) for each in both.exceptions] == ["a", "b"]


def test_rows_that_are_excused() -> None:
    assert isinstance(_ended({"a": "passes", "b": "xfail"}), pytest.xfail.Exception)
    assert isinstance(_ended({"a": "skip", "b": "skip"}), pytest.skip.Exception)
    assert _ended({"a": "passes", "b": "skip"}) is None
