"""What every test starts from."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gradcli.state
from gradcli.state import State, active
from tests.command_line import CommandLine

pytest.register_assert_rewrite("tests.recorded")


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[State]:
    """A session's state of its own for each test, in which inf and nan come without warnings."""
    before = active.state
    active.state = State()
    with np.errstate(all="ignore"):
        yield active.state
    active.state = before


@pytest.fixture(name="gradcli")
def _gradcli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The command, inside the test process."""
    return CommandLine(capsys)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pytest_collection_finish() -> None:
    """Keep the collected items, a million objects, out of every later collection of garbage."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--lazy-from",
        type=int,
        metavar="N",
        help="defer pointwise operations on arrays of N elements and more; 1 for all of them",
    )


@pytest.fixture(scope="session", autouse=True)
def _lazy_from(request: pytest.FixtureRequest) -> None:
    elements = request.config.getoption("--lazy-from")
    if elements is not None:
        gradcli.state.LAZY_FROM = elements
