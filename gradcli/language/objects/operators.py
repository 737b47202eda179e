"""Applies operators: the op of the catalogue to tensors, else Python's own with bounded results;
and sorts values, picks the largest by them, and picks items by `value[index]`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import gradcli.ops.load  # noqa: F401  (fills the catalogue)
from gradcli.autograd.tensor import Tensor, is_index
from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.limits import (
    LARGEST_INTEGER,
    PLAIN,
    charge,
    charge_copy,
    check_collection,
    check_integer,
    check_nesting,
    check_text,
)
from gradcli.language.objects import borders
from gradcli.language.objects.borders import FOREIGN
from gradcli.language.objects.classes.special_methods import (
    ARITHMETIC,
    COMPARISONS,
)
from gradcli.language.objects.classes.user_classes import MISSING, bound
from gradcli.language.objects.exceptions import HOST_ERRORS, Raised, converted
from gradcli.language.objects.iteration import IN_C, bounded, check_key
from gradcli.language.objects.repr import display, percent
from gradcli.language.objects.types import LanguageType, type_name
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.functions import methods, operators
from gradcli.state import active

Operation = Callable[[Any, Any], Any]

NUMBERS = frozenset({int, float, bool, complex})
"""The types of Python's numbers."""

_SEQUENCES = (list, tuple)
_JOINED = (str, *_SEQUENCES)

HASHING = frozenset({dict, set, frozenset, type({}.keys())})
"""What finds an element by its hash."""

_CHARACTERS = 16
"""Characters of a string that are copied in the time of an element of a list."""

_ELEMENTS = (Tensor, bool, int, float, complex)
"""What a program may look for in a tensor."""


def add(left: Any, right: Any) -> Any:
    """`left + right`."""
    if type(left) not in NUMBERS and isinstance(left, _JOINED):
        if isinstance(left, str):
            if isinstance(right, str):
                check_text(len(left) + len(right))
                charge_copy((len(left) + len(right)) // _CHARACTERS)
        elif isinstance(right, _SEQUENCES):
            check_collection(len(left) + len(right))
            charge_copy(len(left) + len(right))
    return left + right


def multiply(left: Any, right: Any) -> Any:
    """`left * right`."""
    if type(left) is int:
        if type(right) is int:
            if left.bit_length() + right.bit_length() > LARGEST_INTEGER:
                check_integer(left.bit_length() + right.bit_length())
        else:
            _check_repeated(right, left)
    elif type(left) is not float:
        if isinstance(right, (int, np.integer)):
            _check_repeated(left, int(right))
        elif isinstance(left, np.integer):
            _check_repeated(right, int(left))
    return left * right


def _check_repeated(value: Any, times: int) -> None:
    if isinstance(value, str):
        check_text(len(value) * times)
    elif isinstance(value, _SEQUENCES):
        check_collection(len(value) * times)


def power(left: Any, right: Any) -> Any:
    """`left ** right`."""
    if isinstance(left, int) and isinstance(right, int) and right > 0 and abs(left) > 1:
        check_integer(left.bit_length() * right)
    return left**right


def left_shift(left: Any, right: Any) -> Any:
    """`left << right`."""
    if isinstance(left, int) and isinstance(right, int) and left:
        check_integer(left.bit_length() + right)
    return left << right


def union(left: Any, right: Any) -> Any:
    """`left | right`; of classes a form that stands for either."""
    try:
        return left | right
    except TypeError:
        if not isinstance(left, LanguageType) and not isinstance(right, LanguageType):
            raise
        from gradcli.language.objects.type_forms import either  # lazy: start-up

        return either(left, right)


def remainder(left: Any, right: Any) -> Any:
    """`left % right`: the remainder of numbers, formatting for a string on the left."""
    return percent(left, right) if isinstance(left, str) else left % right


def _compared(host: Operation) -> Operation:
    """A host comparison; containers are compared only if that ends."""

    def compare(left: Any, right: Any) -> Any:
        if type(left) not in PLAIN and type(right) not in PLAIN:
            check_nesting(left)
            check_nesting(right)
        return host(left, right)

    return compare


HOST_OPERATORS: dict[str, Operation] = {
    **{symbol: getattr(operator, f"__{name}__") for symbol, name in ARITHMETIC.items()},
    **{s: _compared(getattr(operator, name)) for s, name in COMPARISONS.items()},
    "+": add,
    "*": multiply,
    "%": remainder,
    "**": power,
    "<<": left_shift,
    "|": union,
}
"""Binary operators on values of which none is a tensor; they raise the host's errors."""


def of_numbers(symbol: str) -> tuple[frozenset[type], Operation]:
    """The types of numbers on the left for which the host's operator needs no check, with a number
    on the right, and that operator.
    """
    if symbol in COMPARISONS:
        return NUMBERS, getattr(operator, COMPARISONS[symbol])
    unchecked = {"+": NUMBERS, "-": NUMBERS, "/": NUMBERS, "*": frozenset({float, complex})}
    return unchecked.get(symbol, frozenset()), getattr(operator, f"__{ARITHMETIC[symbol]}__")


def on_host(operation: Operation, left: Any, right: Any) -> Any:
    """The value of one of them; a number of NumPy's and a list make an array."""
    result = operation(left, right)
    return borders.wrapped(result) if type(result) is np.ndarray else result


def tensor_operator(symbol: str) -> Operation:
    """A binary operator on values of which one is a tensor at least."""
    operator = catalogue.operators[symbol]
    if symbol != "%":
        return operator
    # The text on the left of `%` may be a format.
    return lambda left, right: (percent if isinstance(left, str) else operator)(left, right)


OPERATOR_ERRORS: tuple[type[Exception], ...] = (*HOST_ERRORS, AttributeError)
"""What the operators of both tables may raise on operands that they are not defined for."""


def operator_failed(symbol: str, left: Any, right: Any, error: Exception) -> Exception:
    """The error that a program sees for a host exception of an operator; a bug of gradcli stays as
    it is.
    """
    tensors = (type(left) is Tensor) + (type(right) is Tensor)
    if tensors == 2 or (isinstance(error, AttributeError) and not tensors):
        return error
    if not isinstance(error, (TypeError, AttributeError)):
        return converted(error)
    failure = type_error(
        f"`{symbol}` is not defined for {type_name(left)} and {type_name(right)}",
        text=_not_defined(symbol, left, right, error),
    )
    if isinstance(left, str) != isinstance(right, str) and symbol == "+":
        failure.help = "turn the number into text first: `str(x)`, or use an f-string"
    elif symbol == "^":
        failure.help = "a power is written `**`"
    return failure


def word_failure(error: GradcliError, symbol: str, left: Any, right: Any) -> None:
    """Give an op's error over an operand that is no tensor the text of the operator's."""
    if error.code == "E202" and (type(left) is Tensor) != (type(right) is Tensor):
        error.text = _not_defined(symbol, left, right, error)


def _not_defined(symbol: str, left: Any, right: Any, error: Exception) -> str:
    """CPython's text for an operator that is not defined for its operands."""
    names = (type_name(left), type_name(right))
    if isinstance(error, TypeError) and names == (type(left).__name__, type(right).__name__):
        return str(error)
    if symbol == "+" and isinstance(left, (str, list, tuple)):
        return f'can only concatenate {names[0]} (not "{names[1]}") to {names[0]}'
    if symbol == "*" and (isinstance(left, _REPEATED) or isinstance(right, _REPEATED)):
        return "only integer tensors of a single element can be converted to an index"
    if symbol in _COMPARISONS:
        return f"'{symbol}' not supported between instances of '{names[0]}' and '{names[1]}'"
    return f"unsupported operand type(s) for {_shown(symbol)}: '{names[0]}' and '{names[1]}'"


_REPEATED = (list, tuple, str, bytes)
"""Sequences that an integer tensor of one element repeats."""

_COMPARISONS = frozenset({"<", "<=", ">", ">="})


def binary(symbol: str, left: Any, right: Any) -> Any:
    """A binary operator on any two values; raises E202 where it is not defined for them."""
    try:
        if type(left) is Tensor or type(right) is Tensor:
            if type(left) in FOREIGN or type(right) in FOREIGN:
                return borders.beside(symbol, left, right, tensor_operator(symbol))
            return tensor_operator(symbol)(left, right)
        return on_host(HOST_OPERATORS[symbol], left, right)
    except GradcliError as error:
        method = own_operator(symbol, left, right)
        if method is None:
            word_failure(error, symbol, left, right)
            raise
        return method()
    except OPERATOR_ERRORS as error:
        raise operator_failed(symbol, left, right, error) from error


_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def method_of(symbol: str, reflected: bool) -> str:
    """The special method of an object on the left of an operator, or on its right."""
    name = ARITHMETIC.get(symbol)
    if name is not None:
        return f"__{'r' * reflected}{name}__"
    name = COMPARISONS[symbol]
    return f"__{_SWAPPED.get(name, name) if reflected else name}__"


def written_operator(symbol: str, kind: type) -> Any:
    """The function of the program's that an object of a class has for an operator on its right,
    None where there is no such.
    """
    return written_method(method_of(symbol, False), kind)


def reflected_operator(symbol: str, kind: type) -> Any:
    """That for an operator between a number and the object; the host has it for its numbers."""
    of_number = issubclass(kind, (int, float, complex))
    return None if of_number else written_method(method_of(symbol, True), kind)


def written_method(name: str, kind: type) -> Any:
    """The function of the program's that an object of a class has for a special method, its result
    unchecked; None where there is no such.
    """
    if not hasattr(kind, "language_class"):
        return None
    method = getattr(kind, name, None)
    function = getattr(method, "function", None)
    return function if hasattr(function, "invoke") else None


def from_the_right(symbol: str, left: Any, right: Any) -> Any:
    """What the object on the right does for an operator that the left one declines, by the host's
    rules; raises its TypeError.
    """
    method = getattr(type(right), method_of(symbol, True), None)
    value = NotImplemented
    if method is not None and (symbol in COMPARISONS or type(right) is not type(left)):
        value = method(right, left)
    if value is NotImplemented:
        if symbol in ("==", "!="):
            return (left is right) == (symbol == "==")
        raise unsupported(symbol, left, right)
    return value


def unsupported(symbol: str, left: Any, right: Any) -> TypeError:
    """The host's error of an operator that neither side has."""
    names = f"'{type(left).__name__}' and '{type(right).__name__}'"
    if symbol in COMPARISONS:
        return TypeError(f"'{symbol}' not supported between instances of {names}")
    return TypeError(f"unsupported operand type(s) for {_shown(symbol)}: {names}")


def _shown(symbol: str) -> str:
    """An operator as CPython's errors name it."""
    return "** or pow()" if symbol == "**" else symbol


def own_operator(symbol: str, left: Any, right: Any) -> Callable[[], Any] | None:
    """What an object of the program's, or a sequence, does for an operator with a tensor; None if
    nothing.
    """
    if symbol == "*":
        for value, times in ((left, right), (right, left)):
            if type(value) in _REPEATED and type(times) is Tensor and is_index(times):
                return partial(multiply, value, int(times))
    for reflected, own, other in ((False, left, right), (True, right, left)):
        if type(other) is Tensor and hasattr(type(own), "language_class"):
            method = getattr(type(own), method_of(symbol, reflected), None)
            if method is not None:
                return partial(method, own, other)
    return None


def contains(element: Any, container: Any) -> bool:
    """`element in container`."""
    kind = type(container)
    if kind is Tensor:
        element = borders.number(element)
        if type(element) not in _ELEMENTS:
            raise GradcliError(
                "E202",
                f"only a tensor or a number can be `in` a tensor, not {type(element).__name__}",
                text="Tensor.__contains__ only supports Tensor or scalar, but you passed in a"
                f" <class '{type(element).__name__}'>.",
                raises="RuntimeError",
            )
        equal = operators.eq(container, element)
        return bool(methods.any(equal))
    if kind is range and not isinstance(element, int):
        if not isinstance(element, float) or not element.is_integer():
            return False
        element = int(element)
    try:
        if kind in HASHING:  # it looks at what has the same hash alone, which was let in
            check_key(element)
            return element in container
        if kind in _SEQUENCES and type(element) in PLAIN:  # which is no container's equal
            charge(len(container))
        else:
            check_nesting(element)
            check_nesting(container)
        if hasattr(kind, "__contains__"):
            return element in container
        if not hasattr(kind, "__iter__") and not hasattr(kind, "__getitem__"):
            raise TypeError(f"argument of type '{type_name(container)}' is not iterable")
        return element in bounded(container)
    except HOST_ERRORS as error:
        raise operator_failed("in", element, container, error) from error


def identity(left: Any, right: Any) -> bool:
    """`left is right`."""
    return left is right


def augmented(symbol: str, left: Any, right: Any) -> Any:
    """The value of `left symbol= right`; tensors, lists, sets and dicts change in place."""
    kind = type(left)
    if kind in PLAIN or kind is tuple:
        return binary(symbol, left, right)
    if kind is Tensor and symbol in catalogue.inplace_operators and not borders.is_array(right):
        try:
            return catalogue.inplace_operators[symbol](left, borders.number(right))
        except OPERATOR_ERRORS as error:
            raise operator_failed(f"{symbol}=", left, right, error) from error
    if kind is list:
        if symbol == "+":
            more = list(bounded(right))
            check_collection(len(left) + len(more))
            left += more
            return left
        if symbol == "*" and isinstance(right, int):
            _check_repeated(left, right)
            left *= right
            return left
    if (
        hasattr(kind, "language_class")
        or hasattr(kind, "updates_in_place")
        or (symbol in _SET_OPERATORS and (kind is set or kind is dict))
    ):
        try:
            return _IN_PLACE[symbol](left, right)
        except HOST_ERRORS as error:
            raise operator_failed(symbol, left, right, error) from error
    return binary(symbol, left, right)


def changing(symbol: str) -> Operation:
    """What gives the value of `left symbol= right`."""
    numbers, on_numbers = of_numbers(symbol)

    def change(left: Any, right: Any) -> Any:
        if type(left) in numbers and type(right) in NUMBERS:
            try:
                return on_numbers(left, right)
            except HOST_ERRORS:
                pass  # said below
        return (binary if type(left) in NUMBERS else augmented)(symbol, left, right)

    return change


_IN_PLACE: dict[str, Operation] = {
    symbol: getattr(operator, f"__i{name}__") for symbol, name in ARITHMETIC.items()
}
_SET_OPERATORS = frozenset("|&-^")

_HOST_UNARY: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
}


def unary(symbol: str, operand: Any) -> Any:
    """`-x`, `+x` or `~x`."""
    if type(operand) is Tensor:
        return catalogue.unary_operators[symbol](operand)
    try:
        return _HOST_UNARY[symbol](operand)
    except HOST_ERRORS as error:
        if isinstance(error, TypeError):
            raise type_error(
                f"`{symbol}` is not defined for {type_name(operand)}",
                text=f"bad operand type for unary {symbol}: '{type_name(operand)}'",
            ) from error
        raise converted(error) from error


def _keys(key: Any, items: list[Any]) -> list[Any]:
    """What a function gives for each item, or without one the items."""
    if key is None:
        return items
    if IN_C.keys is not None:
        return IN_C.keys(active.state, key, items)
    return [key(item) for item in items]


def sort_values(values: Any, key: Any = None, reverse: Any = False) -> list[Any]:
    """The values in order of themselves or of their keys, stably; raises E202, E602."""
    items = list(bounded(values))
    keys = _keys(key, items)
    check_nesting(keys)
    if key is None:
        return sorted(items, reverse=bool(reverse))
    order = sorted(range(len(items)), key=keys.__getitem__, reverse=bool(reverse))
    return [items[number] for number in order]


_ABSENT: Any = object()


def extreme(name: str, pick: Callable[..., Any]) -> Callable[..., Any]:
    """`min` or `max`, which `pick` is of the host."""

    def pick_one(*values: Any, key: Any = None, default: Any = _ABSENT) -> Any:
        if not values:
            raise GradcliError(
                "E201",
                f"{name}() needs a value",
                text=f"{name} expected at least 1 argument, got 0",
            )
        if len(values) > 1 and default is not _ABSENT:
            raise GradcliError("E201", f"{name}() takes a default only with a single collection")
        items = list(bounded(values[0])) if len(values) == 1 else list(values)
        if not items:
            if default is not _ABSENT:
                return default
            raise value_error(
                f"{name}() of nothing has no value", text=f"{name}() arg is an empty sequence"
            )
        keys = _keys(key, items)
        check_nesting(keys)
        return items[pick(range(len(items)), key=keys.__getitem__)]

    pick_one.__name__ = name
    return pick_one


# --- subscripts -----------------------------------------------------------------------------------


def get_item(value: Any, index: Any) -> Any:
    """`value[index]`; raises E207, E302 for what is not there, E202 for no items."""
    kind = type(value)
    if kind is Tensor:
        return operators.getitem(value, borders.index(index))
    if kind is dict:
        check_key(index)
    elif not hasattr(kind, "__getitem__"):
        if isinstance(value, LanguageType):
            from gradcli.language.objects.type_forms import with_parameters  # lazy: start-up

            own = value.find("__class_getitem__") if hasattr(value, "find") else MISSING
            if own is not MISSING:
                return bound(own, None, value)(index)
            form = with_parameters(value, index)
            if form is not None:
                return form
        raise type_error(
            f"{_described(value)} has no items to pick with []",
            text=f"type '{value.name}' is not subscriptable"
            if isinstance(value, LanguageType)
            else f"'{type_name(value)}' object is not subscriptable",
        )
    try:
        return value[index]
    except HOST_ERRORS as error:
        raise _failed(value, index, error) from error


def set_item(value: Any, index: Any, new: Any) -> None:
    """`value[index] = new`."""
    kind = type(value)
    if kind is Tensor:
        operators.setitem(value, borders.index(index), borders.number(new))
        return
    if kind is dict:
        check_key(index)
    elif kind is not list and not hasattr(kind, "__setitem__"):
        raise type_error(
            f"the items of {_described(value)} cannot be assigned to",
            text=f"'{type_name(value)}' object does not support item assignment",
        )
    try:
        if kind is list and type(index) is slice:
            more = list(bounded(new))
            check_collection(len(value) + len(more))
            new = more
        value[index] = new
    except HOST_ERRORS as error:
        raise _failed(value, index, error) from error


def delete_item(value: Any, index: Any) -> None:
    """`del value[index]`."""
    kind = type(value)
    if kind is dict:
        check_key(index)
    elif kind is not list and not hasattr(kind, "__delitem__"):
        raise type_error(
            f"the items of {_described(value)} cannot be deleted",
            text=f"'{type_name(value)}' object doesn't support item deletion",
        )
    try:
        del value[index]
    except HOST_ERRORS as error:
        raise _failed(value, index, error) from error


def _described(value: Any) -> str:
    return f"the class {value.name}" if isinstance(value, LanguageType) else type_name(value)


def _failed(value: Any, index: Any, error: Exception) -> GradcliError:
    if isinstance(error, KeyError):
        return Raised("KeyError", display(index), (index,), "E207")
    if isinstance(error, IndexError):
        length = f": the length is {len(value)}" if hasattr(type(value), "__len__") else ""
        return GradcliError(
            "E302", f"index {display(index)} is out of range{length}", text=str(error)
        )
    if isinstance(error, TypeError) and not isinstance(value, dict):
        return type_error(
            f"{type_name(value)} is indexed with integers and slices, not {type_name(index)}",
            text=str(error),
        )
    return converted(error)
