"""Chains of views as one: what reshapes, permutations and new dimensions of a tensor come to.

A view is represented by the positions that it shows: the numbers of the elements of what it is a
view of, laid out as the view lays them out. So chains of any length are one permutation and one
reshape, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from math import prod
from typing import Any

import numpy as np

from gradcli.recorded.symbols.tree import Call, Constant, Name, Symbol

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
