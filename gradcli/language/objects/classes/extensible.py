"""Base of the built-in classes that a program may subclass, with attributes of the program's
own.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

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


class Slotted(type):
    """The class of classes whose instances have no `__dict__`, in derived classes either: what a
    program sets goes through the class.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Slotted:
        body.setdefault("__slots__", ())
        if bases:  # a class made of a table's row is of its base's module
            body.setdefault("__module__", bases[0].__module__)
        return super().__new__(cls, name, bases, body)


class Extensible:
    """The base of optimisers, schedules, distributions and data sets.

    Attributes:
        home: the module in which PyTorch defines a class of this family; `{lower}` and `{snake}`
            stand for the class's own name.
        tables: the modules in which programs find it.
        values: the attributes that the program set.
    """

    __slots__ = ("values",)

    language_base: ClassVar[bool] = True
    language_name: ClassVar[str]
    language_attributes: ClassVar[frozenset[str]] = frozenset()
    home: ClassVar[str] = ""
    tables: ClassVar[tuple[str, ...]] = ()

    values: dict[str, Any]

    def __init_subclass__(cls) -> None:
        """Make a class reachable by its name, unless it is private or a program's own."""
        name = cls.__name__
        if name.startswith("_") or cls.__module__.startswith("gradcli.language."):
            return
        snake = re.sub("(?<=.)(?=[A-Z])", "_", name).lower()
        cls.language_name = f"{cls.home.format(lower=name.lower(), snake=snake)}.{name}"
        for table in cls.tables:
            modules[table][name] = cls

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = object.__new__(cls)
        # A program's class may set attributes before it calls `super().__init__()`.
        instance.values = {}
        return instance

    language_names = stored_names
    language_getattr = stored_value
    language_setattr = store_value
    language_delattr = discard_value
