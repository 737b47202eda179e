"""Tells of the end of every statement, so that a run can be changed in its middle."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcli.language.compiler.base import Compiler
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import Scope, Variables

if TYPE_CHECKING:
    from gradcli.language.interpreter import Interpreter


def tell_of_statements(interpreter: Interpreter, ended: Callable[[int], None]) -> None:
    """Call `ended` after each statement that the interpreter runs from now on, with how many
    statements stand around it.
    """
    interpreter.statement_ended = ended
    interpreter.make_hot_loop = None
    interpreter.compiler = _TellingCompiler(interpreter)


class _TellingCompiler(Compiler):
    """Compiles closures of statements that tell of their end."""

    __slots__ = ()

    def statement(self, node: tree.Statement, scope: Scope) -> Run:
        run = super().statement(node, scope)
        interpreter, ended = self.interpreter, self.interpreter.statement_ended
        assert ended is not None

        def run_and_tell(variables: Variables) -> Any:
            interpreter.depth += 1
            try:
                control = run(variables)
            finally:
                interpreter.depth -= 1
            ended(interpreter.depth)
            return control

        return run_and_tell
