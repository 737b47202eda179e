"""`python -m gradcli.cli.man_page FOLDER`: what a system's own folders hold of a command.

That is the man page, made from the commands themselves and the table of exit codes, and the scripts
for completion in bash, zsh and fish. A wheel carries them under `share`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from gradcli import __version__
from gradcli.cli.commands.completion import script
from gradcli.cli.group import EXAMPLES, USAGE, gradcli, help_records
from gradcli.running.arguments.words import COMMANDS, PROGRAM
from gradcli.show.help.manual import source

MAN_PAGE = "share/man/man1/gradcli.1"

COMPLETIONS = {
    "bash": "share/bash-completion/completions/gradcli",
    "zsh": "share/zsh/site-functions/_gradcli",
    "fish": "share/fish/vendor_completions.d/gradcli.fish",
}
"""Where a shell looks for a command's completions, below a prefix such as `/usr/local`."""


def files() -> dict[str, str]:
    """The text of each file, by its place below a prefix."""
    return {
        MAN_PAGE: man_page(),
        **{place: script(gradcli, shell) for shell, place in COMPLETIONS.items()},
    }


def write(folder: Path) -> list[str]:
    """Write all files below a folder; gives their places there."""
    for place, text in files().items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text, encoding="utf-8")
    return [MAN_PAGE, *COMPLETIONS.values()]


def man_page() -> str:
    """The page in the language of `man`."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    context = click.Context(gradcli, info_name="gradcli")
    program = gradcli.get_command(context, PROGRAM)
    assert program is not None
    yield f'.TH GRADCLI 1 "" "gradcli {__version__}" "User Commands"'
    name, _, what = (gradcli.help or "").partition(": ")
    yield from (".SH NAME", rf"gradcli \- {_text(name)}: {_text(what.rstrip('.'))}")
    yield from (".SH SYNOPSIS", *_verbatim(USAGE))
    yield from (".SH DESCRIPTION", *_paragraphs(program.help))
    yield from (".SH EXAMPLES", *_verbatim(EXAMPLES))
    yield ".SH OPTIONS"
    shared = dict(help_records(program.params, context))
    for flags, text in [*shared.items(), *help_records(gradcli.params, context)]:
        yield from _item(flags, text)
    yield ".SH COMMANDS"
    for word in COMMANDS:
        command = gradcli.get_command(context, word)
        if word != PROGRAM and command is not None:
            yield from _command(command, click.Context(command, context, word), shared)
    yield ".SH EXIT STATUS"
    for code, text in re.findall(r"^\| (\d+) \| (.+) \|$", source("exit-codes") or "", re.M):
        yield from _item(code, text.replace("`", ""))
    yield from (".SH SEE ALSO", _text("`gradcli help` lists the pages of the manual."))


def _command(
    command: click.Command, context: click.Context, shared: dict[str, str]
) -> Iterator[str]:
    """A command: what it does, its own options, and the names of those that it shares."""
    yield f".SS {_text(context.command_path)}"
    yield from _verbatim(" ".join([context.command_path, *command.collect_usage_pieces(context)]))
    yield from _paragraphs(command.help)
    records = dict(help_records(command.params, context))
    for flags, text in records.items():
        if shared.get(flags) != text:
            yield from _item(flags, text)
    common = [
        flags.split()[0].rstrip(",") for flags in records if shared.get(flags) == records[flags]
    ]
    if common:
        yield from (".PP", _text(f"Options as above: {', '.join(common)}."))
    for name, inner in command.commands.items() if isinstance(command, click.Group) else ():
        yield from _command(inner, click.Context(inner, context, name), shared)


def _paragraphs(text: str | None) -> Iterator[str]:
    """A help text; a paragraph behind `\\b` keeps its lines."""
    for paragraph in (text or "").split("\n\n"):
        lines = [line.strip() for line in paragraph.strip().split("\n")]
        if lines[0] == "\b":
            yield from _verbatim("\n".join(lines[1:]))
        elif lines != [""]:
            yield from (".PP", _text(" ".join(lines)))


def _item(flags: str, text: str) -> Iterator[str]:
    yield from (".TP", rf"\fB{_text(flags)}\fR", _text(text))


def _verbatim(text: str) -> Iterator[str]:
    yield from (".PP", ".nf", *(_text(line) for line in text.rstrip("\n").split("\n")), ".fi")


def _text(text: str) -> str:
    """A line of text, in which nothing is a command of `man`."""
    escaped = (
        text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("^", r"\(ha")
    )
    escaped = escaped.replace("`", r"\(ga").replace("~", r"\(ti")
    return rf"\&{escaped}" if escaped.startswith(".") else escaped


if __name__ == "__main__":
    print(*write(Path(sys.argv[1])), sep="\n")
