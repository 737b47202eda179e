"""Simplifications of formulas that leave every number as it is, the sign of a zero aside.

A chain of views is one: a view is represented by the positions that it shows, the numbers of the
elements of what it is a view of, laid out as the view lays them out. So chains of any length are
one permutation and one reshape, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from math import prod
from typing import Any

import numpy as np

from gradcli.recorded.symbols.tree import (
    Call,
    Constant,
    Name,
    Operation,
    Symbol,
    is_elementwise,
    rebuilt,
)

# --- chains of views ------------------------------------------------------------------------------


_VIEWS = frozenset({"reshape", "permute", "transpose", "t", "unsqueeze", "squeeze"})

_LARGEST = 100_000
"""A larger tensor's positions are not followed."""

_MOST_DIMS = 6


class View:
    """What a formula shows of a tensor.

    Attributes:
        source: the tensor, a name.
        shape: its shape.
        positions: the number of the element that each place shows.
    """

    def __init__(self, source: Name, shape: tuple[int, ...], positions: Any) -> None:
        self.source = source
        self.shape = shape
        self.positions = positions

    @property
    def in_order(self) -> bool:
        """Whether the elements follow each other as in the source."""
        return np.array_equal(self.positions.ravel(), np.arange(self.positions.size))

    def written(self) -> Symbol | None:
        """The view in one or two calls, None where no permutation of dimensions gives it."""
        shape, whole = self.positions.shape, np.arange(prod(self.shape)).reshape(self.shape)
        if len(self.shape) == 2 and np.array_equal(whole.T, self.positions):
            return _permuted(self.source, (1, 0))
        if self.in_order:
            return _reshaped(self.source, self.shape, shape)
        if len(self.shape) > _MOST_DIMS:
            return None
        for dims in permutations(range(len(self.shape))):
            turned = whole.transpose(dims)
            if np.array_equal(turned.ravel(), self.positions.ravel()):
                return _reshaped(_permuted(self.source, dims), turned.shape, shape)
        return None


def _reshaped(symbol: Symbol, before: tuple[int, ...], after: tuple[int, ...]) -> Symbol:
    if before == after:
        return symbol
    for dim in range(len(after)):
        if after[dim] == 1 and (*after[:dim], *after[dim + 1 :]) == before:
            return Call("unsqueeze", (symbol, Constant(dim)), True)
    return Call("reshape", (symbol, Constant(after)), True)


def _permuted(symbol: Symbol, dims: tuple[int, ...]) -> Symbol:
    moved = [dim for dim, place in enumerate(dims) if dim != place]
    if len(dims) == 2:
        return Call("t", (symbol,), True)
    if len(moved) == 2:
        return Call("transpose", (symbol, *map(Constant, moved)), True)
    return Call("permute", (symbol, Constant(dims)), True)


def is_view(symbol: Symbol) -> bool:
    """Whether a formula is a view of a name."""
    named = isinstance(symbol, Call) and symbol.function in _VIEWS
    return named and isinstance(symbol.parts[0], Name)


def view_of(
    symbol: Symbol, formulas: Mapping[str, Symbol], arrays: Mapping[str, Any]
) -> View | None:
    """What a name or a view of a name shows of the tensor that its chain of views begins with."""
    chain: list[Symbol] = []
    while True:
        if isinstance(symbol, Name):
            inner = formulas.get(symbol.name)
            if inner is None or not is_view(inner):
                break
            symbol = inner
        if not is_view(symbol):
            return None
        chain.append(symbol)
        symbol = symbol.parts[0]
    source = arrays.get(symbol.name)
    if source is None or source.size > _LARGEST:
        return None
    positions = np.arange(source.size).reshape(source.shape)
    for each in reversed(chain):
        assert isinstance(each, Call)
        positions = _shown(each, positions)
    return View(symbol, tuple(source.shape), positions)


def _shown(view: Call, positions: Any) -> Any:
    """The positions that a view of them shows."""
    settings = [each.value for each in view.arguments[1:] if isinstance(each, Constant)]
    dims = settings[0] if settings and isinstance(settings[0], (tuple, list)) else settings
    if view.function == "reshape":
        return positions.reshape(dims)
    if view.function in ("permute", "t"):
        return positions.transpose(dims if settings else None)
    if view.function == "transpose":
        return positions.swapaxes(*settings)
    if view.function == "unsqueeze":
        return np.expand_dims(positions, settings[0])
    return positions.squeeze(tuple(dims) if settings else None)


# --- simplifications ------------------------------------------------------------------------------


_ARITHMETIC = frozenset(["+", "-", "*", "/", "**"])

_FILLED = {"zeros": 0, "ones": 1}


class Simplification:
    """Identities applied to one formula at a time, of names that are simple already."""

    def __init__(self, formulas: dict[str, Symbol], arrays: dict[str, Any]) -> None:
        self._formulas = formulas
        self._arrays = arrays

    def _named(self, formula: Symbol, array: Any) -> Symbol:
        """A formula that is part of another one, under a name of its own."""
        if isinstance(formula, (Name, Constant)):
            return formula
        for name, known in self._formulas.items():
            if repr(known) == repr(formula) and self._arrays[name].dtype == array.dtype:
                return Name(name)
        name = f"_of{len(self._formulas)}"
        self._formulas[name], self._arrays[name] = formula, array
        return Name(name)

    def of(self, formula: Symbol, value: Any) -> Symbol:
        """A simpler formula whose value has the same shape and dtype."""
        if isinstance(formula, Operation):
            formula = Operation(formula.operator, *map(self._inner, formula.operands))
        while True:
            simpler = self._step(formula, value)
            if simpler is None:
                return formula
            formula = simpler

    def _inner(self, formula: Symbol) -> Symbol:
        """A part of a formula, simplified where its shape and dtype are known."""
        kind = self.kind(formula) if isinstance(formula, Operation) else None
        return formula if kind is None else self.of(formula, kind)

    def _step(self, formula: Symbol, value: Any) -> Symbol | None:
        if isinstance(formula, (Operation, Call)):
            simpler = self._over_views(formula, value)
            if simpler is not None:
                return simpler
        if isinstance(formula, Operation):
            if len(formula.operands) == 1:
                return self._sign(formula)
            simpler = self._elementwise(formula, value)
            return self._identity(formula, value) if simpler is None else simpler
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
        head = formula.arguments[0]
        inner = self._definition(head)
        name = formula.function
        if name in ("reshape", "expand") and self._fits(head, value):
            return head
        if name == "sum" and self._fits(head, value) and not value.ndim:
            return head
        if not isinstance(inner, Call) or not inner.arguments:
            return None
        before, *arguments = inner.arguments
        if name == "reshape" and inner.function == "sum" and len(arguments) == 2:
            summed = Call("sum", (before, arguments[0]), method=True)
            return summed if self._shape_without(before, arguments[0]) == value.shape else None
        return None

    # --- views -----------------------------------------------------------------------------------

    def _view(self, symbol: Symbol) -> View | None:
        return view_of(symbol, self._formulas, self._arrays)

    def _over_views(self, formula: Symbol, value: Any) -> Symbol | None:
        """A chain of views as one; a function of the elements of views as a view of the function; a
        product of matrices without the shapes that it was computed in.
        """
        if is_view(formula):
            view = self._view(formula)
            if view is None:
                return None
            product = self._product(view, value)
            written = view.written() if product is None else product
            if written is None:
                return None
            if isinstance(written, Call) and not isinstance(written.parts[0], Name):
                inner = _turned(self._arrays[view.source.name], written.parts[0])
                written = Call(
                    written.function,
                    (self._named(written.parts[0], inner), *written.parts[1:]),
                    written.method,
                )
            return None if repr(written) == repr(formula) else written
        if isinstance(formula, Operation) and formula.operator == "@":
            return self._with_unit(formula, value)
        return self._inside_view(formula, value)

    def _product(self, view: View, value: Any) -> Symbol | None:
        """A reshaped product of reshaped matrices as the product of the matrices."""
        product = self._formulas.get(view.source.name)
        if not view.in_order or not isinstance(product, Operation) or product.operator != "@":
            return None
        left, right = (self._shapes_of(each) for each in product.operands)
        for one in left:
            for other in right:
                arrays = self.kind(one), self.kind(other)
                if _product_shape(arrays[0].shape, arrays[1].shape) == value.shape and np.allclose(
                    np.matmul(*arrays), value, rtol=1e-3, equal_nan=True
                ):
                    return Operation("@", one, other)
        return None

    def _shapes_of(self, symbol: Symbol) -> list[Symbol]:
        """A factor of a product, and what it is a reshape of."""
        view = self._view(symbol) if isinstance(symbol, Name) else None
        if view is None or self.kind(symbol) is None:
            return [symbol] if self.kind(symbol) is not None else []
        inner = self._definition(symbol)
        if view.in_order:
            return [view.source, symbol]
        if isinstance(inner, Call) and inner.function in ("reshape", "unsqueeze"):
            return [inner.parts[0], symbol]
        return [symbol]

    def _with_unit(self, formula: Operation, value: Any) -> Symbol | None:
        """A product without the unit matrix in it."""
        for one, other in (formula.operands, formula.operands[::-1]):
            inner = self._definition(one)
            is_unit = isinstance(inner, Call) and inner.function == "eye"
            if is_unit and self._fits(other, value):
                return other
        return None

    def _inside_view(self, formula: Symbol, value: Any) -> Symbol | None:
        """`f(view(x))` as `view(f(x))`, so that the view meets those around it."""
        names = [part for part in formula.parts if not isinstance(part, Constant)]
        is_call = isinstance(formula, Call) and is_elementwise(formula.function)
        if not names or not (is_call or isinstance(formula, Operation)):
            return None
        views = [self._view(each) for each in names if isinstance(each, Name)]
        if len(views) < len(names) or any(each is None for each in views):
            return None
        first = views[0]
        assert first is not None
        known = self._formulas.get(names[0].name) if isinstance(names[0], Name) else None
        if known is None or not is_view(known) or first.positions.shape != value.shape:
            return None
        same = all(
            each is not None
            and each.shape == first.shape
            and np.array_equal(each.positions, first.positions)
            for each in views
        )
        written = first.written() if same else None
        if not isinstance(written, Call) or not isinstance(written.parts[0], Name):
            return None
        sources = iter([each.source for each in views if each is not None])
        parts = tuple(p if isinstance(p, Constant) else next(sources) for p in formula.parts)
        array = np.empty(first.shape, value.dtype)
        array.reshape(-1)[first.positions.ravel()] = value.ravel()
        inner = self._named(self.of(rebuilt(formula, parts), array), array)
        if not isinstance(inner, Name):
            return None
        return Call(written.function, (inner, *written.parts[1:]), written.method)

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
        is_call = isinstance(symbol, Call) and is_elementwise(symbol.function)
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


def _turned(array: Any, symbol: Symbol) -> Any:
    """An array as a permutation of it lays it out."""
    assert isinstance(symbol, Call)
    dims = [each.value for each in symbol.arguments[1:] if isinstance(each, Constant)]
    if symbol.function == "transpose":
        return array.swapaxes(*dims)
    return array.transpose(dims[0] if dims else None)


def _product_shape(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of a product of matrices, None where there is none."""
    try:
        return tuple(np.matmul(np.empty(one), np.empty(other)).shape)
    except ValueError:
        return None


def _is(symbol: Symbol, number: int) -> bool:
    if not isinstance(symbol, Constant):
        return False
    return type(symbol.value) in (int, float) and bool(symbol.value == number)
