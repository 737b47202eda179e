"""The words of a command line: which are programs, which are `NAME=VALUE`, which are mistakes."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from gradcli.cli.arguments.files import STDIN
from gradcli.cli.arguments.options import TRACES
from gradcli.cli.arguments.values import Argument, read_argument
from gradcli.files.gate import is_file
from gradcli.language.hints.spelling import closest

PROGRAM = "program"
"""The hidden command that runs a program given in the words themselves."""


SCRIPT = "--\0"
"""What marks the words behind `--` of `gradcli run`; no shell can hand it over."""


def joined(args: Sequence[str]) -> list[str]:
    """The words with `--trace` and the style behind it as one; alone it stands for the tree.

    Raises a usage error for what no shell can hand over: a zero byte, half of a surrogate pair.
    """
    for word in args:
        try:
            unusable = b"\0" in os.fsencode(word)
        except UnicodeEncodeError:
            unusable = True
        if unusable:
            raise click.UsageError(f"{word!r} is no text")
    found: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            if found[:1] == ["run"]:  # what comes behind is the script's
                return [*found, word, *[f"{SCRIPT}{each}" for each in words]]
            return [*found, word, *words]
        if found and found[-1] == "--trace":
            found[-1] = f"--trace={word if word in TRACES else 'tree'}"
            if word in TRACES:
                continue
        found.append(word)
    if found and found[-1] == "--trace":
        found[-1] = "--trace=tree"
    return found


def arguments_of(words: Sequence[str]) -> list[Argument]:
    """The words behind a program; raises a usage error for one that is no `NAME=VALUE`."""
    found: dict[str, Argument] = {}
    for word in words:
        argument = read_argument(word)
        if argument is None:
            raise click.UsageError(f"`{word}` is no NAME=VALUE")
        if argument.name in found:
            raise click.UsageError(f"`{argument.name}` is given two values")
        found[argument.name] = argument
    return list(found.values())


def check_program(text: str) -> None:
    """Raise a usage error for a first word that is likely meant as something else."""
    if text.isidentifier():
        context = click.get_current_context().find_root()
        assert isinstance(context.command, click.Group)
        commands = context.command.list_commands(context)
        if text in commands:
            raise click.UsageError(f"the command comes first: gradcli {text} …")
        known = [each for each in commands if each != PROGRAM]
        raise unknown("command", text, known, f"; as a program: -e {text}")
    if text == STDIN:
        raise click.UsageError("standard input is a file: use `gradcli run -`")
    if "\n" not in text and is_file(text):
        raise click.UsageError(f"{text} is a file: use `gradcli run {text}`")


def unknown(what: str, word: str, known: Sequence[str], ending: str = "") -> click.UsageError:
    """The usage error of a word that is none of those known, with the closest of them."""
    near = closest(word, known)
    hint = "" if near is None else f"; did you mean `{near}`?"
    return click.UsageError(f"there is no {what} `{word}`{hint}{ending}")
