"""From the syntax tree to closures: each expression and statement becomes a Python function of
the variables.

What can be decided once is decided here: where a name lives, which operator it is, how many
arguments there are. A compiled expression gives its value; a compiled statement gives None, or a
signal that ends the block around it. Before anything that can fail or make a node, a closure
notes its place in the state.

A file for each kind of syntax; the two tables below say which function compiles what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from gradcli.language import syntax
from gradcli.language.compiler import (
    access,
    assignment,
    blocks,
    calling,
    classes,
    comprehensions,
    displays,
    functions,
    handling,
    loops,
    names,
    operations,
    updates,
)
from gradcli.language.scopes import Scope, Variables
from gradcli.language.signals import Run

if TYPE_CHECKING:
    from gradcli.language.interpreter import Interpreter
    from gradcli.language.rounds.loop import TracedLoop

Evaluate = Callable[[Variables], Any]


class Compiler:
    """Compiles for one interpreter, whose values and state the closures share.

    Attributes:
        loop: the outermost loop around what is being compiled.
    """

    __slots__ = ("interpreter", "loop", "state", "steps", "values")

    def __init__(self, interpreter: Interpreter) -> None:
        self.interpreter = interpreter
        self.state = interpreter.state
        self.steps = interpreter.steps
        self.values = interpreter.values
        self.loop: syntax.Statement | None = None

    def expression(self, node: syntax.Expression, scope: Scope) -> Evaluate:
        """The closure of an expression."""
        return _EXPRESSIONS[type(node)](self, node, scope)

    def statement(self, node: syntax.Statement, scope: Scope) -> Run:
        """The closure of a statement."""
        return _STATEMENTS[type(node)](self, node, scope)

    def loop_body(self, loop: syntax.For | syntax.While, scope: Scope) -> Run:
        """The closure of a loop's body."""
        outer, self.loop = self.loop, self.loop or loop
        try:
            return self.block(loop.body, scope)
        finally:
            self.loop = outer

    def traced_loop(
        self, loop: syntax.For | syntax.While, scope: Scope, body: Run
    ) -> Callable[[], TracedLoop | None]:
        """What finds out, when it is first asked, whether a loop's rounds may be traced."""

        @cache
        def find() -> TracedLoop | None:
            from gradcli.language.rounds.admission import admit
            from gradcli.language.rounds.loop import TracedLoop

            plan = admit(loop)
            return None if plan is None else TracedLoop(self, plan, scope, body)

        return find

    def block(self, body: Sequence[syntax.Statement], scope: Scope) -> Run:
        """The closure of statements in a row."""
        return blocks.block(self, body, scope)


_EXPRESSIONS: dict[type, Callable[[Compiler, Any, Scope], Evaluate]] = {
    syntax.Attribute: access.attribute,
    syntax.Binary: operations.binary,
    syntax.Call: calling.call,
    syntax.Comparison: operations.comparison,
    syntax.Comprehension: comprehensions.comprehension,
    syntax.Conditional: operations.conditional,
    syntax.Constant: names.constant,
    syntax.Dict: displays.dict_display,
    syntax.FormattedString: displays.formatted_string,
    syntax.Lambda: functions.lambda_expression,
    syntax.List: displays.list_display,
    syntax.Logical: operations.logical,
    syntax.Name: names.name,
    syntax.NamedExpression: assignment.named_expression,
    syntax.Set: displays.set_display,
    syntax.Slice: access.slice_expression,
    syntax.Subscript: access.subscript,
    syntax.Tuple: displays.tuple_display,
    syntax.Unary: operations.unary,
}

_STATEMENTS: dict[type, Callable[[Compiler, Any, Scope], Run]] = {
    syntax.Assert: handling.assert_statement,
    syntax.Assign: updates.assign,
    syntax.AugmentedAssign: assignment.augmented_assign,
    syntax.Break: blocks.break_statement,
    syntax.Class: classes.class_statement,
    syntax.Continue: blocks.continue_statement,
    syntax.Def: functions.def_statement,
    syntax.Del: assignment.del_statement,
    syntax.ExpressionStatement: blocks.expression_statement,
    syntax.For: loops.for_statement,
    syntax.FromImport: names.from_import,
    syntax.Global: blocks.pass_statement,
    syntax.If: blocks.if_statement,
    syntax.Import: names.import_statement,
    syntax.Pass: blocks.pass_statement,
    syntax.Raise: handling.raise_statement,
    syntax.Return: blocks.return_statement,
    syntax.Try: handling.try_statement,
    syntax.While: loops.while_statement,
    syntax.With: handling.with_statement,
}
