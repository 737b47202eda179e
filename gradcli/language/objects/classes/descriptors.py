"""Descriptors in a program's classes: methods, properties, and how they are read."""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.errors import GradcliError
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import LanguageType, not_callable, type_name
from gradcli.record import Record

MISSING: Any = object()
"""The result of a lookup of a name that does not exist."""


class BoundMethod(Record):
    """A method with its receiver: an instance, or a class for a class method."""

    receiver: Any
    function: Any

    language_name: ClassVar[str] = "method"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"__func__", "__name__", "__self__"})
    language_qualified: ClassVar[bool] = True

    @property
    def __name__(self) -> str:
        return str(getattr(self.function, "__name__", "method"))

    @property
    def __func__(self) -> Any:
        return self.function

    @property
    def __self__(self) -> Any:
        return self.receiver

    def language_getattr(self, name: str) -> Any:
        """What the function keeps under a name; raises AttributeError."""
        return self.function.language_getattr(name)

    @property
    def language_doc(self) -> str | None:
        """The text at the top of the function."""
        return getattr(self.function, "language_doc", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not callable(self.function):
            raise not_callable(self.function)
        return self.function(self.receiver, *args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BoundMethod)
            and self.receiver is other.receiver
            and self.function is other.function
        )

    def __hash__(self) -> int:
        return hash((id(self.receiver), id(self.function)))

    def __repr__(self) -> str:
        owner = self.receiver if isinstance(self.receiver, LanguageType) else None
        name = owner.name if owner is not None else type_name(self.receiver)
        return f"<bound method {name}.{self.__name__} of {display(self.receiver)}>"


class StaticMethod:
    """`@staticmethod`: a function in a class that has no receiver."""

    __slots__ = ("function",)

    language_name: ClassVar[str] = "staticmethod"

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not callable(self.function):
            raise not_callable(self.function)
        return self.function(*args, **kwargs)

    def language_get(self, instance: Any, owner: LanguageType) -> Any:
        """The function itself."""
        return self.function


class ClassMethod:
    """`@classmethod`: a function in a class whose receiver is the class."""

    __slots__ = ("function",)

    language_name: ClassVar[str] = "classmethod"

    def __init__(self, function: Any) -> None:
        self.function = function

    def language_get(self, instance: Any, owner: LanguageType) -> Any:
        """The method, with the class as its receiver."""
        return BoundMethod(owner, self.function)


def property_function(function: Any, does: str) -> Any:
    """One of a property's functions; raises E102 where there is none, E202 for another value."""
    if function is None:
        raise GradcliError("E102", f"the property has no function that {does}")
    if not callable(function):
        raise not_callable(function)
    return function


class Property:
    """`@property`: an attribute that is computed when it is read."""

    __slots__ = ("fdel", "fget", "fset")

    language_name: ClassVar[str] = "property"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"deleter", "getter", "setter"})
    language_computes: ClassVar[bool] = True

    def __init__(self, fget: Any = None, fset: Any = None, fdel: Any = None) -> None:
        self.fget = fget
        self.fset = fset
        self.fdel = fdel

    def getter(self, fget: Any) -> Property:
        """The property with another function that reads it."""
        return Property(fget, self.fset, self.fdel)

    def setter(self, fset: Any) -> Property:
        """The property with a function that sets it."""
        return Property(self.fget, fset, self.fdel)

    def deleter(self, fdel: Any) -> Property:
        """The property with a function that deletes it."""
        return Property(self.fget, self.fset, fdel)

    def language_get(self, instance: Any, owner: LanguageType) -> Any:
        """What the property's function computes; the property itself without an instance."""
        if instance is None:
            return self
        return property_function(self.fget, "reads it")(instance)

    def language_set(self, instance: Any, new: Any) -> None:
        """Have the setter store a value; raises AttributeError where there is none."""
        if self.fset is None:
            raise AttributeError
        property_function(self.fset, "sets it")(instance, new)

    def language_delete(self, instance: Any) -> None:
        """Have the deleter delete it; raises AttributeError where there is none."""
        if self.fdel is None:
            raise AttributeError
        property_function(self.fdel, "deletes it")(instance)


def computes(attribute: Any) -> bool:
    """Whether reading or setting what a class holds under a name runs a function: a property, an
    object of the program's with `__get__`.
    """
    return getattr(type(attribute), "language_computes", False)


def is_data(attribute: Any) -> bool:
    """Whether it comes before what is stored in the instance: it says how it is set."""
    return hasattr(type(attribute), "language_set")


def bound(attribute: Any, instance: Any, owner: LanguageType) -> Any:
    """The value of a class's attribute, read from an instance or (None) from the class."""
    get = getattr(type(attribute), "language_get", None)
    if get is not None:
        return get(attribute, instance, owner)
    if instance is not None and getattr(attribute, "language_decorated", False):
        return BoundMethod(instance, attribute)  # a function that a decorator of ours wrapped
    return attribute
