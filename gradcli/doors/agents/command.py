"""`gradcli mcp`: serves tools on standard input and output until the client goes."""

from __future__ import annotations

from typing import Any

import click

from gradcli.errors import GradcliError
from gradcli.running.arguments.click_options import with_limits
from gradcli.running.process.interruption import raising_on_signals
from gradcli.running.process.terminal import Terminal

_SECONDS = 10.0


@click.command("mcp")
@with_limits
def command(sandbox: bool, **limits: Any) -> int:
    """Serve gradcli's questions to agents, by the Model Context Protocol.

    A client starts this command and speaks to it on standard input and output. Each call is a
    process of its own, in the sandbox, within the limits; 10 seconds unless --timeout says another
    number.
    """
    try:
        from gradcli.doors.agents.server import serve  # lazy: command: the SDK of MCP
    except ImportError:
        error = GradcliError(
            "E609",
            "`gradcli mcp` needs the SDK of MCP, which is not installed",
            help="pip install 'gradcli[mcp]'",
        )
        Terminal().error(error)
        return error.exit_code
    given = {name: value for name, value in limits.items() if value is not None}
    with raising_on_signals():
        serve({"timeout": _SECONDS, **given, "sandbox": True})
    return 0
