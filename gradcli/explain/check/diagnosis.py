"""Diagnoses a wrong gradient made by hand by how it differs from the right one."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

_CLOSE = 1e-4


def diagnose(given: Any, right: Any, factors: Mapping[str, Any]) -> str:
    """What is likely wrong, "" for nothing; `factors` are arrays that may have been forgotten."""
    if given.shape == right.shape and _close(given, right):
        return ""
    if not np.isfinite(given).all():
        return "it is not finite"
    if given.shape != right.shape:
        return _shapes(given, right)
    return (
        _constant(given, right)
        or _moved(given, right)
        or _factor(given, right, factors)
        or _partial(given, right)
        or "it differs, and by no factor or order that is known"
    )


def _close(a: Any, b: Any) -> bool:
    scale = float(np.abs(b).max(initial=0.0))
    return bool(a.shape == b.shape and np.allclose(a, b, rtol=_CLOSE, atol=_CLOSE * scale + 1e-12))


def _shapes(given: Any, right: Any) -> str:
    if given.ndim == 2 and given.T.shape == right.shape and _close(given.T, right):
        return f"it is transposed: its shape is {given.shape}, and that of the input {right.shape}"
    summed = _summed(given, right.shape)
    if summed is not None and _close(summed, right):
        return (
            f"a sum is missing: the input of shape {right.shape} was broadcast, so the gradient of"
            f" shape {given.shape} has to be summed to it"
        )
    if given.size == right.size and _close(given.reshape(right.shape), right):
        return f"it has the numbers in the shape {given.shape} in place of {right.shape}"
    return f"its shape is {given.shape}, and that of the input {right.shape}"


def _summed(array: Any, shape: tuple[int, ...]) -> Any:
    """An array summed to a shape that broadcasts to its own, None where that does not."""
    if array.ndim < len(shape):
        return None
    array = array.sum(tuple(range(array.ndim - len(shape))))
    for dim, size in enumerate(shape):
        if size != array.shape[dim]:
            if size != 1:
                return None
            array = array.sum(dim, keepdims=True)
    return array


def _constant(given: Any, right: Any) -> str:
    """A sign, a multiple, a factor."""
    used = right != 0
    if not used.any() or (given[~used] != 0).any():
        return ""
    ratios = given[used] / right[used]
    ratio = float(ratios.flat[0])
    if not np.allclose(ratios, ratio, rtol=_CLOSE):
        return ""
    if ratio == 0:
        return "it is 0"
    if abs(ratio + 1) < _CLOSE:
        return "its sign is wrong"
    sign = "its sign is wrong, and " if ratio < 0 else ""
    size = abs(ratio)
    if abs(size - round(size)) < _CLOSE and 1 < round(size) <= 10 and not sign:
        count = round(size)
        return (
            f"it is {count} times too large: a factor, or {count} backward passes without"
            " zero_grad() in between"
        )
    share = Fraction(size).limit_denominator(1000)
    exact = abs(float(share) - size) < 1e-6 * size
    if exact and share.numerator == 1:
        rest = _count_of(share.denominator, right)
        return f"{sign}a factor {share.denominator} is missing{rest}"
    shown = str(share) if exact else f"{size:.6g}"
    rest = _count_of(size, right) if exact and share.denominator == 1 else ""
    return f"{sign}it is {shown} times the right one{rest}"


def _count_of(number: float, right: Any) -> str:
    return ", which is the number of elements: a mean for a sum" if number == right.size else ""


def _moved(given: Any, right: Any) -> str:
    """The right numbers at other places."""
    if given.ndim == 2 and given.shape[0] == given.shape[1] and _close(given.T, right):
        return "it is transposed"
    for dim in range(given.ndim):
        if given.shape[dim] > 1 and _close(np.flip(given, dim), right):
            return f"it runs backwards along dimension {dim}"
    if given.size > 1 and _close(np.sort(given.ravel()), np.sort(right.ravel())):
        return "its elements are the right ones in another order"
    return ""


def _factor(given: Any, right: Any, factors: Mapping[str, Any]) -> str:
    """A factor of the chain rule that was left out, or put in once too often."""
    used = given != 0
    if not used.any() or (right[~used] != 0).any():
        return ""
    for text, array in factors.items():
        try:
            factor = np.broadcast_to(np.asarray(array, float), given.shape)
        except ValueError:
            continue
        if np.allclose(given * factor, right, rtol=_CLOSE, atol=1e-9):
            return f"a factor of the chain rule is missing: times {text}"
        if np.allclose(given, right * factor, rtol=_CLOSE, atol=1e-9):
            return f"a factor too many: {text}"
    return ""


def _partial(given: Any, right: Any) -> str:
    """Right in some elements only."""
    agree = np.isclose(given, right, rtol=_CLOSE, atol=1e-9)
    if agree.any():
        wrong = int((~agree).sum())
        first = tuple(int(n) for n in np.argwhere(~agree)[0])
        some = "1 element is" if wrong == 1 else f"{wrong} elements are"
        return f"{some} wrong, the first at {list(first)}; the other {agree.sum()} are right"
    return ""
