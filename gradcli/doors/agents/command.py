"""`gradcli mcp`: serves tools on standard input and output until the client goes."""

from __future__ import annotations

from typing import Any

import click

from gradcli.packages import left_out
from gradcli.running.arguments.click_options import with_limits
from gradcli.running.process.interruption import raising_on_signals

_SECONDS = 10.0


@click.command("mcp")
@click.option(
    "--recordings",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="The folder whose recordings may be asked about.",
)
@with_limits
def command(recordings: str | None, sandbox: bool, **limits: Any) -> int:
    """Serve gradcli's questions to agents, by the Model Context Protocol.

    A client starts this command and speaks to it on standard input and output. Each call is a
    process of its own, in the sandbox, within the limits; 10 seconds unless --timeout says another
    number. Its recordings of PyTorch's runs are those in DIR, made before by `gradcli record`.
    """
    try:
        from gradcli.doors.agents.server import serve  # lazy: command: the SDK of MCP
    except ImportError as error:
        raise left_out("`gradcli mcp`", "the SDK of MCP", "mcp") from error
    settings = {name: value for name, value in limits.items() if value is not None}
    with raising_on_signals():
        serve({"timeout": _SECONDS, **settings, "sandbox": True}, recordings)
    return 0
