"""Products of elements that lie one behind the other, in the order of PyTorch's kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.kernels.sums.cascade_sum import REGISTER


def lane_product(lines: Any) -> Any:
    """The product over the last axis: four registers at a time, then the four, then the numbers in
    a register and what is left over, one after another.
    """
    lanes = REGISTER // lines.dtype.itemsize
    *others, length = lines.shape
    whole = length // (4 * lanes) * (4 * lanes)
    if whole:
        parts = np.multiply.reduce(lines[..., :whole].reshape(*others, -1, 4, lanes), axis=-3)
        parts = parts[..., ::2, :] * parts[..., 1::2, :]
        register = parts[..., 0, :] * parts[..., 1, :]
        lines = np.concatenate([register, lines[..., whole:]], axis=-1)
    return np.multiply.accumulate(lines, axis=-1)[..., -1].copy()
