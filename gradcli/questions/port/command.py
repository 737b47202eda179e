"""`gradcli port`: all that gradcli would refuse in a program, without running it; as text,
and as JSON of the schema `gradcli.port/1`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from gradcli.errors import GradcliError, Source
from gradcli.running.arguments.click_options import with_json
from gradcli.running.process.terminal import Terminal
from gradcli.running.source import program_text
from gradcli.show.diagnostics.json import error_object

SCHEMA = "gradcli.port/1"


def port_text(path: str, errors: Sequence[GradcliError]) -> str:
    """A line for each place, with what to write instead below it."""
    if not errors:
        return f"{path}: nothing in it would be refused\n"
    lines: list[str] = []
    for error in errors:
        place = "" if error.span is None else f":{error.span.line}:{error.span.column}"
        lines.append(f"{path}{place}: {error.message} [{error.code}]")
        if error.help is not None:
            lines.append(f"    {error.help}")
    count = "1 place" if len(errors) == 1 else f"{len(errors)} places"
    return "\n".join([*lines, f"{path}: {count} would be refused"]) + "\n"


def port_json(path: str, errors: Sequence[GradcliError]) -> str:
    """The same as one object."""
    refused = [error_object(error) for error in errors]
    return json.dumps({"schema": SCHEMA, "file": path, "refused": refused}) + "\n"


@click.command("port")
@click.argument("file", metavar="FILE")
@with_json
def command(file: str, json: bool) -> int:
    """List all that gradcli would refuse in a program.

    The program is read and not run: each place is shown with what to write there. Exits with 1
    where there is one.
    """
    from gradcli.questions.port.refusals import refusals  # lazy: command: its body

    errors = refusals(Source(file, program_text(file)))
    Terminal().write((port_json if json else port_text)(file, errors))
    return 1 if errors else 0
