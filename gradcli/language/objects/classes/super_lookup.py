"""`super()`, and the methods that every object and every class has from `object`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error
from gradcli.language.objects.classes.descriptors import BoundMethod, bound
from gradcli.language.objects.classes.instance_attributes import discard_attribute, store_attribute
from gradcli.language.objects.classes.user_classes import UserClass
from gradcli.language.objects.methods import inherited_method
from gradcli.language.objects.types import check_kind, names, type_name


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
