"""Classes that a program writes, and their instances.

A program's class is a `UserClass`, and each comes with a host class: its instances are made of it.
The host class holds the special methods that the program defined (`__len__`, `__add__`, …), so the
host's own dispatch finds them, and the methods that a base of ours calls, such as `forward`. All
else that the program writes stays in tables: no name of a program's becomes an attribute of a host
object. The host class of a metaclass derives from `UserClass`: classes are made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error
from gradcli.language.objects.absent import Absent
from gradcli.language.objects.classes.descriptors import (
    MISSING,
    BoundMethod,
    ClassMethod,
    StaticMethod,
    bound,
    computes,
    is_data,
)
from gradcli.language.objects.classes.extensible import (
    Slotted,
    discard_value,
    store_value,
    stored_value,
)
from gradcli.language.objects.classes.special_methods import (
    is_special,
    sequence_iterator,
    special_method,
)
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.methods import inherited_method
from gradcli.language.objects.repr import numbered
from gradcli.language.objects.types import (
    EXCEPTIONS,
    TYPE,
    ExceptionType,
    LanguageType,
    called,
    host_name,
    is_subclass,
    known_type,
    lineage,
    type_name,
    type_of,
)
from gradcli.record import Record


class Instance:
    """An instance of a class that has no base but `object`.

    Attributes:
        number: its printed number, 0 until it is asked for.
        language_shared: whether a copy of it is it itself.
    """

    # No __slots__, which the host could not join with those of a base of ours.

    language_base: ClassVar[bool] = True
    language_shared: ClassVar[bool] = False
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
        if (args or kwargs) and not hasattr(type(self), "language_new"):
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
    """A class that the program wrote.

    Attributes:
        annotate: gives the values of the annotations in its body, None where there are none.
        fields: the names that its body annotates, with the text of the annotation.
    """

    __slots__ = ("annotate", "fields", "host", "names")

    def __init__(
        self,
        name: str,
        names: dict[str, Any],
        bases: tuple[type, ...],
        fields: dict[str, str] | None = None,
    ) -> None:
        self.names = names
        self.fields = fields or {}
        self.annotate: Callable[[], dict[str, Any]] | None = None
        try:
            host: Any = HostClass(name, bases, {"__module__": __name__})
        except TypeError as error:  # an order of bases that cannot be, or two that are layers
            raise type_error(f"the bases of {name} do not go together") from error
        self.host = host
        host.language_class = self
        super().__init__(f"__main__.{name}", (host,))
        for known, value in list(names.items()):
            self._install(known, value)
        if "__eq__" in names and "__hash__" not in names:
            host.__hash__ = None
        host.language_slots = self._slots()
        if "__getitem__" in names and not hasattr(host, "__iter__"):
            host.__iter__ = sequence_iterator

    def _slots(self) -> frozenset[str] | None:
        """The only names that instances may have; None where a class above allows any."""
        own = self.names.get("__slots__")
        above: list[Any] = [
            getattr(base, "language_slots", frozenset()) for base in self.host.__bases__
        ]
        if own is None or None in above or not issubclass(self.host, Instance):
            return None
        names = [own] if isinstance(own, str) else list(bounded(own))
        if not all(isinstance(name, str) for name in names):
            raise GradcliError("E202", "__slots__ items must be strings")
        return frozenset(names).union(*above)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A new instance."""
        new = getattr(self.host, "language_new", None)
        if new is None:
            made = self.host.__new__(self.host, *args, **kwargs)
        else:
            made = new(self, *args, **kwargs)
            if not isinstance(made, self.host):
                return made
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
        self.names[name] = value
        self._install(name, value)

    def _install(self, name: str, value: Any) -> None:
        """Give the host class what its own dispatch or a base of ours looks for."""
        if is_dunder(name):
            if name in _HOOKS:
                self._hook(name, value)
                return
            if name in _OURS:
                return
            if not is_special(name):
                if callable(value):
                    raise GradcliError(
                        "E205",
                        f"`{name}` in a class is outside the language",
                        help="nothing is called when a value goes: write a context, with"
                        " `__enter__` and `__exit__`"
                        if name == "__del__"
                        else None,
                    )
                return
            setattr(self.host, name, None if value is None else special_method(name, value))
            if name == "__enter__":
                self.host.language_context = True
        elif name in self.host.language_attributes and callable(getattr(self.host, name, None)):
            _override(self.host, name, value)

    def _hook(self, name: str, value: Any) -> None:
        """Note on the host class what the program does of what the language does itself."""
        hook = _HOOKS[name]
        if hook is None:  # a method of the class, though nothing says so
            self.names[name] = value if type(value) is ClassMethod else ClassMethod(value)
            return
        if type(value) is StaticMethod:
            value = value.function

        def call(*args: Any, **kwargs: Any) -> Any:
            return value(*args, **kwargs)

        setattr(self.host, hook, staticmethod(call) if name == "__new__" else call)
        if name in ("__get__", "__set__"):
            self.host.language_computes = True

    def complete(self, keywords: dict[str, Any]) -> None:
        """Tell what stands in the class its name, and the classes above it that there is one more.

        Raises E201 for keywords of the `class` statement that no `__init_subclass__` takes.
        """
        for name, value in list(self.names.items()):
            if hasattr(type(value), "language_set_name"):
                value.language_set_name(self, name)
        Super(self, self).language_getattr("__init_subclass__")(**keywords)


_HOOKS = {
    "__class_getitem__": None,
    "__delattr__": "language_deletes",
    "__delete__": "language_delete",
    "__get__": "language_get",
    "__getattribute__": "language_gets",
    "__init_subclass__": None,
    "__new__": "language_new",
    "__set__": "language_set",
    "__set_name__": "language_set_name",
    "__setattr__": "language_sets",
}
"""Special methods that a host class has under another name: the host's own machinery must not
change. None for methods of the class itself.
"""

_OURS = frozenset(
    {"__copy__", "__deepcopy__", "__doc__", "__getattr__", "__init__", "__match_args__"}
    | {"__post_init__", "__slots__"}
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
    elif type(value) is ClassMethod:
        setattr(host, name, bound(value, None, host.language_class))
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
        if found is MISSING and name in _OF_WRAPPERS:
            place = _held_in(value)
            return MISSING if place is None else getattr(value, place).get(name, MISSING)
        return MISSING if found is MISSING else bound(found, value, cls)
    found = cls.find(name)
    if computes(found) and is_data(found):
        return bound(found, value, cls)
    if found is not MISSING:
        hides = getattr(value, "language_hides", None)
        if hides is not None and hides(name):
            return bound(found, value, cls)
    try:
        return value.language_getattr(name)
    except AttributeError:
        return bound(found, value, cls) if found is not MISSING else MISSING


_OF_WRAPPERS = frozenset({"__doc__", "__name__", "__wrapped__"})
"""What `functools.update_wrapper` gives an object that stands for a function."""


def attributes_of(value: Any) -> dict[str, Any]:
    """`value.__dict__`: what the program set; of a plain object the very table, of others a copy.

    Raises E202 for a value that holds nothing of the program's.
    """
    place = _held_in(value)
    if place is not None:
        held: dict[str, Any] = object.__getattribute__(value, place)
        return held
    names = getattr(value, "language_names", None)
    if names is None:
        raise type_error(f"vars() needs an object of the program's, not {type_name(value)}")
    return {name: value.language_getattr(name) for name in names()}


def _held_in(value: Any) -> Any:
    """The name under which an object keeps what the program set, None for nothing."""
    if isinstance(value, (Instance, GradcliError)):
        return "values" if hasattr(value, "values") else None
    return "stored" if hasattr(type(value), "language_class") and hasattr(value, "stored") else None


def computed_attribute(value: Any, cls: UserClass, name: str) -> Any:
    """The value of the program's `__getattr__`, `MISSING` where there is none."""
    found = MISSING if is_dunder(name) else cls.find("__getattr__")
    return MISSING if found is MISSING else found(value, name)


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
    found = cls.find(name)
    if name == "__dict__" and isinstance(new, dict) and _held_in(value) is not None:
        setattr(value, _held_in(value), new)
        return
    if is_dunder(name):
        raise _not_settable(cls, name)
    takes = getattr(value, "language_takes", None)
    if is_data(found) and not (takes is not None and takes(new)):
        try:
            found.language_set(value, new)
        except AttributeError:
            raise _not_settable(cls, name) from None
    elif name in getattr(type(value), "settable_attributes", ()):
        setattr(value, name, new)
    else:
        slots = getattr(type(value), "language_slots", None)
        if slots is not None and name not in slots:
            raise GradcliError("E102", f"'{cls.name}' object has no attribute '{name}'")
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
    found = type(value).language_class.find(name)
    if hasattr(type(found), "language_delete"):
        try:
            found.language_delete(value)
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
    found = cls.find(name)
    if found is not MISSING:
        return bound(found, None, cls)
    if name == "__annotations__":
        return {} if cls.annotate is None else cls.annotate()
    if name in _ANCESTRY and cls is not _PLAIN:
        return _ANCESTRY[name](cls)
    if name in getattr(cls.host, "language_class_attributes", ()):
        return getattr(cls.host, name)
    return MISSING


def _above(hosts: tuple[type, ...]) -> tuple[LanguageType, ...]:
    """The classes of the language that host classes stand for, `object` last."""
    found: list[LanguageType] = []
    for host in hosts:
        own = vars(host).get("language_class")
        if own is None and issubclass(host, GradcliError):
            for each in lineage(host.__name__ if host.__name__ in EXCEPTIONS else ""):
                if EXCEPTIONS[each] in found:  # it comes behind all that derive from it
                    found.remove(EXCEPTIONS[each])
                found.append(EXCEPTIONS[each])
        elif own is None:
            own = known_type(host)
        if own is not None and own not in (_PLAIN, OBJECT):
            found.append(own)
    return (*found, OBJECT)


_ANCESTRY: dict[str, Callable[[UserClass], Any]] = {
    "__base__": lambda cls: _above(cls.host.__bases__)[0],
    "__bases__": lambda cls: _above(cls.host.__bases__)[:-1] or (OBJECT,),
    "__mro__": lambda cls: _above(cls.host.__mro__),
    "mro": lambda cls: called("mro", lambda: list(_above(cls.host.__mro__))),
}
"""What a class of the program's says of the classes above it: classes of the language."""


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

    __slots__ = ("cls", "of_class", "receiver")

    language_name: ClassVar[str] = "super"

    def __init__(self, cls: Any, receiver: Any) -> None:
        if not isinstance(cls, UserClass):
            raise type_error(f"super() takes a class first, not {type_name(cls)}")
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
                found = getattr(super(previous, owner.host if of_class else receiver), name, None)
                if found is not None:
                    return found
            else:
                method = inherited_method(host, name)
                if method is not None:
                    return BoundMethod(receiver, method)
            if cls is None and name == "__new__":
                return getattr(host, "language_new", new_object)
        if name in OF_OBJECT:
            return BoundMethod(receiver, OF_OBJECT[name])
        raise AttributeError(name)


OF_COLLECTIONS = frozenset(
    {"__contains__", "__delitem__", "__getitem__", "__init__", "__iter__", "__len__", "__setitem__"}
)
"""Those that a class derived from list or dict has from it."""

_INHERITED = frozenset({"__call__", "__init__", "__repr__", "__str__"})
"""The methods of our own classes that a program's method may call through `super()`."""


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
        raise GradcliError("E102", f"'{type_name(value)}' object has no attribute '{name}'")


def _object_getattr(value: Any, name: Any, /) -> Any:
    """What an object holds: `super().__getattr__(name)` in a module."""
    try:
        return value.language_getattr(name)
    except AttributeError:
        raise GradcliError(
            "E102", f"'{type_name(value)}' object has no attribute '{name}'"
        ) from None


def _class_of(value: Any) -> UserClass:
    found: UserClass | None = getattr(type(value), "language_class", None)
    if found is None:
        raise type_error(f"can't apply this __setattr__ to {type_name(value)} object")
    return found


def _no_keywords(cls: UserClass, **keywords: Any) -> None:
    if keywords:
        raise GradcliError("E201", f"{cls.name}.__init_subclass__() takes no keyword arguments")


OF_OBJECT: dict[str, Callable[..., Any]] = {
    "__delattr__": _object_delattr,
    "__getattr__": _object_getattr,
    "__init_subclass__": _no_keywords,
    "__setattr__": _object_setattr,
}
"""What a program's method may call of the classes above all its own."""


def define_class(
    name: str,
    bases: list[Any],
    names: dict[str, Any],
    fields: dict[str, str] | None = None,
    keywords: dict[str, Any] | None = None,
    made_known: Callable[[UserClass], None] = lambda cls: None,
    kind: type[UserClass] | None = None,
) -> UserClass:
    """The class of a `class` statement; raises E202 for no class, E205 for one of ours.

    Args:
        fields: the names that its body annotates, each with the annotation's text.
        keywords: what stands among the bases by name.
        made_known: called with the class before `__init_subclass__` of a base is.
        kind: the class of the class, None for `type`.
    """
    generic = any(hasattr(base, "language_open") for base in bases)
    bases = [getattr(base, "origin", None) or base for base in bases]
    hosts = tuple([host_of(base) for base in bases]) or (Instance,)
    for host in hosts:
        if hasattr(host, "language_define"):  # enumerations and named tuples make their own
            made: UserClass = host.language_define(name, names, hosts, fields or {})
            return made
    cls: UserClass = object.__new__(kind or UserClass)
    UserClass.__init__(cls, name, names, hosts, fields)
    if generic:
        cls.host.language_generic = True
    made_known(cls)
    cls.complete(keywords or {})
    return cls


def host_of(base: Any) -> type:
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
    if not isinstance(base, (LanguageType, type)):
        raise type_error(f"a base of a class is a class, not {type_name(base)}")
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


# --- classes of classes ---------------------------------------------------------------------


class Cell(Record):
    """What a class body leaves for `type.__new__`: what is called with the class that it makes."""

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
        return made_class(metaclass, name, bases, names, **keywords)

    def language_getattr(self, name: str) -> Any:
        """Nothing is stored in a class beside its names; raises AttributeError."""
        raise AttributeError(name)


def made_class(metaclass: Any, name: Any, bases: Any, names: Any, /, **keywords: Any) -> UserClass:
    """A class of a name, bases and names; raises E202 for what is none."""
    if not isinstance(name, str) or type(bases) is not tuple or not isinstance(names, dict):
        raise type_error("type() takes 1 or 3 arguments: a name, a tuple and a dict")
    host = host_of(metaclass)
    if not issubclass(host, Metaclass):
        raise type_error("type.__new__(X): X is not a type object")
    held = dict(names)
    fields = held.pop("__annotations__", {})
    cell = held.pop("__classcell__", None)
    for key in ("__module__", "__qualname__"):
        held.pop(key, None)
    for key in held:
        if not isinstance(key, str):
            raise type_error(f"a name is a string, not {type_name(key)}")
    made_known = cell.fill if type(cell) is Cell else lambda made: None
    kind = UserClass if host is Metaclass else host
    return define_class(name, list(bases), held, fields, keywords, made_known, kind)


def metaclass_of(given: Any, bases: list[Any]) -> Any:
    """What makes a class: the metaclass that is named, or that of a base; None for `type`."""
    found = given
    for base in bases:
        own = getattr(type(base), "language_class", None)
        if (
            isinstance(base, UserClass)
            and own is not None
            and (found is None or is_subclass(own, found))
        ):
            found = own
    if found is None or not isinstance(found, LanguageType):
        return None
    return found if found.hosts and issubclass(found.hosts[0], Metaclass) else None


def class_name(cls: LanguageType | type) -> str:
    """The name of a class, the program's or ours."""
    return cls.name if isinstance(cls, LanguageType) else host_name(cls).rpartition(".")[2]


def _plain_object() -> Any:
    return _PLAIN()


_PLAIN = UserClass("object", {}, (Instance,))
_PLAIN.full_name = "object"
OBJECT: LanguageType = LanguageType("object", (object,), construct=_plain_object)
"""The class of which all values are instances."""
