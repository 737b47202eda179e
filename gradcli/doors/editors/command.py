"""`gradcli lsp`: serves an editor on standard input and output."""

from __future__ import annotations

from typing import Any

import click

from gradcli.packages import left_out
from gradcli.running.arguments.click_options import with_limits
from gradcli.running.process.interruption import raising_on_signals

_SECONDS = 10.0


@click.command("lsp")
@with_limits
def command(**limits: Any) -> int:
    """Serve editors, by the Language Server Protocol.

    They get diagnostics as one types, values, completion, definitions, run and explain. An editor
    starts this command and speaks to it on standard input and output. Programs run in processes of
    their own within the limits; 10 seconds unless --timeout says another number.
    """
    try:
        from gradcli.doors.editors.server import serve  # lazy: command: pygls
    except ImportError as error:
        raise left_out("`gradcli lsp`", "pygls", "lsp") from error
    settings = {name: value for name, value in limits.items() if value}
    with raising_on_signals():
        serve({"timeout": _SECONDS, **settings})
    return 0
