"""New parameters and buffers of layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.autograd.tensor import Tensor
from gradcli.ops.creation.data import parameter
from gradcli.ops.creation.fill import checked_dtype, checked_sizes, made


def new_tensor(sizes: tuple[int, ...], device: Any = None, dtype: Any = None) -> Tensor:
    """A tensor of zeros in a floating dtype, the default one if none is given."""
    target = checked_dtype("Parameter", dtype, dtypes.default_dtype())
    plain = checked_sizes("Parameter", (sizes,))
    return made("Parameter", np.zeros(plain, target.numpy_dtype), device, False)


def new_parameter(sizes: tuple[int, ...], device: Any = None, dtype: Any = None) -> Tensor:
    """A parameter whose values are set by the caller."""
    return parameter(new_tensor(sizes, device, dtype))
