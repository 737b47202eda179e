"""`gradcli check-doc`: the outputs in a Markdown text or a notebook, beside what is printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from gradcli.arrays.files.gate import DOCUMENTS
from gradcli.running.arguments.click_options import (
    options_of,
    terminal_of,
    with_json,
    with_settings,
)
from gradcli.running.arguments.options import Options
from gradcli.running.arguments.words import UsageError
from gradcli.running.process.terminal import Terminal


@click.command("check-doc")
@click.option("--update", is_flag=True, help="Write the outputs that differ into the document.")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@with_json
@with_settings
def command(files: Sequence[str], update: bool, **settings: Any) -> int:
    """Compare the outputs in a document with what its programs print.

    The `python` and `grad` blocks of a Markdown text run in order, in one session. Outputs are the
    block behind a program, what follows `>>>`, and comments such as `# tensor(4.)`. Exits with 1
    where one differs, or with the code of an error that no output shows.
    """
    return check(terminal_of(settings), files, options_of(settings), update)


def check(terminal: Terminal, files: Sequence[str], options: Options, update: bool) -> int:
    """Check each document; gives the first exit code that says of a difference or an error.

    Raises a usage error for a file that is no document.
    """
    from gradcli.cli.documents.check import check_document  # lazy: command: its body

    for file in files:
        if not file.endswith(DOCUMENTS):
            raise UsageError(f"the suffix of {file} is none of {', '.join(DOCUMENTS)}")
    codes = [check_document(terminal, file, options, update) for file in files]
    return terminal.checked(next(filter(None, codes), 0))
