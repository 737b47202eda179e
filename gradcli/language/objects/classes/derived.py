"""The bases of classes that a program derives from `list`, `dict` and other classes of Python's."""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.language.limits import check_collection, check_integer
from gradcli.language.objects.classes.extensible import Fielded
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.methods import dict_of, members_of
from gradcli.language.objects.repr import display, text
from gradcli.language.objects.types import type_name


class _Storing:
    """What keeps attributes of the program's where no other base does."""

    language_plain: ClassVar[bool] = True

    stored: dict[str, Any]

    def language_getattr(self, name: str) -> Any:
        """What the program stored under a name; raises AttributeError."""
        try:
            return self.stored[name]
        except KeyError:
            raise AttributeError(name) from None

    def language_setattr(self, name: str, value: Any) -> None:
        """Store a value under a name."""
        self.stored[name] = value

    def language_delattr(self, name: str) -> None:
        """Delete what is stored under a name; raises AttributeError."""
        self.language_getattr(name)
        del self.stored[name]

    def language_names(self) -> list[str]:
        """The names under which the program stored something."""
        return list(self.stored)


class Derived(_Storing, Fielded):
    """What all have: attributes of the program's, and the text of the collection."""

    language_base: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset()
    fields: ClassVar[tuple[str, ...]] = ("stored",)

    def language_prepare(self) -> None:
        self.stored = {}

    def __repr__(self) -> str:
        return display(self)


class ListInstance(Derived, list[Any]):
    """The base of classes derived from `list`."""

    def __init__(self, iterable: Any = (), /) -> None:
        list.extend(self, bounded(iterable))
        check_collection(len(self))

    def language_write(self, writer: Any) -> None:
        """Write its text."""
        writer.sequence(self, "[", "]")


class DictInstance(Derived, dict[Any, Any]):
    """The base of classes derived from `dict`."""

    def __init__(self, *values: Any, **named: Any) -> None:
        dict.update(self, dict_of(*values, **named))

    def language_write(self, writer: Any) -> None:
        """Write its text."""
        writer.mapping(self)


class _Immutable(Derived):
    """The base of instances of immutable built-in classes, whose value is set at creation."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        instance: Any = cls.language_value(*args, **kwargs)
        for prepare in cls.preparations:
            prepare(instance)
        return instance

    @classmethod
    def language_value(cls, *args: Any, **kwargs: Any) -> Any:
        """The instance of the host's class."""
        raise NotImplementedError

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """The value is there already."""


class TupleInstance(_Immutable, tuple[Any, ...]):
    """The base of classes derived from `tuple`."""

    @classmethod
    def language_value(cls, iterable: Any = (), /) -> Any:
        values = list(bounded(iterable))
        check_collection(len(values))
        return tuple.__new__(cls, values)

    def language_write(self, writer: Any) -> None:
        """Write its text."""
        writer.sequence(self, "(", ",)" if len(self) == 1 else ")")


class SetInstance(Derived, set[Any]):
    """The base of classes derived from `set`."""

    def __init__(self, iterable: Any = (), /) -> None:
        set.update(self, members_of(iterable))

    def language_write(self, writer: Any) -> None:
        """Write its text."""
        writer.put(f"{type_name(self)}(")
        if self:
            writer.sequence(self, "{", "}")
        writer.put(")")


class TextInstance(_Immutable, str):
    """The base of classes derived from `str`."""

    @classmethod
    def language_value(cls, object: Any = "", /) -> Any:
        return str.__new__(cls, text(object))

    __str__ = str.__str__
    __repr__ = str.__repr__


class IntegerInstance(_Immutable, int):
    """The base of classes derived from `int`."""

    @classmethod
    def language_value(cls, *values: Any) -> Any:
        number = int(*values)
        check_integer(number.bit_length())
        return int.__new__(cls, number)

    __repr__ = int.__repr__


class FloatInstance(_Immutable, float):
    """The base of classes derived from `float`."""

    @classmethod
    def language_value(cls, x: Any = 0.0, /) -> Any:
        return float.__new__(cls, x)

    __repr__ = float.__repr__


DERIVED: dict[type, type] = {
    dict: DictInstance,
    float: FloatInstance,
    int: IntegerInstance,
    list: ListInstance,
    set: SetInstance,
    str: TextInstance,
    tuple: TupleInstance,
}
"""The class of ours that stands behind one derived from a class of Python's."""
