"""`--no-compiled-loops`: every loop and backward pass is interpreted, and prints the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gradcli.autograd.engine import engine as passes
from gradcli.doors.python.program import run
from gradcli.doors.python.session import Session as LibrarySession
from gradcli.session import Session
from tests.command_line import CommandLine

BOTH = """\
w = tensor([1., 2.], requires_grad=True)
kept = []
for n in range(90):
    w.grad = None
    (w * w * n).sum().backward()
for n in range(90):
    kept.append((w * w).sum())
    kept[-1].backward(retain_graph=True)
print(w.grad, len(kept))
"""
"""A loop that is compiled, and one whose backward pass is."""


class Compiling:
    """The sessions that were made, and how many backward passes were compiled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sessions: list[Session] = []
        self.passes = 0
        compiled = passes._compiled

        def made(*args: Any, **settings: Any) -> Session:
            self.sessions.append(Session(*args, **settings))
            return self.sessions[-1]

        def count(*args: Any) -> Any:
            self.passes += 1
            return compiled(*args)

        monkeypatch.setattr("gradcli.running.run.Session", made)
        monkeypatch.setattr(passes, "_compiled", count)

    @property
    def iterations(self) -> int:
        """How many iterations ran compiled."""
        loops = [loop for each in self.sessions for loop in each.interpreter.hot_loops.values()]
        return sum(loop.compiled_count for loop in loops)


WAYS: dict[str, tuple[Sequence[str], str | None]] = {
    "one-shot": (["-e", BOTH], None),
    "a file": (["run", "both.grad"], None),
    "standard input": (["run", "-"], BOTH),
    "a pipe": ([], BOTH),
    "the session": (["repl"], BOTH.replace("\nfor", "\n\nfor").replace("\nprint", "\n\nprint")),
    "blame": (["blame", "-e", BOTH + "y = w / 0"], None),
}

RECORDED = ("one-shot", "blame")
"""Those that record the graph, which nothing compiled makes; `blame` that of a few iterations."""


@pytest.mark.parametrize("way", WAYS)
def test_no_compiled_loops(here: Path, gradcli: CommandLine, way: str) -> None:
    (here / "both.grad").write_text(BOTH)
    words, stdin = WAYS[way]
    shown = []
    for options in [], ["--no-compiled-loops"]:
        with pytest.MonkeyPatch.context() as patched:
            compiling = Compiling(patched)
            shown.append(gradcli(*words, *options, stdin=stdin))
        assert (compiling.iterations > 50) == (not options and way != "one-shot")
        assert (compiling.passes > 0) == (not options and way not in RECORDED)
    assert shown[0].out == shown[1].out
    assert shown[0].err == shown[1].err
    assert ("tensor([358., 716.]) 90\n" if way != "blame" else "y = w / 0") in shown[0].out


def test_no_compiled_loops_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    compiling = Compiling(monkeypatch)
    printed = [run(BOTH).printed, run(BOTH, no_compiled_loops=True).printed]
    session = LibrarySession(no_compiled_loops=True)
    session.reset()
    printed.append(session.run(BOTH).printed)
    assert [each == printed[0] for each in printed] == [True] * 3
    assert [each.state.compiles for each in compiling.sessions] == [True, False, False, False]
    assert not compiling.iterations


def test_loops_that_are_not_compiled_are_not_explained(gradcli: CommandLine) -> None:
    shown = gradcli("run", "--explain-loops", "--no-compiled-loops", "-", stdin="x = 1\n")
    assert (shown.code, shown.out) == (2, "")
    assert "--explain-loops and --no-compiled-loops exclude each other" in shown.err
