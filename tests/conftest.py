"""What every test starts from."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradcli.state
from gradcli.language.functions import hot_bodies
from gradcli.state import State
from tests.command_line import CommandLine
from tests.rows import Size, fresh
from tests.torch_python import torch_python

pytest.register_assert_rewrite("tests.recorded")

_COMPILED = "GRADCLI_TESTS_COMPILED"
"""The variable that names a folder of byte code to the workers of a run, and to its processes."""

gc.disable()  # what is collected is kept: `pytest_collection_finish`


def pytest_configure(config: pytest.Config) -> None:
    """Where Python is to leave no byte code beside the sources, keep it in a folder that goes with
    the run: hundreds of processes would compile the package, a second for each.
    """
    Size.most = 1 if config.getoption("--apart") else None
    if not sys.dont_write_bytecode:
        return
    if _COMPILED not in os.environ:
        folder = os.environ[_COMPILED] = tempfile.mkdtemp(prefix="gradcli-tests-")

        def remove() -> None:
            shutil.rmtree(folder, ignore_errors=True)

        config.add_cleanup(remove)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = os.environ[_COMPILED]
    sys.dont_write_bytecode = False


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[State]:
    """A session's state of its own for each test, in which inf and nan come without warnings."""
    with fresh() as state:
        yield state


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
    """Keep the collected items, a million objects, out of every later collection of garbage.

    These are rarer than Python's own, by the same measure: graphs are many objects that live.
    """
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Keep what the tests of a file leave for good, such as caches, out of later collections too:
    some commands collect before they measure, a second each time among ten million objects.
    """
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--lazy-from",
        type=int,
        metavar="N",
        help="defer pointwise operations on arrays of N elements and more; 1 for all of them",
    )

    parser.addoption(
        "--written-after",
        type=int,
        metavar="N",
        help="write bodies of programs as the host's functions after N runs; 0 for all of them",
    )

    parser.addoption("--apart", action="store_true", help="a test for each row of a long table")


@pytest.fixture(scope="session", autouse=True)
def _lazy_from(request: pytest.FixtureRequest) -> None:
    elements = request.config.getoption("--lazy-from")
    if elements is not None:
        gradcli.state.LAZY_FROM = elements


@pytest.fixture(scope="session", autouse=True)
def _written_after(request: pytest.FixtureRequest) -> None:
    calls = request.config.getoption("--written-after")
    if calls is not None:
        hot_bodies.HOT_AFTER = hot_bodies.HOT_ITERATIONS = calls


@pytest.fixture(name="python")
def _python() -> str:
    """A Python that has PyTorch; the test skips itself where none is here."""
    found = torch_python()
    if found is None:
        pytest.skip("no Python with PyTorch is here: GRADCLI_TORCH_PYTHON names one")
    return found
