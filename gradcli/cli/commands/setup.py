"""`gradcli setup NAME`: the commands that are typed once, when something is set up."""

from __future__ import annotations

import click

from gradcli.running.arguments.words import COMMANDS, SETUP


class Setup(click.Group):
    """A group of commands that the root has too, so that their first names keep working."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        return list(SETUP)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The root's command of a name; None for one that sets nothing up."""
        root = ctx.find_root().command
        if cmd_name not in SETUP or not isinstance(root, click.Group):
            return None
        return root.get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands and what they do, without an import of any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in SETUP])


@click.command("setup", cls=Setup, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Set up shells, editors, notebooks and agents."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
