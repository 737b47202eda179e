"""The module `dataclasses`: methods written for the annotated names of a class."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.functions.calls import call, misfit, missing, too_many, twice, unknown_keyword
from gradcli.language.objects.classes.definition import define_class
from gradcli.language.objects.classes.instance_attributes import (
    set_instance_attribute,
    store_attribute,
)
from gradcli.language.objects.classes.user_classes import UserClass
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.repr import display
from gradcli.language.objects.type_forms import TypeForm
from gradcli.language.objects.types import (
    EXCEPTIONS,
    by_name,
    check_kind,
    names,
    type_name,
    type_of,
)
from gradcli.library.copy import deepcopy
from gradcli.record import Record


class _Missing:
    """The mark of a field without a default."""

    __slots__ = ()

    language_name: ClassVar[str] = "dataclasses._MISSING_TYPE"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()
_KEYWORD_ONLY = "KW_ONLY"


class Field(Record):
    """`dataclasses.field(…)`: what is known of one name."""

    language_name: ClassVar[str] = "dataclasses.Field"
    language_attributes = names("compare default default_factory init kw_only name repr type")

    default: Any = MISSING
    default_factory: Any = MISSING
    init: bool = True
    repr: bool = True
    compare: bool = True
    kw_only: bool = False
    name: str = ""
    type: Any = None
    is_stored: bool = True

    def value(self) -> Any:
        """The default, made anew where there is a factory; `MISSING` for none."""
        if self.default_factory is not MISSING:
            return call(self.default_factory, (), {})
        return self.default


def field(
    *,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    init: Any = True,
    repr: Any = True,
    hash: Any = None,
    compare: Any = True,
    metadata: Any = None,
    kw_only: Any = False,
) -> Field:
    """`dataclasses.field(…)`; raises E204 for two defaults."""
    if default is not MISSING and default_factory is not MISSING:
        raise value_error("cannot specify both default and default_factory")
    shown = bool(init), bool(repr), bool(compare), bool(kw_only)
    return Field(default, default_factory, *shown)


def dataclass(
    cls: Any = None,
    /,
    *,
    init: Any = True,
    repr: Any = True,
    eq: Any = True,
    order: Any = False,
    unsafe_hash: Any = False,
    frozen: Any = False,
    match_args: Any = True,
    kw_only: Any = False,
    slots: Any = False,
    weakref_slot: Any = False,
) -> Any:
    """`@dataclass` and `@dataclass(order=True, …)`."""

    def make(cls: Any) -> Any:
        check_kind(cls, UserClass, "dataclass() is for classes")
        fields = _fields(cls, bool(kw_only))
        methods: dict[str, Callable[..., Any]] = {}
        if init:
            methods["__init__"] = _init(cls, fields)
        if repr:
            methods["__repr__"] = _repr(fields)
        compared = [each.name for each in fields if each.compare and each.is_stored]
        if eq:
            methods["__eq__"] = _comparison(compared, operator.eq)
        if order:
            for name in ("lt", "le", "gt", "ge"):
                methods[f"__{name}__"] = _comparison(compared, getattr(operator, name))
        if (frozen and eq) or unsafe_hash:
            methods["__hash__"] = lambda self: hash(_values(self, compared))
        for name, method in methods.items():
            if name not in cls.names:
                cls.bind(name, method)
        if eq and "__hash__" not in methods and "__hash__" not in cls.names:
            cls.host.__hash__ = None
        cls.names["__dataclass_fields__"] = {each.name: each for each in fields}
        if match_args:
            cls.names.setdefault("__match_args__", tuple(f.name for f in fields if not f.kw_only))
        cls.host.language_frozen = bool(frozen)
        cls.forget()
        return cls

    return make if cls is None else make(cls)


def _fields(cls: UserClass, keyword_only: bool) -> list[Field]:
    """The fields of a class, those of its bases first; raises E204 and E202 as Python does."""
    by_name: dict[str, Field] = {}
    types = {} if cls.annotate is None else cls.annotate()
    for host in reversed(cls.host.__mro__[1:]):
        base = vars(host).get("language_class")
        if base is not None:
            by_name.update(base.names.get("__dataclass_fields__", {}))
    for name, written in cls.fields.items():
        last = written.partition("[")[0].rpartition(".")[2]
        if last == "ClassVar":
            continue
        if last == _KEYWORD_ONLY:
            keyword_only = True
            continue
        default = cls.names.get(name, MISSING)
        if isinstance(default, (list, dict, set)):
            kind = f"<class '{type_name(default)}'>"
            raise value_error(
                f"mutable default {kind} for field {name} is not allowed: use default_factory"
            )
        each = default if type(default) is Field else Field(default)
        each.name, each.type = name, types.get(name, written)
        each.kw_only = each.kw_only or keyword_only
        each.is_stored = last != "InitVar"
        if type(default) is Field:
            cls.names.pop(name)
            if each.default is not MISSING:
                cls.names[name] = each.default
        by_name[name] = each
    seen = ""
    for each in by_name.values():
        has_default = each.default is not MISSING or each.default_factory is not MISSING
        if each.init and not each.kw_only and not has_default and seen:
            raise type_error(f"non-default argument {each.name!r} follows default argument")
        seen = seen or (each.name if has_default and each.init and not each.kw_only else "")
    return list(by_name.values())


def _init(cls: UserClass, fields: list[Field]) -> Callable[..., None]:
    """`__init__`: the fields from the arguments, then `__post_init__`."""
    by_place = [each.name for each in fields if each.init and not each.kw_only]
    known = {each.name: each for each in fields if each.init}
    written = f"({', '.join(known)})"
    called = f"{cls.name}.__init__"

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) > len(by_place):
            needed = [name for name in by_place if known[name].value() is MISSING]
            text = too_many(len(needed) + 1, len(by_place) + 1, len(args) + 1)
            words = f"takes {len(by_place)} values and got {len(args)}"
            raise misfit(cls.name, words, written, f"{called}() {text}")
        own: UserClass | None = getattr(type(self), "language_class", None)
        if own is None:
            raise type_error(f"{called}() takes an instance, not {type_name(self)}")
        store = store_attribute if own.host.language_frozen else set_instance_attribute
        passed: list[Any] = []
        values = dict(zip(by_place, args, strict=False))
        for name, value in kwargs.items():
            if name not in known:
                raise unknown_keyword(cls.name, name, list(known), written, called)
            if name in values:
                text = f"{called}() {twice(name)}"
                raise misfit(cls.name, f"got the argument {name!r} twice", written, text)
            values[name] = value
        for each in fields:
            value = values[each.name] if each.name in values else each.value()
            if value is MISSING:
                if each.init:
                    lacking = [n for n in known if n not in values and known[n].value() is MISSING]
                    text = f"{called}() {missing(lacking)}"
                    raise misfit(cls.name, f"needs a value for {each.name!r}", written, text)
                continue
            if each.is_stored:
                store(self, own, each.name, value)
            else:
                passed.append(value)
        after = own.find("__post_init__")
        if callable(after):
            after(self, *passed)

    init.__name__ = "__init__"
    return init


def _values(instance: Any, names: list[str]) -> tuple[Any, ...]:
    return tuple([_value(instance, name) for name in names])


def _value(instance: Any, name: str) -> Any:
    """A field of what a method of the class is called on, which may be no instance of it."""
    own: UserClass | None = getattr(type(instance), "language_class", None)
    if own is None:
        text = f"'{type_name(instance)}' object has no attribute '{name}'"
        raise GradcliError("E102", text, raises="AttributeError")
    try:
        return instance.language_getattr(name)
    except AttributeError:
        return own.find(name)


def _repr(fields: list[Field]) -> Callable[[Any], str]:
    shown = [each.name for each in fields if each.repr and each.is_stored]
    running: set[int] = set()

    def write(self: Any) -> str:
        if id(self) in running:
            return "..."
        running.add(id(self))
        try:
            parts = [f"{name}={display(_value(self, name))}" for name in shown]
        finally:
            running.discard(id(self))
        return f"{type_of(self).name}({', '.join(parts)})"

    return write


def _comparison(names: list[str], test: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compare(self: Any, other: Any) -> Any:
        if type(self) is not type(other):
            return NotImplemented
        return test(_values(self, names), _values(other, names))

    return compare


def _known(value: Any) -> dict[str, Field] | None:
    cls = value if isinstance(value, UserClass) else getattr(type(value), "language_class", None)
    known = None if cls is None else cls.find("__dataclass_fields__")
    return known if isinstance(known, dict) else None


def fields(class_or_instance: Any, /) -> tuple[Field, ...]:
    """`dataclasses.fields(value)`."""
    known = _known(class_or_instance)
    if known is None:
        raise type_error("must be called with a dataclass type or instance")
    return tuple([each for each in known.values() if each.is_stored])


def is_dataclass(obj: Any, /) -> bool:
    """`dataclasses.is_dataclass(value)`."""
    return _known(obj) is not None


def asdict(obj: Any, *, dict_factory: Any = None) -> Any:
    """`dataclasses.asdict(value)`: fields by name, those inside them too."""
    return _plain(
        obj, lambda pairs: call(dict_factory, (pairs,), {}) if dict_factory else dict(pairs)
    )


def astuple(obj: Any) -> Any:
    """`dataclasses.astuple(value)`."""
    return _plain(obj, lambda pairs: tuple([value for _, value in pairs]))


def _plain(value: Any, make: Callable[[list[tuple[str, Any]]], Any], top: bool = True) -> Any:
    known = None if isinstance(value, UserClass) else _known(value)
    if known is not None:
        return make(
            [
                (name, _plain(_value(value, name), make, False))
                for name, each in known.items()
                if each.is_stored
            ]
        )
    if top:
        raise type_error("asdict() should be called on dataclass instances")
    if type(value) in (list, tuple):
        return type(value)([_plain(each, make, False) for each in value])
    if type(value) is dict:
        return {key: _plain(each, make, False) for key, each in value.items()}
    return deepcopy(value)


def replace(obj: Any, /, **changes: Any) -> Any:
    """`dataclasses.replace(value, name=…)`."""
    known = fields(obj)
    values = {each.name: _value(obj, each.name) for each in known if each.init}
    return type_of(obj)(**{**values, **changes})


def make_dataclass(cls_name: str, fields: Any, /, *, bases: Any = (), **settings: Any) -> Any:
    """`dataclasses.make_dataclass(name, fields)`: a field is a name, or a tuple of a name, a type
    and a default.
    """
    check_kind(cls_name, str, "the name of a class is a string")
    names = dict(settings.pop("namespace", None) or {})
    types: dict[str, Any] = {}
    for each in bounded(fields):
        name, *rest = (each,) if isinstance(each, str) else each
        if not isinstance(name, str) or not name.isidentifier():
            raise type_error(f"Field names must be valid identifiers: {display(name)}")
        types[name] = rest[0] if rest else "typing.Any"
        if len(rest) > 1:
            names[name] = rest[1]
    cls = define_class(cls_name, list(bounded(bases)), names, dict.fromkeys(types, ""))
    cls.annotate = lambda: dict(types)
    return dataclass(cls, **settings)


DATACLASSES: dict[str, Any] = {
    "FrozenInstanceError": EXCEPTIONS["FrozenInstanceError"],
    "InitVar": TypeForm("dataclasses.InitVar"),
    "KW_ONLY": _KEYWORD_ONLY,
    "MISSING": MISSING,
    **by_name(asdict, astuple, dataclass, field, fields, is_dataclass, make_dataclass, replace),
}
"""What `dataclasses` holds."""
