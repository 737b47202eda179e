"""The REPL: one statement after another, in a session that lasts."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from gradcli import __version__
from gradcli.errors import GradcliError
from gradcli.language.objects.types import type_name
from gradcli.language.tree.syntax import Attribute, ExpressionStatement
from gradcli.questions.notes.error_notes import note_detachments
from gradcli.repl.plain import pasted, plain_reader
from gradcli.running.run import Run
from gradcli.session import with_room
from gradcli.show.style import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.running.arguments.options import Options
    from gradcli.running.process.terminal import Terminal
    from gradcli.session import StatementResult

_LEAVE = frozenset({"exit", "quit", "exit()", "quit()", ":q"})
_METHODS = ("builtin_function_or_method", "method")
_HELP = re.compile(r"help(?: +([\w.-]+)|\( *['\"]?([\w.]*)['\"]? *\))?|\?")


def repl(terminal: Terminal, options: Options, file: str | None = None) -> int:
    """Read entries and run them until the end of input; the first one runs a file, if any.

    An entry that fails or is interrupted leaves every earlier value as it was; `_` is the value of
    the last expression. Returns the exit code.
    """
    run = Run(terminal, options, "graph")
    run.shows_values = True
    run.mode = options.format
    terminal.note(f"gradcli {__version__}; an expression shows its value, .help the rest")
    read = _reader(run)
    entries = 0
    if file is not None:
        run_entry(run, f".read {file}", "option FILE")
    while not run.session.ended:
        # Ctrl-C may come at any moment, so all that takes time is inside.
        running = False
        try:
            text = read()
            if not text.strip():
                continue
            text = pasted(text)
            if _leaves(run, text):
                return 0
            text = _as_command(run, text)
            entries += 1
            running = True
            run_entry(run, text, f"entry {entries}")
            running = False
        except KeyboardInterrupt as interruption:
            if running:
                run.transcript.failed += 1
                sys.stderr.write("\n")  # the terminal has written ^C
                terminal.note(" at ".join(["interrupted", *interruption.args]))
        except EOFError:
            return 0
    return 0


@with_room
def run_entry(run: Run, text: str, name: str) -> None:
    """Run the statements of one entry, the values of expressions shown, up to the first error."""
    terminal = run.terminal
    done = 0
    statements = []
    try:
        with run.limited(), run.within_memory():
            statements = run.session.parse(text, name)
            for result in run.follow(statements):
                if result.value is not None:
                    with run.session.running(result.span):
                        run.show_value(result.value)
                    _note_method(run, result)
                done += 1
    except GradcliError as error:
        if error.code in ("E202", "E402", "E403", "E404"):
            former = run.session.parse(run.transcript.program(), "session")
            note_detachments(error, run, [*former, *statements[done:]], ())
        terminal.error(error)
        if statements:
            run.transcript.failed += 1
        left = len(statements) - done - 1
        if left > 0:
            terminal.note(f"{counted(left, 'statement')} behind it did not run")
    terminal.flush()


def _note_method(run: Run, result: StatementResult) -> None:
    """Say of a method that was named alone, `y.backward`, how it is called."""
    statement = result.statement
    expression = statement.value if isinstance(statement, ExpressionStatement) else None
    if not isinstance(expression, Attribute) or type_name(result.value) not in _METHODS:
        return
    text = expression.span.text
    owner = run.session.values.get(text.partition(".")[0])
    if owner is not None and type_name(owner) != "module":
        run.terminal.note(f"`{text}()` calls the method")


def _leaves(run: Run, text: str) -> bool:
    word = text.strip()
    return word in _LEAVE and word.removesuffix("()") not in run.session.values


def _as_command(run: Run, text: str) -> str:
    """`help` and `help(exp)`, as people type them, as the command; any other entry as it is."""
    asked = _HELP.fullmatch(text.strip())
    if asked is None or "help" in run.session.values:
        return text
    return f".help {asked[1] or asked[2] or ''}".strip()


def _reader(run: Run) -> Callable[[], str]:
    """What reads entries: an editor where the terminal can carry one, else lines as they come."""
    plain = plain_reader()
    if os.environ.get("TERM", "dumb") == "dumb" or not sys.stdout.isatty():
        return plain
    reader: Callable[[], str] | None = None

    def read() -> str:
        nonlocal reader
        try:
            if reader is None:
                from gradcli.repl.editor import editor  # lazy: start-up: prompt_toolkit

                reader = editor(run)
            return reader()
        except EOFError:
            raise
        except Exception as error:  # whatever a terminal or an installation can lack
            run.terminal.note(f"entries are read without an editor: {error}")
            reader = plain
            return plain()

    return read
