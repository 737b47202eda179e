"""What can be read from a value with a dot, and what can be set: one table per type.

Nothing that is missing from these tables is reachable, whatever the host's objects have.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.classes import LanguageType, define, type_name
from gradcli.language.exceptions import arguments_of
from gradcli.language.methods import METHODS, VALUES
from gradcli.language.text import numbered
from gradcli.ops import catalogue

_HOST_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)


class Module:
    """A module as a value: a name and what it holds. The table may be the catalogue's own,
    which changes as ops are used.
    """

    __slots__ = ("modules", "name", "names")

    def __init__(self, name: str, names: dict[str, Any]) -> None:
        self.name = name
        self.names = names
        self.modules: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<module '{self.name}'>"

    def get(self, name: str) -> Any:
        """What the module holds under a name; raises KeyError."""
        try:
            return self.names[name]
        except KeyError:
            return self.modules[name]

    def public_names(self) -> list[str]:
        """The names that `from module import *` binds."""
        return [name for name in (*self.names, *self.modules) if not name.startswith("_")]


define("module", Module)


class Method:
    """A method of a value, which it remembers: what `x.exp` gives."""

    __slots__ = ("function", "name", "number", "receiver")

    def __init__(self, receiver: Any, name: str, function: Callable[..., Any]) -> None:
        self.receiver = receiver
        self.name = name
        self.function = function
        self.number = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self.receiver, *args, **kwargs)

    def __repr__(self) -> str:
        kind = type_name(self.receiver)
        return numbered(f"built-in method {self.name} of {kind} object", self)


define("builtin_function_or_method", Method)


def get_attribute(value: Any, name: str) -> Any:
    """`value.name`; raises E102 where the value has no such attribute in the language."""
    kind = type(value)
    if kind is Tensor:
        getter = catalogue.properties.get(name)
        if getter is not None:
            return getter(value)
        function = catalogue.methods.get(name)
        if function is not None:
            return Method(value, name, function)
    elif kind is Module:
        try:
            return value.get(name)
        except KeyError:
            pass
    elif kind in METHODS:
        function = METHODS[kind].get(name)
        if function is not None:
            return Method(value, name, function)
        getter = VALUES.get(kind, {}).get(name)
        if getter is not None:
            return getter(value)
    else:
        found = _object_attribute(value, kind, name)
        if found is not _MISSING:
            return found
    raise no_attribute(value, name)


_MISSING = object()


def _object_attribute(value: Any, kind: type, name: str) -> Any:
    """An attribute of an object of ours, `_MISSING` where there is none."""
    if name in getattr(kind, "language_attributes", ()):
        try:
            return getattr(value, name)
        except AttributeError:  # declared for all, and absent from this one
            return _MISSING
    if isinstance(value, LanguageType):
        if name == "__name__":
            return value.name
        for host in value.hosts:
            function = METHODS.get(host, {}).get(name)
            if function is not None:
                return unbound(host, name, function)
        return catalogue.methods.get(name, _MISSING) if Tensor in value.hosts else _MISSING
    if isinstance(value, GradcliError):
        return arguments_of(value) if name == "args" else _MISSING
    if isinstance(value, tuple):  # Size and the named results
        function = METHODS[tuple].get(name)
        return _MISSING if function is None else Method(value, name, function)
    if name == "__name__" and (kind in _HOST_FUNCTIONS or kind is Method):
        return value.name if kind is Method else value.__name__
    computed = getattr(kind, "language_getattr", None)
    if computed is not None:
        try:
            return computed(value, name)
        except AttributeError:
            pass
    return _MISSING


def unbound(host: type, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A method as a function of its own, `str.upper`: it checks its first argument."""

    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self, host):
            raise GradcliError(
                "E202", f"{host.__name__}.{name}() works on {host.__name__}, not {type_name(self)}"
            )
        return function(self, *args, **kwargs)

    method.__name__ = name
    return method


def set_attribute(value: Any, name: str, new: Any) -> None:
    """`value.name = new`; raises E102 where the language does not let a program set it."""
    kind = type(value)
    if kind is Tensor:
        setter = catalogue.setters.get(name)
        if setter is not None:
            setter(value, new)
            return
    elif name in getattr(kind, "settable_attributes", ()):
        setattr(value, name, new)
        return
    try:
        get_attribute(value, name)
    except GradcliError as error:
        if error.code != "E102":
            raise
        raise no_attribute(value, name) from None
    raise GradcliError("E102", f"the attribute '{name}' of {type_name(value)} cannot be set")


def attribute_names(value: Any) -> list[str]:
    """The names that can be read from a value, for suggestions and completion."""
    kind = type(value)
    if kind is Tensor:
        return [*catalogue.properties, *catalogue.methods]
    if kind is Module:
        names: list[str] = value.public_names()
        return names
    if kind in METHODS:
        return [*METHODS[kind], *VALUES.get(kind, ())]
    if isinstance(value, GradcliError):
        return ["args"]
    return sorted(getattr(kind, "language_attributes", ()))


def no_attribute(value: Any, name: str) -> GradcliError:
    """The error of an attribute that a value does not have, with the one that was likely meant."""
    from gradcli.language.suggestions import closest

    owner = f"module '{value.name}'" if type(value) is Module else f"'{_owner(value)}' object"
    help = None
    if name.startswith("__"):
        help = "attributes of Python's own machinery are not part of the language"
    else:
        near = closest(name, attribute_names(value))
        if near is not None:
            help = f"did you mean `{near}`?"
        elif type(value) is Module and name in catalogue.modules["torch"]:
            help = f"did you mean `torch.{name}`?"
    return GradcliError("E102", f"{owner} has no attribute '{name}'", help=help)


def _owner(value: Any) -> str:
    return "type" if isinstance(value, LanguageType) else type_name(value)
