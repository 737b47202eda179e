"""Operations and calls of the program over operands that have been evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from gradcli.language.compiler.base import HANDLERS, Compiler, Evaluate, Store
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope
from gradcli.language.tree.syntax import Expression, Statement
from gradcli.loops.capture import Capture

_STORED = "="
"""The name of what an assignment stores, among its operands; no variable has it, or a number."""


class _OverOperands(Compiler):
    """Compiles an operation to a closure over its operands by their numbers, in place of names."""

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
        over = _OverOperands(compiler, operands)
        self.node: Any = node
        self._run = HANDLERS[type(node)](over, node, scope)
        self.operands = over.operands

    def __call__(self, *values: Any) -> Any:
        operands = {str(number): value for number, value in enumerate(values)}
        result = self._run(operands)
        return operands.get(_STORED, result)


class Callee(NamedTuple):
    """A call with its operands.

    Attributes:
        operation: the same, over the operands.
        name: its name, where it is a method or of a module.
        receiver: what it is a method of, None for nothing.
    """

    node: tree.Call
    operation: Operation
    function: Any
    name: str
    receiver: Any
    positional: list[Any]
    keywords: dict[str, Any]
    operands: list[Any]

    @property
    def arguments(self) -> list[Any]:
        """The arguments, the receiver of a method first."""
        return self.positional if self.receiver is None else [self.receiver, *self.positional]

    @property
    def passed(self) -> list[Any]:
        """Everything that is passed to the function."""
        return [*self.arguments, *self.keywords.values()]


Handlers = Sequence[tuple[Callable[[Callee], bool], Callable[[Capture, Callee], Any]]]
"""What records a call, by a condition on it: the first that holds is taken."""
