"""Where a program keeps values from one iteration to the next: in a name, an attribute, an item.

What a location holds is read, stored and removed given the variables of the code with the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.objects.attributes import delete_attribute, get_attribute, set_attribute
from gradcli.language.tree.scopes import Variables
from gradcli.trace.ir import Inline, Operand, placeholder

Key = tuple[Any, ...]
"""What tells a location from others."""


class Name:
    """A variable of the code with the loop; where there is a holder, of the program, of a function
    around, or of one that is called.
    """

    __slots__ = ("holder", "key", "name")

    def __init__(self, name: str, holder: Variables | None = None) -> None:
        self.key: Key = ("own", name) if holder is None else ("outer", id(holder), name)
        self.name = name
        self.holder = holder

    def read(self, variables: Variables) -> Any:
        return (variables if self.holder is None else self.holder)[self.name]

    def store(self, variables: Variables, value: Any) -> None:
        if type(value) is Tensor:
            value.set_name(self.name)
        (variables if self.holder is None else self.holder)[self.name] = value

    def remove(self, variables: Variables) -> None:
        (variables if self.holder is None else self.holder).pop(self.name, None)


class Attribute:
    """An attribute of an object."""

    __slots__ = ("key", "name", "owner")

    def __init__(self, owner: Any, name: str) -> None:
        self.key: Key = ("attribute", id(owner), name)
        self.owner = owner
        self.name = name

    def read(self, variables: Variables) -> Any:
        return get_attribute(self.owner, self.name)

    def store(self, variables: Variables, value: Any) -> None:
        set_attribute(self.owner, self.name, value)

    def remove(self, variables: Variables) -> None:
        with suppress(GradcliError):  # there may be none
            delete_attribute(self.owner, self.name)


class Item:
    """An item of a list or a dict."""

    __slots__ = ("at", "key", "owner")

    def __init__(self, owner: Any, at: Any) -> None:
        self.key: Key = ("item", id(owner), at)
        self.owner = owner
        self.at = at

    def read(self, variables: Variables) -> Any:
        return self.owner[self.at]

    def store(self, variables: Variables, value: Any) -> None:
        self.owner[self.at] = value

    def remove(self, variables: Variables) -> None:
        self.owner.pop(self.at, None)  # of a dict: a list has all items that can be set


Location = Name | Attribute | Item


class Part:
    """One of the items of a tuple or list that a place is given as a whole, the last one last."""

    __slots__ = ("items", "key", "kind", "number", "place")

    def __init__(self, place: Location, kind: type, items: list[Any], number: int) -> None:
        self.key: Key = place.key
        self.place = place
        self.kind = kind
        self.items = items
        self.number = number

    def read(self, variables: Variables) -> Any:
        return self.place.read(variables)[self.number]

    def store(self, variables: Variables, value: Any) -> None:
        self.items[self.number] = value
        if self.number == len(self.items) - 1:
            self.place.store(variables, self.kind(self.items))


def read_op(location: Location) -> tuple[Inline, Sequence[Operand]]:
    """How compiled code reads a location."""
    operands: list[Operand] = []
    if isinstance(location, Name):
        return Inline(_variable(location, operands)), operands
    return Inline("{0}(frame)"), [location.read]


def store_op(location: Location, text: str, operands: list[Operand], named: bool) -> Inline:
    """How compiled code stores a text's value in a location; `named` to name a tensor after it."""
    if isinstance(location, Name) and not named:
        return Inline(f"{_variable(location, operands)} = {text}")
    return Inline(f"{placeholder(operands, location.store)}(frame, {text})")


def _variable(name: Name, operands: list[Operand]) -> str:
    holder = "frame" if name.holder is None else placeholder(operands, name.holder)
    return f"{holder}[{name.name!r}]"
