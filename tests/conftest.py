"""What every test starts from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gradcli.state import State, active


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[State]:
    """A session's state of its own for each test, in which inf and nan come without warnings."""
    before = active.state
    active.state = State()
    with np.errstate(all="ignore"):
        yield active.state
    active.state = before
