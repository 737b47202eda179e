"""Replaces names in an expression by other expressions: `grad * other` becomes `d`."""

from __future__ import annotations

from collections.abc import Mapping

from gradcli.recorded.symbols.tree import (
    Attribute,
    Call,
    Choice,
    Constant,
    Item,
    Keyword,
    Listed,
    Name,
    Opaque,
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
    """The expression of other parts."""
    if isinstance(symbol, Operation):
        return Operation(symbol.operator, *parts)
    if isinstance(symbol, Call):
        if symbol.function == "t" and isinstance(parts[0], Call) and parts[0].function == "t":
            return parts[0].arguments[0]
        return Call(symbol.function, parts, symbol.method)
    if isinstance(symbol, Keyword):
        return Keyword(symbol.name, parts[0])
    if isinstance(symbol, Attribute):
        return Attribute(parts[0], symbol.name)
    if isinstance(symbol, Item):
        return Item(*parts)
    if isinstance(symbol, Choice):
        return Choice(*parts)
    if isinstance(symbol, Listed):
        return Listed(parts[0], symbol.variable, parts[1])
    if isinstance(symbol, Opaque):
        return Opaque(symbol.node_name, parts)
    return symbol


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
