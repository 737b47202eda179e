"""The modules `typing`, `collections.abc` and `__future__`: names for annotations.

Annotations are read and not evaluated; these names are there to be imported, and to stand for a
longer type: `Batch = Tuple[Tensor, Tensor]`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.language.objects.types import LanguageType


class TypeForm:
    """A name of `typing`, or one with parameters."""

    __slots__ = ("text",)

    language_name: ClassVar[str] = "typing._GenericAlias"
    language_attributes: ClassVar[frozenset[str]] = frozenset()
    settable_attributes: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, text: str) -> None:
        self.text = text

    def __getitem__(self, parameters: Any) -> TypeForm:
        several = parameters if type(parameters) is tuple else (parameters,)
        return TypeForm(f"{self.text}[{', '.join(map(_shown, several))}]")

    def __or__(self, other: Any) -> TypeForm:
        return TypeForm(f"{self.text} | {_shown(other)}")

    __ror__ = __or__

    def __repr__(self) -> str:
        return self.text


def _shown(parameter: Any) -> str:
    if isinstance(parameter, LanguageType):
        return parameter.full_name
    return "None" if parameter is None else repr(parameter)


def cast(typ: Any, val: Any) -> Any:
    """`typing.cast(typ, val)`: the value as it is."""
    return val


_NAMES = """
    Any Callable ClassVar Dict Final FrozenSet Generator Iterable Iterator List Literal Mapping
    MutableMapping NoReturn Optional Sequence Set Tuple Type Union
"""

TYPING: dict[str, Any] = {name: TypeForm(f"typing.{name}") for name in _NAMES.split()}
TYPING["cast"] = cast

_ABSTRACT_NAMES = "Callable Generator Iterable Iterator Mapping MutableMapping Sequence"

ABSTRACT: dict[str, Any] = {
    name: TypeForm(f"collections.abc.{name}") for name in _ABSTRACT_NAMES.split()
}

FUTURE: dict[str, Any] = {"annotations": TypeForm("__future__.annotations")}
