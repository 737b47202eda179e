"""Named tuples: `collections.namedtuple` and classes derived from `typing.NamedTuple`."""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.functions.calls import misfit, missing, unknown_keyword
from gradcli.language.objects.classes.user_classes import UserClass
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import define, type_of


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
