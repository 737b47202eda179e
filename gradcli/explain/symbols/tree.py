"""Expressions as trees: what a rule returns when it is called with symbols.

Symbols take part in Python's operators and grow trees. They have no values: a branch on one asks
the reading that they belong to, and what needs a value raises `Unreadable`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NoReturn

import numpy as np

Decide = Callable[["Symbol"], bool]


class Unreadable(Exception):
    """A function needs what symbols do not have: values, sizes, a number of dimensions."""


def _operator(text: str) -> Callable[[Symbol, Any], Symbol]:
    """The method of an operator whose first operand is a symbol."""
    return lambda self, other: Operation(text, self, lifted(other))


def _reflected(text: str) -> Callable[[Symbol, Any], Symbol]:
    """The method of an operator whose second operand is a symbol."""
    return lambda self, other: Operation(text, lifted(other), self)


class Symbol:
    """A part of an expression; `decide` answers which way a branch on it goes."""

    __slots__ = ("decide",)
    written: ClassVar[Callable[[Symbol], str]]
    """The text of a symbol, for `str` and `repr`: `symbols/text.py` sets it."""
    # NumPy's arrays and scalars leave mixed operations to the symbol.
    __array_ufunc__: ClassVar[None] = None
    __hash__ = object.__hash__

    def __init__(self, decide: Decide | None) -> None:
        self.decide = decide

    @property
    def parts(self) -> tuple[Symbol, ...]:
        """The operands of this symbol."""
        return ()

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

    __slots__ = ("is_number", "name")

    def __init__(self, name: str, decide: Decide | None = None, is_number: bool = False) -> None:
        super().__init__(decide)
        self.name = name
        self.is_number = is_number


class Fragment(Symbol):
    """Source text of a program that stands for its value, and holds together loosely."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        super().__init__(None)
        self.text = text


class Constant(Symbol):
    """A number, or another value of Python that an argument has."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        super().__init__(None)
        self.value = value


class Operation(Symbol):
    """An operator of Python between two operands, or before one."""

    __slots__ = ("operands", "operator")

    def __init__(self, operator: str, *operands: Symbol) -> None:
        super().__init__(_decider(operands))
        self.operator = operator
        self.operands = operands

    @property
    def parts(self) -> tuple[Symbol, ...]:
        return self.operands


class Call(Symbol):
    """A function of the language, or `method`, a method of its first argument."""

    __slots__ = ("arguments", "function", "method")

    def __init__(self, function: str, arguments: tuple[Symbol, ...], method: bool = False) -> None:
        super().__init__(_decider(arguments))
        self.function = function
        self.arguments = arguments
        self.method = method

    @property
    def parts(self) -> tuple[Symbol, ...]:
        return self.arguments


class Attribute(Symbol):
    """`value.name`."""

    __slots__ = ("name", "value")

    def __init__(self, value: Symbol, name: str) -> None:
        super().__init__(value.decide)
        self.value = value
        self.name = name

    @property
    def parts(self) -> tuple[Symbol, ...]:
        return (self.value,)


class Item(Symbol):
    """`value[index]`."""

    __slots__ = ("index", "value")

    def __init__(self, value: Symbol, index: Symbol) -> None:
        super().__init__(value.decide)
        self.value = value
        self.index = index

    @property
    def parts(self) -> tuple[Symbol, ...]:
        return (self.value, self.index)


class Choice(Symbol):
    """`then if condition else otherwise`: rules branch on arguments."""

    __slots__ = ("condition", "otherwise", "then")

    def __init__(self, condition: Symbol, then: Symbol, otherwise: Symbol) -> None:
        super().__init__(condition.decide)
        self.condition = condition
        self.then = then
        self.otherwise = otherwise

    @property
    def parts(self) -> tuple[Symbol, ...]:
        return (self.condition, self.then, self.otherwise)


class Opaque(Symbol):
    """A rule that symbols cannot read: only what it is a function of is known."""

    __slots__ = ("node_name", "parameters")

    def __init__(self, node_name: str, parameters: tuple[Symbol, ...]) -> None:
        super().__init__(None)
        self.node_name = node_name
        self.parameters = parameters

    @property
    def parts(self) -> tuple[Symbol, ...]:
        return self.parameters


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


def _decider(parts: tuple[Symbol, ...]) -> Decide | None:
    return next((part.decide for part in parts if part.decide is not None), None)
