"""Writes expressions in the language itself, with no more parentheses than they need."""

from __future__ import annotations

import math
from typing import Any

from gradcli.recorded.symbols.tree import (
    Attribute,
    Call,
    Choice,
    Constant,
    Fragment,
    Item,
    Keyword,
    Listed,
    Name,
    Opaque,
    Operation,
    Symbol,
)

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
