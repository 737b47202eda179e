"""The order of the house: imports, circles, folders, functions."""

from __future__ import annotations

from tests.house import report


def test_the_house_is_in_order() -> None:
    assert report() == ""
