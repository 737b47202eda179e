"""Attributes of a program's instances and classes: how they are read, set and deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.errors import GradcliError, type_error
from gradcli.language.objects.classes.user_classes import (
    MISSING,
    OBJECT,
    PLAIN,
    Property,
    UserClass,
    bound,
    computes,
    is_data,
    is_dunder,
    learn_read,
    learn_write,
)
from gradcli.language.objects.types import (
    EXCEPTIONS,
    LanguageType,
    called,
    known_type,
    lineage,
    type_name,
)


def instance_attribute(value: Any, cls: UserClass, name: str) -> Any:
    """`value.name` by the program's classes and what was assigned; `MISSING` for nothing."""
    if name == "__class__":
        return cls
    if name == "__dict__":
        if hasattr(value, "language_takes"):  # a copy would lose what is written to it
            raise GradcliError(
                "E205",
                f"`__dict__` of {cls.name} is outside the language: a layer has tables of its own",
                help="`object.__setattr__(x, name, value)` does the same, and `vars(x)` reads",
            )
        return attributes_of(value)
    if is_dunder(name):
        held = cls.find(name)
        if held is MISSING and name in _OF_WRAPPERS:
            place = _table_of(value)
            return MISSING if place is None else getattr(value, place).get(name, MISSING)
        return MISSING if held is MISSING else bound(held, value, cls)
    held = cls.find(name)
    if computes(held) and is_data(held):
        return bound(held, value, cls)
    if held is not MISSING:
        hides = getattr(value, "language_hides", None)
        if hides is not None and hides(name):
            return bound(held, value, cls)
    learn_read(type(value), name, held)
    try:
        return value.language_getattr(name)
    except AttributeError:
        return bound(held, value, cls) if held is not MISSING else MISSING


def written_property(name: str, kind: type) -> Any:
    """What reads a property of the objects of a class, where nothing else has to be looked at; None
    for another attribute.
    """
    cls: UserClass = kind.language_class  # type: ignore[attr-defined]
    held = MISSING if is_dunder(name) or hasattr(kind, "language_gets") else cls.find(name)
    return held.fget if type(held) is Property else None


_OF_WRAPPERS = frozenset({"__doc__", "__name__", "__wrapped__"})
"""What `functools.update_wrapper` gives an object that stands for a function."""


def attributes_of(value: Any) -> dict[str, Any]:
    """`value.__dict__`: what the program set; of a plain object the very table, of others a copy.

    Raises E202 for a value that holds nothing of the program's.
    """
    place = _table_of(value)
    if place is not None:
        held: dict[str, Any] = object.__getattribute__(value, place)
        return held
    names = getattr(value, "language_names", None)
    if names is None:
        raise type_error(f"vars() needs an object of the program's, not {type_name(value)}")
    return {name: value.language_getattr(name) for name in names()}


def _table_of(value: Any) -> Any:
    """The name under which an object keeps what the program set, None for nothing."""
    kind = type(value)
    if hasattr(kind, "language_takes"):  # a module has several
        return None
    if isinstance(value, GradcliError):
        return "values" if hasattr(value, "values") else None
    if not hasattr(kind, "language_class"):
        return None
    return next((name for name in _TABLES if name in vars(value)), None)


_TABLES = ("stored", "values")


def computed_attribute(value: Any, cls: UserClass, name: str) -> Any:
    """The value of the program's `__getattr__`, `MISSING` where there is none."""
    method = MISSING if is_dunder(name) else cls.find("__getattr__")
    return MISSING if method is MISSING else method(value, name)


def set_instance_attribute(value: Any, cls: UserClass, name: str, new: Any) -> None:
    """`value.name = new`, by the program's `__setattr__` where there is one."""
    sets = getattr(type(value), "language_sets", None)
    if getattr(type(value), "language_frozen", False):
        raise GradcliError("E102", f"cannot assign to field {name!r}", raises="FrozenInstanceError")
    if sets is None:
        store_attribute(value, cls, name, new)
    else:
        sets(value, name, new)


def store_attribute(value: Any, cls: UserClass, name: str, new: Any) -> None:
    """`object.__setattr__`; raises E102 for a property without setter and for a host's name."""
    held = cls.find(name)
    if name == "__dict__" and isinstance(new, dict) and _table_of(value) is not None:
        setattr(value, _table_of(value), new)
        return
    if is_dunder(name):
        raise _not_settable(cls, name)
    takes = getattr(value, "language_takes", None)
    if is_data(held) and not (takes is not None and takes(new)):
        try:
            held.language_set(value, new)
        except AttributeError:
            raise _not_settable(cls, name) from None
    elif name in getattr(type(value), "settable_attributes", ()):
        setattr(value, name, new)
    else:
        slots = getattr(type(value), "language_slots", None)
        if slots is not None and name not in slots:
            raise GradcliError("E102", f"'{cls.name}' object has no attribute '{name}'")
        learn_write(type(value), name, held)
        value.language_setattr(name, new)


def _not_settable(cls: UserClass, name: str) -> GradcliError:
    text = f"property '{name}' of '{cls.name}' object has no setter"
    return GradcliError("E102", f"the attribute '{name}' of {cls.name} cannot be set", text=text)


def delete_instance_attribute(value: Any, name: str) -> bool:
    """Carry out `del value.name`, if the program set the attribute or defined a deleter for it."""
    deletes = getattr(type(value), "language_deletes", None)
    if deletes is not None:
        deletes(value, name)
        return True
    return discard_attribute(value, name)


def discard_attribute(value: Any, name: str) -> bool:
    """`object.__delattr__`, and whether there was something to delete."""
    held = type(value).language_class.find(name)
    if hasattr(type(held), "language_delete"):
        try:
            held.language_delete(value)
        except AttributeError:
            return False
        return True
    delete = getattr(type(value), "language_delattr", None)
    if delete is None:
        return False
    try:
        delete(value, name)
    except AttributeError:
        return False
    return True


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
