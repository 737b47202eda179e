"""The modules `typing`, `collections.abc` and `__future__`: names for annotations.

Annotations are read and not evaluated; these names are there to be imported, and to stand for a
longer type: `Batch = Tuple[Tensor, Tensor]`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.errors import type_error
from gradcli.language.objects.attributes import Module
from gradcli.language.objects.classes.user_classes import BoundMethod, Instance
from gradcli.language.objects.methods import dict_of
from gradcli.language.objects.repr import display
from gradcli.language.objects.type_forms import TypeForm
from gradcli.language.objects.types import LanguageType, define, known_type, type_of
from gradcli.library.python.collections import NAMED_TUPLE


def cast(typ: Any, val: Any) -> Any:
    """`typing.cast(typ, val)`: the value as it is."""
    return val


def type_var(name: str, *constraints: Any, **named: Any) -> TypeForm:
    """`typing.TypeVar("T")`, `NewType` and their like: a name for annotations."""
    if not isinstance(name, str):
        raise type_error("the name of a type variable is a string")
    return TypeForm(f"~{name}")


def new_type(name: str, tp: Any) -> Any:
    """`typing.NewType(name, type)`: a function that gives its argument."""
    return lambda value, /: value


def unchanged(function: Any) -> Any:
    """`@overload`, `@final`, `@runtime_checkable`: the function or class as it is."""
    return function


_NAMES = """
    AbstractSet Annotated Any AnyStr AsyncIterator Awaitable Callable ClassVar Collection
    Concatenate Container Coroutine DefaultDict Deque Dict Final FrozenSet Generator Generic
    Hashable IO
    ItemsView Iterable Iterator KeysView List Literal LiteralString Mapping Match MutableMapping
    MutableSequence MutableSet Never NoReturn NotRequired Optional OrderedDict Pattern Protocol
    Required Reversible Self Sequence Set Sized SupportsFloat SupportsInt Text TextIO Tuple Type
    TypeAlias TypeGuard Union Unpack ValuesView
"""


class TypedDict:
    """`typing.TypedDict`: the base of names for dicts with known keys; what it makes are dicts."""

    __slots__ = ()

    language_name: ClassVar[str] = "typing.TypedDict"
    language_attributes: ClassVar[frozenset[str]] = frozenset()
    language_base: ClassVar[bool] = True

    @staticmethod
    def language_define(
        name: str, names: dict[str, Any], hosts: tuple[type, ...], fields: dict[str, str]
    ) -> LanguageType:
        """The class of a `class` statement."""
        return LanguageType(f"__main__.{name}", (dict,), dict_of)


def get_type_hints(obj: Any, *names: Any, **settings: Any) -> dict[str, Any]:
    """`typing.get_type_hints(value)`: the annotations of a function or class, with those above."""
    above = reversed(getattr(getattr(obj, "host", None), "__mro__", ()))
    known = [each for host in above if (each := vars(host).get("language_class")) is not None]
    hints: dict[str, Any] = {}
    for each in known or [obj]:
        annotate = getattr(each, "annotate", None)
        hints.update({} if annotate is None else annotate())
    return {name: type_of(None) if value is None else value for name, value in hints.items()}


TYPING: dict[str, Any] = {
    **{name: TypeForm(f"typing.{name}") for name in _NAMES.split()},
    "NamedTuple": NAMED_TUPLE,
    "NewType": new_type,
    "ParamSpec": type_var,
    "TYPE_CHECKING": False,
    "TypeVar": type_var,
    "TypeVarTuple": type_var,
    "TypedDict": TypedDict,
    "cast": cast,
    "get_type_hints": get_type_hints,
    "final": unchanged,
    "no_type_check": unchanged,
    "overload": unchanged,
    "runtime_checkable": unchanged,
}
"""What `typing` holds."""

_ABSTRACT_NAMES = """
    Callable Collection Container Generator Hashable ItemsView Iterable Iterator KeysView Mapping
    MutableMapping MutableSequence MutableSet Reversible Sequence Set Sized ValuesView
"""

ABSTRACT: dict[str, Any] = {
    name: TypeForm(f"collections.abc.{name}") for name in _ABSTRACT_NAMES.split()
}
"""What `collections.abc` holds."""

FUTURE: dict[str, Any] = {
    name: TypeForm(f"__future__.{name}")
    for name in (
        "absolute_import", "annotations", "division", "generator_stop", "print_function",
        "unicode_literals", "with_statement",
    )
}  # fmt: skip
"""What `__future__` holds: all of it is so already."""


class SimpleNamespace(Instance):
    """`types.SimpleNamespace(name=value, …)`."""

    language_name: ClassVar[str] = "types.SimpleNamespace"

    def __init__(self, **kwargs: Any) -> None:
        self.values.update(kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SimpleNamespace) and self.values == other.values

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [f"{name}={display(value)}" for name, value in self.values.items()]
        return f"namespace({', '.join(shown)})"


NUMBERS: dict[str, Any] = {
    name: LanguageType(f"numbers.{name}", hosts)
    for name, hosts in {
        "Complex": (int, float, complex),
        "Integral": (int,),
        "Number": (int, float, complex),
        "Rational": (int,),
        "Real": (int, float),
    }.items()
}
"""What `numbers` holds."""

TYPES: dict[str, Any] = {
    "FunctionType": type_of(unchanged),
    "GeneratorType": TypeForm("types.Generator"),
    "LambdaType": type_of(unchanged),
    "MethodType": define("method", BoundMethod),
    "ModuleType": known_type(Module),
    "NoneType": type_of(None),
    "SimpleNamespace": SimpleNamespace,
}
"""What `types` holds."""
