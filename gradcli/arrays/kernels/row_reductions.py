"""Fused row reductions: lazy arrays whose elements depend on numbers of their row, such as its
largest element, the sum of its exponentials, or the element that was picked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.fusion.lazy import Kernel, Pointwise, forced, pointwise, source_of
from gradcli.arrays.fusion.tile_kernels import log_softmax_tile, scatter_tile, weights_tile
from gradcli.arrays.kernels import vector_math

# --- one element of each row --------------------------------------------------------------------


def scattered(index: Any, chosen: Any, shape: tuple[int, ...]) -> Pointwise:
    """Zeros, but for one element in each row: the gradient of picking it.

    Args:
        index: its position along dimension 1, integers of shape (rows, 1, ...).
        chosen: its value, of the same shape.
        shape: (rows, columns, ...).
    """
    return pointwise(scatter_tile, (source_of(index), source_of(chosen)), shape, chosen.dtype)


def parts_of_scattered(array: Any) -> tuple[Any, Any] | None:
    """`index` and `chosen` of a result of `scattered` that is not computed yet; else None."""
    if not _waits_for(scatter_tile, array):
        return None
    return array.operands[0].value, array.operands[1].value


def _waits_for(kernel: Kernel, array: Any) -> bool:
    """Whether an array is a result of the kernel that is not computed yet."""
    return type(array) is Pointwise and array.kernel is kernel and array.value is None


# --- softmax and its logarithm ------------------------------------------------------------------


class Powers(NamedTuple):
    """Softmax as numerators and denominators.

    Attributes:
        powers: the exponentials of the elements minus the largest of their row.
        totals: their sums, of size 1 along the dimension.
    """

    powers: Any
    totals: Any


def log_softmax(array: Any, largest: Any, powers: Powers) -> Pointwise:
    """The logarithm of softmax, which keeps the exponentials and sums that softmax can reuse.

    Args:
        array: an ndarray in row order.
        largest: the largest element of each row, of size 1 along the dimension.
        powers: softmax as numerators and denominators.
    """
    with np.errstate(all="ignore"):
        logarithms = vector_math.log(powers.totals)
    operands = (array, largest, logarithms, *powers)
    return pointwise(log_softmax_tile, tuple(map(source_of, operands)), array.shape, array.dtype)


def powers_of(array: Any) -> Powers | None:
    """The powers of a result of `log_softmax` that is not computed yet; else None."""
    if not _waits_for(log_softmax_tile, array):
        return None
    *_, powers, totals = array.operands
    return Powers(powers.value, totals.value)


def weights(powers: Any, factors: Any, index: Any, chosen: Any) -> Pointwise:
    """Powers times the factor of their row, plus a number at one position of each row.

    Args:
        powers: an ndarray of shape (rows, columns, ...) in row order.
        factors: of size 1 along some dimensions.
        index: the position along dimension 1, integers of shape (rows, 1, ...).
        chosen: what is added there, of the same shape.
    """
    operands = tuple(map(source_of, (powers, factors, index, chosen)))
    return pointwise(weights_tile, operands, powers.shape, powers.dtype)


def picked(array: Any, places: tuple[Any, ...]) -> Any:
    """The elements at some positions; of `log_softmax` only these are computed."""
    if not _waits_for(log_softmax_tile, array):
        array = forced(array)
        if type(array) not in HOST_ARRAYS:
            array = module_of(array).asarray(array)
        return array[places]
    read, largest, logarithms = [_at(operand.value, places) for operand in array.operands[:3]]
    out = np.empty(np.broadcast_shapes(*[place.shape for place in places]), array.dtype)
    with np.errstate(all="ignore"):
        log_softmax_tile(read, largest, logarithms, None, None, out)
    return out


def _at(array: Any, places: tuple[Any, ...]) -> Any:
    """The elements at some positions of an array whose dimensions of size 1 are broadcast."""
    index = [0 if size == 1 else at for at, size in zip(places, array.shape, strict=True)]
    return array[tuple(index)]
