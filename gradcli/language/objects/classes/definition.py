"""Makes the class of a `class` statement, by its metaclass where it has one; and `super()`, with
the methods that every object and every class has from `object`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error
from gradcli.language.objects.classes.instance_attributes import discard_attribute, store_attribute
from gradcli.language.objects.classes.user_classes import (
    OBJECT,
    BoundMethod,
    Instance,
    UserClass,
    bound,
    is_data,
)
from gradcli.language.objects.exceptions import Absent
from gradcli.language.objects.methods import inherited_method
from gradcli.language.objects.types import (
    TYPE,
    ExceptionType,
    LanguageType,
    check_kind,
    host_name,
    is_subclass,
    names,
    type_name,
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


# --- super() --------------------------------------------------------------------------------------


class Super:
    """`super()`: the attributes of a receiver as the classes after a given one have them."""

    __slots__ = ("cls", "of_class", "receiver")

    language_name: ClassVar[str] = "super"

    def __init__(self, cls: Any, receiver: Any) -> None:
        check_kind(cls, UserClass, "super() takes a class first")
        # A class may be the class of its methods, or an object of a class of classes.
        self.of_class = isinstance(receiver, UserClass) and not isinstance(receiver, cls.host)
        host = receiver.host if self.of_class else type(receiver)
        if not issubclass(host, cls.host):
            raise type_error(
                f"super(): the object is no instance of {cls.name} but {type_name(receiver)}"
            )
        self.cls = cls
        self.receiver = receiver

    def language_getattr(self, name: str) -> Any:
        """The attribute; raises AttributeError where no class has it."""
        receiver, of_class = self.receiver, self.of_class
        owner: UserClass = receiver if of_class else type(receiver).language_class
        order = owner.host.__mro__
        for previous, host in pairwise(order[order.index(self.cls.host) :]):
            cls = vars(host).get("language_class")
            if cls is not None:
                if name in cls.names:
                    return bound(cls.names[name], None if of_class else receiver, owner)
            elif (
                name in _INHERITED
                or name in getattr(host, "language_attributes", ())
                or (name in OF_COLLECTIONS and issubclass(host, (list, dict)))
            ):
                inherited = getattr(
                    super(previous, owner.host if of_class else receiver), name, None
                )
                if inherited is not None:
                    return inherited
            else:
                method = inherited_method(host, name)
                if method is not None:
                    return BoundMethod(receiver, method)
            if cls is None and name == "__new__":
                return getattr(host, "language_new", new_object)
        if name in OF_OBJECT:
            return BoundMethod(receiver, OF_OBJECT[name])
        raise AttributeError(name)


OF_COLLECTIONS = names("__contains__ __delitem__ __getitem__ __init__ __iter__ __len__ __setitem__")
"""The special methods that a class derived from list or dict has from it."""

_INHERITED = frozenset({"__call__", "__init__", "__repr__", "__str__"})
"""The special methods of our own classes that a program's method may call through `super()`."""


def new_object(cls: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`object.__new__(cls)`: an instance that no `__init__` has seen."""
    if not isinstance(cls, UserClass):
        raise type_error("object.__new__(X): X is not a class of the program's")
    return cls.host.__new__(cls.host, *args, **kwargs)


def _object_setattr(value: Any, name: Any, new: Any, /) -> None:
    store_attribute(value, _class_of(value), name, new)


def set_plainly(value: Any, name: Any, new: Any, /) -> None:
    """`object.__setattr__(value, name, new)`; in a layer it goes past what registers."""
    cls = _class_of(value)
    if hasattr(type(value), "language_hold") and not is_data(cls.find(name)):
        value.language_hold(name, new)
    else:
        store_attribute(value, cls, name, new)


def _object_delattr(value: Any, name: Any, /) -> None:
    _class_of(value)
    if not discard_attribute(value, name):
        raise _absent(value, name)


def _object_getattr(value: Any, name: Any, /) -> Any:
    """What an object holds: `super().__getattr__(name)` in a module."""
    try:
        return value.language_getattr(name)
    except AttributeError:
        raise _absent(value, name) from None


def _absent(value: Any, name: Any) -> GradcliError:
    return GradcliError("E102", f"'{type_name(value)}' object has no attribute '{name}'")


def _class_of(value: Any) -> UserClass:
    cls: UserClass | None = getattr(type(value), "language_class", None)
    if cls is None:
        raise type_error(f"can't apply this __setattr__ to {type_name(value)} object")
    return cls


def _no_keywords(cls: UserClass, **keywords: Any) -> None:
    if keywords:
        raise GradcliError("E201", f"{cls.name}.__init_subclass__() takes no keyword arguments")


OF_OBJECT: dict[str, Callable[..., Any]] = {
    "__delattr__": _object_delattr,
    "__getattr__": _object_getattr,
    "__init_subclass__": _no_keywords,
    "__setattr__": _object_setattr,
}
"""The methods of `object` and of a module that a program's method may call."""
