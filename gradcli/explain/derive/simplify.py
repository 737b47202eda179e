"""Simplifications of formulas that leave every number as it is, the sign of a zero aside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradcli.explain.symbols.tree import Call, Constant, Name, Operation, Symbol

_ARITHMETIC = frozenset(["+", "-", "*", "/", "**"])

_ELEMENTWISE = frozenset({
    "abs", "cos", "cosh", "erf", "exp", "expm1", "log", "log1p", "sigmoid", "sin", "sinh", "sqrt",
    "tan", "tanh",
})  # fmt: skip

_FILLED = {"zeros": 0, "ones": 1}


class Simplification:
    """Identities applied to one formula at a time, of names that are simple already."""

    def __init__(self, formulas: Mapping[str, Symbol], arrays: Mapping[str, Any]) -> None:
        self._formulas = formulas
        self._arrays = arrays

    def of(self, formula: Symbol, value: Any) -> Symbol:
        """A simpler formula whose value has the same shape and dtype."""
        if isinstance(formula, Operation):
            formula = Operation(formula.operator, *map(self._inner, formula.operands))
        while True:
            found = self._step(formula, value)
            if found is None:
                return formula
            formula = found

    def _inner(self, formula: Symbol) -> Symbol:
        """A part of a formula, simplified where its shape and dtype are known."""
        kind = self.kind(formula) if isinstance(formula, Operation) else None
        return formula if kind is None else self.of(formula, kind)

    def _step(self, formula: Symbol, value: Any) -> Symbol | None:
        if isinstance(formula, Operation):
            if len(formula.operands) == 1:
                return self._sign(formula)
            found = self._elementwise(formula, value)
            return self._identity(formula, value) if found is None else found
        if isinstance(formula, Call) and formula.arguments:
            return self._call(formula, value)
        return None

    # --- operators -------------------------------------------------------------------------------

    def _sign(self, formula: Operation) -> Symbol | None:
        """A double sign."""
        inner = self._definition(formula.operands[0])
        if formula.operator == "-" and isinstance(inner, Operation) and len(inner.operands) == 1:
            return inner.operands[0] if inner.operator == "-" else None
        return None

    def _elementwise(self, formula: Operation, value: Any) -> Symbol | None:
        """A number for a tensor of equal elements, and no needless expansion."""
        if formula.operator == "@":
            return None
        for number, other in ((0, 1), (1, 0)):
            operand = formula.operands[number]
            partner = self.kind(formula.operands[other])
            if partner is None or partner.dtype != value.dtype:
                continue
            simpler = self._without_expansion(operand, partner.shape, value.shape)
            if simpler is not None:
                pair = [simpler, formula.operands[other]]
                return Operation(formula.operator, *(pair if not number else reversed(pair)))
        return None

    def _without_expansion(
        self, operand: Symbol, partner: tuple[int, ...], shape: tuple[int, ...]
    ) -> Symbol | None:
        inner = self._definition(operand)
        if not isinstance(inner, Call):
            return None
        if inner.function in (*_FILLED, "full") and partner == shape:
            if inner.function == "full":
                return inner.arguments[1]
            return Constant(_FILLED[inner.function])
        if inner.function == "expand":
            source = self.kind(inner.arguments[0])
            if source is not None and np.broadcast_shapes(source.shape, partner) == shape:
                return inner.arguments[0]
        return None

    def _identity(self, formula: Operation, value: Any) -> Symbol | None:
        left, right = formula.operands
        operator = formula.operator
        if operator in ("*", "/", "**") and _is(right, 1) and self._fits(left, value):
            return left
        if operator in ("+", "-") and _is(right, 0) and self._fits(left, value):
            return left
        if self._fits(right, value):
            if (operator == "*" and _is(left, 1)) or (operator == "+" and _is(left, 0)):
                return right
            if (operator == "*" and _is(left, -1)) or (operator == "-" and _is(left, 0)):
                return Operation("-", right)
        if operator == "*" and _is(right, -1) and self._fits(left, value):
            return Operation("-", left)
        return None

    # --- calls -----------------------------------------------------------------------------------

    def _call(self, formula: Call, value: Any) -> Symbol | None:
        head, *rest = formula.arguments
        inner = self._definition(head)
        name = formula.function
        if name in ("reshape", "expand") and self._fits(head, value):
            return head
        if name == "sum" and self._fits(head, value) and not value.ndim:
            return head
        if not isinstance(inner, Call) or not inner.arguments:
            return None
        before, *given = inner.arguments
        if name == "reshape" and inner.function == "reshape":
            return Call("reshape", (before, *rest), method=True)
        if name == "reshape" and inner.function == "sum" and len(given) == 2:
            summed = Call("sum", (before, given[0]), method=True)
            return summed if self._shape_without(before, given[0]) == value.shape else None
        if name == "t" and inner.function == "t":
            return before
        if name == "transpose" == inner.function and list(map(repr, rest)) == list(
            map(repr, given)
        ):
            return before
        return None

    def _shape_without(self, symbol: Symbol, dims: Symbol) -> tuple[int, ...] | None:
        """A name's shape without the dimensions that a sum takes away."""
        array = self.kind(symbol)
        if array is None or not isinstance(dims, Constant):
            return None
        gone = {dim % array.ndim for dim in dims.value}
        return tuple(size for dim, size in enumerate(array.shape) if dim not in gone)

    # --- names -----------------------------------------------------------------------------------

    def _definition(self, symbol: Symbol) -> Symbol:
        """What a name stands for."""
        return self._formulas.get(symbol.name, symbol) if isinstance(symbol, Name) else symbol

    def kind(self, symbol: Symbol) -> Any:
        """The value of a name, or an array of a formula's shape and dtype; None if unknown."""
        if isinstance(symbol, Name):
            return self._arrays.get(symbol.name)
        is_call = isinstance(symbol, Call) and symbol.function in _ELEMENTWISE
        if not is_call and not (isinstance(symbol, Operation) and symbol.operator in _ARITHMETIC):
            return None
        parts = [self.kind(part) for part in symbol.parts if not isinstance(part, Constant)]
        if not parts or any(part is None for part in parts):
            return None
        if len({part.dtype for part in parts}) > 1 or parts[0].dtype.kind != "f":
            return None
        shape = np.broadcast_shapes(*(part.shape for part in parts))
        return np.broadcast_to(np.zeros((), parts[0].dtype), shape)

    def _fits(self, symbol: Symbol, value: Any) -> bool:
        """Whether a name has the shape and dtype of the value."""
        array = self.kind(symbol)
        return bool(array is not None and array.shape == value.shape and array.dtype == value.dtype)


def _is(symbol: Symbol, number: int) -> bool:
    if not isinstance(symbol, Constant):
        return False
    return type(symbol.value) in (int, float) and bool(symbol.value == number)
