"""Running programs of the language inside the test process."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO, TextIOWrapper
from types import FrameType
from typing import Any

import pytest

from gradcli.autograd.tensor import Tensor
from gradcli.cli.main import run as command
from gradcli.errors import GradcliError, Source
from gradcli.language.events import Printed
from gradcli.language.interpreter import Interpreter
from gradcli.language.parser.parser import parse_program
from gradcli.library import namespace
from gradcli.session import Session
from gradcli.state import active
from tests.host import Finder
from tests.machine import PATIENCE, slowness

ADDRESS = re.compile(r"0x[0-9a-f]*")


def hide(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process find no such package, until the test ends."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Finder([package]), *sys.meta_path])


class Expression:
    """A program whose last statement is an expression, parsed once and evaluated at many points."""

    def __init__(self, text: str) -> None:
        self.statements = parse_program(Source("row", text))
        self.interpreter = Interpreter(active.state, lambda event: None, namespace)

    def __call__(self, **values: Tensor) -> Any:
        """The value of the last statement, for the given names."""
        self.interpreter.values.update(values)
        value = None
        for statement in self.statements:
            value = self.interpreter.execute(statement)
        return value


class Outcome:
    """What a program printed, and the error that ended it, if one did."""

    def __init__(self, session: Session, stdout: str, error: GradcliError | None) -> None:
        self.session = session
        self.stdout = stdout
        self.error = error

    @property
    def masked(self) -> str:
        """What was printed, without the numbers that tell nodes apart."""
        return ADDRESS.sub("0x", self.stdout)


def run(text: str, **settings: Any) -> Outcome:
    """Run a whole program in a session of its own, made with the settings."""
    printed: list[str] = []

    def emit(event: Any) -> None:
        if isinstance(event, Printed):
            printed.append(event.text)

    session = Session(emit, **settings)
    error = None
    try:
        for _ in session.run(text, "program.grad"):
            pass
    except GradcliError as failure:
        error = failure
    return Outcome(session, "".join(printed), error)


class OutOfTime(BaseException):
    """A program ran longer than a test allows; no `except` of it or of gradcli catches this."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTime in the main thread when the block takes more of the processor's time, or does
    not end for another reason.
    """

    def stop(signum: int, frame: FrameType | None) -> None:
        raise OutOfTime(f"still running after {seconds} seconds")

    timers = {signal.ITIMER_PROF: signal.SIGPROF, signal.ITIMER_REAL: signal.SIGALRM}
    before = [signal.signal(number, stop) for number in timers.values()]
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    signal.setitimer(signal.ITIMER_PROF, seconds * slowness())
    try:
        yield
    finally:
        for timer, number, handler in zip(timers, timers.values(), before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


class Finished:
    """How a run of the command ended."""

    def __init__(self, code: int, stdout: str, stderr: str) -> None:
        self.code = code
        self.stdout = stdout
        self.stderr = stderr


def invoke(*arguments: str, stdin: bytes = b"", together: bool = False) -> Finished:
    """Run the command in this process, as if from a shell that pipes all three streams; what goes
    to standard error joins standard output, in its order, where they are together.
    """
    out, err = BytesIO(), BytesIO()
    ends = BytesIO(stdin), out, out if together else err
    streams = [TextIOWrapper(end, "utf-8", write_through=True) for end in ends]
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        code = command(list(arguments))
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
    return Finished(code, out.getvalue().decode(), err.getvalue().decode())
