"""`gradcli.torch`: records a block of a Python program under PyTorch, and asks about it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli.doors.python.host import Host
from gradcli.doors.python.questions import Answer, answered
from gradcli.doors.torch import recorder
from gradcli.doors.torch.command import known_functions
from gradcli.questions.blame import command as blaming
from gradcli.questions.check import command as checking
from gradcli.questions.derive import command as deriving
from gradcli.questions.explain import command as explaining
from gradcli.questions.why import command as reasoning
from gradcli.running.arguments.files import program_in
from gradcli.running.arguments.options import PICTURES, Options
from gradcli.running.source import Asked, Program


class Run:
    """A recording, and the questions that it answers.

    Attributes:
        path: the file; "" while the block of `record` is running.
    """

    def __init__(self, path: str = "") -> None:
        self.path = path

    def save(self, path: str) -> None:
        """Copy the recording to a file, `step.gradrun`."""
        if not path.endswith(".gradrun"):
            raise ValueError(f"the suffix of {path} is not .gradrun")
        shutil.copyfile(self._file(), path)

    # --- questions --------------------------------------------------------------------------------

    def why(self, question: str) -> Answer:
        """Why a tensor has a gradient, or has none: `run.why("net.0.weight")`."""
        wanted = reasoning.read_question(question)
        return self._ask("why", lambda asked: reasoning.why(asked, wanted))

    def blame(self, *, all: bool = False) -> Answer:
        """The first NaN or infinity."""
        return self._ask("blame", lambda asked: blaming.blame(asked, all=all))

    def flow(self) -> Answer:
        """How gradients fare in each layer."""
        return self._ask("explain", explaining.flow)

    def explain(
        self,
        *,
        element: Sequence[int] | None = None,
        ties: bool = False,
        paths: str | None = None,
        saved: bool = False,
    ) -> Answer:
        """The chain rule at work, edge by edge; the arguments are those of `gradcli.explain`."""
        index = None if element is None else tuple(element)
        return self._ask(
            "explain", lambda asked: explaining.explain(asked, index, ties, paths, saved)
        )

    def derive(self, *, target: str = "gradcli") -> Answer:
        """The gradients as formulas."""
        return self._ask("derive", lambda asked: deriving.derive(asked, target))

    def check(self, *, elements: int | None = None) -> Answer:
        """The gradients against central differences, taken in the replay."""
        wanted = checking.Check(1, elements, None, ())
        return self._ask("check", lambda asked: checking.check(asked, wanted))

    def picture(self, format: str = "svg") -> str:
        """The graph as one of the formats of pictures."""
        if format not in PICTURES:
            raise ValueError(f"a picture is one of {', '.join(PICTURES)}, not {format!r}")

        def draw(asked: Asked) -> int:
            asked.options.format = format
            return explaining.explain(asked)

        return self._ask("explain", draw).text

    def _repr_html_(self) -> str | None:
        return self.picture() if self.path else None

    def __repr__(self) -> str:
        return f"Run({self.path!r})"

    def _file(self) -> str:
        if not self.path:
            raise ValueError("the block is still running: the recording is there at its end")
        return self.path

    def _ask(self, command: str, ask: Callable[[Asked], int]) -> Answer:
        path, options = self._file(), Options()
        program = Program(program_in(path, options), path)
        return answered(Asked(Host(), command, program, [], options), ask)


class Torch:
    """What `gradcli.torch` has."""

    @staticmethod
    def open(path: str) -> Run:
        """A recording that was made before. Raises E502 and E504 for a file that is none."""
        program_in(path, Options())
        return Run(path)

    @staticmethod
    @contextmanager
    def record(model: Any = None) -> Iterator[Run]:
        """Record what PyTorch runs in a block.

        Args:
            model: a module all of whose parameters are asked about, those that nothing uses too.

        Raises:
            ValueError: PyTorch ran nothing in the block.
        """
        folder = tempfile.mkdtemp(prefix="gradcli-")
        run = Run()
        weakref.finalize(run, shutil.rmtree, folder, ignore_errors=True)
        path = os.path.join(folder, "run.gradrun")
        settings = recorder.Settings(path)
        settings.catalogue = frozenset(known_functions())
        session = recorder.Session(settings)
        session.begin()
        trace = session.recorder
        assert trace is not None
        if model is not None:
            trace.enter_root(model, sys._getframe(2))
        try:
            yield run
        finally:
            trace.end()
        if not recorder.save(trace):
            raise ValueError("PyTorch ran nothing in the block")
        run.path = path


torch = Torch()
"""`gradcli.torch`."""
