"""The command line: commands, options, and what the words mean."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from gradcli.cli.batch import STDIN, batch
from gradcli.cli.files import check_output
from gradcli.cli.one_shot import one_shot
from gradcli.cli.options import DTYPES, TRACES, Options
from gradcli.cli.terminal import Terminal
from gradcli.cli.values import Argument, read_argument

_PROGRAM = "program"
"""The hidden command that runs a program given in the words themselves."""

_USAGE = """\
gradcli 'PROGRAM' [NAME=VALUE]… [OPTIONS]
gradcli run FILE… [NAME=VALUE]… [OPTIONS]
gradcli [COMMAND]"""

_EXAMPLES = """\
  gradcli 'e = (a + b) * d' a=2 b=3 d=4
  gradcli 'z = x * y' x=[0,2,8] y=[5,1,7] --seed '[0.1, 1, 10]'
  gradcli 'loss = ((x @ w - y) ** 2).mean()' x=@x.npy y=@y.npy w=[0.5,-1] --wrt w
  gradcli run train.grad steps=10 lr=0.1
  gradcli                        a session to work in
"""


class Gradcli(click.Group):
    """A group whose first word is a command when it names one, and a program otherwise."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the hidden command in front of a program."""
        first = args[0] if args else ""
        if first not in self.commands and first != "--version":
            args = [_PROGRAM, *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples first; the options are those of a program."""
        formatter.write(f"{self.help}\n\nExamples:\n{_EXAMPLES}")
        with formatter.section("Usage"):
            for line in _USAGE.split("\n"):
                formatter.write(f"  {line}\n")
        self.format_commands(ctx, formatter)
        records = [
            record
            for parameter in [*self.commands[_PROGRAM].params, *self.params]
            if isinstance(parameter, click.Option)
            and (record := parameter.get_help_record(ctx)) is not None
        ]
        with formatter.section("Options"):
            formatter.write_dl(records)


def _version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from gradcli import __version__

        click.echo(f"gradcli {__version__}")
        ctx.exit()


def _help(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """A program's help is the whole command's."""
    if wanted:
        click.echo(gradcli.get_help(ctx.find_root()))
        ctx.exit()


Decorator = Callable[[Any], Any]

_SHARED: list[Decorator] = [
    click.option("--seed", metavar="VALUE", help="The gradient that backward starts from."),
    click.option("--of", metavar="NAME", help="The output: the tensor assigned last by default."),
    click.option("--wrt", metavar="A,B", help="The inputs whose gradients are wanted."),
    click.option(
        "--trace", type=click.Choice(TRACES), help="Print the backward graph in this style."
    ),
    click.option("--no-trace", is_flag=True, help="Print no trace."),
    click.option("--json", is_flag=True, help="Print the result as JSON."),
    click.option(
        "-o", "--output", metavar="FILE", help="Write the result to a .npz or .json file."
    ),
    click.option(
        "--dtype",
        type=click.Choice(list(DTYPES)),
        metavar="DTYPE",
        help="The dtype of inputs: float16, bfloat16, float32 or float64.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="No trace, warnings or notes."),
    click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        help="Whether text is coloured.",
    ),
]


def _shared(command: Any) -> Any:
    """Give a command the options that one-shot and batch share."""
    for option in reversed(_SHARED):
        command = option(command)
    return command


@click.group(
    cls=Gradcli,
    invoke_without_command=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    add_help_option=False,
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version.",
)
def gradcli() -> None:
    """PyTorch's autograd at the shell: values, gradients and the graph behind them."""


@gradcli.command(_PROGRAM, hidden=True, add_help_option=False)
@click.option(
    "-e",
    "programs",
    multiple=True,
    metavar="PROGRAM",
    help="A program, or a line of one; repeatable.",
)
@click.option(
    "-h",
    "--help",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_help,
    help="Show this.",
)
@_shared
@click.argument("words", nargs=-1)
def program(programs: Sequence[str], words: Sequence[str], color: str, **given: Any) -> int:
    """Run a program given in the words themselves."""
    if not programs and not words:
        return start(color, given)
    terminal = Terminal(color, given["quiet"])
    if not programs:
        programs, words = words[:1], words[1:]
        _check_program(programs[0])
    return one_shot(terminal, "\n".join(programs), _arguments(words), _options(given))


@gradcli.command()
@_shared
@click.option("--keep-going", is_flag=True, help="Run further files after one failed.")
@click.argument("words", nargs=-1, metavar="FILE… [NAME=VALUE]…")
def run(words: Sequence[str], color: str, **given: Any) -> int:
    """Run program files; `-` is standard input."""
    paths = [word for word in words if read_argument(word) is None]
    arguments = _arguments([word for word in words if word not in paths])
    if not paths:
        raise click.UsageError("`gradcli run` needs a file, or `-` for standard input")
    if given["output"] is not None and len(paths) > 1:
        raise click.UsageError("-o holds the result of one file, and there are several")
    return batch(Terminal(color, given["quiet"]), paths, arguments, _options(given))


@gradcli.command()
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto")
def repl(color: str) -> int:
    """Work in a session: one statement after another."""
    return start(color, {})


@gradcli.command()
@click.argument("topic", required=False)
def help(topic: str | None) -> int:
    """Explain a topic or the code of an error."""
    from gradcli.render.help import TOPICS, overview
    from gradcli.render.help import topic as text_of

    terminal = Terminal()
    if topic is None:
        terminal.write(overview(terminal.style))
        return 0
    text = text_of(topic, terminal.style)
    if text is None:
        from gradcli.codes import CODES

        raise _unknown("topic", topic, ["codes", *TOPICS, *CODES])
    terminal.write(text)
    return 0


@gradcli.command()
def info() -> int:
    """Show versions and devices, for reports of bugs."""
    from gradcli.cli.info import information

    Terminal().write(information())
    return 0


def start(color: str, given: dict[str, Any]) -> int:
    """What happens without a program: a session on a terminal, standard input as a script
    elsewhere.
    """
    terminal = Terminal(color, given.get("quiet", False))
    if sys.stdin is None or not sys.stdin.isatty():
        return batch(terminal, [STDIN], [], _options(given))
    from gradcli.cli.repl import repl as session

    return session(terminal)


def _options(given: dict[str, Any]) -> Options:
    options = Options(**given)
    if options.output is not None:
        problem = check_output(options.output)
        if problem is not None:
            raise click.UsageError(problem)
    return options


def _arguments(words: Sequence[str]) -> list[Argument]:
    """The words behind a program; raises a usage error for one that is no `NAME=VALUE`."""
    found: dict[str, Argument] = {}
    for word in words:
        argument = read_argument(word)
        if argument is None:
            raise click.UsageError(f"`{word}` is no NAME=VALUE")
        if argument.name in found:
            raise click.UsageError(f"`{argument.name}` is given two values")
        found[argument.name] = argument
    return list(found.values())


def _check_program(text: str) -> None:
    """Raise a usage error for a first word that is likely meant as something else."""
    if text.isidentifier():
        if text in gradcli.commands:
            raise click.UsageError(f"the command comes first: gradcli {text} …")
        raise _unknown("command", text, list(gradcli.commands), f"; as a program: -e {text}")
    if text == STDIN:
        raise click.UsageError("standard input is a file: use `gradcli run -`")
    if "\n" not in text and os.path.isfile(text):
        raise click.UsageError(f"{text} is a file: use `gradcli run {text}`")


def _unknown(what: str, word: str, known: Sequence[str], ending: str = "") -> click.UsageError:
    from gradcli.language.suggestions import closest

    near = closest(word, [each for each in known if each != _PROGRAM])
    hint = "" if near is None else f"; did you mean `{near}`?"
    return click.UsageError(f"there is no {what} `{word}`{hint}{ending}")


def joined(args: Sequence[str]) -> list[str]:
    """The words with `--trace` and the style behind it as one; alone it stands for the tree."""
    found: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            return [*found, word, *words]
        if found and found[-1] == "--trace":
            found[-1] = f"--trace={word if word in TRACES else 'tree'}"
            if word in TRACES:
                continue
        found.append(word)
    if found and found[-1] == "--trace":
        found[-1] = "--trace=tree"
    return found
