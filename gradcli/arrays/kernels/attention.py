"""Attention of queries (B, H, L, E) to keys (B, H, S, E), some heads at a time.

The weights of a few heads fit the cache; for the gradient they are made again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of, new_empty
from gradcli.arrays.kernels import in_c
from gradcli.arrays.threads import in_turns

_TILE = 1 << 18
"""Weights that are computed at a time."""

Heads = tuple[slice, slice]


def attended(query: Any, key: Any, value: Any, mask: Any, scale: float) -> Any:
    """`softmax(query @ key.mT * scale + mask) @ value`; zeros where nothing is attended to."""
    out = new_empty(query, (*query.shape[:3], value.shape[3]))
    blocks = _blocks(key, value, mask)

    def attend(heads: Heads) -> None:
        for rows, keys, part in blocks:
            seen = _of_heads(mask, heads) if part is None else part
            weights = _weights(query[(*heads, rows)], key[(*heads, keys)], seen, scale)
            np.matmul(weights, value[(*heads, keys)], out=out[(*heads, rows)])

    _over_heads(query, key, attend)
    return out


def attention_gradients(
    grad: Any, query: Any, key: Any, value: Any, out: Any, mask: Any, scale: float
) -> tuple[Any, Any, Any]:
    """The gradients of `attended` in query, key and value, from that of its result `out`. The heads
    of a position are adjacent in memory.
    """
    of_query, of_key, of_value = gradients = [
        new_empty(query, (each.shape[0], each.shape[2], each.shape[1], each.shape[3])).swapaxes(
            1, 2
        )
        for each in (query, key, value)
    ]

    blocks = _blocks(key, value, mask)

    def differentiate(heads: Heads) -> None:
        if len(blocks) > 1:
            of_key[heads] = of_value[heads] = 0
        for rows, keys, part in blocks:
            here, there = (*heads, rows), (*heads, keys)
            seen = _of_heads(mask, heads) if part is None else part
            weights = _weights(query[here], key[there], seen, scale)
            by_weight = np.matmul(grad[here], value[there].swapaxes(-1, -2))
            scores = in_c.softmax_backward(by_weight, weights, scale)
            if scores is None:
                by_weight -= np.sum(grad[here] * out[here], axis=-1, keepdims=True)
                scores = by_weight * (weights * scale)
            of_query[here] = np.matmul(scores, key[there])
            for gradient, factor, other in (
                (of_value, weights, grad[here]),
                (of_key, scores, query[here]),
            ):
                product = np.matmul(factor.swapaxes(-1, -2), other)
                if len(blocks) > 1:
                    gradient[there] += product
                else:
                    gradient[there] = product

    _over_heads(query, key, differentiate)
    return tuple(gradients)


def _blocks(key: Any, value: Any, mask: Any) -> list[tuple[slice, slice, Any]]:
    """Blocks of queries, the keys that a mask shows to some of them, and that part of the mask,
    None for one block of everything. The weights of the keys behind those are 0, which leaves what
    is finite out of the result.
    """
    length = 0 if mask is None or mask.ndim != 2 else len(mask)
    if length < 2 * _ROWS or type(mask) is not np.ndarray:
        return [(slice(None), slice(None), None)]
    shown = mask > -np.inf
    if shown[:_ROWS, -1].any() or not np.isfinite(np.sum(key) + np.sum(value)):
        return [(slice(None), slice(None), None)]
    blocks = []
    for start in range(0, length, _ROWS):
        rows = slice(start, start + _ROWS)
        count = int(np.max(np.flatnonzero(shown[rows].any(axis=0)), initial=0)) + 1
        keys = slice(0, count)
        blocks.append((rows, keys, np.ascontiguousarray(mask[rows, keys])))
    return blocks


_ROWS = 64
"""Queries of a block."""


def _weights(query: Any, key: Any, mask: Any, scale: float) -> Any:
    weights = np.matmul(query, key.swapaxes(-1, -2))
    softmax = in_c.softmax(weights, mask, scale, True)
    if softmax is not None:
        return softmax
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
