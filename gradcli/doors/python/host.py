"""What stands in the terminal's place where a Python program asks: it keeps what is shown."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gradcli.errors import GradcliError, Warned
from gradcli.repl import dispatch as dispatch  # who answers what a program asks to see
from gradcli.running.arguments.words import UsageError
from gradcli.running.process.terminal import Terminal
from gradcli.show.answer import Answer
from gradcli.show.diagnostics.human import diagnostic
from gradcli.show.style import PLAIN


class GradcliWarning(UserWarning):
    """What is likely a mistake in a program; the text begins with the code."""


class Host(Terminal):
    """Keeps what a run shows.

    Attributes:
        texts: what the program printed, in pieces.
        warned: the warnings that there were.
        answers: each answer's text and its document.
        failure: the error that ended the run.
    """

    def __init__(self) -> None:  # not the terminal's: no stream is touched
        self.style = self.error_style = PLAIN
        self.quiet = True
        self.strict = False
        self.warnings = 0
        self.texts: list[str] = []
        self.warned: list[Warned] = []
        self.answers: list[tuple[str, dict[str, Any]]] = []
        self.failure: GradcliError | None = None

    def _write(self, text: str) -> None:
        self.texts.append(text)

    def flush(self) -> None:
        pass

    def answer(self, answer: Answer, format: str) -> None:
        self.answers.append((answer.text(PLAIN), answer.document()))

    def warning(self, warned: Warned) -> None:
        self.warnings += 1
        self.warned.append(warned)

    def error(self, error: GradcliError) -> None:
        self.failure = self.failure or error

    def _put(self, text: str) -> None:
        self.texts.append(text)

    def taken(self) -> tuple[str, tuple[Warned, ...]]:
        """What was printed and warned of since it was last asked."""
        taken = "".join(self.texts), tuple(self.warned)
        self.texts.clear()
        self.warned.clear()
        return taken


@contextmanager
def raising(host: Host) -> Iterator[None]:
    """Raise the error that ended the run of the block, with a note that shows its place, and what
    could be answered nevertheless; a setting that fits no part of the program as ValueError.
    """
    try:
        yield
    except UsageError as error:
        raise ValueError(str(error).removeprefix("--")) from error
    except GradcliError as error:
        host.error(error)
    failure, host.failure = host.failure, None  # a session goes on after it
    if failure is not None:
        failure.help = None if failure.help is None else naming_arguments(failure.help)
        failure.notes = tuple(map(naming_arguments, failure.notes))
        failure.add_note(diagnostic(failure))
        for text, _ in host.answers:
            failure.add_note(text)
        raise failure


# fmt: off
_ARGUMENTS = (
    "against", "all", "device", "dtype", "element", "elements", "equals", "manual-seed",
    "max-elements", "max-memory", "max-steps", "no-compiled-loops", "of", "order", "paths",
    "sandbox", "saved", "seed", "ties", "timeout", "wrt",
)
# fmt: on

_FLAG = re.compile(
    rf"--({'|'.join(_ARGUMENTS)})(?![\w-])"
    r"(?:[ =]('[^']*'|\d[\d.]*\w*|[A-Z][A-Z,]*\b|[a-z_]\w*(?=`)))?"
)


def naming_arguments(text: str) -> str:
    """A text that names options of the command line, with the arguments that they are here."""
    return _FLAG.sub(
        lambda match: "=".join(filter(None, (match[1].replace("-", "_"), match[2]))), text
    )


def pass_on(warned: tuple[Warned, ...], stacklevel: int) -> None:
    """Emit a program's warnings as Python's."""
    for each in warned:
        place = "" if each.span is None else f"{each.span.source.name}:{each.span.line}: "
        text = f"{place}[{each.code}] {each.message}"
        if each.help:
            text += f"; {each.help}"
        warnings.warn(text, GradcliWarning, stacklevel=stacklevel + 1)
