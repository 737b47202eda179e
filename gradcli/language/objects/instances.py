"""Classes that a program writes, and their instances.

A program's class is a `UserClass`, and each comes with a host class: its instances are made of it.
The host class holds the special methods that the program defined (`__len__`, `__add__`, …), so the
host's own dispatch finds them, and the methods that a base of ours calls, such as `forward`. All
else that the program writes stays in tables: no name of a program's becomes an attribute of a host
object.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error
from gradcli.language.objects.absent import Absent
from gradcli.language.objects.descriptors import (
    MISSING,
    BoundMethod,
    Property,
    StaticMethod,
    bound,
    property_function,
)
from gradcli.language.objects.methods import inherited_method
from gradcli.language.objects.repr import numbered
from gradcli.language.objects.special_methods import is_special, sequence_iterator, special_method
from gradcli.language.objects.types import (
    ExceptionType,
    LanguageType,
    host_name,
    type_name,
    type_of,
)
from gradcli.nn.extensible import Slotted, discard_value, store_value, stored_value


class Instance:
    """An instance of a class that has no base but `object`.

    Attributes:
        number: its printed number, 0 until it is asked for.
    """

    # No __slots__, which the host could not join with those of a base of ours.

    language_base: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset()
    language_class: ClassVar[UserClass]

    number: int
    values: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Instance:
        made = object.__new__(cls)
        made.values = {}
        made.number = 0
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            raise GradcliError("E201", f"{type_name(self)}() takes no arguments")

    def __repr__(self) -> str:
        return numbered(f"{type_of(self).full_name} object", self)

    def language_names(self) -> list[str]:
        """The names under which the program stored something."""
        return list(self.values)

    language_getattr = stored_value
    language_setattr = store_value
    language_delattr = discard_value


class HostClass(Slotted):
    """Makes the host classes; `Instance` stands behind every base of ours, in either order."""

    def mro(cls) -> list[type]:
        """The order in which attributes are looked up."""
        order = super().mro()
        if Instance in order:
            order.remove(Instance)
            order.insert(-1, Instance)
        return order


class UserClass(LanguageType):
    """A class that the program wrote."""

    __slots__ = ("fields", "host", "names")

    def __init__(
        self,
        name: str,
        names: dict[str, Any],
        bases: tuple[type, ...],
        fields: dict[str, str] | None = None,
    ) -> None:
        self.names = names
        self.fields = fields or {}
        try:
            host: Any = HostClass(name, bases, {"__module__": __name__})
        except TypeError as error:  # an order of bases that cannot be, or two that are layers
            raise type_error(f"the bases of {name} do not go together") from error
        self.host = host
        host.language_class = self
        super().__init__(f"__main__.{name}", (host,))
        for known, value in names.items():
            self._install(known, value)
        if "__eq__" in names and "__hash__" not in names:
            host.__hash__ = None
        if "__getitem__" in names and not hasattr(host, "__iter__"):
            host.__iter__ = sequence_iterator

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A new instance."""
        made = self.host.__new__(self.host, *args, **kwargs)
        returned = find_init(self.host)(made, *args, **kwargs)
        if returned is not None:
            raise type_error(f"__init__() must return None, not {type_name(returned)}")
        return made

    def find(self, name: str) -> Any:
        """What the class or one that it derives from binds to a name, `MISSING` for nothing."""
        for host in self.host.__mro__:
            cls = vars(host).get("language_class")
            if cls is not None and name in cls.names:
                return cls.names[name]
        return MISSING

    def bind(self, name: str, value: Any) -> None:
        """Give the class an attribute; raises E205 for a name of the host's machinery."""
        self._install(name, value)
        self.names[name] = value

    def _install(self, name: str, value: Any) -> None:
        """Give the host class what its own dispatch or a base of ours looks for."""
        if is_dunder(name):
            if name in _OURS:
                return
            if not is_special(name):
                raise GradcliError("E205", f"`{name}` in a class is outside the language")
            setattr(self.host, name, None if value is None else special_method(name, value))
            if name == "__enter__":
                self.host.language_context = True
        elif name in self.host.language_attributes and callable(getattr(self.host, name, None)):
            _override(self.host, name, value)


_OURS = frozenset(
    {"__doc__", "__getattr__", "__init__", "__match_args__", "__post_init__", "__slots__"}
)
"""Special methods that are called from here and must not change how the host class works."""


def is_dunder(name: str) -> bool:
    """Whether a name is one of the host's machinery."""
    return name.startswith("__") and name.endswith("__")


def find_init(host: type) -> Callable[..., Any]:
    """The `__init__` of a class: the program's, or that of the first base of ours."""
    for each in host.__mro__:
        cls = vars(each).get("language_class")
        if cls is not None:
            if "__init__" in cls.names:
                found: Callable[..., Any] = cls.names["__init__"]
                return found
        elif "__init__" in vars(each):
            own: Callable[..., Any] = vars(each)["__init__"]
            return own
    raise AssertionError("every host class has an __init__")


def _override(host: Any, name: str, value: Any) -> None:
    """Make a method of the program's the host class's own, so that a base of ours calls it."""
    if type(value) is StaticMethod:
        setattr(host, name, staticmethod(value.function))
    elif callable(value):

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return value(self, *args, **kwargs)

        method.__name__ = name
        setattr(host, name, method)


# --- reading and setting ------------------------------------------------------------------------


def instance_attribute(value: Any, cls: UserClass, name: str) -> Any:
    """What the program's own classes and assignments make of `value.name`, `MISSING` if nothing."""
    if name == "__class__":
        return cls
    if name == "__dict__":
        return attributes_of(value)
    if is_dunder(name):
        found = cls.find(name)
        return MISSING if found is MISSING else bound(found, value, cls)
    found = cls.find(name)
    if type(found) is Property:
        return found.language_get(value, cls)
    try:
        return value.language_getattr(name)
    except AttributeError:
        return bound(found, value, cls) if found is not MISSING else MISSING


def attributes_of(value: Any) -> dict[str, Any]:
    """`value.__dict__`: what the program set; of a plain object the very table, of others a copy.

    Raises E202 for a value that holds nothing of the program's.
    """
    try:
        held = object.__getattribute__(value, "values")
    except AttributeError:
        held = None
    if type(held) is dict and isinstance(value, (Instance, GradcliError)):
        return held
    names = getattr(value, "language_names", None)
    if names is None:
        raise type_error(f"vars() needs an object of the program's, not {type_name(value)}")
    return {name: value.language_getattr(name) for name in names()}


def computed_attribute(value: Any, cls: UserClass, name: str) -> Any:
    """The value of the program's `__getattr__`, `MISSING` where there is none."""
    found = MISSING if is_dunder(name) else cls.find("__getattr__")
    return MISSING if found is MISSING else found(value, name)


def set_instance_attribute(value: Any, cls: UserClass, name: str, new: Any) -> None:
    """`value.name = new`; raises E102 for a property without setter and for a host's name."""
    found = cls.find(name)
    if getattr(type(value), "language_frozen", False):
        raise GradcliError("E102", f"cannot assign to field {name!r}", raises="FrozenInstanceError")
    if is_dunder(name) or (type(found) is Property and found.fset is None):
        text = f"property '{name}' of '{cls.name}' object has no setter"
        raise GradcliError("E102", f"the attribute '{name}' of {cls.name} cannot be set", text=text)
    if type(found) is Property:
        property_function(found.fset, "sets it")(value, new)
    elif name in getattr(type(value), "settable_attributes", ()):
        setattr(value, name, new)
    else:
        value.language_setattr(name, new)


def delete_instance_attribute(value: Any, name: str) -> bool:
    """Carry out `del value.name`, if the program set the attribute or defined a deleter for it."""
    found = type(value).language_class.find(name)
    if type(found) is Property and found.fdel is not None:
        property_function(found.fdel, "deletes it")(value)
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
    found = cls.find(name)
    if found is not MISSING:
        return bound(found, None, cls)
    if name == "__annotations__":
        return dict(cls.fields)
    if name in getattr(cls.host, "language_class_attributes", ()):
        return getattr(cls.host, name)
    return MISSING


def attribute_names(cls: UserClass) -> list[str]:
    """The names that can be read from a class and from its instances, own attributes aside."""
    names: dict[str, None] = {}
    for host in cls.host.__mro__:
        own = vars(host).get("language_class")
        if own is not None:
            names.update(dict.fromkeys(own.names))
    return [name for name in names if not is_dunder(name)]


class Super:
    """`super()`: the attributes of a receiver as the classes after a given one have them."""

    __slots__ = ("cls", "receiver")

    language_name: ClassVar[str] = "super"

    def __init__(self, cls: Any, receiver: Any) -> None:
        if not isinstance(cls, UserClass):
            raise type_error(f"super() takes a class first, not {type_name(cls)}")
        host = receiver.host if isinstance(receiver, UserClass) else type(receiver)
        if not issubclass(host, cls.host):
            raise type_error(
                f"super(): the object is no instance of {cls.name} but {type_name(receiver)}"
            )
        self.cls = cls
        self.receiver = receiver

    def language_getattr(self, name: str) -> Any:
        """The attribute; raises AttributeError where no class has it."""
        receiver = self.receiver
        of_class = isinstance(receiver, UserClass)
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
                or (name in _OF_COLLECTIONS and issubclass(host, (list, dict)))
            ):
                found = getattr(super(previous, owner.host if of_class else receiver), name, None)
                if found is not None:
                    return found
            elif issubclass(host, (list, dict)):
                method = inherited_method(host, name)
                if method is not None:
                    return BoundMethod(receiver, method)
        raise AttributeError(name)


_OF_COLLECTIONS = frozenset(
    {"__contains__", "__delitem__", "__getitem__", "__iter__", "__len__", "__setitem__"}
)
"""Those that a class derived from list or dict has from it."""

_INHERITED = frozenset({"__call__", "__init__", "__repr__", "__str__"})
"""The methods of our own classes that a program's method may call through `super()`."""


def define_class(
    name: str, bases: list[Any], names: dict[str, Any], fields: dict[str, str] | None = None
) -> UserClass:
    """The class of a `class` statement; raises E202 for no class, E205 for one of ours.

    `fields` are the names that its body annotates, each with the annotation's text.
    """
    hosts = tuple([_host_of(base) for base in bases]) or (Instance,)
    for host in hosts:
        if hasattr(host, "language_define"):  # enumerations and named tuples make their own
            made: UserClass = host.language_define(name, names, hosts, fields or {})
            return made
    return UserClass(name, names, hosts, fields)


def _host_of(base: Any) -> type:
    if base is OBJECT:
        return Instance
    if isinstance(base, ExceptionType):
        from gradcli.language.objects.exception_instances import exception_base  # lazy: start-up

        return exception_base(base)
    if type(base) is Absent:
        base.refuse()
    stand_in: type | None = getattr(base, "language_stands_for", None)
    if stand_in is not None:
        return stand_in
    if not isinstance(base, (LanguageType, type)):
        raise type_error(f"a base of a class is a class, not {type_name(base)}")
    host = base if isinstance(base, type) else base.hosts[0] if len(base.hosts) == 1 else object
    if host in (dict, list):
        from gradcli.language.objects.derived import DERIVED  # lazy: start-up

        return DERIVED[host]
    if not getattr(host, "language_base", False):
        raise GradcliError(
            "E205", f"a class derived from {class_name(base)} is outside the language"
        )
    return host


def class_name(cls: LanguageType | type) -> str:
    """The name of a class, the program's or ours."""
    return cls.name if isinstance(cls, LanguageType) else host_name(cls).rpartition(".")[2]


def _plain_object() -> Any:
    return _PLAIN()


_PLAIN = UserClass("object", {}, (Instance,))
_PLAIN.full_name = "object"
OBJECT = LanguageType("object", (object,), construct=_plain_object)
"""The class of which all values are instances."""
