"""One-shot: `gradcli 'PROGRAM' [NAME=VALUE]…`."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli.arguments.click_options import (
    check_stdin,
    options_of,
    stdin_options,
    terminal_of,
    with_options,
)
from gradcli.cli.arguments.options import Options
from gradcli.cli.arguments.shell_completion import values
from gradcli.cli.arguments.values import Argument
from gradcli.cli.arguments.words import PROGRAM, arguments_of, check_program
from gradcli.cli.process.terminal import Terminal
from gradcli.cli.program.error_notes import (
    note_detachments,
    note_missing_gradients,
    note_missing_values,
)
from gradcli.cli.program.run import Run
from gradcli.errors import GradcliError
from gradcli.language.tree.syntax import Assign, Name

if TYPE_CHECKING:
    from gradcli.language.tree.syntax import Statement


def _help(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """A program's help is the whole command's."""
    if wanted:
        click.echo(ctx.find_root().get_help())
        ctx.exit()


@click.command(PROGRAM, hidden=True, add_help_option=False)
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
@click.argument("words", nargs=-1, shell_complete=values)
def command(programs: Sequence[str], words: Sequence[str], **given: Any) -> int:
    """Run a program given in the words themselves."""
    if not programs and not words:
        from gradcli.cli.commands.repl import start  # lazy: command: a session

        return start(given)
    terminal = terminal_of(given)
    if not programs:
        programs, words = words[:1], words[1:]
        check_program(programs[0])
    options, arguments = options_of(given), arguments_of(words)
    check_stdin(arguments, stdin_options(options))
    code = one_shot(terminal, "\n".join(programs), arguments, options)
    return terminal.checked(code)


_LONGEST_EXAMPLE = 60


def one_shot(
    terminal: Terminal, program: str, arguments: Sequence[Argument], options: Options
) -> int:
    """Run a program and show value, gradients and trace; returns the exit code."""
    if options.inputs is not None:
        from gradcli.cli.commands.records import run_records  # lazy: start-up: JSON

        return run_records(terminal, lambda: program, "program", arguments, options)
    run = Run(terminal, options, options.record)
    statements: Sequence[Statement] = ()
    code = 0
    try:
        with run.limited():
            statements = run.session.parse(program, "program")
            value = run.execute(statements, arguments)
            if not run.report(value) and not options.json:
                _show_plain(run, statements, value)
            elif options.format == "text":
                note_missing_gradients(run, statements, arguments)
    except GradcliError as error:
        note_missing_values(error, statements, arguments, _command(program))
        note_detachments(error, run, statements, arguments)
        terminal.error(error)
        code = error.exit_code
    if run.bindings is not None:
        run.bindings.warn_unused(terminal, statements if code else ())
    return code


def _show_plain(run: Run, statements: Sequence[Statement], value: Any) -> None:
    """Show the value of a program without a tensor."""
    from gradcli.cli.program.report import show_output  # lazy: start-up: NumPy

    last = statements[-1] if statements else None
    name = None
    if isinstance(last, Assign) and isinstance(last.targets[0], Name):
        name = last.targets[0].name
        value = run.session.values.get(name)
    if value is not None:
        with run.session.running():
            show_output(run.terminal, name, value)
    if name is not None:
        run.terminal.note(f"`{name}` is no tensor, so there is no gradient")


def _command(program: str) -> str:
    if "\n" in program or len(program) > _LONGEST_EXAMPLE:
        return "gradcli …"
    return f"gradcli {quote(program)}"
