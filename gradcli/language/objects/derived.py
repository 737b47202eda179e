"""The bases of classes that a program derives from `list` and `dict`."""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.language.limits import check_collection
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.methods import dict_of
from gradcli.language.objects.repr import display


class _Derived:
    """What both have: attributes of the program's, and the text of the collection."""

    language_base: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset()

    stored: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made: Any = super().__new__(cls)
        made.stored = {}
        return made

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

    def __repr__(self) -> str:
        return display(self)


class ListInstance(_Derived, list[Any]):
    """The base of classes derived from `list`."""

    def __init__(self, iterable: Any = (), /) -> None:
        list.extend(self, bounded(iterable))
        check_collection(len(self))

    def language_write(self, writer: Any) -> None:
        """Write its text."""
        writer.sequence(self, "[", "]")


class DictInstance(_Derived, dict[Any, Any]):
    """The base of classes derived from `dict`."""

    def __init__(self, *values: Any, **named: Any) -> None:
        dict.update(self, dict_of(*values, **named))

    def language_write(self, writer: Any) -> None:
        """Write its text."""
        writer.mapping(self)


DERIVED: dict[type, type] = {dict: DictInstance, list: ListInstance}
"""The class of ours that stands behind one derived from a class of Python's."""
