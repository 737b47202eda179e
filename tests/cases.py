"""Tests of many random cases, always the same: a sample in the suite, all of them in `.ci/run`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy, tuples


def many(*strategies: SearchStrategy[Any], sample: int, all: int) -> Callable[[Any], Any]:
    """Test what the strategies draw: so many cases in the suite, so many behind `-m sweep`."""

    def decorate(test: Callable[..., None]) -> Any:
        @pytest.mark.parametrize("count", [sample, pytest.param(all, marks=pytest.mark.sweep)])
        def cases(count: int) -> None:
            @settings(
                max_examples=count,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            @given(tuples(*strategies))
            def each(drawn: tuple[Any, ...]) -> None:
                test(*drawn)

            each()

        for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(cases, attribute, getattr(test, attribute))
        return cases

    return decorate
