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

from gradcli.language import tree
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
from gradcli.language.functions.control_flow import Run
from gradcli.language.tree.scopes import Scope, Variables

if TYPE_CHECKING:
    from gradcli.language.interpreter import Interpreter
    from gradcli.language.loops.hot_loop import HotLoop

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
        self.loop: tree.Statement | None = None

    def expression(self, node: tree.Expression, scope: Scope) -> Evaluate:
        """The closure of an expression."""
        return _EXPRESSIONS[type(node)](self, node, scope)

    def statement(self, node: tree.Statement, scope: Scope) -> Run:
        """The closure of a statement."""
        return _STATEMENTS[type(node)](self, node, scope)

    def loop_body(self, loop: tree.For | tree.While, scope: Scope) -> Run:
        """The closure of a loop's body."""
        outer, self.loop = self.loop, self.loop or loop
        try:
            return self.block(loop.body, scope)
        finally:
            self.loop = outer

    def hot_loop(
        self, loop: tree.For | tree.While, scope: Scope, body: Run
    ) -> Callable[[], HotLoop]:
        """What gives, once a loop is hot, what may compile its iterations."""

        @cache
        def find() -> HotLoop:
            # lazy: few programs have a loop that is hot.
            from gradcli.language.loops.hot_loop import HotLoop

            made = HotLoop(self, loop, scope, body)
            self.interpreter.hot_loops.append(made)
            return made

        return find

    def block(self, body: Sequence[tree.Statement], scope: Scope) -> Run:
        """The closure of statements in a row."""
        return blocks.block(self, body, scope)


_EXPRESSIONS: dict[type, Callable[[Compiler, Any, Scope], Evaluate]] = {
    tree.Attribute: access.attribute,
    tree.Binary: operations.binary,
    tree.Call: calling.call,
    tree.Comparison: operations.comparison,
    tree.Comprehension: comprehensions.comprehension,
    tree.Conditional: operations.conditional,
    tree.Constant: names.constant,
    tree.Dict: displays.dict_display,
    tree.FormattedString: displays.formatted_string,
    tree.Lambda: functions.lambda_expression,
    tree.List: displays.list_display,
    tree.Logical: operations.logical,
    tree.Name: names.name,
    tree.NamedExpression: assignment.named_expression,
    tree.Set: displays.set_display,
    tree.Slice: access.slice_expression,
    tree.Subscript: access.subscript,
    tree.Tuple: displays.tuple_display,
    tree.Unary: operations.unary,
}

_STATEMENTS: dict[type, Callable[[Compiler, Any, Scope], Run]] = {
    tree.Assert: handling.assert_statement,
    tree.Assign: updates.assign,
    tree.AugmentedAssign: assignment.augmented_assign,
    tree.Break: blocks.break_statement,
    tree.Class: classes.class_statement,
    tree.Continue: blocks.continue_statement,
    tree.Def: functions.def_statement,
    tree.Del: assignment.del_statement,
    tree.ExpressionStatement: blocks.expression_statement,
    tree.For: loops.for_statement,
    tree.FromImport: names.from_import,
    tree.Global: blocks.pass_statement,
    tree.If: blocks.if_statement,
    tree.Import: names.import_statement,
    tree.Pass: blocks.pass_statement,
    tree.Raise: handling.raise_statement,
    tree.Return: blocks.return_statement,
    tree.Try: handling.try_statement,
    tree.While: loops.while_statement,
    tree.With: handling.with_statement,
}
