"""`gradcli help`: a topic, an op, or the code of an error."""

from __future__ import annotations

import click

from gradcli.cli.arguments.shell_completion import topics
from gradcli.cli.arguments.words import unknown
from gradcli.cli.process.terminal import Terminal
from gradcli.render.help.pages import names, overview, page


@click.command("help")
@click.argument("topic", required=False, shell_complete=topics)
def command(topic: str | None) -> int:
    """Explain a topic, an op, or the code of an error."""
    terminal = Terminal()
    text = overview(terminal.style) if topic is None else page(topic, terminal.style)
    if text is None:
        assert topic is not None
        raise unknown("topic or op", topic, names())
    terminal.write(text)
    return 0
