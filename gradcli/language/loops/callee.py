"""A call that is captured, with its operands."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradcli.language import tree


class Callee(NamedTuple):
    """A call with its operands.

    Attributes:
        node: the call.
        hole: the same, with holes for the operands.
        function: what is called.
        name: its name, where it is a method or of a module.
        receiver: what it is a method of, None for nothing.
        positional: the arguments, without the receiver.
        keywords: those by name.
        operands: everything that goes into the holes.
    """

    node: tree.Call
    hole: tree.Call
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
