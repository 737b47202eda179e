"""Where a program's text comes from: the words of a command line, a file, standard input."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli.arguments.files import STDIN, decoded, read_program
from gradcli.cli.arguments.words import arguments_of, check_program
from gradcli.session import Session

if TYPE_CHECKING:
    from gradcli.cli.arguments.values import Argument


class Program:
    """The program that a command was given, in words or in a file."""

    __slots__ = ("_text", "name")

    def __init__(self, text: str | None, path: str = "program") -> None:
        self._text = text
        self.name = path

    def text(self) -> str:
        """The program's text; raises E503 for a file that cannot be read."""
        if self._text is None:
            self._text = program_text(self.name)
        return self._text


def program_and_arguments(
    command: str, words: Sequence[str], file: str | None
) -> tuple[Program, list[Argument]]:
    """The program and the arguments that a command was given.

    Raises:
        click.UsageError: there is no program, or the words behind it are no `NAME=VALUE`.
    """
    if file is not None:
        return Program(None, file), arguments_of(words)
    if not words:
        raise click.UsageError(f"`gradcli {command}` needs a program, or --file FILE")
    check_program(words[0])
    return Program(words[0]), arguments_of(words[1:])


def program_text(path: str) -> str:
    """The text of a program that is read whole; raises E503."""
    return decoded(sys.stdin.buffer.read(), "stdin") if path == STDIN else read_program(path)


def run_program(text: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """The arrays that names hold after a program ran on its own, from named arrays."""
    from gradcli.autograd.tensor import Tensor  # lazy: start-up: NumPy, after the text is read

    session = Session()
    for name, array in inputs.items():
        session.bind(name, Tensor(array))
    for _ in session.run(text, "formulas"):
        pass
    return {name: each.array for name, each in session.values.items() if type(each) is Tensor}
