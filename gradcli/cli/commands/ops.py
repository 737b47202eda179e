"""`gradcli ops`: the list of ops as text or JSON."""

from __future__ import annotations

import click

from gradcli.running.arguments.click_options import ops
from gradcli.running.arguments.words import unknown
from gradcli.running.process.terminal import Terminal
from gradcli.show.help.pages import names
from gradcli.show.style import Style


@click.command("ops")
@click.argument("pattern", required=False, shell_complete=ops)
@click.option("--json", is_flag=True, help="Print the list as JSON.")
def command(pattern: str | None, json: bool) -> int:
    """List the ops by family.

    PATTERN is a part of a name or of a node's name, or a glob such as '*_loss'. In a pipe each op
    is a line: its name, its node and what it does, with tabs between.
    """
    terminal = Terminal()
    text = listing(pattern, json, terminal.style)
    if not text:
        raise unknown("op like", pattern or "", names())
    terminal.write(text)
    return 0


def listing(pattern: str | None, json: bool, style: Style) -> str:
    """The ops that match a pattern; "" where there is none."""
    from gradcli.show.help.ops import (  # lazy: command: all ops
        op_list,
        op_list_document,
    )

    if not json:
        return op_list(pattern, style)
    from json import dumps

    document = op_list_document(pattern)
    return dumps(document, ensure_ascii=False, indent=2) + "\n" if document["ops"] else ""
