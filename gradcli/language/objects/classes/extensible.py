"""Base of the built-in classes that a program may subclass, with attributes of the program's
own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.errors import GradcliError
from gradcli.language.objects.types import type_name
from gradcli.ops.binding.catalogue import modules


def arguments_of(names: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a method, from its `locals()`."""
    return {k: value for k, value in names.items() if k not in ("self", "cls", "__class__")}


def stored_value(self: Any, name: str) -> Any:
    """What a program stored under a name in an object's `values`; raises AttributeError."""
    try:
        return self.values[name]
    except KeyError:
        raise AttributeError(name) from None


def stored_names(self: Any) -> list[str]:
    """The names under which a program stored something there."""
    return list(self.values)


def store_value(self: Any, name: str, value: Any) -> None:
    self.values[name] = value


def discard_value(self: Any, name: str) -> None:
    """Delete what is stored under a name; raises AttributeError."""
    stored_value(self, name)
    del self.values[name]


def check_no_arguments(value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise E201 where the `__init__` of `object` is given any, and no `__new__` takes them."""
    if (args or kwargs) and not hasattr(type(value), "language_new"):
        own = getattr(type(value), "language_class", None)
        text = "object.__init__() takes exactly one argument (the instance to initialize)"
        raise GradcliError(
            "E201",
            f"{type_name(value)}() takes no arguments",
            text=text if own is not None and callable(own.find("__init__")) else None,
        )


class Fielded:
    """The base of all of ours that a program's class may join with another: an object keeps what
    `fields` names in its `__dict__`, since a class with slots goes together with no other.

    Attributes:
        fields: what a class of ours keeps in its objects, besides those above it.
        all_fields: the same with those above it.
        preparations: every `language_prepare` of the class and those above it, which make the
            tables that a new object has before any `__init__` has seen it.
    """

    fields: ClassVar[tuple[str, ...]] = ()
    all_fields: ClassVar[frozenset[str]] = frozenset()
    preparations: ClassVar[tuple[Callable[[Any], None], ...]] = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        above = super().__new__
        instance = above(cls) if above is object.__new__ else above(cls, *args, **kwargs)
        for prepare in cls.preparations:
            prepare(instance)
        return instance

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        tables = list(map(vars, cls.__mro__))
        cls.all_fields = frozenset(name for each in tables for name in each.get("fields", ()))
        cls.preparations = tuple(
            each["language_prepare"] for each in tables if "language_prepare" in each
        )


class Extensible(Fielded):
    """The base of optimisers, schedules, distributions and data sets.

    Attributes:
        home: the module in which PyTorch defines a class of this family; `{lower}` and `{snake}`
            stand for the class's own name.
        tables: the modules in which programs find it.
        values: the attributes that the program set.
    """

    fields: ClassVar[tuple[str, ...]] = ("values",)

    language_base: ClassVar[bool] = True
    language_name: ClassVar[str]
    language_attributes: ClassVar[frozenset[str]] = frozenset()
    home: ClassVar[str] = ""
    tables: ClassVar[tuple[str, ...]] = ()

    values: dict[str, Any]

    def __init_subclass__(cls) -> None:
        """Make a class reachable by its name, unless it is private or a program's own."""
        super().__init_subclass__()
        name = cls.__name__
        if name.startswith("_") or cls.__module__.startswith("gradcli.language."):
            return
        snake = re.sub("(?<=.)(?=[A-Z])", "_", name).lower()
        cls.language_name = f"{cls.home.format(lower=name.lower(), snake=snake)}.{name}"
        for table in cls.tables:
            modules[table][name] = cls

    def language_prepare(self) -> None:
        """A program's class may set attributes before it calls `super().__init__()`."""
        self.values = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        check_no_arguments(self, args, kwargs)

    language_plain: ClassVar[bool] = True
    language_names = stored_names
    language_getattr = stored_value
    language_delattr = discard_value

    def language_setattr(self, name: str, value: Any) -> None:
        """Store a value; what programs read of the object itself is what it goes by."""
        if name in self.all_fields and name in self.language_attributes:
            setattr(self, name, value)
        else:
            store_value(self, name, value)
