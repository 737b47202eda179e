"""Records: classes that are nothing but their attributes."""

from __future__ import annotations

from functools import cache
from types import CodeType, FunctionType
from typing import Any, ClassVar, dataclass_transform


def _first(self: Record, *values: Any, **named: Any) -> None:
    """The `__init__` of a class without instances: makes the one that assigns its fields."""
    cls = type(self)
    fields, defaults = cls.fields, cls.field_defaults
    # A text takes ten times as long to compile as its code to be copied with other names.
    code = _assigning(len(fields)).replace(co_varnames=("self", *fields), co_names=fields)
    last = tuple(defaults[each] for each in fields if each in defaults)
    cls.__init__ = FunctionType(code, {}, "__init__", last)  # type: ignore[method-assign]
    cls.__init__(self, *values, **named)


@cache
def _assigning(count: int) -> CodeType:
    """The code of a function that assigns so many attributes."""
    names = [f"a{number}" for number in range(count)]
    lines = [f"def __init__({', '.join(['self', *names])}):"]
    lines += [f" self.{each} = {each}" for each in names] or [" pass"]
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), namespace)
    code: CodeType = namespace["__init__"].__code__
    return code


class _Slotted(type):
    """Gives a class a slot for each attribute that it annotates, and keeps the defaults aside."""

    def __new__(cls, name: str, bases: tuple[type, ...], names: dict[str, Any]) -> Any:
        annotated = names.get("__annotations__", {}).items()
        own = [each for each, kind in annotated if not kind.startswith("ClassVar")]
        defaults = {each: names.pop(each) for each in own if each in names}
        names |= {"__slots__": tuple(own), "__init__": names.get("__init__", _first)}
        record: Any = super().__new__(cls, name, bases, names)
        record.fields = (*record.fields, *own)
        record.field_defaults = {**record.field_defaults, **defaults}
        return record


@dataclass_transform(eq_default=False)
class Record(metaclass=_Slotted):
    """A thing with the attributes that its class annotates, those of its base first.

    They are given in this order or by name; a value in the class is a default. Unlike those of
    `dataclasses`, whose import costs a third of start-up, a class is not compiled before its first
    instance is made.
    """

    fields: ClassVar[tuple[str, ...]]
    field_defaults: ClassVar[dict[str, Any]]
    fields, field_defaults = (), {}
