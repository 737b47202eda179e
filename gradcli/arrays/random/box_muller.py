"""Normally distributed numbers from uniform ones, in blocks of 16, to the last bit of PyTorch's.

Eight uniform numbers give radii and eight give angles. In float32 PyTorch's vectorised code takes
logarithm, sine and cosine from the polynomials of the Cephes library, evaluated with fused
multiply-adds; so does this.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.native.dispatch import kernel

_SINGLE = np.float32


def fill_blocks(blocks: Any, mean: float, deviation: float) -> None:
    """Turn rows of 16 uniform numbers, float32 or float64, into normal ones in place."""
    kind = blocks.dtype.type
    in_c = kernel("box_muller") if kind is _SINGLE and blocks.flags.c_contiguous else None
    if in_c is not None:
        in_c(blocks, mean, deviation)
        return
    first, second = kind(1) - blocks[:, :8], blocks[:, 8:]
    if kind is _SINGLE:
        radius = np.sqrt(_SINGLE(-2) * _logarithm(first))
        sine, cosine = _sine_and_cosine(_SINGLE(2 * math.pi) * second)
    else:
        radius = np.sqrt(-2 * np.log(first))
        angle = 2 * math.pi * second
        sine, cosine = np.sin(angle), np.cos(angle)
    blocks[:, :8] = _fused(radius * cosine, deviation, mean)
    blocks[:, 8:] = _fused(radius * sine, deviation, mean)


def _fused(factor: Any, other: Any, addend: Any) -> Any:
    """factor * other + addend, rounded once; float64 holds the product of two float32 exactly."""
    if factor.dtype.type is not _SINGLE:
        return factor * other + addend
    exact = factor.astype(np.float64) * _as_single(other) + _as_single(addend)
    return exact.astype(_SINGLE)


def _as_single(value: Any) -> Any:
    """A value of float32 precision, as float64."""
    return np.asarray(value, _SINGLE).astype(np.float64)


def _polynomial(x: Any, first: float, *coefficients: float) -> Any:
    value = np.full_like(x, first)
    for coefficient in coefficients:
        value = _fused(value, x, coefficient)
    return value


def _logarithm(x: Any) -> Any:
    """log(x) of positive normal float32 numbers: x is 2**exponent times a number near 1."""
    bits = x.view(np.uint32)
    exponent = ((bits >> 23).astype(np.int32) - 126).astype(_SINGLE)
    near = ((bits & 0x007FFFFF) | 0x3F000000).view(_SINGLE)
    small = near < _SINGLE(math.sqrt(0.5))
    exponent -= small
    x = near - _SINGLE(1) + np.where(small, near, _SINGLE(0))
    square = x * x
    series = _polynomial(
        x,
        7.0376836292e-2,
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    )
    # log(2) in two parts, so that the larger one times the exponent is exact.
    rest = _fused(series * x, square, exponent * _SINGLE(-2.12194440e-4))
    return _fused(exponent, 0.693359375, x + _fused(square, -0.5, rest))


def _sine_and_cosine(x: Any) -> tuple[Any, Any]:
    """sin(x) and cos(x) of float32 numbers that are not negative."""
    octant = ((x * _SINGLE(4 / math.pi)).astype(np.int32) + 1) & ~1
    turns = octant.astype(_SINGLE)
    for part in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8):  # of pi / 4
        x = _fused(turns, part, x)
    square = x * x
    series = _polynomial(square, 2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
    cosine = _fused(series * square, square, -(square * _SINGLE(0.5))) + _SINGLE(1)
    series = _polynomial(square, -1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
    sine = _fused(series * square, x, x)
    quarter = (octant >> 1) & 3
    odd = (quarter & 1).astype(np.bool_)
    return (
        np.where(odd, cosine, sine) * np.where(quarter & 2, _SINGLE(-1), _SINGLE(1)),
        np.where(odd, sine, cosine)
        * np.where((quarter == 1) | (quarter == 2), _SINGLE(-1), _SINGLE(1)),
    )
