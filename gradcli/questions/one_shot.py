"""Runs the program of a one-shot and shows value, gradients and trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

from gradcli.errors import GradcliError
from gradcli.language.tree.syntax import Assign, Attribute, Constant, Name
from gradcli.questions.notes.error_notes import (
    diagonal_meant,
    note_arguments,
    note_detachments,
    note_missing_gradients,
)
from gradcli.running.arguments.options import Options
from gradcli.running.arguments.words import (
    Argument,
    arguments_of,
    check_program,
    check_stdin,
    stdin_options,
)
from gradcli.running.process.terminal import Terminal
from gradcli.running.run import Run
from gradcli.running.showing import report

if TYPE_CHECKING:
    from gradcli.language.tree.syntax import Statement

_LONGEST_EXAMPLE = 60


def run_words(
    terminal: Terminal,
    programs: Sequence[str],
    words: Sequence[str],
    options: Options,
    run: Callable[[Terminal, str, Sequence[Argument], Options], int],
) -> int:
    """Run the lines of a program, or else the first of the words, the arguments behind it.

    Args:
        run: `one_shot`, or what else runs a program and gives the exit code.

    Returns:
        The exit code.

    Raises:
        UsageError: the first word is meant as something else, or another is no `NAME=VALUE`.
    """
    if not programs:
        programs, words = words[:1], words[1:]
        check_program(programs[0], words)
    arguments = arguments_of(words)
    check_stdin(arguments, stdin_options(options))
    return terminal.checked(run(terminal, "\n".join(programs), arguments, options))


def one_shot(
    terminal: Terminal, program: str, arguments: Sequence[Argument], options: Options
) -> int:
    """Run a program and show value, gradients and trace; returns the exit code."""
    run = Run(terminal, options, options.record)
    statements: Sequence[Statement] = ()
    code, meant = 0, None
    try:
        with run.limited():
            statements = run.session.parse(program, "program")
            value = run.execute(statements, arguments)
            if not report(run, value) and not options.json:
                _show_plain(run, statements, value)
            elif options.format == "text":
                note_missing_gradients(run, statements, arguments)
    except GradcliError as error:
        meant = note_arguments(error, statements, arguments, _command(program))
        note_detachments(error, run, statements, arguments)
        terminal.error(error)
        code = error.exit_code
    if run.bindings is not None:
        run.bindings.warn_unused(terminal, statements if code else (), meant)
    return code


def _show_plain(run: Run, statements: Sequence[Statement], value: Any) -> None:
    """Show the value of a program without a tensor."""
    from gradcli.running.report import show_output  # lazy: start-up: NumPy

    name, value = last_value(run, statements, value)
    if value is not None:
        with run.session.running():
            show_output(run.terminal, name, value)
    if name is not None:
        run.terminal.note(
            f"`{name}` is no tensor, so there is no gradient{_instead(statements[-1])}"
        )


_NUMBER_MADE = re.compile(r"\b(?:math|np|numpy)\.(\w+)\(")


def _instead(statement: Statement) -> str:
    """What a statement that makes no tensor was likely meant to be."""
    from gradcli.library.namespace import table_of  # lazy: start-up: NumPy

    assert isinstance(statement, Assign)
    diagonal = diagonal_meant([statement])
    if diagonal is not None:
        return f": {diagonal}"
    text = statement.value.span.text
    match = _NUMBER_MADE.search(text)
    if match is not None and table_of(match[1]) is not None:
        return f": `{match[0][:-1]}` makes a number, and `torch.{match[1]}` a tensor"
    if isinstance(statement.value, Attribute):
        return f": `{text}()` calls the method"
    if isinstance(statement.value, Constant):
        return (
            f": behind a program, {statement.targets[0].span.text}={text} is the value of an input"
        )
    return ""


def last_value(run: Run, statements: Sequence[Statement], value: Any) -> tuple[str | None, Any]:
    """What the last statement of a program assigned, with its name, or else its value."""
    last = statements[-1] if statements else None
    if isinstance(last, Assign) and isinstance(last.targets[0], Name):
        return last.targets[0].name, run.session.values.get(last.targets[0].name)
    return None, value


def _command(program: str) -> str:
    if "\n" in program or len(program) > _LONGEST_EXAMPLE:
        return "gradcli …"
    return f"gradcli {quote(program)}"
