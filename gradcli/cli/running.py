"""What one-shot and batch have in common: a session whose output goes to the terminal, and what is
said of an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.cli.bindings import Bindings
from gradcli.cli.files import write_result
from gradcli.cli.options import Options
from gradcli.cli.terminal import Terminal
from gradcli.cli.values import Argument
from gradcli.errors import GradcliError
from gradcli.language.events import Printed, Traced
from gradcli.session import Session

if TYPE_CHECKING:
    from gradcli.language.syntax import Statement


class Run:
    """One program with a session of its own.

    Args:
        terminal: where it shows things.
        options: what the command line asks for.
        record: what the session records.
    """

    __slots__ = ("_printed", "bindings", "options", "session", "terminal")

    def __init__(self, terminal: Terminal, options: Options, record: str | None) -> None:
        self.terminal = terminal
        self.options = options
        self._printed: list[str] = []
        self.session = Session(
            self._emit,
            default_dtype=options.dtype or "float32",
            record=record,
        )
        self.bindings: Bindings | None = None

    def execute(
        self,
        statements: Iterable[Statement],
        arguments: Sequence[Argument],
        after: Callable[[], None] | None = None,
    ) -> Any:
        """Run statements, the arguments bound where they are first mentioned.

        Args:
            statements: the program, or the statements of a stream as they arrive.
            arguments: the arguments.
            after: called behind each statement.

        Returns:
            The value of the last statement, None unless it is an expression.
        """
        self.bindings = Bindings(arguments, self.session, self.options)
        value = None
        for result in self.session.execute(self.bindings.meet(statements)):
            value = result.value
            if after is not None:
                after()
        return value

    def report(self, value: Any = None, *, compact: bool = False) -> bool:
        """Show what the run came to and write it to the file that was asked for.

        Args:
            value: the value of the last statement, which is the output if it is a tensor.
            compact: JSON on one line.

        Returns:
            Whether there was a tensor to report on.
        """
        from gradcli.cli.report import result_of, show

        inputs = [] if self.bindings is None else self.bindings.inputs()
        result = result_of(self.session, self.options, inputs, value)
        if self.options.json:
            self.terminal.write(self._json(result, compact))
        elif result is not None:
            show(self.terminal, self.session, self.options, result)
        if self.options.output is not None:
            write_result(self.options.output, result, lambda: self._json(result, False))
        return result is not None

    def _json(self, result: Any, compact: bool) -> str:
        from gradcli.render.document import document, text

        with self.session.running():
            steps = self.options.trace == "steps"
            found = document(result, "".join(self._printed), steps=steps)
            return text(found, compact=compact)

    def _emit(self, event: Any) -> None:
        """Show what the program shows."""
        if isinstance(event, Printed):
            shown = event.text
        elif isinstance(event, Traced):
            shown = f"{self._traced(event)}\n"
        else:
            self.terminal.warned(event)
            return
        if self.options.json:
            self._printed.append(shown)
        else:
            self.terminal.write(shown)

    def _traced(self, event: Traced) -> str:
        from gradcli.cli.report import trace_text
        from gradcli.explain.result import Result

        tensor = event.tensor
        events = self.session.rehearse(tensor) if event.style == "steps" else ()
        graph = self.session.graph(tensor)
        return trace_text(
            self.terminal, event.style, Result(tensor.name, tensor, None, (), graph, events)
        )


def explain_missing(
    error: GradcliError,
    statements: Sequence[Statement],
    arguments: Sequence[Argument],
    command: str,
) -> None:
    """Let the error of a name without a value show how to give it one.

    Args:
        error: what ended the run.
        statements: the program.
        arguments: the arguments that were given.
        command: the command line up to the arguments.
    """
    if error.code != "E101" or error.span is None:
        return
    from gradcli.cli.mentions import ASSIGNED, BOUND, mentions
    from gradcli.language.namespace import REFUSED, table_of

    known = {argument.name for argument in arguments}
    missing: dict[str, None] = {}
    mentioned: set[str] = set()
    for statement in statements:
        for name, how in mentions(statement).items():
            mentioned.add(name)
            if how in (ASSIGNED, BOUND):
                known.add(name)
            elif name not in known and table_of(name) is None:
                missing.setdefault(name)
    if error.span.text not in missing or error.span.text in REFUSED:
        return
    if error.help is not None and any(f"`{name}`" in error.help for name in known):
        return  # a slip in one of the program's own names
    given = [each.source.text for each in arguments if each.name in mentioned]
    wanted = [f"{name}={number}" for number, name in enumerate(missing, 2)]
    from shlex import join

    example = f"give it a value: {command} {join([*given, *wanted])}"
    if error.help is None:
        error.help = example
    else:  # what the name was likely meant to be
        error.notes = (*error.notes, f"or {example}")
