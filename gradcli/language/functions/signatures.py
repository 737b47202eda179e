"""The parameters of functions that programs call, as they are written."""

from __future__ import annotations

import inspect
from typing import Any

from gradcli.language.functions.calls import Function
from gradcli.language.objects.attributes import Method
from gradcli.language.objects.types import LanguageType
from gradcli.ops.binding import catalogue
from gradcli.ops.definition.op import registry
from gradcli.record import Record


class Parameter(Record):
    """A parameter of a function.

    Attributes:
        default: the text of its default, None for a parameter without one.
    """

    name: str
    default: str | None
    stars: str
    keyword: bool
    only: bool

    def __str__(self) -> str:
        default = "" if self.default is None else f"={self.default}"
        return f"{self.stars}{self.name}{default}"


def parameters_of(function: Any) -> list[Parameter]:
    """The parameters of a function, none where they are not known."""
    if type(function) is Function:
        return _of_program(function)
    skipped = 0
    if type(function) is Method:
        function, skipped = function.function, 1
    host: Any = function.construct if isinstance(function, LanguageType) else function
    name = getattr(host, "__name__", "")
    if name.endswith("_") and name[:-1] in catalogue.methods and _takes_anything(host):
        # The in-place form takes whatever the op does.
        host = catalogue.methods[name[:-1]]
    entry = registry.get(name.rstrip("_"))
    if entry is not None and entry.apply is host:
        host = entry.forward
    try:
        parameters = inspect.signature(host).parameters.values()
    except (TypeError, ValueError):
        return []
    return [
        Parameter(
            "input" if each.name == "self" else each.name,
            None if each.default is each.empty else _default(each.default),
            "*" if each.kind is each.VAR_POSITIONAL else "**" * (each.kind is each.VAR_KEYWORD),
            each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD),
            each.kind is each.KEYWORD_ONLY,
        )
        for each in list(parameters)[skipped:]
        if not each.name.startswith("_")
    ]


def signature_of(function: Any, is_method: bool = False) -> str:
    """`(x, dim=None)`, "" where the parameters are not known; a method's first is left out."""
    parameters = parameters_of(function)[1 if is_method else 0 :]
    if not parameters:
        return ""
    words = []
    starred = False
    for each in parameters:
        if each.only and not starred:
            words.append("*")
        starred = starred or each.only or each.stars == "*"
        words.append(str(each))
    return f"({', '.join(words)})"


def _of_program(function: Function) -> list[Parameter]:
    signature = function.signature

    def named(name: str, only: bool) -> Parameter:
        return Parameter(name, "…" if name in function.defaults else None, "", True, only)

    parameters = [named(name, False) for name in signature.positional]
    if signature.rest:
        parameters.append(Parameter(signature.rest, None, "*", False, False))
    parameters += [named(name, True) for name in signature.keyword_only]
    if signature.keywords:
        parameters.append(Parameter(signature.keywords, None, "**", False, False))
    return parameters


def _takes_anything(function: Any) -> bool:
    """Whether a function takes any arguments and passes them on."""
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & inspect.CO_VARARGS)


def _default(value: Any) -> str:
    return repr(value) if isinstance(value, (int, float, str, type(None))) else "…"
