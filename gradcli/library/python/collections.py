"""The module `collections`; named tuples are `collections.namedtuple` and classes derived from
`typing.NamedTuple`.
"""

from __future__ import annotations

import collections as host
from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.functions.calls import call, misfit, missing, unknown_keyword
from gradcli.language.limits import check_collection
from gradcli.language.objects.classes.derived import Derived
from gradcli.language.objects.classes.user_classes import UserClass
from gradcli.language.objects.counters import Counter
from gradcli.language.objects.iteration import bounded, check_key, sized
from gradcli.language.objects.methods import dict_of
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import check_kind, define, host_name, names, type_name, type_of
from gradcli.library.torch.nn.state_dict import OrderedDict

# --- named tuples ---------------------------------------------------------------------------------


class NamedTuple(tuple[Any, ...]):
    """The base of all named tuples: an instance is a tuple, whose items have names too."""

    language_name: ClassVar[str] = "typing.NamedTuple"
    language_base: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset({"_asdict", "_replace"})
    language_fields: ClassVar[tuple[str, ...]] = ()
    language_defaults: ClassVar[dict[str, Any]] = {}

    def __new__(cls, *args: Any, **kwargs: Any) -> NamedTuple:
        return tuple.__new__(cls, cls.language_bind(args, kwargs))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Everything was done when it was made."""

    @classmethod
    def language_bind(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The items in their order; raises E201 for those that do not fit."""
        fields, name = cls.language_fields, type_name_of(cls)
        written = f"({', '.join(fields)})"
        if len(args) > len(fields):
            raise misfit(name, f"takes {len(fields)} values and got {len(args)}", written)
        by_name = dict(zip(fields, args, strict=False))
        for key, value in kwargs.items():
            if key not in fields:
                raise unknown_keyword(name, key, list(fields), written)
            if key in by_name:
                raise misfit(name, f"got the argument {key!r} twice", written)
            by_name[key] = value
        values = {**cls.language_defaults, **by_name}
        lacking = [key for key in fields if key not in values]
        if lacking:
            text = f"{name}.__new__() {missing(lacking)}"
            raise misfit(name, f"needs a value for {lacking[0]!r}", written, text)
        return [values[key] for key in fields]

    def language_getattr(self, name: str) -> Any:
        """An item by its name; raises AttributeError."""
        try:
            return self[self.language_fields.index(name)]
        except ValueError:
            raise AttributeError(name) from None

    def language_setattr(self, name: str, new: Any) -> None:
        """Items do not change; raises E102."""
        raise GradcliError("E102", "can't set attribute")

    def language_names(self) -> list[str]:
        """The names of the items."""
        return list(self.language_fields)

    def _asdict(self) -> dict[str, Any]:
        """The items by name."""
        return dict(zip(self.language_fields, self, strict=True))

    def _replace(self, **kwargs: Any) -> Any:
        """Another one, with some items replaced."""
        for name in kwargs:
            if name not in self.language_fields:
                raise value_error(f"Got unexpected field names: [{name!r}]")
        return type_of(self)(**{**self._asdict(), **kwargs})

    def __repr__(self) -> str:
        return display(self)

    def language_write(self, writer: Any) -> None:
        """Write its text."""
        writer.put(f"{type_of(self).name}(")
        for number, (name, value) in enumerate(zip(self.language_fields, self, strict=True)):
            writer.put(f"{', ' if number else ''}{name}=")
            writer.write(value)
        writer.put(")")

    @staticmethod
    def language_define(
        name: str, names: dict[str, Any], hosts: tuple[type, ...], fields: dict[str, str]
    ) -> UserClass:
        """The class of a `class` statement: annotated names are the items."""
        if hosts != (NamedTuple,):
            return UserClass(name, names, hosts, fields)
        defaults = {key: names[key] for key in fields if key in names}
        methods = {key: value for key, value in names.items() if key not in fields}
        return named_tuple(name, list(fields), defaults, methods)


def type_name_of(cls: Any) -> str:
    """The name of a program's class, by its host class."""
    return str(cls.language_class.name)


def named_tuple(
    name: str, fields: list[str], defaults: dict[str, Any], methods: dict[str, Any] | None = None
) -> UserClass:
    """A class of named tuples; raises E204 for names that cannot be."""
    for number, field in enumerate(fields):
        if not field.isidentifier() or field.startswith("_") or field in fields[:number]:
            raise value_error(f"{field!r} cannot be the name of a field")
    left = False
    for field in fields:
        if field not in defaults and left:
            raise type_error(f"the field {field!r} without a default follows one with it")
        left = left or field in defaults
    cls = UserClass(name, methods or {}, (NamedTuple,), dict.fromkeys(fields, ""))
    host: Any = cls.host
    host.language_fields, host.language_defaults = tuple(fields), dict(defaults)
    cls.names.update(_fields=tuple(fields), __match_args__=tuple(fields))
    cls.names["_field_defaults"] = dict(defaults)

    def make(iterable: Any, /) -> Any:
        return cls(*bounded(iterable))

    make.__name__ = "_make"
    cls.names["_make"] = make
    cls.forget()
    return cls


NAMED_TUPLE = define("typing.NamedTuple", NamedTuple)


# --- the module -----------------------------------------------------------------------------------


class DefaultDict(host.defaultdict[Any, Any]):
    """`collections.defaultdict(default_factory, …)`."""

    language_name: ClassVar[str] = "collections.defaultdict"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"copy", "default_factory"})
    settable_attributes: ClassVar[frozenset[str]] = frozenset({"default_factory"})

    def __missing__(self, key: Any) -> Any:
        if self.default_factory is None:
            raise KeyError(key)
        check_collection(len(self) + 1)
        value = self[key] = call(self.default_factory, (), {})
        return value

    def copy(self) -> DefaultDict:
        """Another dictionary of the same values and factory."""
        return DefaultDict(self.default_factory, self)

    def language_write(self, writer: Any) -> None:
        """Write its text."""
        writer.put(f"{type_name(self)}(")
        writer.write(self.default_factory)
        writer.put(", ")
        writer.mapping(self)
        writer.put(")")


def default_dict(default_factory: Any = None, /, *values: Any, **named: Any) -> DefaultDict:
    if default_factory is not None and not callable(default_factory):
        raise type_error("first argument must be callable or None")
    return DefaultDict(default_factory, dict_of(*values, **named))


def counter(*values: Any, **named: Any) -> Counter:
    counts = Counter()
    for each in values:
        if each is not None:
            counts.update(each)
    counts.update(**named)
    return counts


class Deque(host.deque[Any]):
    """`collections.deque(values, maxlen)`."""

    language_name: ClassVar[str] = "collections.deque"
    language_attributes = names("""append appendleft clear copy count extend extendleft index insert
        maxlen pop popleft remove reverse rotate""")

    def append(self, value: Any) -> None:
        check_collection(len(self) + 1)
        super().append(value)

    def appendleft(self, value: Any) -> None:
        check_collection(len(self) + 1)
        super().appendleft(value)

    def extend(self, values: Any) -> None:
        more = list(bounded(values))
        check_collection(len(self) + len(more))
        super().extend(more)

    def extendleft(self, values: Any) -> None:
        more = list(bounded(values))
        check_collection(len(self) + len(more))
        super().extendleft(more)

    def copy(self) -> Deque:
        return Deque(self, self.maxlen)

    def __add__(self, other: Any) -> Deque:
        check_collection(len(self) + len(other))
        return Deque([*self, *other], self.maxlen)

    def __mul__(self, times: Any) -> Deque:
        check_collection(len(self) * times)
        return Deque(list(self) * times, self.maxlen)

    __rmul__ = __mul__

    def language_write(self, writer: Any) -> None:
        """Write its text."""
        if not writer.enter(self, "[...]"):
            return
        writer.put(f"{type_name(self)}(")
        writer.sequence(list(self), "[", "]")
        writer.put(")" if self.maxlen is None else f", maxlen={self.maxlen})")
        writer.leave(self)


def deque(iterable: Any = (), maxlen: Any = None) -> Deque:
    if maxlen is not None and (not isinstance(maxlen, int) or maxlen < 0):
        raise value_error("maxlen must be non-negative")
    return Deque(bounded(iterable), maxlen)


class ChainMap(host.ChainMap[Any, Any]):
    """`collections.ChainMap(*maps)`: several dictionaries read as one; the first is written to."""

    language_name: ClassVar[str] = "collections.ChainMap"
    language_attributes = names("""clear copy get items keys maps new_child parents pop popitem
        setdefault update values""")

    def __init__(self, *maps: Any) -> None:
        for each in maps:
            check_kind(each, (dict, ChainMap), "ChainMap() takes dictionaries")
        super().__init__(*maps)

    def __setitem__(self, key: Any, value: Any) -> None:
        check_key(key)
        check_collection(len(self.maps[0]) + 1)
        super().__setitem__(key, value)

    def update(self, *values: Any, **named: Any) -> None:
        """Write to the first of them."""
        super().update(dict_of(*values, **named))

    def language_write(self, writer: Any) -> None:
        """Write its text."""
        if not writer.enter(self, "..."):
            return
        writer.put("ChainMap")
        writer.sequence(self.maps, "(", ")")
        writer.leave(self)


def ordered_dict(*values: Any, **named: Any) -> OrderedDict:
    return OrderedDict(dict_of(*values, **named))


def namedtuple(
    typename: str,
    field_names: Any,
    /,
    *,
    rename: Any = False,
    defaults: Any = None,
    module: Any = None,
) -> Any:
    """`collections.namedtuple(typename, field_names, defaults=…)`."""
    if isinstance(field_names, str):
        names = field_names.replace(",", " ").split()
    else:
        names = [str(name) for name in bounded(field_names)]
    default_values = list(bounded(defaults)) if defaults is not None else []
    if len(default_values) > len(names):
        raise type_error("Got more default values than field names")
    last = names[len(names) - len(default_values) :]
    return named_tuple(typename, names, dict(zip(last, default_values, strict=True)))


def _derived(kind: Any, fill: Callable[..., None]) -> None:
    """Let programs derive classes from one of these; `fill` is their `__init__`."""
    body = {"__init__": fill, "language_attributes": kind.language_attributes}
    kind.language_derived = type(f"{kind.__name__}Instance", (Derived, kind), body)


def _fill_default_dict(self: Any, *values: Any, **named: Any) -> None:
    filled = default_dict(*values, **named)
    DefaultDict.__init__(self, filled.default_factory, filled)


def _fill_deque(self: Any, *values: Any, **named: Any) -> None:
    filled = deque(*values, **named)
    Deque.__init__(self, filled, filled.maxlen)


_derived(Counter, Counter.update)
_derived(DefaultDict, _fill_default_dict)
_derived(Deque, _fill_deque)
_derived(OrderedDict, lambda self, *v, **named: OrderedDict.__init__(self, dict_of(*v, **named)))

sized(ChainMap, Counter, DefaultDict, Deque, OrderedDict)

COLLECTIONS: dict[str, Any] = {
    "namedtuple": namedtuple,
    **{
        kind.language_name.rpartition(".")[2]: define(host_name(kind), kind, construct=construct)
        for kind, construct in (
            (ChainMap, ChainMap),
            (Counter, counter),
            (DefaultDict, default_dict),
            (Deque, deque),
            (OrderedDict, ordered_dict),
        )
    },
}
"""What `collections` holds."""
