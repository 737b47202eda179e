"""The module `enum`: classes whose members are what their body binds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from gradcli.errors import type_error, value_error
from gradcli.language.objects.classes.derived import IntegerInstance, TextInstance
from gradcli.language.objects.classes.special_methods import SPECIAL_METHODS
from gradcli.language.objects.classes.user_classes import (
    BoundMethod,
    ClassMethod,
    Instance,
    Property,
    StaticMethod,
    UserClass,
    is_dunder,
)
from gradcli.language.objects.exceptions import Raised
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.methods import inherited_method
from gradcli.language.objects.repr import display, text
from gradcli.language.objects.types import by_name, define


class EnumClass(UserClass):
    """A class of members: it can be called with a value, indexed with a name, and gone through."""

    __slots__ = ("members",)

    absent: ClassVar[str] = "{1}"

    members: dict[str, Any]

    def __call__(self, value: Any, /) -> Any:
        """The member of a value; raises ValueError."""
        for member in self.members.values():
            if member is value or member.language_value == value:
                return member
        if issubclass(self.host, Flag) and isinstance(value, int):
            return _combined(self, value)
        raise value_error(f"{display(value)} is not a valid {self.name}")

    def __getitem__(self, name: Any) -> Any:
        if name not in self.members:
            raise Raised("KeyError", display(name), (name,), "E207")
        return self.members[name]

    def __iter__(self) -> Iterator[Any]:
        """The members, each under its first name."""
        return iter([member for name, member in self.members.items() if member.name == name])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, value: Any) -> bool:
        return any(value is member for member in self.members.values())

    def __repr__(self) -> str:
        return f"<enum '{self.name}'>"


class Enum(Instance):
    """The base of enumerations."""

    language_name: ClassVar[str] = "enum.Enum"
    language_shared: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset({"name", "value"})
    language_value: Any
    name: str

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A member; `Enum("Name", "A B")` is a class of members."""
        if args and not hasattr(cls, "language_class"):
            return _functional(cls, *args, **kwargs)
        return Instance.__new__(cls)

    @property
    def value(self) -> Any:
        """What the body bound."""
        return self.language_value

    def __init__(self, *args: Any) -> None:
        """The value was set when the member was made."""
        if not hasattr(type(self), "language_class"):
            raise type_error(f"{_shown(type(self))} has no members defined")

    def __str__(self) -> str:
        return f"{type(self).language_class.name}.{self.name}"

    def __repr__(self) -> str:
        return f"<{type(self).language_class.name}.{self.name}: {display(self.language_value)}>"

    def __hash__(self) -> int:
        return hash(self.name)

    def language_setattr(self, name: str, new: Any) -> None:
        """Members keep what their `__init__` sets."""
        self.values[name] = new

    @staticmethod
    def language_define(
        name: str, names: dict[str, Any], hosts: tuple[type, ...], fields: dict[str, str]
    ) -> UserClass:
        """The class of a `class` statement: what its body binds to values are members."""
        members = {key: value for key, value in names.items() if _is_member(key, value)}
        rest = {key: value for key, value in names.items() if key not in members}
        mixed = next((each for base, each in _MIXED.items() if base in hosts), None)
        bases = [host for host in hosts if host not in _MIXED]
        if mixed is not None:
            bases = [mixed if host is Enum else host for host in bases]
        cls = EnumClass(name, rest, tuple(bases))
        cls.members = {}
        last: Any = None
        values: list[Any] = []
        for key, value in members.items():
            if type(value) is Auto:
                value = _next_value(cls, key, last, values)
            last = value
            values.append(value)
            cls.members[key] = _alias(cls, value) or _member(cls, key, value)
        cls.names.update(cls.members)
        cls.names["__members__"] = dict(cls.members)
        cls.forget()
        return cls


def _functional(base: type[Enum], value: Any, names: Any = None, **named: Any) -> UserClass:
    """The class whose members are given by name: a text, a list, or pairs with their values."""
    if not isinstance(value, str) or names is None:
        raise type_error(f"{_shown(base)} has no members defined")
    if isinstance(names, str):
        names = names.replace(",", " ").split()
    pairs = list(names.items()) if isinstance(names, dict) else list(bounded(names))
    start = named.get("start", 1)
    if not isinstance(start, int):
        raise type_error("start is an integer")
    members: dict[str, Any] = {}
    for number, each in enumerate(pairs):
        own = (each, start + number if base is not Flag else 1 << number)
        key, member = own if isinstance(each, str) else each
        if not isinstance(key, str):
            raise type_error(f"the name of a member is a string, not {display(key)}")
        members[key] = member
    return base.language_define(value, members, (base,), {})


def _shown(base: type[Enum]) -> str:
    return f"<{'flag' if issubclass(base, Flag) else 'enum'} '{base.__name__}'>"


def _is_member(name: str, value: Any) -> bool:
    if is_dunder(name) or name in SPECIAL_METHODS or name.startswith("_"):
        return False
    methods = (BoundMethod, ClassMethod, Property, StaticMethod, UserClass)
    return not isinstance(value, methods) and type(value).__name__ != "Function"


def _next_value(cls: EnumClass, name: str, last: Any, values: list[Any]) -> Any:
    """What `auto()` stands for."""
    own = cls.find("_generate_next_value_")
    if callable(own):
        return own(name, 1, len(values), values)
    if issubclass(cls.host, StrEnum):
        return name.lower()
    if issubclass(cls.host, Flag):
        return 1 if not isinstance(last, int) else 1 << last.bit_length()
    return 1 if not isinstance(last, int) else last + 1


def _alias(cls: EnumClass, value: Any) -> Any:
    """The member that has a value already."""
    known = cls.members.values()
    return next((each for each in known if each.language_value == value), None)


def _member(cls: EnumClass, name: str, value: Any) -> Any:
    member = cls.host.__new__(cls.host)
    member.name, member.language_value = name, value
    init = cls.names.get("__init__")
    if init is not None:
        init(member, *(value if isinstance(value, tuple) else (value,)))
    return member


def _value(other: Any) -> Any:
    return other.language_value if isinstance(other, Enum) else other


def _of_values(name: str) -> Callable[[Any, Any], Any]:
    """An operator of members and numbers on the values."""
    compute = getattr(operator, name)
    return lambda self, other: compute(self.language_value, _value(other))


def _of_bits(name: str) -> Callable[[Any, Any], Any]:
    """An operator of flags on their bits."""
    compute = getattr(operator, name)

    def combine(self: Any, other: Any) -> Any:
        return _combined(type(self).language_class, compute(self.language_value, _bits(other)))

    return combine


class _Value(Enum):
    """What members share that are values as well: they are equal to their value."""

    def __eq__(self, other: object) -> bool:
        return bool(self.language_value == _value(other))

    def __hash__(self) -> int:
        return hash(self.language_value)

    __lt__, __le__, __gt__, __ge__ = map(_of_values, ("lt", "le", "gt", "ge"))


class IntEnum(_Value):
    """`enum.IntEnum`."""

    language_name: ClassVar[str] = "enum.IntEnum"
    language_also: ClassVar[type] = int

    def __int__(self) -> int:
        return int(self.language_value)

    __index__ = __int__

    def __str__(self) -> str:
        return text(self.language_value)

    __add__, __sub__, __mul__ = map(_of_values, ("add", "sub", "mul"))
    __radd__, __rmul__ = __add__, __mul__


class StrEnum(_Value):
    """`enum.StrEnum`: equal to its text."""

    language_name: ClassVar[str] = "enum.StrEnum"
    language_also: ClassVar[type] = str

    def __str__(self) -> str:
        return str(self.language_value)

    def language_getattr(self, name: str) -> Any:
        """What was set on the member, or a method of its text."""
        method = inherited_method(str, name)
        if name in self.values or method is None:
            return Enum.language_getattr(self, name)
        return BoundMethod(self.language_value, method)

    __add__ = _of_values("add")


class _Text(StrEnum):
    """The base of `class Name(str, Enum)`: equal to its text, written as a member."""

    __str__ = Enum.__str__


class _Integer(IntEnum):
    """The base of `class Name(int, Enum)`: counted with, and written as a member."""

    __str__ = Enum.__str__


_MIXED: dict[type, type] = {IntegerInstance: _Integer, TextInstance: _Text}
"""The bases of members that are texts or integers as well."""


class Flag(Enum):
    """`enum.Flag`: members that are combined with `|`."""

    language_name: ClassVar[str] = "enum.Flag"

    __or__, __and__, __xor__ = map(_of_bits, ("or_", "and_", "xor"))

    def __contains__(self, other: Any) -> bool:
        return bool(_bits(other) & self.language_value == _bits(other))

    def __bool__(self) -> bool:
        return bool(self.language_value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.language_value == _bits(other)

    def __hash__(self) -> int:
        return hash(self.language_value)


def _bits(value: Any) -> int:
    return int(getattr(value, "language_value", value))


def _combined(cls: Any, bits: int) -> Any:
    """The member of some bits, made where there is none."""
    member = _alias(cls, bits)
    if member is not None:
        return member
    parts = [each.name for each in cls.members.values() if each.language_value & bits]
    return _member(cls, "|".join(parts) or "0", bits)


class Auto:
    """`enum.auto()`: the next value."""

    __slots__ = ()

    language_name: ClassVar[str] = "enum.auto"


def unique(enumeration: Any) -> Any:
    """`@unique`: raises E204 where two names have one value."""
    for name, member in getattr(enumeration, "members", {}).items():
        if member.name != name:
            raise value_error(f"duplicate values found in {enumeration!r}: {name} -> {member.name}")
    return enumeration


ENUM: dict[str, Any] = {
    **by_name(Enum, Flag, IntEnum, StrEnum, unique),
    "IntFlag": Flag,
    "auto": define("enum.auto", Auto, construct=Auto),
}
"""What `enum` holds."""
