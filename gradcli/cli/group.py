"""The click group of `gradcli`: finds a command's module by its name when the command is needed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import click

from gradcli import __version__
from gradcli.running.arguments.words import COMMANDS, PROGRAM, UNLISTED, is_bound

USAGE = """\
gradcli 'PROGRAM' [NAME=VALUE]… [OPTIONS]
gradcli run FILE… [NAME=VALUE]… [OPTIONS]
gradcli [COMMAND]"""

EXAMPLES = """\
  gradcli 'e = (a + b) * d' a=2 b=3 d=4
  gradcli 'z = x * y' x=[0,2,8] y=[5,1,7] --seed '[0.1, 1, 10]'
  gradcli 'loss = ((x @ w - y) ** 2).mean()' x=@x.npy y=@y.npy w=[2,1] --wrt w
  gradcli run train.grad steps=10 lr=0.1
  gradcli explain 'e = (a + b) * d' a=2 b=3 d=4
  gradcli why x.grad 'y = (x.detach() * w).sum()' x=[1,2] w=[3,4]
  gradcli help softmax           what an op does, its formula and its gradient's
  gradcli                        a session to work in
"""


QUESTIONS = ("blame", "check", "derive", "explain", "plot", "port", "record", "why")
"""The commands that answer a question about a program; `--help` lists them first."""

OPTION_GROUPS = {
    "Everyday": "-e --of --wrt --seed --trace -o --json --dtype -q --help",
    "Output": (
        "--format --trace-depth --no-trace --fold --expand --aspect --saved --precision --full"
        " --color --no-header --error-format --strict --version --verbose"
    ),
    "Many records": (
        "--inputs --jobs --retries --cluster --chunk --shard --resume --manual-seed-per-record"
        " --reduce"
    ),
    "Where it runs, and limits": (
        "--device --manual-seed --no-compiled-loops --timeout --max-memory --max-elements"
        " --max-steps --sandbox"
    ),
}
"""The options of a program, as `--help` puts them together."""

DOORS = {
    "lsp": "gradcli.doors.editors.command",
    "mcp": "gradcli.doors.agents.command",
    "record": "gradcli.doors.torch.command",
}
"""The commands that stand in a door's own folder."""

_QUESTIONS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "questions")


def _home_of(name: str) -> str:
    """The module of a command: a door's, that of the question of its name, or its own file."""
    if name in DOORS:
        return DOORS[name]
    if os.path.isdir(os.path.join(_QUESTIONS, name)):
        return f"gradcli.questions.{name}.command"
    file = "one_shot" if name == PROGRAM else name.replace("-", "_")
    return f"gradcli.cli.commands.{file}"


class Gradcli(click.Group):
    """A group whose first word is a command when it names one, and a program otherwise."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, the hidden one among them."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, whose module is imported; None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(_home_of(cmd_name)).command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command in front of options that stand before it, the hidden one in front of a
        program.
        """
        place = next((i for i, word in enumerate(args) if not word.startswith("-")), 0)
        if place and args[place] in COMMANDS and not is_bound(args[place], args):
            args = [args[place], *args[:place], *args[place + 1 :]]
        first = args[0] if args else ""
        completing = ctx.resilient_parsing and not args
        versions = {"--version", "-v", "--verbose"}
        if first not in COMMANDS and not (args and versions.issuperset(args)) and not completing:
            args = [PROGRAM, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """The first word is a command, or an option of a program."""
        program = self.get_command(ctx, PROGRAM)
        assert program is not None
        return super().shell_complete(ctx, incomplete) + program.shell_complete(ctx, incomplete)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples first; the options are those of a program."""
        formatter.write(f"{self.help}\n\nExamples:\n{EXAMPLES}")
        with formatter.section("Usage"):
            for line in USAGE.split("\n"):
                formatter.write(f"  {line}\n")
        listed = [name for name in COMMANDS if name not in UNLISTED]
        for title, names in (
            ("Questions", QUESTIONS),
            ("Commands", [name for name in listed if name not in QUESTIONS]),
        ):
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name]) for name in names])
        program = self.get_command(ctx, PROGRAM)
        assert program is not None
        by_flag = {flag: each for each in (*program.params, *self.params) for flag in each.opts}
        for title, flags in OPTION_GROUPS.items():
            with formatter.section(title):
                options = [by_flag[flag] for flag in flags.split()]
                formatter.write_dl(help_records(options, ctx))


def help_records(
    parameters: Iterable[click.Parameter], ctx: click.Context
) -> list[tuple[str, str]]:
    """The flags or the words of each parameter, and what it does."""
    records = (parameter.get_help_record(ctx) for parameter in parameters)
    return [record for record in records if record is not None]


@click.group(
    cls=Gradcli,
    invoke_without_command=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    add_help_option=False,
)
@click.option("--version", is_flag=True, help="Show the version.")
@click.option("-v", "--verbose", is_flag=True, help="With --version: packages and devices too.")
@click.pass_context
def gradcli(ctx: click.Context, version: bool, verbose: bool) -> None:
    """PyTorch's autograd at the shell: values, gradients and the graph behind them."""
    if not version:
        return
    if verbose:
        from gradcli.cli.commands.info import information  # lazy: command: few ask for all of it

        click.echo(information(), nl=False)
    else:
        click.echo(f"gradcli {__version__}")
    ctx.exit()
