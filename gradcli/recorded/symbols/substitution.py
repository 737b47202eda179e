"""Replaces names in an expression by other expressions: `grad * other` becomes `d`."""

from __future__ import annotations

from collections.abc import Mapping

from gradcli.recorded.symbols.tree import (
    Call,
    Constant,
    Name,
    Operation,
    Symbol,
)


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
