"""A call that is captured, with its operands."""

from __future__ import annotations

from types import FunctionType
from typing import Any, NamedTuple

from gradcli.language.functions.calls import Function
from gradcli.language.loops.walk.operation import Operation
from gradcli.language.objects.descriptors import Property
from gradcli.language.tree import syntax as tree


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
    def given(self) -> list[Any]:
        """Everything that the function is given."""
        return [*self.arguments, *self.keywords.values()]


def functions_in(value: Any) -> list[Function]:
    """The functions of the program that a value calls when it is called."""
    if type(value) is Function:
        return [value]
    if type(value) is Property:
        return functions_in(value.fget)
    for name in ("function", "func"):
        if name in getattr(type(value), "__slots__", ()):
            return functions_in(getattr(value, name))
    cells = [each.cell_contents for each in getattr(value, "__closure__", None) or ()]
    called = [each for each in cells if type(each) in (Function, FunctionType)]
    return [function for each in called if each is not value for function in functions_in(each)]
