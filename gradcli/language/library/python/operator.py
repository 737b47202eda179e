"""The module `operator`: the language's own operators as functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.errors import GradcliError
from gradcli.language.functions.calls import call
from gradcli.language.objects.attributes import get_attribute
from gradcli.language.objects.operators import augmented, binary, contains, identity, unary
from gradcli.language.objects.subscripts import delete_item, get_item, set_item

_BINARY = {
    "add": "+", "and_": "&", "concat": "+", "eq": "==", "floordiv": "//", "ge": ">=", "gt": ">",
    "le": "<=", "lshift": "<<", "lt": "<", "matmul": "@", "mod": "%", "mul": "*", "ne": "!=",
    "or_": "|", "pow": "**", "rshift": ">>", "sub": "-", "truediv": "/", "xor": "^",
}  # fmt: skip
_UNARY = {"inv": "~", "invert": "~", "neg": "-", "pos": "+"}
_IN_PLACE = {
    f"i{name.rstrip('_')}": symbol for name, symbol in _BINARY.items() if symbol[-1] != "="
}


def _function(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    return function


def _binary(symbol: str) -> Callable[[Any, Any], Any]:
    return lambda a, b, /: binary(symbol, a, b)


def _unary(symbol: str) -> Callable[[Any], Any]:
    return lambda a, /: unary(symbol, a)


def _augmented(symbol: str) -> Callable[[Any, Any], Any]:
    return lambda a, b, /: augmented(symbol, a, b)


def itemgetter(*items: Any) -> Callable[[Any], Any]:
    """`operator.itemgetter(item, …)`."""
    if not items:
        raise GradcliError("E201", "itemgetter() needs an item")
    if len(items) == 1:
        return lambda obj, /: get_item(obj, items[0])
    return lambda obj, /: tuple([get_item(obj, item) for item in items])


def attrgetter(*attrs: str) -> Callable[[Any], Any]:
    """`operator.attrgetter(name, …)`."""
    if not attrs or not all(isinstance(name, str) for name in attrs):
        raise GradcliError("E202", "attribute name must be a string")

    def read(obj: Any, dotted: str) -> Any:
        for name in dotted.split("."):
            obj = get_attribute(obj, name)
        return obj

    if len(attrs) == 1:
        return lambda obj, /: read(obj, attrs[0])
    return lambda obj, /: tuple([read(obj, name) for name in attrs])


def methodcaller(name: str, /, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """`operator.methodcaller(name, …)`."""
    return lambda obj, /: call(get_attribute(obj, name), args, kwargs)


OPERATOR: dict[str, Any] = {
    "abs": _function("abs", lambda a, /: abs(a)),
    "attrgetter": attrgetter,
    "contains": _function("contains", lambda a, b, /: contains(b, a)),
    "delitem": _function("delitem", lambda a, b, /: delete_item(a, b)),
    "getitem": _function("getitem", lambda a, b, /: get_item(a, b)),
    "index": _function("index", lambda a, /: range(a).stop),
    "is_": _function("is_", lambda a, b, /: identity(a, b)),
    "is_not": _function("is_not", lambda a, b, /: a is not b),
    "itemgetter": itemgetter,
    "methodcaller": methodcaller,
    "not_": _function("not_", lambda a, /: not a),
    "setitem": _function("setitem", lambda a, b, c, /: set_item(a, b, c)),
    "truth": _function("truth", lambda a, /: bool(a)),
    **{name: _function(name, _binary(symbol)) for name, symbol in _BINARY.items()},
    **{name: _function(name, _unary(symbol)) for name, symbol in _UNARY.items()},
    **{name: _function(name, _augmented(symbol)) for name, symbol in _IN_PLACE.items()},
}
"""What `operator` holds."""
