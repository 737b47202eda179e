"""Attributes of a program's classes: what their bodies bind, and the classes above them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.errors import GradcliError
from gradcli.language.objects.classes.descriptors import MISSING, bound
from gradcli.language.objects.classes.user_classes import OBJECT, PLAIN, UserClass, is_dunder
from gradcli.language.objects.types import EXCEPTIONS, LanguageType, called, known_type, lineage


def class_attribute(cls: UserClass, name: str) -> Any:
    """`cls.name`, `MISSING` for nothing."""
    held = cls.find(name)
    if held is not MISSING:
        return bound(held, None, cls)
    if name == "__annotations__":
        return {} if cls.annotate is None else cls.annotate()
    if name in _ANCESTRY and cls is not PLAIN:
        return _ANCESTRY[name](cls)
    if name in getattr(cls.host, "language_class_attributes", ()):
        return getattr(cls.host, name)
    return MISSING


def _above(hosts: tuple[type, ...]) -> tuple[LanguageType, ...]:
    """The classes of the language that host classes stand for, `object` last."""
    classes: list[LanguageType] = []
    for host in hosts:
        own = vars(host).get("language_class")
        if own is None and issubclass(host, GradcliError):
            for each in lineage(host.__name__ if host.__name__ in EXCEPTIONS else ""):
                if EXCEPTIONS[each] in classes:  # it comes behind all that derive from it
                    classes.remove(EXCEPTIONS[each])
                classes.append(EXCEPTIONS[each])
        elif own is None:
            own = known_type(host)
        if own is not None and own not in (PLAIN, OBJECT):
            classes.append(own)
    return (*classes, OBJECT)


_ANCESTRY: dict[str, Callable[[UserClass], Any]] = {
    "__base__": lambda cls: _above(cls.host.__bases__)[0],
    "__bases__": lambda cls: _above(cls.host.__bases__)[:-1] or (OBJECT,),
    "__mro__": lambda cls: _above(cls.host.__mro__),
    "mro": lambda cls: called("mro", lambda: list(_above(cls.host.__mro__))),
}
"""The attributes of a program's class that name the classes above it."""


def attribute_names(cls: UserClass) -> list[str]:
    """The names that can be read from a class and from its instances, own attributes aside."""
    names: dict[str, None] = {}
    for host in cls.host.__mro__:
        own = vars(host).get("language_class")
        if own is not None:
            names.update(dict.fromkeys(own.names))
    return [name for name in names if not is_dunder(name)]
