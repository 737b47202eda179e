"""Attention of queries (B, H, L, E) to keys (B, H, S, E), some heads at a time.

The weights of a few heads fit the cache; for the gradient they are made again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.threads import in_turns
from gradcli.kernels import in_c

_TILE = 1 << 17
"""Weights that are computed at a time."""

Heads = tuple[slice, slice]


def attended(query: Any, key: Any, value: Any, mask: Any, scale: float) -> Any:
    """`softmax(query @ key.mT * scale + mask) @ value`; zeros where nothing is attended to."""
    out = module_of(query).empty((*query.shape[:3], value.shape[3]), query.dtype)

    def attend(heads: Heads) -> None:
        weights = _weights(query[heads], key[heads], _of_heads(mask, heads), scale)
        np.matmul(weights, value[heads], out=out[heads])

    _over_heads(query, key, attend)
    return out


def attention_gradients(
    grad: Any, query: Any, key: Any, value: Any, out: Any, mask: Any, scale: float
) -> tuple[Any, Any, Any]:
    """The gradients of `attended` in query, key and value, from that of its result `out`. The heads
    of a position are adjacent in memory.
    """
    xp = module_of(query)
    of_query, of_key, of_value = found = [
        xp.empty(
            (each.shape[0], each.shape[2], each.shape[1], each.shape[3]), query.dtype
        ).swapaxes(1, 2)
        for each in (query, key, value)
    ]

    def differentiate(heads: Heads) -> None:
        weights = _weights(query[heads], key[heads], _of_heads(mask, heads), scale)
        of_value[heads] = np.matmul(weights.swapaxes(-1, -2), grad[heads])
        by_weight = np.matmul(grad[heads], value[heads].swapaxes(-1, -2))
        scores = in_c.softmax_backward(by_weight, weights, scale)
        if scores is None:
            by_weight -= np.sum(grad[heads] * out[heads], axis=-1, keepdims=True)
            scores = by_weight * (weights * scale)
        of_query[heads] = np.matmul(scores, key[heads])
        of_key[heads] = np.matmul(scores.swapaxes(-1, -2), query[heads])

    _over_heads(query, key, differentiate)
    return tuple(found)


def _weights(query: Any, key: Any, mask: Any, scale: float) -> Any:
    weights = np.matmul(query, key.swapaxes(-1, -2))
    found = in_c.softmax(weights, mask, scale, True)
    if found is not None:
        return found
    weights *= scale
    if mask is not None:
        weights += mask
    highest = np.max(weights, axis=-1, keepdims=True)
    highest[highest == -np.inf] = 0
    weights -= highest
    np.exp(weights, out=weights)
    total = np.sum(weights, axis=-1, keepdims=True)
    total[total == 0] = 1
    weights /= total
    return weights


def _of_heads(mask: Any, heads: Heads) -> Any:
    """A mask for some heads, of two dimensions where it is the same for all."""
    if mask is None or mask.ndim < 3:
        return mask
    sizes = mask.shape[:-2]
    parts = heads[-len(sizes) :]
    return mask[
        tuple(part if size > 1 else slice(1) for part, size in zip(parts, sizes, strict=True))
    ]


def _over_heads(query: Any, key: Any, work: Callable[[Heads], None]) -> None:
    """Call `work` with the heads of a tile, on a thread per core."""
    batch, heads, length, _ = query.shape
    beside, samples = heads, batch
    if module_of(query) is np:
        each = length * key.shape[2]
        beside, samples = (max(1, _TILE // size) for size in (each, each * heads))
    in_turns(
        [
            (slice(sample, sample + samples), slice(head, head + beside))
            for sample in range(0, batch, samples)
            for head in range(0, heads, beside)
        ],
        work,
    )
