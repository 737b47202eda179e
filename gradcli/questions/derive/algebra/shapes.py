"""The shapes of formulas, from those of their names."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gradcli.recorded.symbols.notation import is_elementwise
from gradcli.recorded.symbols.tree import Call, Constant, Item, Keyword, Name, Operation, Symbol

Shape = tuple[int, ...]

_SAME = frozenset({"softmax", "log_softmax", "expand_as", "flip", "roll", "cumsum", "where"})
"""Functions whose result is as large as all tensors among their arguments together."""

_REDUCTIONS = frozenset({"sum", "mean", "amax", "amin", "logsumexp", "prod", "std", "var", "norm"})


class Shapes:
    """Finds shapes of formulas, given those of the names in them."""

    def __init__(self, names: Mapping[str, Shape]) -> None:
        self._names = names

    def of(self, symbol: Symbol) -> Shape | None:
        """The shape of a formula, None where it is not known."""
        if isinstance(symbol, Name):
            return self._names.get(symbol.name)
        if isinstance(symbol, Constant):
            return ()
        if isinstance(symbol, Operation):
            shapes = [self.of(part) for part in symbol.operands]
            return _product(*shapes) if symbol.operator == "@" else _together(shapes)
        if isinstance(symbol, Call) and symbol.arguments:
            return self._call(symbol)
        return self._item(symbol) if isinstance(symbol, Item) else None

    def _item(self, symbol: Item) -> Shape | None:
        """One element of the first dimension."""
        shape = self.of(symbol.value)
        is_number = isinstance(symbol.index, Constant) and type(symbol.index.value) is int
        return shape[1:] if shape and is_number else None

    def _call(self, symbol: Call) -> Shape | None:
        name, head = symbol.function, symbol.arguments[0]
        if is_elementwise(name) or name in _SAME or name.startswith("math."):
            return _together([self.of(part) for part in symbol.arguments])
        if name in ("zeros", "ones", "full"):
            return _sizes(head)
        shape = self.of(head)
        if name == "eye" and isinstance(head, Constant):
            return (head.value, head.value)
        if shape is None:
            return None
        if name in ("reshape", "expand"):
            return _sizes(symbol.arguments[1])
        if name == "unsqueeze" and isinstance(symbol.arguments[1], Constant):
            dim = symbol.arguments[1].value % (len(shape) + 1)
            return (*shape[:dim], 1, *shape[dim:])
        if name == "outer":
            other = self.of(symbol.arguments[1])
            return None if other is None else (*shape, *other)
        if name in ("t", "torch.linalg.inv"):
            return shape[::-1]
        if name == "torch.linalg.solve":
            return self.of(symbol.arguments[1])
        if name == "diag" and len(shape) == 1:
            return shape * 2
        return self._reduced(symbol, shape) if name in _REDUCTIONS else None

    def _reduced(self, symbol: Call, shape: Shape) -> Shape | None:
        dims, keeps = reduced_dims(symbol, len(shape))
        if dims is None:
            return None
        kept = [(1 if dim in dims else size) for dim, size in enumerate(shape)]
        return tuple(size for dim, size in enumerate(kept) if keeps or dim not in dims)


def reduced_dims(symbol: Call, rank: int) -> tuple[set[int] | None, bool]:
    """The dimensions that a sum or such goes over, and whether they are kept with a size of 1."""
    arguments = [each for each in symbol.arguments[1:] if not isinstance(each, Keyword)]
    values = [each.value for each in arguments if isinstance(each, Constant)]
    if len(values) < len(arguments) or symbol.function == "norm":
        return (None, False) if len(symbol.arguments) > 1 else (set(range(rank)), False)
    reduced = values[0] if values else tuple(range(rank))
    dims = (reduced,) if type(reduced) is int else reduced
    if not isinstance(dims, (tuple, list)):
        return None, False
    # A number has the dimensions 0 and -1 to a reduction, and none of its shape goes.
    return {dim % rank for dim in dims if rank}, bool(values[1:] and values[1] is True)


def _sizes(symbol: Symbol) -> Shape | None:
    """A shape that is written out."""
    value = symbol.value if isinstance(symbol, Constant) else None
    return tuple(value) if isinstance(value, (tuple, list)) else None


def _together(shapes: list[Shape | None]) -> Shape | None:
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    try:
        return tuple(np.broadcast_shapes(*known))
    except ValueError:
        return None


def _product(one: Shape | None, other: Shape | None) -> Shape | None:
    if one is None or other is None:
        return None
    try:
        return tuple(np.matmul(np.empty(one), np.empty(other)).shape)
    except ValueError:
        return None
