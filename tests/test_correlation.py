"""The three readings of a correlation against sums written out, in many blocks of samples; and the
choice between arrays, which works on bits.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from gradcli.arrays.fusion.tile_kernels import choose_tile
from gradcli.arrays.kernels.windows import Windows
from gradcli.ops.nn.spatial import convolution

# samples, channels, outputs, sizes, kernel, stride, padding, dilation, groups
CASES = [
    (7, 4, 6, (9, 8), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (7, 4, 6, (9, 8), (3, 2), (2, 1), (1, 0), (1, 2), 2),
    (5, 6, 6, (10,), (3,), (1,), (2,), (2,), 6),
    (3, 2, 4, (5, 6, 4), (2, 3, 2), (1, 1, 1), (1, 1, 0), (1, 1, 1), 1),
    (4, 3, 5, (7, 7), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    (3, 2, 2, (12,), (2,), (3,), (0,), (1,), 1),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_three_readings(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    samples, channels, outputs, sizes, kernel, stride, padding, dilation, groups = case
    monkeypatch.setattr(convolution, "_BLOCK", 1000)
    generator = np.random.default_rng(3)
    windows = Windows(kernel, stride, padding, dilation)
    counts = windows.counts(sizes)
    input = generator.standard_normal((samples, channels, *sizes))
    weight = generator.standard_normal((outputs, channels // groups, *kernel))
    grad = generator.standard_normal((samples, outputs, *counts))
    around = np.pad(input, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    output, of_around, of_weight = np.zeros(grad.shape), np.zeros(around.shape), weight * 0
    each = outputs // groups
    for o, c, place in product(
        range(outputs), range(channels // groups), product(*map(range, kernel))
    ):
        read = o // each * (channels // groups) + c
        where: Any = tuple(
            slice(i * d, i * d + (n - 1) * s + 1, s)
            for i, n, s, d in zip(place, counts, stride, dilation, strict=True)
        )
        output[:, o] += weight[(o, c, *place)] * around[(slice(None), read, *where)]
        of_around[(slice(None), read, *where)] += weight[(o, c, *place)] * grad[:, o]
        of_weight[(o, c, *place)] = (around[(slice(None), read, *where)] * grad[:, o]).sum()
    inside: Any = tuple(slice(p, p + n) for p, n in zip(padding, sizes, strict=True))
    of_input = of_around[(..., *inside)]

    found = convolution.convolve(input, weight, windows, groups, counts)
    np.testing.assert_allclose(found, output, atol=1e-12)
    found = convolution.input_gradient(grad, weight, windows, groups, sizes)
    np.testing.assert_allclose(found, of_input, atol=1e-12)
    found = convolution.weight_gradient(input, grad, windows, groups)
    np.testing.assert_allclose(found, of_weight, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_choice_keeps_every_bit(dtype: Any) -> None:
    generator = np.random.default_rng(4)
    first, second = generator.standard_normal((2, 40, 30)).astype(dtype)
    first[0, :4] = second[1, :4] = [np.nan, np.inf, -0.0, -np.inf]
    whole = generator.random((40, 30)) < 0.5
    for condition in (whole, whole[:, :1]):
        choices: Any = (
            (first, second),
            (0, second),
            (0.0, second),
            (first, 0),
            (first, -1.5),
            (first[0], second[:, :1]),
        )
        for chosen, other in choices:
            out: Any = np.empty((40, 30), dtype)
            choose_tile(condition, chosen, other, out)
            assert out.tobytes() == np.where(condition, chosen, other).astype(dtype).tobytes()


def test_float32_stays_near_the_truth() -> None:
    """Sums of n products of float32 numbers, within the rounding of n terms of the exact sums."""
    generator = np.random.default_rng(5)
    windows = Windows((3, 3), (1, 1), (1, 1), (1, 1))
    for samples, size in ((2, 6), (8, 24)):
        input = generator.standard_normal((samples, 4, size, size), np.float32)
        weight = generator.standard_normal((6, 4, 3, 3), np.float32)
        grad = generator.standard_normal((samples, 6, size, size), np.float32)
        counts = (size, size)
        calls: Any = (
            (convolution.convolve, (input, weight), (windows, 1, counts), 36),
            (convolution.input_gradient, (grad, weight), (windows, 1, counts), 54),
            (convolution.weight_gradient, (input, grad), (windows, 1), samples * size * size),
        )
        for function, operands, settings, terms in calls:
            found = function(*operands, *settings)
            wide = [operand.astype(np.float64) for operand in operands]
            largest = function(*map(np.abs, wide), *settings)
            assert found.dtype == np.float32
            error = np.abs(found - function(*wide, *settings))
            assert (error <= np.sqrt(terms) * np.finfo(np.float32).eps * largest).all()
