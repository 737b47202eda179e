"""`gradcli port`: all that gradcli would refuse in a program, without running it."""

from __future__ import annotations

import click

from gradcli.errors import Source
from gradcli.running.arguments.click_options import with_json
from gradcli.running.process.terminal import Terminal
from gradcli.running.source import program_text


@click.command("port")
@click.argument("file", metavar="FILE")
@with_json
def command(file: str, json: bool) -> int:
    """List all that gradcli would refuse in a program.

    The program is read and not run: each place is shown with what to write there. Exits with 1
    where there is one.
    """
    from gradcli.questions.port.refusals import refusals  # lazy: command: its body
    from gradcli.questions.port.tell import port_json, port_text  # lazy: command: its answer

    errors = refusals(Source(file, program_text(file)))
    Terminal().write((port_json if json else port_text)(file, errors))
    return 1 if errors else 0
