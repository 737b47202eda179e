"""The commands that explain a run: `explain` and `derive`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli.options import Options
from gradcli.cli.running import Run, explain_missing
from gradcli.cli.terminal import Terminal
from gradcli.cli.values import Argument
from gradcli.errors import GradcliError

if TYPE_CHECKING:
    from gradcli.explain.result import Result
    from gradcli.language.syntax import Statement


class Program:
    """The program that a command was given, in words or in a file.

    Args:
        text: the program, None if it is in a file.
        path: the file.
    """

    __slots__ = ("_text", "name")

    def __init__(self, text: str | None, path: str = "program") -> None:
        self._text = text
        self.name = path

    def text(self) -> str:
        """The program's text; raises E503 for a file that cannot be read."""
        if self._text is None:
            from gradcli.cli.batch import program_text

            self._text = program_text(self.name)
        return self._text


def explained(
    terminal: Terminal,
    command: str,
    program: Program,
    arguments: Sequence[Argument],
    options: Options,
    show: Callable[[Run, Result], str],
) -> int:
    """Run a program, differentiate its output, and print what a command makes of the run.

    Args:
        terminal: where it goes.
        command: the command's name.
        program: the program.
        arguments: the values of its names.
        options: what the command line asks for.
        show: the text to print.

    Returns:
        The exit code.
    """
    run = Run(terminal, options, "all")
    statements: Sequence[Statement] = ()
    code = 0
    try:
        with run.limited():
            statements = run.session.parse(program.text(), program.name)
            value = run.execute(statements, arguments)
            result = run.result(value)
            if result is None or result.graph.root is None:
                raise _no_graph(result, statements)
            with run.session.running():
                text = show(run, result)
            terminal.write(text)
    except GradcliError as error:
        explain_missing(error, statements, arguments, f"gradcli {command} …")
        terminal.error(error)
        code = error.exit_code
    if run.bindings is not None:
        run.bindings.warn_unused(terminal, statements if code else ())
    return code


def _no_graph(result: Result | None, statements: Sequence[Statement]) -> GradcliError:
    span = statements[-1].span if statements else None
    if result is None:
        return GradcliError("E402", "the program computes no tensor to explain", span=span)
    return GradcliError(
        "E402",
        f"{result.name or 'the output'} does not require grad, so there is no gradient to explain",
        span=span,
        help="give an input a value behind the program (`x=2`), or make it with requires_grad=True",
    )


def explain(
    terminal: Terminal,
    program: Program,
    arguments: Sequence[Argument],
    options: Options,
    *,
    element: tuple[int, ...] | None,
) -> int:
    """`gradcli explain`: the ledger of the chain rule."""

    def text(run: Run, result: Result) -> str:
        from gradcli.cli.report import output_text
        from gradcli.explain.ledger import ledger
        from gradcli.render.ledger import ledger_text

        rows = ledger(result.graph, result.events)
        if options.json:
            from gradcli.render.document import text as json_text
            from gradcli.render.ledger_document import ledger_document

            return json_text(ledger_document(result, rows, element))
        style = terminal.style
        head = output_text(style, result.name, result.output)
        if result.seed is not None:
            head += output_text(style, "seed", result.seed)
        return f"{head}\n{ledger_text(rows, style, element)}\n"

    return explained(terminal, "explain", program, arguments, options, text)


def read_element(text: str | None) -> tuple[int, ...] | None:
    """The index that `--element 0,1` names."""
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.replace("[", "").replace("]", "").split(","))
    except ValueError:
        raise click.UsageError(f"--element takes an index such as 0,1, not {text!r}") from None
