"""Compiles an operation to a closure over operands that have been evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from gradcli.language.compiler.base import HANDLERS, Compiler, Evaluate, Store
from gradcli.language.tree.scopes import Scope
from gradcli.language.tree.syntax import Expression, Statement

_STORED = "="
"""The name of what an assignment stores, among its operands; no variable has it, or a number."""


class OverOperands(Compiler):
    """Compiles an operation to a closure over its operands by their numbers, in place of names.

    Args:
        operands: the nodes of the operands; None for what the operation's handler evaluates, in its
            order, of which `operands` tells afterwards.
    """

    reads_directly = False

    def __init__(self, compiler: Compiler, operands: Sequence[Expression] | None) -> None:
        super().__init__(compiler.interpreter)
        self.values = compiler.values
        self.are_known = operands is not None
        self.operands = list(operands or ())

    def expression(self, node: Expression, scope: Scope) -> Evaluate:
        number = next((n for n, each in enumerate(self.operands) if each is node), None)
        if number is None:
            if self.are_known:
                return HANDLERS[type(node)](self, node, scope)
            number = len(self.operands)
            self.operands.append(node)
        return itemgetter(str(number))

    def store(self, target: Expression, scope: Scope, assigned: bool = False) -> Store:
        return lambda operands, value: operands.__setitem__(_STORED, value)


class Operation:
    """What the interpreter makes of an expression, or of an assignment, whose operands have been
    evaluated: called with their values it gives the result, with the errors, places and labels of
    the program.

    Attributes:
        operands: the nodes of the operands; where none are passed, what the node's handler
            evaluates, in its order.
    """

    def __init__(
        self,
        compiler: Compiler,
        node: Expression | Statement,
        scope: Scope,
        operands: Sequence[Expression] | None = None,
    ) -> None:
        over = OverOperands(compiler, operands)
        self.node: Any = node
        self._run = HANDLERS[type(node)](over, node, scope)
        self.operands = over.operands

    def __call__(self, *values: Any) -> Any:
        operands = {str(number): value for number, value in enumerate(values)}
        result = self._run(operands)
        return operands.get(_STORED, result)
