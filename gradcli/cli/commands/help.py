"""`gradcli help`: a topic, an op, a member, a code, a flag, a dot-command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from gradcli.language.hints.spelling import closest
from gradcli.running.arguments.click_options import topics
from gradcli.running.arguments.words import COMMANDS, PROGRAM, UNLISTED, unknown
from gradcli.running.process.terminal import Terminal
from gradcli.show.help.pages import listed, names, overview, page, search, wanted
from gradcli.show.style import Style


@click.command("help", context_settings={"ignore_unknown_options": True})
@click.argument("topic", nargs=-1, type=click.UNPROCESSED, shell_complete=topics)
def command(topic: Sequence[str]) -> int:
    """Explain a topic, an op, or the code of an error; search for other words."""
    terminal = Terminal()
    word = " ".join(topic)
    if not topic:
        text: str | None = overview(terminal.style)
    elif word.startswith("-"):
        word = word.partition("=")[0]
        text = flag_page(word)
    elif word.startswith("."):
        text = _dot_command_page(word) or page(word[1:], terminal.style)
    elif topic[0] == "ops" and len(topic) == 2:
        from gradcli.cli.commands.ops import listing  # lazy: start-up: all ops

        text = listing(topic[1], False, terminal.style) or None
    else:
        text = _page_or_search(word, terminal.style)
    if text is None:
        kind = "flag" if word.startswith("-") else "topic or op"
        error = unknown(kind, word, flags() if word.startswith("-") else names())
        error.help = "`gradcli help` lists the topics, `gradcli help ops` the ops"
        raise error
    terminal.page(text)
    return 0


def _page_or_search(word: str, style: Style) -> str | None:
    """The page of a word; where the front page speaks of it, or no page has it, what a search
    finds; None for a word that is likely misspelt.
    """
    text = page(word, style) or _dot_command_page(f".{word}")
    is_wanted = wanted(word)
    if text is not None and not is_wanted:
        return text
    parts = [text]
    if text is None and " " not in word:
        from gradcli.show.help.ops import load  # lazy: start-up: all ops

        known = {*names(), *(f"nn.{name}" for name in load("torch.nn") if name[0] != "_")}
        alike = sorted((n for n in known if _bare(word) in _bare(n)), key=lambda n: (len(n), n))
        is_spelt = bool(alike) and _bare(alike[0]) == _bare(word)
        if not word or (not is_spelt and not is_wanted and closest(word, known) is not None):
            return None
        rows = [(f"gradcli help {name}", _about(name)) for name in alike[:_MOST]]
        parts.insert(0, f"{listed(rows, style)}" if rows else None)
    commands = {name: about for name, about in COMMANDS.items() if name not in UNLISTED}
    parts.insert(-1, search(word, commands, style))
    return "\n".join(part for part in parts if part is not None) or None


_MOST = 8
"""The names that are listed for a part of them."""


def _about(name: str) -> str:
    """The first line of what a page says, behind the signature."""
    lines = (page(name) or "").split("\n")
    open_ones = 0
    for line in lines:
        if line.startswith("    ") and not open_ones:
            return line.strip()
        open_ones += line.count("(") + line.count("[") - line.count(")") - line.count("]")
    return ""


def _bare(name: str) -> str:
    """A name without what people leave out or spell otherwise: `batchnorm` for `batch_norm`."""
    return name.lower().replace("_", "")


def flags() -> list[str]:
    """Every flag of every command."""
    return sorted({name for _, option in _options() for name in _names_of(option)})


def _options() -> Iterator[tuple[str, click.Option]]:
    """The options of each command, those of a program under `gradcli`."""
    context = click.get_current_context().find_root()
    group = context.command
    assert isinstance(group, click.Group)
    for name in COMMANDS:
        command = group.get_command(context, name)
        called = "gradcli" if name == PROGRAM else f"gradcli {name}"
        inner = command.commands.items() if isinstance(command, click.Group) else ()
        for words, each in ((called, command), *((f"{called} {n}", each) for n, each in inner)):
            for option in each.params if each is not None else ():
                if isinstance(option, click.Option):
                    yield words, option


def _names_of(option: click.Option) -> list[str]:
    return [*option.opts, *option.secondary_opts]


def flag_page(flag: str) -> str | None:
    """What a flag does, with the commands that take it; None for a flag that none takes."""
    meanings: dict[str, list[str]] = {}
    head = ""
    for command, option in _options():
        if flag in _names_of(option):
            record = option.get_help_record(click.Context(click.Command(command)))
            head, said = record or (flag, "")
            meanings.setdefault(said.strip(), []).append(command)
    if not meanings:
        return None
    lines = [head]
    for said, commands in meanings.items():
        lines += [f"    {said}", f"    {', '.join(commands)}"]
    return "\n".join(lines) + "\n"


def _dot_command_page(name: str) -> str | None:
    """What a dot-command does."""
    from gradcli.repl.dot_commands.table import TABLE  # lazy: command: the session

    entry = TABLE.get(name)
    return None if entry is None else f"{entry.usage}\n    {entry.summary}\n"
