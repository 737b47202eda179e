"""One-shot: `gradcli 'PROGRAM' [NAME=VALUE]…`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradcli.cli.arguments.options import Options
from gradcli.cli.arguments.values import Argument
from gradcli.cli.process.terminal import Terminal
from gradcli.cli.program.run import Run, explain_missing, prove_cut
from gradcli.errors import GradcliError

if TYPE_CHECKING:
    from gradcli.language.tree import Statement

_LONGEST_EXAMPLE = 60


def one_shot(
    terminal: Terminal, program: str, arguments: Sequence[Argument], options: Options
) -> int:
    """Run a program, differentiate its output, and show value, gradients and trace.

    Returns:
        The exit code.

    Raises:
        click.UsageError: an option names what the program does not have.
    """
    if options.inputs is not None:
        from gradcli.cli.commands.records import run_records

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
                _note_missing(run, statements, arguments)
    except GradcliError as error:
        explain_missing(error, statements, arguments, _command(program))
        prove_cut(error, run, statements, arguments)
        terminal.error(error)
        code = error.exit_code
    if run.bindings is not None:
        run.bindings.warn_unused(terminal, statements if code else ())
    return code


def _note_missing(run: Run, statements: Sequence[Statement], arguments: Sequence[Argument]) -> None:
    """Say where the graph was cut on the way from the arguments that got no gradient."""
    inputs = [] if run.bindings is None else run.bindings.inputs()
    if any(tensor.requires_grad and tensor.grad is None for _, tensor in inputs):
        from gradcli.cli.commands.error_notes import note_missing

        note_missing(run, statements, arguments)


def _show_plain(run: Run, statements: Sequence[Statement], value: Any) -> None:
    """Show the value of a program without a tensor."""
    from gradcli.cli.program.report import show_output
    from gradcli.language.tree import Assign, Name

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
    from shlex import quote

    if "\n" in program or len(program) > _LONGEST_EXAMPLE:
        return "gradcli …"
    return f"gradcli {quote(program)}"
