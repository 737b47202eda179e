"""Classes that a program writes, and the host classes behind them.

A program's class is a `UserClass`, and each comes with a host class: its instances are made of it.
The host class holds the special methods that the program defined (`__len__`, `__add__`, …), so the
host's own dispatch finds them, and the methods that a base of ours calls, such as `forward`. All
else that the program writes stays in tables: no name of a program's becomes an attribute of a host
object. The host class of a metaclass derives from `UserClass`: classes are made of it.

Functions in a class are descriptors: methods and properties, and how they are read, come first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error
from gradcli.language.objects.borders import know_numbers
from gradcli.language.objects.classes.extensible import (
    Fielded,
    check_no_arguments,
    discard_value,
    store_value,
    stored_names,
    stored_value,
)
from gradcli.language.objects.classes.special_methods import (
    CALLED_HERE,
    OF_THE_CLASS,
    RENAMED,
    SPECIAL_METHODS,
    sequence_iterator,
    special_method,
)
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.repr import display, numbered
from gradcli.language.objects.types import LanguageType, not_callable, type_name, type_of
from gradcli.record import Record

MISSING: Any = object()
"""The result of a lookup of a name that does not exist."""


class BoundMethod(Record):
    """A method with its receiver: an instance, or a class for a class method."""

    receiver: Any
    function: Any

    language_name: ClassVar[str] = "method"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"__func__", "__name__", "__self__"})
    language_qualified: ClassVar[bool] = True

    @property
    def __name__(self) -> str:
        return str(getattr(self.function, "__name__", "method"))

    @property
    def __func__(self) -> Any:
        return self.function

    @property
    def __self__(self) -> Any:
        return self.receiver

    def language_getattr(self, name: str) -> Any:
        """What the function keeps under a name; raises AttributeError."""
        return self.function.language_getattr(name)

    @property
    def language_doc(self) -> str | None:
        """The text at the top of the function."""
        return getattr(self.function, "language_doc", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not callable(self.function):
            raise not_callable(self.function)
        return self.function(self.receiver, *args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BoundMethod)
            and self.receiver is other.receiver
            and self.function is other.function
        )

    def __hash__(self) -> int:
        return hash((id(self.receiver), id(self.function)))

    def __repr__(self) -> str:
        owner = self.receiver if isinstance(self.receiver, LanguageType) else None
        name = owner.name if owner is not None else type_name(self.receiver)
        return f"<bound method {name}.{self.__name__} of {display(self.receiver)}>"


class StaticMethod:
    """`@staticmethod`: a function in a class that has no receiver."""

    __slots__ = ("function",)

    language_name: ClassVar[str] = "staticmethod"

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not callable(self.function):
            raise not_callable(self.function)
        return self.function(*args, **kwargs)

    def language_get(self, instance: Any, owner: LanguageType) -> Any:
        """The function itself."""
        return self.function


class ClassMethod:
    """`@classmethod`: a function in a class whose receiver is the class."""

    __slots__ = ("function",)

    language_name: ClassVar[str] = "classmethod"

    def __init__(self, function: Any) -> None:
        self.function = function

    def language_get(self, instance: Any, owner: LanguageType) -> Any:
        """The method, with the class as its receiver."""
        return BoundMethod(owner, self.function)


def _called(value: Any) -> Any:
    """What a special method of an object calls: of a class method or a static one not its receiver,
    but what it is for the object.
    """
    if not isinstance(value, (ClassMethod, StaticMethod)):
        return value

    def function(self: Any, *args: Any, **kwargs: Any) -> Any:
        return value.language_get(self, type(self).language_class)(*args, **kwargs)

    return function


def property_function(function: Any, does: str) -> Any:
    """One of a property's functions; raises E102 where there is none, E202 for another value."""
    if function is None:
        raise GradcliError("E102", f"the property has no function that {does}")
    if not callable(function):
        raise not_callable(function)
    return function


class Property:
    """`@property`: an attribute that is computed when it is read."""

    __slots__ = ("fdel", "fget", "fset")

    language_name: ClassVar[str] = "property"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"deleter", "getter", "setter"})
    language_computes: ClassVar[bool] = True

    def __init__(self, fget: Any = None, fset: Any = None, fdel: Any = None) -> None:
        self.fget = fget
        self.fset = fset
        self.fdel = fdel

    def getter(self, fget: Any) -> Property:
        """The property with another function that reads it."""
        return Property(fget, self.fset, self.fdel)

    def setter(self, fset: Any) -> Property:
        """The property with a function that sets it."""
        return Property(self.fget, fset, self.fdel)

    def deleter(self, fdel: Any) -> Property:
        """The property with a function that deletes it."""
        return Property(self.fget, self.fset, fdel)

    def language_get(self, instance: Any, owner: LanguageType) -> Any:
        """What the property's function computes; the property itself without an instance."""
        if instance is None:
            return self
        return property_function(self.fget, "reads it")(instance)

    def language_set(self, instance: Any, new: Any) -> None:
        """Have the setter store a value; raises AttributeError where there is none."""
        if self.fset is None:
            raise AttributeError
        property_function(self.fset, "sets it")(instance, new)

    def language_delete(self, instance: Any) -> None:
        """Have the deleter delete it; raises AttributeError where there is none."""
        if self.fdel is None:
            raise AttributeError
        property_function(self.fdel, "deletes it")(instance)


def computes(attribute: Any) -> bool:
    """Whether reading or setting what a class holds under a name runs a function: a property, an
    object of the program's with `__get__`.
    """
    return attribute is not MISSING and getattr(type(attribute), "language_computes", False)


def is_data(attribute: Any) -> bool:
    """Whether it comes before what is stored in the instance: it says how it is set."""
    return attribute is not MISSING and hasattr(type(attribute), "language_set")


def bound(attribute: Any, instance: Any, owner: LanguageType) -> Any:
    """The value of a class's attribute, read from an instance or (None) from the class."""
    get = getattr(type(attribute), "language_get", None)
    if get is not None:
        return get(attribute, instance, owner)
    if instance is not None and getattr(attribute, "language_decorated", False):
        return BoundMethod(instance, attribute)  # a function that a decorator of ours wrapped
    return attribute


class Changes(Record):
    """When classes of programs changed.

    Attributes:
        mark: another object after each change.
    """

    mark: object


CHANGES = Changes(object())


class Instance:
    """An instance of a class that has no base but `object`.

    Attributes:
        number: its printed number, 0 until it is asked for.
        language_shared: whether a copy of it is it itself.
        language_frozen: whether its fields cannot be assigned to.
        language_reads: names that an instance's own value in `values` comes first for, each with
            what its class binds to it; None where reading an attribute is not as simple.
        language_writes: names that are set there and nowhere else; None as before.
        language_methods: what nodes in C found of its special methods.
        language_watchers: what is called when its class, or one above it, changes.
    """

    # No __slots__, which the host could not join with those of a base of ours.

    fields: ClassVar[tuple[str, ...]] = ("number", "values")
    language_plain: ClassVar[bool] = True
    language_base: ClassVar[bool] = True
    language_shared: ClassVar[bool] = False
    language_frozen: ClassVar[bool] = False
    language_attributes: ClassVar[frozenset[str]] = frozenset()
    language_class: ClassVar[UserClass]
    language_reads: ClassVar[dict[str, Any] | None] = None
    language_writes: ClassVar[set[str] | None] = None
    language_methods: ClassVar[dict[Any, Any]]
    language_watchers: ClassVar[tuple[Callable[[], None], ...]] = ()

    number: int = 0
    values: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Instance:
        instance = object.__new__(cls)
        instance.values = {}
        return instance

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        check_no_arguments(self, args, kwargs)

    def __repr__(self) -> str:
        return numbered(f"{type_of(self).full_name} object", self)

    language_names = stored_names
    language_getattr = stored_value
    language_setattr = store_value
    language_delattr = discard_value


class HostClass(type):
    """Makes the host classes. What keeps attributes of the program's as they are stands behind all
    other bases, in either order, `Instance` last: a module registers what it is given.
    """

    def mro(cls) -> list[type]:
        """The order in which attributes are looked up."""
        order = super().mro()
        plain = [each for each in order if vars(each).get("language_plain")]
        plain.sort(key=lambda each: each is Instance)
        others = [each for each in order if each not in plain]
        return [*others[:-1], *plain, others[-1]]


class UserClass(LanguageType):
    """A class that the program wrote.

    Attributes:
        annotate: gives the values of the annotations in its body, None where there are none.
        fields: the names that its body annotates, with the text of the annotation.
        enters: the program's `__init__` where a new instance is nothing else than a host's with no
            values, and None before it is found out.
        is_bare: whether it is such a one without an `__init__`; False before that is found out.
        makes: what makes one where `__new__` does all of it, None before that is found out too.

    What was found for a name is kept until the class, or one above it, changes.
    """

    __slots__ = (
        *("_found", "_init", "_initialise", "_new"),
        *("annotate", "enters", "fields", "host", "is_bare", "makes", "names"),
    )

    def __init__(
        self,
        name: str,
        names: dict[str, Any],
        bases: tuple[type, ...],
        fields: dict[str, str] | None = None,
    ) -> None:
        self.names = names
        self._found: dict[str, Any] = {}
        self._init: Callable[..., Any] | None = None
        self._initialise: Callable[..., Any] | None = None
        self.enters: Any = None
        self.is_bare = False
        self.makes: Callable[..., Any] | None = None
        self._new: Callable[..., Any] | None = None
        self.fields = fields or {}
        self.annotate: Callable[[], dict[str, Any]] | None = None
        try:
            host: Any = HostClass(name, bases, {"__module__": __name__})
        except TypeError as error:  # an order of bases that cannot be, or two that are layers
            raise type_error(f"the bases of {name} do not go together") from error
        if issubclass(host, Fielded) and issubclass(host, GradcliError):
            words = f"{name}, an exception that is an object of the library too,"
            raise GradcliError("E205", f"{words} is outside the language")
        self.host = host
        host.language_class = self
        if len(bases) > 1:
            self._join(bases)
        super().__init__(f"__main__.{name}", (host,))
        for known, value in list(names.items()):
            self._install(known, value)
        if "__eq__" in names and "__hash__" not in names:
            host.__hash__ = None
        host.language_slots = self._slots()
        if "__getitem__" in names and not hasattr(host, "__iter__"):
            host.__iter__ = sequence_iterator
        if issubclass(host, (int, float)):
            know_numbers(host)
        self.forget()

    def _join(self, bases: tuple[type, ...]) -> None:
        """Give the host class the names of all its bases, and what its bases of ours call of those
        of the program's before them.
        """
        host = self.host
        for table in _NAMES_OF_BASES:
            own = [getattr(base, table, ()) for base in bases]
            setattr(host, table, frozenset().union(*own))
        seen: set[str] = set()
        for above in host.__mro__[1:]:
            cls = vars(above).get("language_class")
            if cls is not None:
                for name in set(cls.names) & host.language_attributes - seen - set(vars(above)):
                    if callable(getattr(host, name, None)):
                        setattr(host, name, self._found_method(name))
            seen.update(vars(above) if cls is None else cls.names)

    def _found_method(self, name: str) -> Callable[..., Any]:
        """Calls what the class finds by a name."""

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            cls = type(self).language_class
            return bound(cls.find(name), self, cls)(*args, **kwargs)

        method.__name__ = name
        return method

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
        new = self._new
        if new is None:
            instance = self.host.__new__(self.host, *args, **kwargs)
        else:
            instance = new(self, *args, **kwargs)
            if not isinstance(instance, self.host):
                return instance
        init = self._init
        if init is None:
            init = self._init = find_init(self.host)
        if type(instance) is not self.host:  # of a class that derives from it
            init = find_init(type(instance))
        returned = init(instance, *args, **kwargs)
        if returned is not None:
            raise init_returned(returned)
        return instance

    def make(self, args: Sequence[Any]) -> Any:
        """A new instance, for compiled code: a program's `__init__` is entered as a function is."""
        initialise = self._initialise or self.entering_init()
        if initialise is _BY_CALL:
            return self(*args) if self.makes is None else self.makes(*args)
        host = self.host
        if self.enters is None:
            instance = host.__new__(host, *args)
        else:
            instance = object.__new__(host)
            instance.values = {}
        returned = initialise((instance, *args), {})
        if returned is not None:
            raise init_returned(returned)
        return instance

    def entering_init(self) -> Callable[..., Any]:
        """What enters the program's `__init__`, found out for good; `_BY_CALL` where an instance is
        made otherwise.
        """
        init = find_init(self.host)
        enter: Callable[..., Any] | None = getattr(init, "invoke", None)
        if enter is None or self._new is not None:
            enter = _BY_CALL
            if self._new is None and getattr(self.host, "language_init", None) is init:
                self.makes = partial(self.host.__new__, self.host)
            elif self._new is None and self.host.__new__ is Instance.__new__:
                self.is_bare = init is Instance.__init__
        elif self.host.__new__ is Instance.__new__:
            self.enters = init
        self._initialise = enter
        return enter

    def find(self, name: str) -> Any:
        """What the class or one that it derives from binds to a name, `MISSING` for nothing."""
        found = self._found.get(name)
        if found is not None:
            return found
        found = MISSING
        for host in self.host.__mro__:
            cls = vars(host).get("language_class")
            if cls is not None and name in cls.names:
                found = cls.names[name]
                break
        if len(self._found) < _MOST_FOUND:  # names may be made by the program as it runs
            self._found[name] = found
        return found

    def forget(self) -> None:
        """Forget what was found for the class and those that derive from it: it has changed."""
        host = self.host
        CHANGES.mark = object()
        self._found, self._init, self._initialise, self.enters = {}, None, None, None
        self.makes, self.is_bare = None, False
        self._new = getattr(host, "language_new", None)
        if issubclass(host, Instance):
            (vars(host).get("language_reads") or {}).clear()  # nodes in C hold the dict itself
            host.language_reads = {} if _reads_plainly(host) else None
            host.language_writes = set() if _writes_plainly(host) else None
            host.language_methods = {}
            changed = vars(host).get("language_watchers", ())
            host.language_watchers = ()
            for notice in changed:
                notice()
        for derived in host.__subclasses__():
            vars(derived)["language_class"].forget()

    def bind(self, name: str, value: Any) -> None:
        """Give the class an attribute; raises E205 for a name of the host's machinery."""
        if name == "__name__":
            if not isinstance(value, str):
                told = f"can only assign string to {self.name}.__name__, not '{type_name(value)}'"
                raise type_error(told)
            self.name = value
            return
        self.names[name] = value
        self._install(name, value)
        self.forget()

    def unbind(self, name: str) -> None:
        """Take an attribute of its own from the class; raises KeyError where it has none."""
        del self.names[name]
        installed = RENAMED.get(name, name)
        if installed in vars(self.host):
            delattr(self.host, installed)
        self.forget()

    def _install(self, name: str, value: Any) -> None:
        """Set on the host class what the host's dispatch, or a base of ours, looks for there."""
        host = self.host
        if not is_dunder(name):
            if name in host.language_attributes and callable(getattr(host, name, None)):
                _override(host, name, value)
        elif name in OF_THE_CLASS:
            self.names[name] = value if type(value) is ClassMethod else ClassMethod(value)
        elif name in RENAMED:
            _rename(host, name, value)
        elif name in CALLED_HERE:
            return
        elif name in SPECIAL_METHODS:
            setattr(host, name, None if value is None else special_method(name, _called(value)))
            if name == "__enter__":
                host.language_context = True
        elif callable(value):
            raise GradcliError(
                "E205",
                f"`{name}` in a class is outside the language",
                help="nothing is called when a value goes: write a context, with"
                " `__enter__` and `__exit__`"
                if name == "__del__"
                else None,
            )


def own_method(value: Any, name: str) -> Any:
    """The method of that name that the program's class of an object defines, None for none."""
    cls = getattr(type(value), "language_class", None)
    method = MISSING if cls is None or isinstance(value, LanguageType) else cls.find(name)
    return None if method is MISSING else method


def init_returned(value: Any) -> GradcliError:
    """The error of an `__init__` that returned a value."""
    return type_error(f"__init__() must return None, not {type_name(value)}")


_BY_CALL: Any = object()

_NAMES_OF_BASES = ("language_attributes", "language_class_attributes", "settable_attributes")
"""What the classes of a host have of names, where one with several bases has those of all."""

_MOST_FOUND = 1000
"""Names whose values are kept for a class."""


def _reads_plainly(host: Any) -> bool:
    """Whether reading an attribute looks into `values`, and then at the class."""
    return getattr(host, "language_getattr", None) is stored_value and not (
        hasattr(host, "language_hides") or hasattr(host, "language_gets")
    )


def _writes_plainly(host: Any) -> bool:
    """Whether setting an attribute that is no descriptor's enters it into `values`."""
    return getattr(host, "language_setattr", None) is store_value and not (
        hasattr(host, "language_sets")
        or hasattr(host, "language_takes")
        or getattr(host, "language_frozen", False)
    )


def learn_read(kind: Any, name: str, held: Any) -> bool:
    """An instance's own value comes before `held`, which its class binds to the name: whether the
    class notes that.
    """
    reads = kind.language_reads if issubclass(kind, Instance) else None
    if reads is None or not (held is MISSING or not hasattr(type(held), "language_class")):
        return False
    reads[name] = held
    return True


def learn_write(kind: Any, name: str, held: Any) -> bool:
    """What an instance is given by the name goes into its `values`, whatever the class binds:
    whether the class notes that.
    """
    writes = kind.language_writes if issubclass(kind, Instance) else None
    if writes is None or not (held is MISSING or not hasattr(type(held), "language_class")):
        return False
    writes.add(name)
    return True


def reads_plainly(kind: Any, name: str) -> bool:
    """Whether an instance's own value comes first for a name, which its class notes."""
    reads = kind.language_reads
    if reads is None or is_dunder(name):
        return False
    held = kind.language_class.find(name)
    if held is MISSING:
        reads[name] = held
        return True
    return not (computes(held) and is_data(held)) and learn_read(kind, name, held)


def writes_plainly(kind: Any, name: str) -> bool:
    """Whether what an instance is given by a name is entered into its values, which its class
    notes.
    """
    if kind.language_writes is None or is_dunder(name):
        return False
    if name in getattr(kind, "settable_attributes", ()):
        return False
    slots = getattr(kind, "language_slots", None)
    if slots is not None and name not in slots:
        return False
    held = kind.language_class.find(name)
    return not is_data(held) and learn_write(kind, name, held)


def watch_class(host: Any, notice: Callable[[], None]) -> None:
    """Call a function once when a host class of instances changes, or one above it."""
    host.language_watchers = (*vars(host).get("language_watchers", ()), notice)


def is_dunder(name: str) -> bool:
    """Whether a name is one of the host's machinery."""
    return name.startswith("__") and name.endswith("__")


def find_init(host: type, after: type | None = None) -> Callable[..., Any]:
    """The `__init__` of a class: the program's, or that of the first base of ours; the next one
    where there is a class that it comes after.
    """
    order = host.__mro__
    for each in order if after is None else order[order.index(after) + 1 :]:
        cls = vars(each).get("language_class")
        if cls is not None:
            if "__init__" in cls.names:
                written: Callable[..., Any] = cls.names["__init__"]
                return written
        elif "__init__" in vars(each):
            own: Callable[..., Any] = vars(each)["__init__"]
            return own
    raise AssertionError("every host class has an __init__")


def init_next(value: Any, after: type, *args: Any, **kwargs: Any) -> None:
    """`super().__init__()` in a class of ours: a program's may have joined it with others."""
    if hasattr(type(value), "language_class"):
        find_init(type(value), after)(value, *args, **kwargs)


def _rename(host: Any, name: str, value: Any) -> None:
    """Set a special method that the interpreter calls, under its name in the host class."""
    function = value.function if type(value) is StaticMethod else value

    def call(*args: Any, **kwargs: Any) -> Any:
        if not callable(function):
            raise not_callable(function)
        return function(*args, **kwargs)

    setattr(host, RENAMED[name], staticmethod(call) if name == "__new__" else call)
    if name in ("__get__", "__set__"):
        host.language_computes = True


class _OfOwner(Record):
    """A `@classmethod` of the program's on a host class: its receiver is the class that is asked,
    which may be derived from that host's.
    """

    method: ClassMethod

    def __get__(self, instance: Any, owner: Any) -> Any:
        return bound(self.method, None, owner.language_class)


def _override(host: Any, name: str, value: Any) -> None:
    """Make a method of the program's the host class's own, so that a base of ours calls it."""
    if type(value) is StaticMethod and callable(value.function):
        setattr(host, name, staticmethod(value.function))
        return
    if type(value) is ClassMethod:
        setattr(host, name, _OfOwner(value))
        return

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return value(self, *args, **kwargs)

    def of_descriptor(*args: Any, **kwargs: Any) -> Any:
        of_instance = bool(args) and isinstance(args[0], host)
        held = bound(value, args[0], host.language_class) if of_instance else value
        if not callable(held):
            raise not_callable(held)
        return held(*args[of_instance:], **kwargs)

    function = method if callable(value) and type(value) is not StaticMethod else of_descriptor
    function.__name__ = name
    setattr(host, name, function)


PLAIN = UserClass("object", {}, (Instance,))
"""The class of what `object()` makes."""
PLAIN.full_name = "object"

OBJECT: LanguageType = LanguageType("object", (object,), construct=lambda: PLAIN())
"""The class of which all values are instances."""
