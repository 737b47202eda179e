"""The command line: commands, options, and what the words mean."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from gradcli.cli.arguments.click_options import (
    check_inputs,
    check_stdin,
    stdin_options,
    with_device,
    with_limits,
    with_options,
    with_program,
)
from gradcli.cli.arguments.files import check_output
from gradcli.cli.arguments.options import TRACES, Options, limits_of
from gradcli.cli.arguments.values import Argument, read_argument
from gradcli.cli.commands.one_shot import one_shot
from gradcli.cli.commands.run import STDIN, batch
from gradcli.cli.process.interruption import raising_on_signals
from gradcli.cli.process.terminal import Terminal

_PROGRAM = "program"
"""The hidden command that runs a program given in the words themselves."""

_USAGE = """\
gradcli 'PROGRAM' [NAME=VALUE]… [OPTIONS]
gradcli run FILE… [NAME=VALUE]… [OPTIONS]
gradcli [COMMAND]"""

_EXAMPLES = """\
  gradcli 'e = (a + b) * d' a=2 b=3 d=4
  gradcli 'z = x * y' x=[0,2,8] y=[5,1,7] --seed '[0.1, 1, 10]'
  gradcli 'loss = ((x @ w - y) ** 2).mean()' x=@x.npy y=@y.npy w=[2,1] --wrt w
  gradcli run train.grad steps=10 lr=0.1
  gradcli explain 'e = (a + b) * d' a=2 b=3 d=4
  gradcli why x.grad 'y = (x.detach() * w).sum()' x=[1,2] w=[3,4]
  gradcli help softmax           what an op does, its formula and its gradient's
  gradcli                        a session to work in
"""


class Gradcli(click.Group):
    """A group whose first word is a command when it names one, and a program otherwise."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the hidden command in front of a program."""
        first = args[0] if args else ""
        completing = ctx.resilient_parsing and not args
        if first not in self.commands and first != "--version" and not completing:
            args = [_PROGRAM, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """The first word is a command, or an option of a program."""
        return super().shell_complete(ctx, incomplete) + self.commands[_PROGRAM].shell_complete(
            ctx, incomplete
        )

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


def _topics(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
    from gradcli.cli.commands.completion import topics

    return topics(incomplete)


def _ops(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
    from gradcli.cli.commands.completion import ops

    return ops(incomplete)


def complete_values(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
    from gradcli.cli.commands.completion import values

    return values(incomplete)


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
@with_options
@click.argument("words", nargs=-1, shell_complete=complete_values)
def program(programs: Sequence[str], words: Sequence[str], color: str, **given: Any) -> int:
    """Run a program given in the words themselves."""
    if not programs and not words:
        return start(color, given)
    terminal = terminal_of(color, given)
    if not programs:
        programs, words = words[:1], words[1:]
        _check_program(programs[0])
    options, arguments = options_of(given), _arguments(words)
    check_stdin(arguments, stdin_options(options))
    code = one_shot(terminal, "\n".join(programs), arguments, options)
    return terminal.checked(code)


@gradcli.command()
@with_options
@click.option("--keep-going", is_flag=True, help="Run further files after one failed.")
@click.option(
    "--explain-loops",
    is_flag=True,
    help="Say which loops were compiled, and where and why the others were not.",
)
@click.argument("words", nargs=-1, metavar="FILE… [NAME=VALUE]…", shell_complete=complete_values)
def run(words: Sequence[str], color: str, **given: Any) -> int:
    """Run program files; `-` is standard input."""
    paths = [word for word in words if read_argument(word) is None]
    arguments = _arguments([word for word in words if word not in paths])
    if not paths:
        raise click.UsageError("`gradcli run` needs a file, or `-` for standard input")
    if given["output"] is not None and len(paths) > 1:
        raise click.UsageError("-o holds the result of one file, and there are several")
    terminal = terminal_of(color, given)
    options = options_of(given)
    if options.inputs is not None and len(paths) > 1:
        raise click.UsageError("--inputs runs one file, and there are several")
    check_stdin(arguments, stdin_options(options) + ["`run -`"] * paths.count(STDIN))
    return terminal.checked(batch(terminal, paths, arguments, options))


@gradcli.command()
@click.option("--element", metavar="I,J", help="The element of large gradients to work out.")
@click.option("--ties", is_flag=True, help="List the elements on a kink or a tie.")
@click.option("--paths", metavar="NAME", help="List the paths to a leaf, each with its share.")
@click.option("--saved", is_flag=True, help="List what the nodes saved, and when it is freed.")
@click.option(
    "--ir",
    is_flag=True,
    help="Print the trace instead: what ran, forward and backward, one instruction a line.",
)
@click.option(
    "--format",
    type=click.Choice(["text", "json", "mermaid", "dot"]),
    help="Print the ledger as text or as JSON, or the graph for Mermaid or Graphviz.",
)
@click.option("--json", is_flag=True, help="Short for --format json.")
@with_program
@click.argument("words", nargs=-1, metavar="PROGRAM [NAME=VALUE]…", shell_complete=complete_values)
def explain(
    words: Sequence[str],
    file: str | None,
    element: str | None,
    ties: bool,
    paths: str | None,
    saved: bool,
    ir: bool,
    **given: Any,
) -> int:
    """Show the chain rule at work, edge by edge.

    With --ir, show the trace: each op of the run and each step of its backward pass as
    `%4: f32[2,3] = mul(%1, %3)`, with its source, its place, and its effects: what it reads out of
    tensors, writes, draws, checks, and which leaves get a gradient.
    """
    from gradcli.cli.commands import explain as explaining

    terminal = terminal_of(given.pop("color"), given)
    program, arguments = program_and_arguments("explain", words, file)
    widening = explaining.Widening(explaining.read_element(element), ties, paths, saved)
    options = options_of(given)
    if ir:
        if ties or paths or saved or element or options.format in ("mermaid", "dot"):
            raise click.UsageError("--ir prints the trace, and takes no other part of explain")
        code = explaining.trace(terminal, program, arguments, options)
    else:
        code = explaining.explain(terminal, program, arguments, options, widening)
    return terminal.checked(code)


@gradcli.command()
@click.option("--shape", is_flag=True, help="Values are shapes: x=3,4 is random, 3 by 4.")
@click.option(
    "--to",
    "target",
    type=click.Choice(["gradcli", "latex", "numpy", "torch"]),
    default="gradcli",
    help="What is written: formulas in the language or in LaTeX, or a file for NumPy or PyTorch.",
)
@click.option("--json", is_flag=True, help="Print the formulas as JSON.")
@with_program
@click.argument("words", nargs=-1, metavar="PROGRAM [NAME=VALUE]…", shell_complete=complete_values)
def derive(words: Sequence[str], file: str | None, shape: bool, target: str, **given: Any) -> int:
    """Write the gradients down as formulas of the inputs."""
    from gradcli.cli.commands import explain as explaining

    terminal = terminal_of(given.pop("color"), given)
    program, arguments = program_and_arguments("derive", words, file)
    if shape:
        arguments = explaining.with_shapes(arguments)
    code = explaining.derive(terminal, program, arguments, options_of(given), target=target)
    return terminal.checked(code)


@gradcli.command()
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Whether text is coloured.",
)
@with_device
@with_limits
def repl(color: str, **given: Any) -> int:
    """Work in a session: one statement after another."""
    return start(color, given)


@gradcli.command()
@click.argument("topic", required=False, shell_complete=_topics)
def help(topic: str | None) -> int:
    """Explain a topic, an op, or the code of an error."""
    from gradcli.render.help.pages import names, overview, page

    terminal = Terminal()
    text = overview(terminal.style) if topic is None else page(topic, terminal.style)
    if text is None:
        assert topic is not None
        raise _unknown("topic or op", topic, names())
    terminal.write(text)
    return 0


@gradcli.command()
@click.argument("pattern", required=False, shell_complete=_ops)
@click.option("--json", is_flag=True, help="Print the list as JSON.")
def ops(pattern: str | None, json: bool) -> int:
    """List the ops by family.

    PATTERN is a part of a name or of a node's name, or a glob such as '*_loss'. In a pipe each op
    is a line: its name, its node and what it does, with tabs between.
    """
    from gradcli.cli.commands.ops import listing

    terminal = Terminal()
    text = listing(pattern, json, terminal.style)
    if not text:
        from gradcli.render.help.pages import names

        raise _unknown("op like", pattern or "", names())
    terminal.write(text)
    return 0


@gradcli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print a script for completion in a shell.

    It completes commands, options, topics, ops and files.

    \b
    bash: eval "$(gradcli completion bash)"      in ~/.bashrc
    zsh:  eval "$(gradcli completion zsh)"       in ~/.zshrc
    fish: gradcli completion fish | source       in ~/.config/fish/config.fish
    """
    from gradcli.cli.commands.completion import script

    Terminal().write(script(gradcli, shell))
    return 0


@gradcli.command()
def info() -> int:
    """Show versions and devices, for reports of bugs."""
    from gradcli.cli.commands.info import information

    Terminal().write(information())
    return 0


def start(color: str, given: dict[str, Any]) -> int:
    """What happens without a program: a session on a terminal, standard input as a script
    elsewhere.
    """
    terminal = terminal_of(color, given)
    if sys.stdin is None or not sys.stdin.isatty():
        return terminal.checked(batch(terminal, [STDIN], [], options_of(given)))
    if given.get("inputs") is not None:
        raise click.UsageError("--inputs needs a program to run")
    from gradcli.cli.repl.repl import repl as session

    with raising_on_signals():
        return session(terminal, options_of(given))


def terminal_of(color: str, given: dict[str, Any]) -> Terminal:
    """The terminal that the options ask for, which are taken out."""
    error_format, strict = given.pop("error_format", "full"), given.pop("strict", False)
    return Terminal(color, given.get("quiet", False), error_format, strict)


def options_of(given: dict[str, Any]) -> Options:
    if given.get("inputs") is not None:
        check_inputs(given)
    if given.get("json") and given.get("format") not in (None, "json"):
        raise click.UsageError(f"--json and --format {given['format']} exclude each other")
    options = Options(limits=limits_of(given), **given)
    if options.output is not None:
        options.limits.check_file(options.output)
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


def program_and_arguments(
    command: str, words: Sequence[str], file: str | None
) -> tuple[Any, list[Argument]]:
    """What a command that explains a program was given: the program and the arguments."""
    from gradcli.cli.commands.explain import Program

    if file is not None:
        return Program(None, file), _arguments(words)
    if not words:
        raise click.UsageError(f"`gradcli {command}` needs a program, or --file FILE")
    _check_program(words[0])
    return Program(words[0]), _arguments(words[1:])


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
    from gradcli.language.hints.spelling import closest

    near = closest(word, [each for each in known if each != _PROGRAM])
    hint = "" if near is None else f"; did you mean `{near}`?"
    return click.UsageError(f"there is no {what} `{word}`{hint}{ending}")


def joined(args: Sequence[str]) -> list[str]:
    """The words with `--trace` and the style behind it as one; alone it stands for the tree.

    Raises a usage error for what no shell can hand over: a zero byte, half of a surrogate pair.
    """
    for word in args:
        try:
            unusable = b"\0" in os.fsencode(word)
        except UnicodeEncodeError:
            unusable = True
        if unusable:
            raise click.UsageError(f"{word!r} is no text")
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
