"""Matrix products: of middle sizes by a kernel in C, whose threads share them, and large ones by
BLAS in parts on a thread per core.

BLAS itself keeps to one thread (`gradcli/cli/main.py`): its idle threads spin, against the other
BLAS that scipy brings and against ours, and a small product waits longer for them than it takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import new_empty
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.kernels import in_c
from gradcli.arrays.threads import over_tiles

MIDDLE = 1 << 20
"""Multiplications that take so long that the threads of the core in C pay."""

_WORTH = 1 << 23
"""Multiplications that take so long that waking a thread of Python's pays."""


def matrix_product(left: Any, right: Any) -> Any:
    """`np.matmul` of operands of two dimensions or more, of one dtype."""
    if left.ndim > 2 < right.ndim and left.shape[-1] == 1 and left.dtype.kind in "fc":
        # Many small calls of BLAS would take longer. A sum that begins with 0 is never -0.
        outer = left * right
        outer += 0
        return outer
    work = left.size * right.shape[-1]
    if MIDDLE <= work < _WORTH and left.ndim == right.ndim == 2:
        made = in_c.matrix_product(left, right)
        if made is not None:
            return made
    if work < _WORTH or type(left) not in HOST_ARRAYS or type(right) not in HOST_ARRAYS:
        return np.matmul(left, right)
    if left.ndim == right.ndim == 2:
        rows, columns = left.shape[0], right.shape[1]
        out = new_empty(left, (rows, columns))
        if rows >= columns:
            _in_parts(rows, work, lambda part: np.matmul(left[part], right, out=out[part]))
        else:
            _in_parts(columns, work, lambda part: np.matmul(left, right[:, part], out=out[:, part]))
        return out
    if left.ndim != right.ndim or left.shape[0] != right.shape[0]:
        return np.matmul(left, right)
    if left.shape[0] == 1:
        return matrix_product(left[0], right[0])[None]
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    out = new_empty(left, (*batch, left.shape[-2], right.shape[-1]))
    _in_parts(batch[0], work, lambda part: np.matmul(left[part], right[part], out=out[part]))
    return out


def _in_parts(length: int, work: int, multiply: Any) -> None:
    """Call `multiply` with slices that share out so many rows, columns or matrices."""
    over_tiles((length, max(1, work // length)), multiply, work)
