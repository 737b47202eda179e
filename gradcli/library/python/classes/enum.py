"""The module `enum`: classes whose members are what their body binds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
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
from gradcli.language.objects.repr import display
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
            return _combined(self, _within(self, int(value)))
        missing = self.find("_missing_")
        member = missing.function(self, value) if isinstance(missing, ClassMethod) else None
        if member is not None:
            return member
        raise value_error(f"{display(value)} is not a valid {self.name}")

    def __getitem__(self, name: Any) -> Any:
        if name not in self.members:
            raise Raised("KeyError", display(name), (name,), "E207")
        return self.members[name]

    def __iter__(self) -> Iterator[Any]:
        """The members, each under its first name; of flags those of one bit."""
        own = [member for name, member in self.members.items() if member.name == name]
        if issubclass(self.host, Flag):
            own = [each for each in own if _bits(each).bit_count() == 1]
        return iter(own)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __reversed__(self) -> Iterator[Any]:
        return reversed([*self])

    def __contains__(self, value: Any) -> bool:
        return any(value is member for member in self.members.values())

    def __repr__(self) -> str:
        return f"<{'flag' if issubclass(self.host, Flag) else 'enum'} '{self.name}'>"


class Enum(Instance):
    """The base of enumerations."""

    language_name: ClassVar[str] = "enum.Enum"
    language_shared: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset({"_value_", "name", "value"})
    language_value: Any
    name: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A member; `Enum("Name", "A B")` is a class of members."""
        if args and not hasattr(cls, "language_class"):
            return _functional(cls, *args, **kwargs)
        return Instance.__new__(cls)

    @property
    def value(self) -> Any:
        """What the body bound."""
        return self.language_value

    _value_ = value

    def __init__(self, *args: Any) -> None:
        """The value was set when the member was made."""
        if not hasattr(type(self), "language_class"):
            raise type_error(f"{_shown(type(self))} has no members defined")

    def __str__(self) -> str:
        return f"{type(self).language_class.name}.{self.name}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

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
                value.value = _next_value(cls, key, last, values)
            value = last = _known(value)
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


def _member(cls: EnumClass, name: str | None, value: Any) -> Any:
    member = _blank(cls.host, value)
    member.name, member.language_value = name, value
    init = cls.names.get("__init__")
    if init is not None:
        init(member, *(value if isinstance(value, tuple) else (value,)))
    return member


def _blank(host: Any, value: Any) -> Any:
    """A member without a name, which is the value itself where the class is one of such."""
    kind = next((each for each in (int, str) if issubclass(host, each)), None)
    if kind is None:
        return host.__new__(host)
    member: Any = kind.__new__(host, *(value if isinstance(value, tuple) else (value,)))
    member.values = {}
    return member


def _of_bits(name: str) -> Callable[[Any, Any], Any]:
    """An operator of flags on their bits."""
    compute = getattr(operator, name)

    def combine(self: Any, other: Any) -> Any:
        return _combined(type(self).language_class, compute(self.language_value, _bits(other)))

    return combine


class IntEnum(Enum, int):
    """`enum.IntEnum`: members that are integers as well."""

    language_name: ClassVar[str] = "enum.IntEnum"

    __hash__ = int.__hash__
    __str__ = int.__repr__

    def __format__(self, spec: str) -> str:
        return int.__format__(self, spec)


class StrEnum(Enum, str):
    """`enum.StrEnum`: members that are texts as well."""

    language_name: ClassVar[str] = "enum.StrEnum"

    __hash__ = str.__hash__
    __str__ = str.__str__

    def __format__(self, spec: str) -> str:
        return str.__format__(self, spec)

    def language_getattr(self, name: str) -> Any:
        """What was set on the member, or a method of its text."""
        method = inherited_method(str, name)
        if name in self.values or method is None:
            return Enum.language_getattr(self, name)
        return BoundMethod(self, method)


class _Text(StrEnum):
    """The base of `class Name(str, Enum)`: equal to its text, written as a member."""

    __str__ = Enum.__str__
    __format__ = Enum.__format__


class _Integer(IntEnum):
    """The base of `class Name(int, Enum)`: counted with, and written as a member."""

    __str__ = Enum.__str__
    __format__ = Enum.__format__


_MIXED: dict[type, type] = {IntegerInstance: _Integer, TextInstance: _Text}
"""The bases of members that are texts or integers as well."""


class Flag(Enum):
    """`enum.Flag`: members that are combined with `|`."""

    language_name: ClassVar[str] = "enum.Flag"

    __or__, __and__, __xor__ = map(_of_bits, ("or_", "and_", "xor"))

    def __invert__(self) -> Any:
        cls: Any = type(self).language_class
        return _combined(cls, sum(map(_bits, cls)) & ~self.language_value)

    def __iter__(self) -> Iterator[Any]:
        """The members of one bit that are in it."""
        cls: Any = type(self).language_class
        return iter([each for each in cls if _bits(each) & self.language_value])

    def __len__(self) -> int:
        return int(self.language_value).bit_count()

    def __str__(self) -> str:
        cls = type(self).language_class.name
        return f"{cls}({self.language_value})" if self.name is None else f"{cls}.{self.name}"

    def __repr__(self) -> str:
        name = type(self).language_class.name
        shown = name if self.name is None else f"{name}.{self.name}"
        return f"<{shown}: {display(self.language_value)}>"

    def __contains__(self, other: Any) -> bool:
        return bool(_bits(other) & self.language_value == _bits(other))

    def __bool__(self) -> bool:
        return bool(self.language_value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.language_value == _bits(other)

    def __hash__(self) -> int:
        return hash(self.language_value)


class IntFlag(Flag, int):
    """`enum.IntFlag`: flags that are integers as well."""

    language_name: ClassVar[str] = "enum.IntFlag"

    __eq__, __hash__, __str__ = int.__eq__, int.__hash__, int.__repr__

    def __format__(self, spec: str) -> str:
        return int.__format__(self, spec)


def _bits(value: Any) -> int:
    return int(getattr(value, "language_value", value))


def _combined(cls: Any, bits: int) -> Any:
    """The member of some bits, made where there is none."""
    member = _alias(cls, bits)
    if member is not None:
        return member
    known = [(each.name, _bits(each)) for each in cls if _bits(each) & bits]
    beside = bits & ~_union(each for _, each in known)
    names = [*(name for name, _ in known), *([str(beside)] if beside and known else [])]
    return _member(cls, "|".join(names) or None, bits)


def _union(parts: Iterable[int]) -> int:
    return reduce(operator.or_, parts, 0)


def _within(cls: Any, value: int) -> int:
    """The bits that a value stands for in a class of flags: below 0 it leaves bits out. Flags that
    are integers keep bits that no member has; raises ValueError for them in others.
    """
    mask = _union(map(_bits, cls.members.values()))
    width = mask.bit_length()
    if not ~((1 << width) - 1) <= value < 1 << width or value & ~mask & ((1 << width) - 1):
        if not issubclass(cls.host, IntFlag):
            places = max(value.bit_length(), width)
            raise value_error(
                f"{cls!r} invalid value {value}\n    given {_binary(value, places)}\n"
                f"  allowed {_binary(mask, places)}"
            )
        return value if value >= 0 else (1 << max(width, value.bit_length())) + value
    if value >= 0:
        return value
    if issubclass(cls.host, IntFlag):
        return (1 << width) + value
    return _union(map(_bits, cls)) & value


def _binary(value: int, places: int) -> str:
    """`0b0 0101`: a sign, and the places of a number; those of one below 0 as its complement."""
    sign = int(value < 0)
    return f"0b{sign} {value & ((1 << places) - 1):0{places}b}"


def _of_autos(name: str) -> Callable[[Any, Any], Any]:
    """An operator of what has its value when the class is made."""
    compute = getattr(operator, name)
    return lambda self, other: Combined(lambda: compute(_known(self), _known(other)))


class Auto:
    """`enum.auto()`: the next value, which is known when the class is made."""

    __slots__ = ("value",)

    language_name: ClassVar[str] = "enum.auto"

    value: Any

    __or__, __and__, __xor__ = map(_of_autos, ("or_", "and_", "xor"))
    __ror__, __rand__, __rxor__ = __or__, __and__, __xor__


class Combined(Auto):
    """What the body of a class computes of `enum.auto()`."""

    __slots__ = ("compute",)

    def __init__(self, compute: Callable[[], Any]) -> None:
        self.compute = compute


def _known(value: Any) -> Any:
    """The value of a member, where it is or is computed of `auto()`."""
    if type(value) is Combined:
        return value.compute()
    return value.value if type(value) is Auto else value


def unique(enumeration: Any) -> Any:
    """`@unique`: raises E204 where two names have one value."""
    for name, member in getattr(enumeration, "members", {}).items():
        if member.name != name:
            raise value_error(f"duplicate values found in {enumeration!r}: {name} -> {member.name}")
    return enumeration


ENUM: dict[str, Any] = {
    **by_name(Enum, Flag, IntEnum, IntFlag, StrEnum, unique),
    "auto": define("enum.auto", Auto, construct=Auto),
}
"""What `enum` holds."""
