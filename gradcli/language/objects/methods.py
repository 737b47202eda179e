"""The methods and data attributes of Python's own types that programs can reach, with limits;
and the special methods that any value has, `[1].__getitem__`, or as functions of its type,
`list.__getitem__`. Of a type of Python's own such a method is that type's, also where a class
derived from it has another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.limits import (
    LARGEST_FORMAT,
    PLAIN,
    charge_copy,
    check_collection,
    check_nesting,
    check_text,
)
from gradcli.language.objects.classes.special_methods import ARITHMETIC, COMPARISONS
from gradcli.language.objects.iteration import bounded, check_key, drawing, iterate
from gradcli.language.objects.operators import (
    HASHING,
    HOST_OPERATORS,
    contains,
    delete_item,
    get_item,
    set_item,
    sort_values,
)
from gradcli.language.objects.repr import Fields, display, text
from gradcli.language.objects.types import by_name, called, type_name
from gradcli.state import active

Function = Callable[..., Any]


def _host(kind: type, names: str) -> dict[str, Function]:
    """Methods that the host may run as they are: their work is the value's own size."""
    return {name: getattr(kind, name) for name in names.split()}


def _each(make: Callable[[str, Function], Function], kind: type, names: str) -> dict[str, Function]:
    """Methods that are made of the host's of the same names."""
    return {name: called(name, make(name, getattr(kind, name))) for name in names.split()}


def _walking(name: str, method: Function) -> Function:
    """A method of the host that walks through the value, which counts; `pop` does so only where it
    is given a position.
    """

    def walk(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if args or name != "pop":
            charge_copy(len(self))
        return method(self, *args, **kwargs)

    return walk


# --- str ----------------------------------------------------------------------------------


def _padded(name: str, method: Function) -> Function:
    def pad(self: str, width: int, *fill: str) -> Any:
        if isinstance(width, int):
            check_text(width)
        return method(self, width, *fill)

    return pad


def join(self: str, values: Any, /) -> str:
    """`separator.join(values)`."""
    if not hasattr(type(values), "__iter__"):
        raise type_error(
            f"a value of type {type_name(values)} cannot be iterated over",
            text="can only join an iterable",
        )
    pieces = list(bounded(values))
    if not _TEXT.issuperset(map(type, pieces)) and not all(isinstance(p, str) for p in pieces):
        number, other = next((n, p) for n, p in enumerate(pieces) if not isinstance(p, str))
        raise type_error(
            f"join() takes strings, not {type_name(other)}",
            text=f"sequence item {number}: expected str instance, {type_name(other)} found",
            help="turn the values into text first: `', '.join(str(v) for v in values)`",
        )
    check_text(sum(map(len, pieces)) + len(self) * len(pieces))
    return self.join(pieces)


_TEXT = frozenset({str})


def replace(self: str, old: str, new: str, count: int = -1, /) -> str:
    """`text.replace(old, new)`."""
    if isinstance(old, str) and isinstance(new, str):
        occurrences = self.count(old)
        times = occurrences if count < 0 else min(occurrences, count)
        check_text(len(self) + times * (len(new) - len(old)))
    return self.replace(old, new, count)


def expandtabs(self: str, tabsize: int = 8) -> str:
    """`text.expandtabs(tabsize)`."""
    if isinstance(tabsize, int):
        check_text(len(self) + self.count("\t") * max(tabsize, 0))
    return self.expandtabs(tabsize)


def formatting(get_attribute: Callable[[Any, str], Any]) -> Function:
    """`template.format(…)`, whose fields read the attributes that a program can read.

    `get_attribute` is an argument because it finds methods in the tables of this file.
    """

    def format(self: str, /, *args: Any, **kwargs: Any) -> str:
        return Fields(args, kwargs, get_attribute, get_item).fill(self)

    return format


_STR: dict[str, Function] = {
    **_each(
        _walking,
        str,
        """capitalize casefold count encode endswith find index isalnum isalpha isascii isdecimal
        isdigit isidentifier islower isnumeric isprintable isspace istitle isupper lower lstrip
        partition removeprefix removesuffix rfind rindex rpartition rsplit rstrip split splitlines
        startswith strip swapcase title translate upper""",
    ),
    **_each(_padded, str, "center ljust rjust zfill"),
    **by_name(expandtabs, join, replace),
}


# --- list, tuple, range ---------------------------------------------------------------------


def append(self: list[Any], value: Any, /) -> None:
    """`values.append(value)`."""
    if len(self) >= active.state.limits.elements:
        check_collection(len(self) + 1)
    self.append(value)


def extend(self: list[Any], values: Any, /) -> None:
    """`values.extend(more)`."""
    more = list(bounded(values))
    check_collection(len(self) + len(more))
    self.extend(more)


def sort(self: list[Any], *, key: Any = None, reverse: Any = False) -> None:
    """`values.sort(key, reverse)`."""
    self[:] = sort_values(self, key, reverse)


def _searching(name: str, method: Function) -> Function:
    """A method that compares the elements of a list or tuple with a value."""

    def search(self: Any, value: Any, /, *limits: int) -> Any:
        check_nesting(self)
        check_nesting(value)
        return method(self, value, *limits)

    return search


def _range_searching(name: str, method: Function) -> Function:
    """`count` and `index` of a range, which the host would search step by step."""

    def search(self: range, value: Any, /) -> Any:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int):
            if name == "count":
                return 0
            raise value_error("the value is not in the range")
        return method(self, value)

    return search


_LIST: dict[str, Function] = {
    **_host(list, "clear"),
    **_each(_walking, list, "copy insert pop reverse"),
    **_each(_searching, list, "count index remove"),
    **by_name(append, extend, sort),
}


# --- dict, set ------------------------------------------------------------------------------


def _keyed(name: str, method: Function) -> Function:
    """A method that hashes its first argument."""

    def look_up(self: Any, key: Any, /, *others: Any) -> Any:
        check_key(key)
        return method(self, key, *others)

    return look_up


def dict_of(*values: Any, **named: Any) -> dict[Any, Any]:
    """`dict(pairs or another dict, **named)`; raises E202, E303 where an item is no pair."""
    if len(values) > 1:
        raise GradcliError("E201", f"dict() takes at most one value by position, not {len(values)}")
    entries: dict[Any, Any] = {}
    for value in values:
        if isinstance(value, Mapping):
            entries.update(value)
            continue
        for number, pair in enumerate(bounded(value)):
            if not hasattr(type(pair), "__iter__"):
                raise type_error(
                    f"dict() takes pairs of key and value, not {type_name(pair)}",
                    text=f"cannot convert dictionary update sequence element #{number} to a"
                    " sequence",
                )
            parts = list(bounded(pair))
            if len(parts) != 2:
                raise GradcliError(
                    "E303",
                    f"dict() takes pairs of key and value, not {len(parts)} values",
                    text=f"dictionary update sequence element #{number} has length {len(parts)}; 2"
                    " is required",
                )
            check_key(parts[0])
            entries[parts[0]] = parts[1]
    entries.update(named)
    return entries


def update(self: dict[Any, Any], *values: Any, **named: Any) -> None:
    """`values.update(more, **named)`."""
    self.update(dict_of(*values, **named))


def _with_sets(name: str, method: Function) -> Function:
    """A method of sets that takes any number of collections."""

    def combine(self: Any, /, *others: Any) -> Any:
        return method(self, *[members_of(other) for other in others])

    return combine


_COMBINING = "difference intersection isdisjoint issubset issuperset symmetric_difference union"


def members_of(values: Any) -> Any:
    """What the host's sets take for a collection: itself, or its values in a list.

    No set is made of it first: the order of the host's sets comes of how they grew.
    """
    if type(values) in HASHING:
        return values
    items = list(bounded(values))
    if not PLAIN.issuperset(map(type, items)):
        for item in items:
            check_key(item)
    return items


def fromkeys(keys: Any, value: Any = None, /) -> dict[Any, Any]:
    """`dict.fromkeys(keys, value)`."""
    entries: dict[Any, Any] = {}
    for key in bounded(keys):
        check_key(key)
        entries[key] = value
    return entries


# --- the tables -----------------------------------------------------------------------------

_INT = _host(int, "as_integer_ratio bit_count bit_length conjugate")

METHODS: dict[type, dict[str, Function]] = {
    bool: _INT,
    bytes: _host(
        bytes,
        "count decode endswith find hex isdigit lower lstrip rstrip split startswith strip upper",
    ),
    complex: _host(complex, "conjugate"),
    dict: {
        **_host(dict, "clear copy items keys popitem values"),
        **_each(_keyed, dict, "get pop setdefault"),
        "update": update,
    },
    frozenset: {"copy": lambda self: self, **_each(_with_sets, frozenset, _COMBINING)},
    float: _host(float, "as_integer_ratio conjugate hex is_integer"),
    int: _INT,
    list: _LIST,
    range: _each(_range_searching, range, "count index"),
    set: {
        **_host(set, "clear copy pop"),
        **_each(_keyed, set, "add discard remove"),
        **_each(_with_sets, set, _COMBINING),
        **_each(
            _with_sets,
            set,
            "difference_update intersection_update symmetric_difference_update update",
        ),
    },
    slice: {},
    str: _STR,
    tuple: _each(_searching, tuple, "count index"),
}
"""The methods of each type; the value is their first argument."""


def _data(names: str) -> dict[str, Callable[[Any], Any]]:
    return {name: attrgetter(name) for name in names.split()}


VALUES: dict[type, dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys((bool, int), _data("denominator imag numerator real")),
    **dict.fromkeys((complex, float), _data("imag real")),
    **dict.fromkeys((range, slice), _data("start step stop")),
}
"""The data attributes of each type, each with the function that reads it."""

CLASS_METHODS: dict[type, dict[str, Function]] = {
    bytes: _host(bytes, "fromhex"),
    dict: {"fromkeys": fromkeys},
    float: _host(float, "fromhex"),
    str: _host(str, "maketrans"),
}
"""What is called on the classes themselves."""

_BASES = (dict, list, tuple, set, frozenset, str, int, float)


def inherited_method(kind: type, name: str) -> Function | None:
    """The method that a class derived from one of Python's own has from it."""
    base = next((each for each in _BASES if issubclass(kind, each)), None)
    return None if base is None else METHODS[base].get(name)


# --- special methods ------------------------------------------------------------------------------


_TEXTS: dict[str, Function] = {"__repr__": display, "__str__": text}

_OF_ANY: dict[str, Function] = {
    "__call__": lambda self, /, *args, **kwargs: self(*args, **kwargs),
    "__contains__": lambda self, element, /: contains(element, self),
    "__delitem__": lambda self, key, /: delete_item(self, key),
    "__getitem__": lambda self, key, /: get_item(self, key),
    "__iter__": lambda self, /: drawing(f"{type_name(self)}_iterator", iterate(self)),
    "__len__": lambda self, /: len(self),
    "__setitem__": lambda self, key, value, /: set_item(self, key, value),
}
"""Those of values of ours: what calls, reads, counts and walks them."""

_CONTEXTS: dict[str, Function] = {
    "__enter__": lambda self, /: type(self).__enter__(self),
    "__exit__": lambda self, /, *error: type(self).__exit__(self, *error),
}
"""Those of contexts, which `with` calls."""

_UNARY = (
    "__abs__",
    "__bool__",
    "__ceil__",
    "__float__",
    "__floor__",
    "__index__",
    "__int__",
    "__invert__",
    "__neg__",
    "__pos__",
    "__trunc__",
)

_ALIKE: dict[type, tuple[type, ...]] = {
    bool: (int,),
    bytes: (bytes,),
    complex: (int, float, complex),
    dict: (dict,),
    float: (int, float),
    frozenset: (set, frozenset),
    int: (int,),
    list: (list,),
    range: (),
    set: (set, frozenset),
    str: (str,),
    tuple: (tuple,),
}
"""The types of Python's own, each with those that its operators take on the other side."""


def method_of_value(value: Any, name: str) -> Function | None:
    """The function behind `value.__name__`, whose first argument is the value; None for a name that
    the value has not, or that is not for programs.
    """
    kind = type(value)
    if kind in _ALIKE:
        return method_of_type(kind, name)
    if name in _CONTEXTS:
        return _CONTEXTS[name] if getattr(kind, "language_context", False) else None
    return _OF_ANY.get(name) if _has(kind, name) else None


def _has(kind: type, name: str) -> bool:
    """Whether instances of a class have a method; the class's own class may have one too."""
    method = next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), None)
    return method is not None


def rounded(number: Any, ndigits: Any = None) -> Any:
    """`round(number, ndigits)`, for which the host computes a power of ten."""
    if isinstance(ndigits, int) and isinstance(number, int) and abs(ndigits) > LARGEST_FORMAT:
        return number if ndigits > 0 else 0
    return round(number, ndigits)


def method_of_type(host: type, name: str) -> Function | None:
    """The same of `list.__name__`, for a type of Python's own."""
    if host not in _ALIKE or not _has(host, name):
        return None
    if name in _TEXTS:
        return _TEXTS[name]
    if name in _UNARY:
        return _checked(host, name)
    if name == "__round__":
        return lambda self, ndigits=None, /: rounded(_plain(host, self), ndigits)
    if name in _SYMBOLS:
        return _operator(host, *_SYMBOLS[name])
    if name == "__iter__":
        walk: Function = getattr(host, name)
        return lambda self, /: drawing(f"{host.__name__}_iterator", walk(self))
    return _of_items(host, name) if name in _OF_ANY else None


_SYMBOLS: dict[str, tuple[str, bool]] = {
    **{f"__{name}__": (symbol, False) for symbol, name in (ARITHMETIC | COMPARISONS).items()},
    **{f"__r{name}__": (symbol, True) for symbol, name in ARITHMETIC.items()},
}
"""The operators, each with whether the value stands on the right of it."""


def _checked(host: Any, name: str) -> Function:
    method = getattr(host, name)

    def checked(self: Any, /) -> Any:
        if name == "__hash__":
            check_key(self)
        return method(self)

    return checked


def _operator(host: Any, symbol: str, from_the_right: bool) -> Function:
    operation, alike = HOST_OPERATORS[symbol], _ALIKE[host]

    def apply(self: Any, other: Any, /) -> Any:
        repeated = symbol == "*" and host in (str, bytes, list, tuple) and isinstance(other, int)
        fits = isinstance(other, alike) or repeated or (symbol == "%" and host is str)
        if not fits:
            return NotImplemented
        own = _plain(host, self)
        return operation(other, own) if from_the_right else operation(own, other)

    return apply


def _plain(host: Any, value: Any) -> Any:
    """The value as one of the host's type itself, whose operators a derived class does not have."""
    if type(value) is host or host in (bool, range):
        return value
    if host in (list, tuple):
        return host.__getitem__(value, slice(None))
    if host in (dict, set, frozenset):
        return host.copy(value)
    return {str: str.__str__, int: int.__int__, float: float.__float__}[host](value)


def _of_items(host: Any, name: str) -> Function | None:
    """A method of a collection that works on its items."""
    method = getattr(host, name)

    def on_items(self: Any, /, *args: Any) -> Any:
        for each in args[:1]:
            check_key(each) if host is dict else check_nesting(each)
        if name == "__setitem__" and host is list and args and type(args[0]) is slice:
            values = list(bounded(args[1]))
            check_collection(len(self) + len(values))
            args = (args[0], values)
        return method(self, *args)

    return on_items
