"""Where a program's text comes from: the words of a command line, a file, standard input."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from gradcli.errors import GradcliError
from gradcli.record import Record
from gradcli.running.arguments.click_options import options_of, terminal_of
from gradcli.running.arguments.files import (
    RECORDING,
    STDIN,
    check_folder,
    decoded,
    program_in,
    read_program,
    write_text,
)
from gradcli.running.arguments.options import FORMAT_OF
from gradcli.running.arguments.words import UsageError, arguments_of, check_program, is_program_file
from gradcli.running.process.terminal import Terminal
from gradcli.session import Session
from gradcli.show.style import PLAIN

if TYPE_CHECKING:
    from gradcli.language.tree.syntax import Statement
    from gradcli.running.arguments.options import Options
    from gradcli.running.arguments.words import Argument


class Program:
    """The program that a command was given, in words or in a file."""

    def __init__(self, text: str | None, path: str = "program") -> None:
        self._text = text
        self._statements: list[Statement] | None = None
        self.name = path

    def text(self) -> str:
        """The program's text; raises E503 for a file that cannot be read."""
        if self._text is None:
            self._text = program_text(self.name)
        return self._text

    def statements(self) -> list[Statement]:
        """The program as it was read once; raises `SyntaxErrors`, and what `text` raises."""
        if self._statements is None:
            self._statements = Session.parse(self.text(), self.name)
        return self._statements


_DRAWN = {".svg": "a picture", ".png": "a picture", ".html": "a page that steps"}
"""What files of these suffixes hold."""


class AnswerFile(Terminal):
    """A terminal whose standard output is a file: the answer is written to it whole."""

    def __init__(self, path: str, *settings: Any) -> None:
        super().__init__(*settings)
        self.style = PLAIN
        self._path = path

    def write(self, text: str) -> None:
        """Write the answer; raises E603 where the file cannot be written."""
        write_text(self._path, text)
        lines = text.count("\n")
        held = f"{lines:,} line{'' if lines == 1 else 's'}"
        self.wrote(self._path, _DRAWN.get(os.path.splitext(self._path)[1], held))


class Asked(Record):
    """What a command was asked: a program, its arguments and options."""

    terminal: Terminal
    command: str
    program: Program
    arguments: Sequence[Argument]
    options: Options


def asked_of(
    command: str, words: Sequence[str], file: str | None, settings: dict[str, Any]
) -> Asked:
    """What the words and options of a command ask.

    Raises:
        UsageError: there is no program, the words behind it are no `NAME=VALUE`, or options
            exclude each other.
    """
    path = settings.pop("output", None)
    if path is not None:
        _set_format(path, settings)
    terminal = terminal_of(settings, Terminal if path is None else partial(AnswerFile, path))
    python = settings.pop("python", None)
    if settings.pop("torch", False):
        file, words = recorded_script(list(words), python, settings.get("sandbox", False)), ()
    lines = settings.pop("programs", ())
    if lines and file is not None:
        raise UsageError("-e and --file exclude each other")
    if lines:
        words = ["\n".join(lines), *words]
    elif file is None:
        if not words:
            raise UsageError(f"`gradcli {command}` needs a program, or a file that holds one")
        if is_program_file(words[0]):
            file, *words = words
        else:
            check_program(words[0], words[1:])
    program = Program(words[0]) if file is None else Program(None, file)
    arguments = arguments_of(words[1:] if file is None else words)
    options = options_of(settings)
    if file is not None and file.endswith(RECORDING):
        program = Program(program_in(file, options), file)
    if path is not None:
        options.limits.check_file(path)
        check_folder(path)
    return Asked(terminal, command, program, arguments, options)


def recorded_script(words: list[str], python: str | None, sandbox: bool) -> str:
    """The recording that `gradcli record` makes of a script; what that prints is an error's.

    Raises:
        UsageError: there is no script.
        GradcliError: E503 where nothing was recorded.
    """
    if not words:
        raise UsageError("--torch needs a script of Python")
    path = os.path.splitext(os.path.basename(words[0]))[0] + RECORDING
    with suppress(FileNotFoundError):
        os.unlink(path)
    options = ["--sandbox"] * sandbox + (["--python", python] if python else [])
    command = [sys.executable, "-m", "gradcli", "record", *options, "-o", path, *words]
    errors = sys.stderr.fileno()
    code = subprocess.run(
        command, stdin=sys.stdin.fileno(), stdout=errors, stderr=errors, check=False
    ).returncode
    if not os.path.exists(path):
        raise GradcliError("E503", f"{words[0]}: nothing was recorded (exit code {code})")
    return path


def _set_format(path: str, settings: dict[str, Any]) -> None:
    """Put the format that a file holds by its suffix into the options; raises a usage error where
    they ask for another one.
    """
    format = FORMAT_OF.get(os.path.splitext(path)[1], "text")
    wanted = settings.get("format") or ("json" if settings["json"] else format)
    if wanted != format:
        raise UsageError(f"-o {path} holds {format}, and not {wanted}")
    if "format" in settings:
        settings["format"] = format
    else:
        settings["json"] = format == "json"


def program_text(path: str) -> str:
    """The text of a program that is read whole; raises E503."""
    return decoded(sys.stdin.buffer.read(), "stdin") if path == STDIN else read_program(path)


def run_program(
    text: str,
    inputs: dict[str, Any],
    wanted: Collection[str] = (),
    heard: Callable[[Any], None] | None = None,
) -> dict[str, Any]:
    """The arrays that names hold after a program ran on its own, from named arrays.

    Args:
        wanted: the names that are asked for, by default all: of a program with a statement to the
            line the others are let go once they are read for the last time.
        heard: called with the array that each statement assigns.
    """
    from gradcli.arrays.fusion.lazy import forced  # lazy: start-up: NumPy, after the text is read
    from gradcli.autograd.tensor import Tensor  # lazy: start-up: NumPy, after the text is read

    session = Session()
    for name, array in inputs.items():
        session.bind(name, Tensor(array))
    last = {name: n for n, line in enumerate(text.split("\n"), 1) for name in _NAME.findall(line)}
    read: dict[int, list[str]] = {}
    for name in last.keys() - set(wanted) if wanted else ():
        read.setdefault(last[name], []).append(name)
    for result in session.run(text, "formulas"):
        named = session.last_tensor() if heard is not None else None
        if heard is not None and named is not None:
            heard(forced(named[1].array))
        for name in read.get(result.statement.span.line, ()):
            session.values.pop(name, None)
    return {name: each.array for name, each in session.values.items() if type(each) is Tensor}


_NAME = re.compile(r"[A-Za-z_]\w*")
