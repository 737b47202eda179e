"""Expressions as trees: what a rule returns when it is called with symbols; and names in them
replaced by other expressions: `grad * other` becomes `d`.

Symbols take part in Python's operators and grow trees. They have no values: a branch on one asks
the reading that they belong to, and what needs a value raises `Unreadable`.

They are written in the language itself, with no more parentheses than they need: the call of a
function as an operator, a function or a method, under names that a reader can look up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from gradcli.arrays.dtypes import DType
from gradcli.ops.binding import catalogue
from gradcli.ops.definition.op import registry
from gradcli.record import Record

Decide = Callable[["Symbol"], bool]


class Unreadable(Exception):
    """A function needs what symbols do not have: values, sizes, a number of dimensions."""


def _operator(text: str) -> Callable[[Symbol, Any], Symbol]:
    """The method of an operator whose first operand is a symbol."""
    return lambda self, other: Operation(text, self, lifted(other))


def _reflected(text: str) -> Callable[[Symbol, Any], Symbol]:
    """The method of an operator whose second operand is a symbol."""
    return lambda self, other: Operation(text, lifted(other), self)


class Symbol(Record):
    """A part of an expression."""

    written: ClassVar[Callable[[Symbol], str]]
    """The text of a symbol, for `str` and `repr`: `symbols/text.py` sets it."""
    inside: ClassVar[str | tuple[str, ...]] = ()
    """The attributes that hold its operands; a single name for the tuple of them."""
    # NumPy's arrays and scalars leave mixed operations to the symbol.
    __array_ufunc__: ClassVar[None] = None
    __hash__ = object.__hash__

    @property
    def decide(self) -> Decide | None:
        """What answers which way a branch on it goes: that of a part."""
        return next(filter(None, (part.decide for part in self.parts)), None)

    @property
    def parts(self) -> tuple[Symbol, ...]:
        """The operands of this symbol."""
        names = self.inside
        if isinstance(names, str):
            return getattr(self, names)
        return tuple([getattr(self, name) for name in names])

    def of_parts(self, parts: tuple[Symbol, ...]) -> Symbol:
        """The same symbol of other operands."""
        names = self.inside
        new = {names: parts} if isinstance(names, str) else dict(zip(names, parts, strict=True))
        copy: Symbol = object.__new__(type(self))
        for name in self.fields:
            setattr(copy, name, new.get(name, getattr(self, name)))
        return copy

    def walk(self) -> Iterator[Symbol]:
        """The symbol and all symbols inside it."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def __repr__(self) -> str:
        return Symbol.written(self)

    # --- what functions of arrays ask ------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """Formulas are those of real, single-precision arrays."""
        return np.dtype(np.float32)

    @property
    def shape(self) -> Symbol:
        """The sizes, by name."""
        return Attribute(self, "shape")

    @property
    def ndim(self) -> Symbol:
        """The number of dimensions, by name."""
        return Attribute(self, "ndim")

    def astype(self, _dtype: Any, copy: bool = True) -> Symbol:
        """A formula leaves the casts out."""
        return self

    def __getitem__(self, index: Any) -> Symbol:
        if type(index) is tuple and not index:
            return self
        return Item(self, lifted(index))

    def __getattr__(self, name: str) -> NoReturn:
        raise Unreadable(f"a symbol has no {name}")

    def __bool__(self) -> bool:
        if self.decide is None:
            raise Unreadable("a branch on a symbol outside a reading")
        return self.decide(self)

    def _none(self, *_arguments: Any) -> NoReturn:
        raise Unreadable("a symbol has no value")

    __iter__ = __len__ = __index__ = __int__ = __float__ = __contains__ = _none

    # --- operators -------------------------------------------------------------------------------

    __add__, __radd__ = _operator("+"), _reflected("+")
    __sub__, __rsub__ = _operator("-"), _reflected("-")
    __mul__, __rmul__ = _operator("*"), _reflected("*")
    __truediv__, __rtruediv__ = _operator("/"), _reflected("/")
    __floordiv__, __mod__ = _operator("//"), _operator("%")
    __pow__, __rpow__ = _operator("**"), _reflected("**")
    __matmul__, __rmatmul__ = _operator("@"), _reflected("@")
    __and__, __rand__ = _operator("&"), _reflected("&")
    __or__, __ror__ = _operator("|"), _reflected("|")
    __lt__, __le__ = _operator("<"), _operator("<=")
    __gt__, __ge__ = _operator(">"), _operator(">=")

    def __invert__(self) -> Symbol:
        return Operation("~", self)

    def __neg__(self) -> Symbol:
        return Operation("-", self)

    def __abs__(self) -> Symbol:
        return Call("abs", (self,))

    def __eq__(self, other: Any) -> Any:
        return Operation("==", self, lifted(other))

    def __ne__(self, other: Any) -> Any:
        return Operation("!=", self, lifted(other))


class Name(Symbol):
    """An operand, the result, the gradient, an argument; perhaps a number's name."""

    name: str
    decide: Decide | None = None
    is_number: bool = False


class Fragment(Symbol):
    """Source text of a program that stands for its value, and holds together loosely."""

    text: str


class Constant(Symbol):
    """A number, or another value of Python that an argument has."""

    value: Any


class Operation(Symbol):
    """An operator of Python between two operands, or before one."""

    operator: str
    operands: tuple[Symbol, ...]

    def __init__(self, operator: str, *operands: Symbol) -> None:
        self.operator = operator
        self.operands = operands

    inside = "operands"


class Call(Symbol):
    """A function of the language, or `method`, a method of its first argument."""

    function: str
    arguments: tuple[Symbol, ...]
    method: bool = False

    inside = "arguments"


class Keyword(Symbol):
    """`name=value`, an argument of a call."""

    name: str
    value: Symbol

    inside = ("value",)


class Attribute(Symbol):
    """`value.name`."""

    value: Symbol
    name: str

    inside = ("value",)


class Item(Symbol):
    """`value[index]`."""

    value: Symbol
    index: Symbol

    inside = ("value", "index")


class Choice(Symbol):
    """`then if condition else otherwise`: rules branch on arguments."""

    condition: Symbol
    then: Symbol
    otherwise: Symbol

    inside = ("condition", "then", "otherwise")


class Listed(Symbol):
    """`[formula for variable in rows]`."""

    formula: Symbol
    variable: str
    rows: Symbol

    inside = ("formula", "rows")


class Opaque(Symbol):
    """A rule that symbols cannot read: only what it is a function of is known."""

    decide: ClassVar[None] = None
    node_name: str
    parameters: tuple[Symbol, ...]

    inside = "parameters"


def lifted(value: Any) -> Symbol:
    """A value as a symbol; one that is a symbol as it is."""
    if isinstance(value, Symbol):
        return value
    if isinstance(value, np.generic):
        return Constant(value.item())
    if isinstance(value, (tuple, list)) and any(isinstance(each, Symbol) for each in value):
        return Call("", tuple(lifted(each) for each in value))
    if isinstance(value, np.ndarray) or callable(value):
        raise Unreadable("an array or a function among symbols")
    return Constant(value)


def is_number(symbol: Symbol) -> bool:
    """Whether an expression has no tensor in it."""
    if isinstance(symbol, (Constant, Name)):
        return isinstance(symbol, Constant) or symbol.is_number
    return bool(symbol.parts) and all(is_number(part) for part in symbol.parts)


def is_condition(symbol: Symbol) -> bool:
    """Whether an expression is true or false at each element."""
    if isinstance(symbol, Operation):
        if symbol.operator in ("&", "|", "~"):
            return all(is_condition(part) for part in symbol.operands)
        return symbol.operator in ("==", "!=", "<", "<=", ">", ">=")
    return isinstance(symbol, Call) and symbol.function.removeprefix("math.") in _QUESTIONS


_QUESTIONS = ("isnan", "isinf", "isfinite", "logical_and", "logical_or", "logical_not")


# --- substitution ---------------------------------------------------------------------------------


def substituted(symbol: Symbol, values: Mapping[str, Symbol]) -> Symbol:
    """The expression with names replaced; factors of 1 and double signs that arise are left out."""
    if isinstance(symbol, Name):
        return values.get(symbol.name, symbol)
    parts = tuple(substituted(part, values) for part in symbol.parts)
    if isinstance(symbol, Operation):
        return _simplified(symbol.operator, parts)
    return rebuilt(symbol, parts)


def rebuilt(symbol: Symbol, parts: tuple[Symbol, ...]) -> Symbol:
    """The expression of other parts; transposing twice is nothing."""
    if isinstance(symbol, Call) and symbol.function == "t":
        inner = parts[0]
        if isinstance(inner, Call) and inner.function == "t":
            return inner.arguments[0]
    return symbol.of_parts(parts) if symbol.inside else symbol


def _simplified(operator: str, operands: tuple[Symbol, ...]) -> Symbol:
    if len(operands) == 1:
        inner = operands[0]
        if operator == "-" and _is_negation(inner):
            return inner.parts[0]
        return Operation(operator, inner)
    left, right = operands
    if operator == "*" and _is_one(left):
        return right
    if operator in ("*", "/", "**") and _is_one(right):
        return left
    if operator == "*" and _is_minus_one(left):
        return _simplified("-", (right,))
    return Operation(operator, left, right)


def _is_one(symbol: Symbol) -> bool:
    return isinstance(symbol, Constant) and type(symbol.value) in (int, float) and symbol.value == 1


def _is_minus_one(symbol: Symbol) -> bool:
    """Whether an expression is -1, as a constant or as 1 with its sign turned."""
    if _is_negation(symbol):
        return _is_one(symbol.parts[0])
    return isinstance(symbol, Constant) and symbol.value == -1


def _is_negation(symbol: Symbol) -> bool:
    return isinstance(symbol, Operation) and symbol.operator == "-" and len(symbol.operands) == 1


# --- as text --------------------------------------------------------------------------------------


PRECEDENCE = {
    "==": 2, "!=": 2, "<": 2, "<=": 2, ">": 2, ">=": 2,
    "|": 3, "^": 4, "&": 5, "<<": 6, ">>": 6,
    "+": 7, "-": 7, "*": 8, "/": 8, "//": 8, "%": 8, "@": 8, "**": 10,
}  # fmt: skip
"""How tightly binary operators bind, as in Python."""

FRAGMENT, CHOICE, UNARY, ATOM = 0, 1, 9, 11
"""How tightly a program's text, a conditional expression, an operator before its operand, and a
name bind.
"""


def text_of(symbol: Symbol) -> str:
    """The expression as a program would write it."""
    return _written(symbol)[0]


Symbol.written = text_of


def number_text(value: Any) -> str:
    """A constant as the language reads it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, slice):
        ends = ["" if end is None else repr(end) for end in (value.start, value.stop, value.step)]
        return ":".join(ends if ends[2] else ends[:2])
    if isinstance(value, tuple) and any(isinstance(each, slice) for each in value):
        return ", ".join(map(number_text, value))
    return repr(value)


def _written(symbol: Symbol) -> tuple[str, int]:
    """The text of an expression and how tightly it holds together."""
    if isinstance(symbol, Name):
        return symbol.name, ATOM
    if isinstance(symbol, Fragment):
        return symbol.text, FRAGMENT
    if isinstance(symbol, Constant):
        text = number_text(symbol.value)
        return text, UNARY if text.startswith("-") else ATOM
    if isinstance(symbol, Operation):
        return _operation(symbol)
    if isinstance(symbol, Call):
        return _call(symbol), ATOM
    if isinstance(symbol, Keyword):
        return f"{symbol.name}={text_of(symbol.value)}", FRAGMENT
    if isinstance(symbol, Attribute):
        return f"{_inside(symbol.value, ATOM)}.{symbol.name}", ATOM
    if isinstance(symbol, Item):
        index = text_of(symbol.index)
        if isinstance(symbol.index, Call) and not symbol.index.function:
            index = ", ".join(map(text_of, symbol.index.arguments))
        return f"{_inside(symbol.value, ATOM)}[{index}]", ATOM
    if isinstance(symbol, Choice):
        then, condition = _inside(symbol.then, CHOICE + 1), _inside(symbol.condition, CHOICE + 1)
        return f"{then} if {condition} else {text_of(symbol.otherwise)}", CHOICE
    if isinstance(symbol, Listed):
        each = f"for {symbol.variable} in {text_of(symbol.rows)}"
        return f"[{text_of(symbol.formula)} {each}]", ATOM
    assert isinstance(symbol, Opaque)
    parameters = ", ".join(map(text_of, symbol.parameters))
    return f"{symbol.node_name} rule of ({parameters})", CHOICE


def _operation(symbol: Operation) -> tuple[str, int]:
    if len(symbol.operands) == 1:
        return symbol.operator + _inside(symbol.operands[0], UNARY), UNARY
    left, right = symbol.operands
    level = PRECEDENCE[symbol.operator]
    if symbol.operator == "**":
        # A power binds less tightly than an operator before its exponent.
        return f"{_inside(left, level + 1)} ** {_inside(right, UNARY)}", level
    chained = level == PRECEDENCE["=="]  # Python would chain two comparisons
    before = _inside(left, level + chained)
    return f"{before} {symbol.operator} {_inside(right, level + 1)}", level


def _call(symbol: Call) -> str:
    if symbol.method:
        head, *rest = symbol.arguments
        return f"{_inside(head, ATOM)}.{symbol.function}({', '.join(map(text_of, rest))})"
    inner = ", ".join(map(text_of, symbol.arguments))
    if symbol.function == "[]":
        return f"[{inner}]"
    if not symbol.function and len(symbol.arguments) == 1:
        inner += ","
    return f"{symbol.function}({inner})"


def _inside(symbol: Symbol, level: int) -> str:
    """The text of an operand, in parentheses where it holds together less tightly."""
    text, own = _written(symbol)
    return text if own >= level else f"({text})"


# --- how calls are written ------------------------------------------------------------------------


OPERATORS = {
    "add": "+", "sub": "-", "subtract": "-", "mul": "*", "multiply": "*", "div": "/",
    "true_divide": "/", "divide": "/", "pow": "**", "power": "**", "eq": "==", "equal": "==",
    "ne": "!=", "not_equal": "!=", "lt": "<", "less": "<", "le": "<=", "less_equal": "<=",
    "gt": ">", "greater": ">", "ge": ">=", "greater_equal": ">=", "mm": "@", "bmm": "@",
    "matmul": "@", "floor_divide": "//", "remainder": "%", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^", "bitwise_left_shift": "<<", "bitwise_right_shift": ">>",
}  # fmt: skip
"""Functions of two operands that are written as an operator, by the catalogue's and NumPy's name.
"""

SIGNS = {"neg": "-", "negative": "-", "bitwise_not": "~", "invert": "~"}

_LOGIC = {"logical_and": "&", "logical_or": "|", "logical_not": "~"}
"""Functions of conditions, which are written as an operator too."""

BUILTINS = frozenset({"all", "any", "complex", "max", "min", "round", "sum", "trace"})
"""Plain names that a program reads as Python's own functions."""

_BOUNDS = {"maximum": "clamp_min", "minimum": "clamp_max"}
"""Functions of two tensors, and what they are called where one is a number."""


def call_of(name: str, args: Sequence[Any]) -> Call:
    """A call by name; as a method where a plain name is none of the catalogue's functions."""
    plain = name in catalogue.modules["torch"] and name not in BUILTINS
    method = name in catalogue.methods and not plain
    if name in BUILTINS and not method:
        name = f"torch.{name}"
    return Call(name, tuple(lifted(each) for each in args), method)


def is_elementwise(name: str) -> bool:
    """Whether a function computes each element of a result by itself, in floating point."""
    op = registry.get(name.removeprefix("math."))
    return op is not None and op.pointwise and bool(op.rules)


def in_language(symbol: Symbol) -> bool:
    """Whether a program can compute an expression: all that it calls has a name there."""
    return not any(isinstance(part, Call) and not is_known(part) for part in symbol.walk())


def is_known(call: Call) -> bool:
    """Whether a call is one of the language."""
    name = call.function
    if call.method:
        return name in catalogue.methods
    if name in ("", "max", "min") or name.startswith("math."):
        return True
    name = name.removeprefix("torch.")
    return name in catalogue.modules["torch"] or name in catalogue.modules["torch.special"]


def shown(name: str, args: Sequence[Any]) -> Symbol | None:
    """What is written otherwise than as a call, by the catalogue's and by NumPy's name."""
    operands = tuple(lifted(each) for each in args)
    if name in OPERATORS:
        return Operation(OPERATORS[name], *operands[:2])
    if name in SIGNS:
        return Operation(SIGNS[name], operands[0])
    if name in _LOGIC and all(is_condition(each) for each in operands):
        if name == "logical_not" and is_number(operands[0]):
            return Operation("==", operands[0], Constant(False))
        return Operation(_LOGIC[name], *operands)
    if name == "where" and is_number(operands[0]):
        return Choice(*operands)
    if hasattr(math, name) and all(is_number(each) for each in operands):
        return Call(f"math.{name}", operands)
    if name in _BOUNDS and any(is_number(each) for each in operands):
        one, other = operands
        return Call(_BOUNDS[name], (other, one) if is_number(one) else (one, other))
    return None


def rounded_quotient(self: Any, other: Any, rounding_mode: Any) -> Symbol:
    """The quotient rounded down, or to zero."""
    if rounding_mode == "floor":
        return Operation("//", lifted(self), lifted(other))
    return Call("trunc", (Operation("/", lifted(self), lifted(other)),))


def is_default(value: Any) -> bool:
    """Whether an argument leaves an op as its operator is: `alpha=1`."""
    return value is None or (not isinstance(value, Symbol) and value == 1)


# --- names that a reader can look up --------------------------------------------------------------


_AS_FUNCTION = {
    "imaginary_part": "imag",
    "log_sigmoid": "logsigmoid",
    "real_part": "real",
}
"""Functions that a reader knows under another name."""


_LEFT_OUT = {"in_pairs": 0, "of_samples": 1}
"""Functions that say nothing of values, by the argument that stands for them."""

_LARGEST_INDEX = 16


def public(symbol: Symbol) -> Symbol | None:
    """A formula without functions and values of our own; None where it needs some."""
    if isinstance(symbol, Call) and symbol.function == "restore_dims":
        return _reshaped(symbol)
    # What is no value of a program's, such as a table that was made before, is left out.
    wanted = [p for p in symbol.parts if not isinstance(p, Constant) or _is_plain(p.value)]
    parts = [public(part) for part in wanted]
    written = tuple(part for part in parts if part is not None)
    if len(written) < len(parts):
        return None
    if not isinstance(symbol, Call) or symbol.method or symbol.function == "[]":
        return rebuilt(symbol, written) if written else symbol
    name = symbol.function
    if name in _LEFT_OUT:
        return written[_LEFT_OUT[name]]
    if name == "turned":
        return Attribute(written[0], "mH")
    if name == "inverse":
        return Operation("/", Constant(1), written[0])
    if name in _AS_FUNCTION:
        return Call(_AS_FUNCTION[name], written)
    renamed = Call(name, written)
    return renamed if is_known(renamed) or (name in registry and "." not in name) else None


def _reshaped(symbol: Call) -> Symbol | None:
    """`restore_dims(grad, singles(self.shape, dims), …)`: a gradient in its input's shape."""
    grad, sizes = public(symbol.arguments[0]), symbol.arguments[1]
    if grad is None or not isinstance(sizes, Call) or sizes.function != "singles":
        return None
    return Call("reshape", (grad, sizes.arguments[0]), True)


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(each) for each in value)
    if isinstance(value, np.ndarray):
        return value.size <= _LARGEST_INDEX
    return value is None or isinstance(value, (bool, int, float, complex, str, slice, DType))
