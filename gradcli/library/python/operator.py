"""The module `operator`: the language's own operators as functions."""

from __future__ import annotations

from collections.abc import Callable
from keyword import iskeyword
from typing import Any

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.functions.calls import call
from gradcli.language.objects.attributes import get_attribute
from gradcli.language.objects.classes.special_methods import ARITHMETIC, COMPARISONS
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.operators import (
    augmented,
    binary,
    contains,
    delete_item,
    get_item,
    identity,
    set_item,
    unary,
)
from gradcli.language.objects.types import called

_NAMES = {symbol: f"{name}_" if iskeyword(name) else name for symbol, name in ARITHMETIC.items()}
_UNARY = {"inv": "~", "invert": "~", "neg": "-", "pos": "+"}


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
        raise type_error("attribute name must be a string")

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


def _equal_to(a: Any, b: Any) -> list[bool]:
    """For each value of an iterable, whether it is another one."""
    return [each is b or bool(binary("==", each, b)) for each in bounded(a)]


def _index_of(a: Any, b: Any) -> int:
    equal = _equal_to(a, b)
    if True not in equal:
        raise value_error("sequence.index(x): x not in sequence")
    return equal.index(True)


def _length(value: Any, default: int) -> int:
    return len(value) if hasattr(type(value), "__len__") else default


OPERATOR: dict[str, Any] = {
    "abs": called("abs", lambda a, /: abs(a)),
    "attrgetter": attrgetter,
    "countOf": called("countOf", lambda a, b, /: _equal_to(a, b).count(True)),
    "indexOf": called("indexOf", lambda a, b, /: _index_of(a, b)),
    "length_hint": called("length_hint", lambda obj, default=0, /: _length(obj, default)),
    "contains": called("contains", lambda a, b, /: contains(b, a)),
    "delitem": called("delitem", lambda a, b, /: delete_item(a, b)),
    "getitem": called("getitem", lambda a, b, /: get_item(a, b)),
    "index": called("index", lambda a, /: range(a).stop),
    "is_": called("is_", lambda a, b, /: identity(a, b)),
    "is_not": called("is_not", lambda a, b, /: a is not b),
    "itemgetter": itemgetter,
    "methodcaller": methodcaller,
    "not_": called("not_", lambda a, /: not a),
    "setitem": called("setitem", lambda a, b, c, /: set_item(a, b, c)),
    "truth": called("truth", lambda a, /: bool(a)),
    **{n: called(n, _binary(symbol)) for symbol, n in (_NAMES | COMPARISONS).items()},
    "concat": called("concat", _binary("+")),
    **{name: called(name, _unary(symbol)) for name, symbol in _UNARY.items()},
    **{f"i{n}": called(f"i{n}", _augmented(symbol)) for symbol, n in ARITHMETIC.items()},
    "iconcat": called("iconcat", _augmented("+")),
}
"""What `operator` holds."""
