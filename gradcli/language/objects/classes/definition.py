"""Makes the class of a `class` statement, by its metaclass where it has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error
from gradcli.language.objects.absent import Absent
from gradcli.language.objects.classes.super_lookup import Super
from gradcli.language.objects.classes.user_classes import OBJECT, Instance, UserClass
from gradcli.language.objects.types import (
    TYPE,
    ExceptionType,
    LanguageType,
    check_kind,
    host_name,
    is_subclass,
)
from gradcli.record import Record


def define_class(
    name: str,
    bases: list[Any],
    names: dict[str, Any],
    fields: dict[str, str] | None = None,
    keywords: dict[str, Any] | None = None,
    announce: Callable[[UserClass], None] = lambda cls: None,
    kind: type[UserClass] | None = None,
) -> UserClass:
    """The class of a `class` statement; raises E202 for no class, E205 for one of ours, E201 for
    keywords that no `__init_subclass__` takes.

    Args:
        fields: the names that its body annotates, each with the annotation's text.
        keywords: what stands among the bases by name.
        announce: called with the class before `__set_name__` and `__init_subclass__` are.
        kind: the class of the class, None for `type`.
    """
    generic = any(hasattr(base, "language_open") for base in bases)
    bases = [getattr(base, "origin", None) or base for base in bases]
    hosts = tuple([host_of(base) for base in bases]) or (Instance,)
    for host in hosts:
        if hasattr(host, "language_define"):  # enumerations and named tuples make their own
            own: UserClass = host.language_define(name, names, hosts, fields or {})
            return own
    cls: UserClass = object.__new__(kind or UserClass)
    UserClass.__init__(cls, name, names, hosts, fields)
    if generic:
        cls.host.language_generic = True
    announce(cls)
    for known, value in list(names.items()):
        if hasattr(type(value), "language_set_name"):
            value.language_set_name(cls, known)
    Super(cls, cls).language_getattr("__init_subclass__")(**keywords or {})
    return cls


def host_of(base: Any) -> type:
    """The host class that one derived from a base derives from; raises E202 and E205."""
    if base is OBJECT or getattr(base, "language_open", False):
        return Instance
    if base is TYPE:
        return Metaclass
    if isinstance(base, ExceptionType):
        from gradcli.language.objects.classes.exception_instances import (  # lazy: start-up
            exception_base,
        )

        return exception_base(base)
    if type(base) is Absent:
        base.refuse()
    check_kind(base, (LanguageType, type), "a base of a class is a class")
    host = base if isinstance(base, type) else base.hosts[0] if len(base.hosts) == 1 else object
    if host.__module__ == "builtins":
        from gradcli.language.objects.classes.derived import DERIVED  # lazy: start-up

        host = DERIVED.get(host, host)
    host = getattr(host, "language_derived", host)
    if not getattr(host, "language_base", False):
        raise GradcliError(
            "E205", f"a class derived from {class_name(base)} is outside the language"
        )
    return host


class Cell(Record):
    """`__classcell__`, by which `type.__new__` tells a class body the class that it makes."""

    fill: Callable[[UserClass], None]


class Metaclass(UserClass):
    """The host of classes whose class is the program's own: it stands where `type` does."""

    # No __slots__: those of a class of the program's follow.

    language_name: ClassVar[str] = "type"
    language_base: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 3:
            text = f"type.__new__() takes exactly 3 arguments ({len(args)} given)"
            raise GradcliError(
                "E202", "a name, a tuple of bases and a dict make a class", text=text
            )
        return cls.language_new(cls, *args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """The class is made already when its `__init__` runs."""

    @staticmethod
    def language_new(metaclass: Any, name: Any, bases: Any, names: Any, **keywords: Any) -> Any:
        """`type.__new__(metaclass, name, bases, names)`: the class."""
        return make_class(metaclass, name, bases, names, **keywords)

    def language_getattr(self, name: str) -> Any:
        """Nothing is stored in a class beside its names; raises AttributeError."""
        raise AttributeError(name)


def make_class(metaclass: Any, name: Any, bases: Any, names: Any, /, **keywords: Any) -> UserClass:
    """`type(name, bases, names)`; raises E202 for other arguments."""
    if not isinstance(name, str) or type(bases) is not tuple or not isinstance(names, dict):
        raise type_error("type() takes 1 or 3 arguments: a name, a tuple and a dict")
    host = host_of(metaclass)
    if not issubclass(host, Metaclass):
        raise type_error("type.__new__(X): X is not a type object")
    body = dict(names)
    fields = body.pop("__annotations__", {})
    cell = body.pop("__classcell__", None)
    for key in ("__module__", "__qualname__"):
        body.pop(key, None)
    for key in body:
        check_kind(key, str, "a name is a string")
    announce = cell.fill if type(cell) is Cell else lambda cls: None
    kind = UserClass if host is Metaclass else host
    return define_class(name, list(bases), body, fields, keywords, announce, kind)


def metaclass_of(named: Any, bases: list[Any]) -> Any:
    """What makes a class: the metaclass that is named, or that of a base; None for `type`."""
    metaclass = named
    for base in bases:
        own = getattr(type(base), "language_class", None)
        if (
            isinstance(base, UserClass)
            and own is not None
            and (metaclass is None or is_subclass(own, metaclass))
        ):
            metaclass = own
    if not isinstance(metaclass, LanguageType) or not metaclass.hosts:
        return None
    return metaclass if issubclass(metaclass.hosts[0], Metaclass) else None


def class_name(cls: LanguageType | type) -> str:
    """The name of a class, the program's or ours."""
    return cls.name if isinstance(cls, LanguageType) else host_name(cls).rpartition(".")[2]
