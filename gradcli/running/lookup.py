"""Names and attributes looked up without running anything, for completion and for `name?`; and the
names that nothing gives a value.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.functions.calls import Function
from gradcli.language.objects.attributes import Method, Module, get_attribute
from gradcli.language.objects.classes.instance_attributes import attributes_of
from gradcli.language.objects.classes.user_classes import Instance
from gradcli.language.objects.types import LanguageType
from gradcli.language.tree.syntax import FromImport, Statement, nodes_of
from gradcli.library.namespace import table_of
from gradcli.ops.binding import catalogue
from gradcli.ops.definition.op import registry
from gradcli.record import Record
from gradcli.running.arguments.name_uses import called_names, free_names, operand_names

if TYPE_CHECKING:
    from gradcli.session import Session

UNKNOWN = object()
"""What would have to be run to be known."""

# fmt: off
_STILL = frozenset((
    "data", "device", "dtype", "grad", "grad_fn", "is_leaf", "name", "ndim", "requires_grad",
    "shape",
))
# fmt: on
"""Attributes of tensors that are there already. Others compute, and `T` records a node."""


def value_of(session: Session, chain: Sequence[str]) -> Any:
    """The value of a dotted name, in parts; `UNKNOWN` where it has none or would have to be run.

    The first part may be a quote for a text.
    """
    first, *rest = chain
    names = session.state.names()
    if first in names:
        value = names[first]
    elif first in ("'", '"'):
        value = ""
    else:
        table = table_of(first)
        value = UNKNOWN if table is None else table[first]
    for name in rest:
        value = attribute(value, name)
        if value is UNKNOWN:
            break
    return value


def attribute(value: Any, name: str) -> Any:
    """An attribute that can be read without effect; `UNKNOWN` for others."""
    kind = type(value)
    if kind is Module:
        try:
            return value.get(name)
        except KeyError:
            return UNKNOWN
    if kind is Tensor:
        if name in catalogue.methods:
            return catalogue.methods[name]
        return (
            get_attribute(value, name) if name in _STILL & catalogue.properties.keys() else UNKNOWN
        )
    if isinstance(value, Instance) and name in attributes_of(value):
        return attributes_of(value)[name]
    if hasattr(kind, "named_parameters"):
        try:
            return value.lookup(name)
        except (AttributeError, GradcliError):
            return UNKNOWN
    if isinstance(value, Node) and name in ("next_functions", "variable"):
        return getattr(value, name, UNKNOWN)
    return UNKNOWN


_CLASSES = (type, LanguageType)


def missing_inputs(statements: Sequence[Statement], bound: Iterable[str]) -> dict[str, None]:
    """The names that statements read and neither they nor `bound` give a value, in order; among
    them a function's name that is not called but an operand: `t` in `k * t` is a time. None where
    the program imports all names of a module: only running it tells which these are.
    """
    if any(isinstance(e, FromImport) and e.names[0][0] == "*" for e in nodes_of(list(statements))):
        return {}
    called = called_names(statements)
    operands = operand_names(statements)

    def is_builtin(name: str) -> bool:
        table = table_of(name)
        # A class is an operand: `suppress(RuntimeError)`.
        meaning = None if table is None else table[name]
        is_operand = name in operands and callable(meaning) and not isinstance(meaning, _CLASSES)
        return name in called or (table is not None and not is_operand)

    return free_names(statements, bound, is_builtin)


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
