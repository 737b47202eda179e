"""Maps along the last dimensions by a matrix for each: what pools, paddings and resamplings are as
formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.ops.shape.views import transpose


def along_dims(value: Tensor, matrices: Sequence[Any]) -> Tensor:
    """A tensor with its last dimensions multiplied by matrices, arrays of (before, after)."""
    ndim = len(value.shape)
    for dim, array in enumerate(matrices, ndim - len(matrices)):
        if array.shape[0] == array.shape[1] and (array == np.eye(len(array))).all():
            continue
        matrix = Tensor(np.ascontiguousarray(array, value.array.dtype))
        if dim == ndim - 1:
            value = value @ matrix
        elif dim == ndim - 2:
            value = Tensor(np.ascontiguousarray(array.T, value.array.dtype)) @ value
        else:
            turned = transpose.apply(value, dim, ndim - 1) @ matrix
            value = transpose.apply(turned, dim, ndim - 1)
    return value
