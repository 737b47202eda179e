"""Names for annotations as values: those of `typing`, and classes with parameters, `list[int]`."""

from __future__ import annotations

from collections import abc
from typing import Any, ClassVar

from gradcli.errors import type_error
from gradcli.language.objects.iteration import Iterator
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import LanguageType
from gradcli.record import Record


class TypeForm(Record):
    """A name of `typing`, or a class or such a name with parameters.

    Attributes:
        origin: the class that has the parameters, None for a name of `typing`.
        members: the classes that it stands for, if it is a union.
    """

    text: str
    origin: LanguageType | None = None
    members: tuple[Any, ...] = ()

    language_name: ClassVar[str] = "typing._GenericAlias"
    language_attributes: ClassVar[frozenset[str]] = frozenset()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """An instance of the class that has the parameters."""
        if self.origin is None:
            raise type_error(f"Type {self.text.rpartition('.')[2]} cannot be instantiated")
        return self.origin(*args, **kwargs)

    def __getitem__(self, parameters: Any) -> TypeForm:
        several = parameters if type(parameters) is tuple else (parameters,)
        return TypeForm(f"{self.text}[{', '.join(map(_shown, several))}]", self.origin)

    def language_instance(self, value: Any) -> bool:
        """Whether a value is of this kind; raises E202 for a name that stands in annotations
        alone.
        """
        if self.members:
            return any(_has_instance(member, value) for member in self.members)
        if self.origin is not None:
            raise type_error("isinstance() argument 2 cannot be a parameterized generic")
        name = self.text.partition("[")[0].rpartition(".")[2]
        known = {"Dict": "MutableMapping", "List": "MutableSequence"}.get(name, name)
        kind = getattr(abc, known, None)
        if kind is None:
            raise type_error(f"isinstance() takes no {self.text}")
        if name == "Generator":
            return type(value) is Iterator and value.kind == "generator"
        return isinstance(value, kind)

    @property
    def language_open(self) -> bool:
        """Whether a class may derive from it as from `object`."""
        return self.text.startswith(("typing.Generic", "typing.Protocol", "collections.abc."))

    def __or__(self, other: Any) -> TypeForm:
        return either(self, other)

    def __ror__(self, other: Any) -> TypeForm:
        return either(other, self)

    def __repr__(self) -> str:
        is_class = self.text.startswith("collections.abc.") and "[" not in self.text
        return f"<class '{self.text}'>" if is_class else self.text


def _shown(parameter: Any) -> str:
    if isinstance(parameter, LanguageType):
        return parameter.full_name
    if type(parameter) is list:
        return f"[{', '.join(map(_shown, parameter))}]"
    return "..." if parameter is ... else display(parameter)


def either(left: Any, right: Any) -> TypeForm:
    """`left | right`; raises TypeError for what is no class."""
    for side in (left, right):
        if side is not None and not isinstance(side, (LanguageType, TypeForm)):
            raise TypeError
    members = [m for side in (left, right) for m in getattr(side, "members", None) or (side,)]
    return TypeForm(f"{_shown(left)} | {_shown(right)}", members=tuple(members))


def _has_instance(member: Any, value: Any) -> bool:
    if isinstance(member, LanguageType):
        return member.has_instance(value)
    return value is None if member is None else member.language_instance(value)


_GENERIC = frozenset(
    {"dict", "frozenset", "list", "set", "tuple", "type"}
    | {f"collections.{name}" for name in ("ChainMap", "Counter", "OrderedDict")}
    | {"collections.defaultdict", "collections.deque"}
)
"""The classes of Python's that take parameters."""


def with_parameters(cls: LanguageType, parameters: Any) -> TypeForm | None:
    """`cls[parameters]`, None where the class takes none."""
    generic = any(getattr(host, "language_generic", False) for host in cls.hosts)
    if not generic and cls.full_name not in _GENERIC:
        return None
    return TypeForm(cls.full_name, cls)[parameters]
