"""Where a program keeps values from one iteration to the next: in a name, an attribute, an item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.objects.attributes import delete_attribute, get_attribute, set_attribute
from gradcli.language.tree.scopes import Variables
from gradcli.trace.ir import Inline, Operand


class Location:
    """A place that holds a value."""

    __slots__ = ("key",)

    key: tuple[Any, ...]

    def read(self, variables: Variables) -> Any:
        """What it holds, given the variables of the code with the loop."""
        raise NotImplementedError

    def store(self, variables: Variables, value: Any) -> None:
        """Let it hold a value."""
        raise NotImplementedError

    def remove(self, variables: Variables) -> None:
        """Let it hold nothing, as before something was stored."""
        raise NotImplementedError


class OwnName(Location):
    """A variable of the code with the loop."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.key = ("own", name)
        self.name = name

    def read(self, variables: Variables) -> Any:
        return variables[self.name]

    def store(self, variables: Variables, value: Any) -> None:
        if type(value) is Tensor:
            value.set_name(self.name)
        variables[self.name] = value

    def remove(self, variables: Variables) -> None:
        variables.pop(self.name, None)


class OuterName(Location):
    """A variable of the program, or of a function around."""

    __slots__ = ("holder", "name")

    def __init__(self, holder: Variables, name: str) -> None:
        self.key = ("outer", id(holder), name)
        self.holder = holder
        self.name = name

    def read(self, variables: Variables) -> Any:
        return self.holder[self.name]

    def store(self, variables: Variables, value: Any) -> None:
        if type(value) is Tensor:
            value.set_name(self.name)
        self.holder[self.name] = value

    def remove(self, variables: Variables) -> None:
        self.holder.pop(self.name, None)


class Attribute(Location):
    """An attribute of an object."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Any, name: str) -> None:
        self.key = ("attribute", id(owner), name)
        self.owner = owner
        self.name = name

    def read(self, variables: Variables) -> Any:
        return get_attribute(self.owner, self.name)

    def store(self, variables: Variables, value: Any) -> None:
        set_attribute(self.owner, self.name, value)

    def remove(self, variables: Variables) -> None:
        with suppress(GradcliError):  # there may be none
            delete_attribute(self.owner, self.name)


class Item(Location):
    """An item of a list or a dict."""

    __slots__ = ("at", "owner")

    def __init__(self, owner: Any, at: Any) -> None:
        self.key = ("item", id(owner), at)
        self.owner = owner
        self.at = at

    def read(self, variables: Variables) -> Any:
        return self.owner[self.at]

    def store(self, variables: Variables, value: Any) -> None:
        self.owner[self.at] = value

    def remove(self, variables: Variables) -> None:
        self.owner.pop(self.at, None)  # of a dict: a list has all items that can be set


class Part(Location):
    """One of the items of a tuple or list that a place is given as a whole, the last one last."""

    __slots__ = ("items", "kind", "number", "place")

    def __init__(self, place: Location, kind: type, items: list[Any], number: int) -> None:
        self.key = place.key
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
    if isinstance(location, OwnName):
        return Inline(f"frame[{location.name!r}]"), []
    if isinstance(location, OuterName):
        return Inline(f"{{0}}[{location.name!r}]"), [location.holder]
    return Inline("{0}(frame)"), [location.read]


def store_op(
    location: Location, text: str, operands: list[Operand], named: bool
) -> tuple[Inline, list[Operand]]:
    """How compiled code stores a text's value in a location; `named` to name a tensor after it."""
    at = len(operands)
    if isinstance(location, OwnName) and not named:
        return Inline(f"frame[{location.name!r}] = {text}"), operands
    if isinstance(location, OuterName) and not named:
        return Inline(f"{{{at}}}[{location.name!r}] = {text}"), [*operands, location.holder]
    return Inline(f"{{{at}}}(frame, {text})"), [*operands, location.store]


def item_of(read: Callable[[Variables], Any], number: int) -> Callable[[Variables], Any]:
    """What reads an item of what another function reads."""
    return lambda variables: read(variables)[number]
