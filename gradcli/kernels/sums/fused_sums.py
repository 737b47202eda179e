"""Sums of products of float32 numbers in which a product and the sum it is added to are rounded
once, in the orders of PyTorch's kernels. Products are given in float64, where they are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def fused_sum(products: Any) -> Any:
    """The float32 sum over the first axis, which is not empty: one after the other."""
    rounded = products[0].astype(np.float32)
    total = rounded.astype(np.float64)
    for product in products[1:]:
        np.add(total, product, out=total)
        rounded[...] = total
        total[...] = rounded
    return rounded


def added(parts: list[Any]) -> Any:
    """The sum of some arrays, at least one, one after the other."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def sums_in_turn(products: Any) -> list[Any]:
    """The sum over the first axis, one after the other, as what is left to add up."""
    return [fused_sum(products)]


def sums_in_lanes(products: Any) -> list[Any]:
    """The sum over the first axis in the lanes of a register of 64 bytes, whose halves are then
    added, and halves of those: what is left to add up, which is one sum.
    """
    missing = -len(products) % 16
    if missing:
        nothing = np.zeros((missing, *products.shape[1:]))
        products = np.concatenate([products, nothing])
    return [_by_halves(fused_sum(products.reshape(-1, 16, *products.shape[1:])))]


def sums_in_short_lanes(products: Any) -> list[Any]:
    """The sum over the first axis in the lanes of a register of 32 bytes, two steps at a time, and
    those of 8, 4, 2 and 1 that are left over: what is left to add up.
    """
    sums = []
    start = 0
    for size in (len(products) // 16 * 16, 8, 4, 2, 1):
        part = products[start : start + size]
        if size and len(part) == size:
            lanes = fused_sum(part.reshape(-1, min(size, 8), *part.shape[1:]))
            sums.append(_by_halves(lanes if size == 1 else lanes[::2] + lanes[1::2]))
            start += size
    return sums


def _by_halves(lanes: Any) -> Any:
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = lanes[:half] + lanes[half:]
    return lanes[0]
