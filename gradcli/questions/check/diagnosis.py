"""Diagnoses a wrong gradient made by hand by how it differs from the right one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gradcli.questions.check.edits import Edit
from gradcli.record import Record

_CLOSE = 1e-4


class Clues(Record):
    """What a wrong gradient may come from.

    Attributes:
        factors: arrays that may have been forgotten, by what they are.
        means: how many numbers the program averages, each with the source text that does.
        divides: whether the expression for the gradient divides or averages itself.
        mend: an edit that makes the expression right, given what is right; None for none.
    """

    factors: Mapping[str, Any]
    means: Sequence[tuple[int, str]] = ()
    divides: bool = True
    mend: Callable[[Any], Edit | None] = lambda right: None


def diagnose(given: Any, right: Any, clues: Clues) -> str:
    """What is likely wrong, "" for nothing; `given` is None where it could not be computed."""
    if given is not None and given.shape == right.shape and is_close(given, right):
        return ""
    edit = None
    if given is None or given.shape != right.shape or not _constant(given, right, clues):
        edit = clues.mend(right)
    if edit is not None:
        return f"{edit.slip}: `{edit.text}` is right"
    if given is None:
        return "it cannot be computed"
    if not np.isfinite(given).all():
        return "it is not finite"
    if given.shape != right.shape:
        return _shapes(given, right)
    return (
        _constant(given, right, clues)
        or _moved(given, right)
        or _factor(given, right, clues.factors)
        or _partial(given, right)
        or "it differs, and by no factor or order that is known"
    )


def is_close(a: Any, b: Any) -> bool:
    """Whether two gradients are the same but for rounding."""
    scale = float(np.abs(b).max(initial=0.0))
    return bool(a.shape == b.shape and np.allclose(a, b, rtol=_CLOSE, atol=_CLOSE * scale + 1e-12))


def _shapes(given: Any, right: Any) -> str:
    if given.ndim == 2 and given.T.shape == right.shape and is_close(given.T, right):
        return f"it is transposed: its shape is {given.shape}, and that of the input {right.shape}"
    summed = _summed(given, right.shape)
    if summed is not None and is_close(summed, right):
        return (
            f"a sum is missing: the input of shape {right.shape} was broadcast, so the gradient of"
            f" shape {given.shape} has to be summed to it"
        )
    if given.size == right.size and is_close(given.reshape(right.shape), right):
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


def _constant(given: Any, right: Any, clues: Clues) -> str:
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
    averaged = next((text for count, text in clues.means if abs(size - count) < _CLOSE), None)
    if averaged is not None and size > 1 + _CLOSE:
        return (
            f"{sign}it is {round(size)} times too large: `{averaged}` is a mean over {round(size)}"
            f" numbers, and the division by {round(size)} is missing"
        )
    if abs(size - round(size)) < _CLOSE and 1 < round(size) <= 10 and not sign:
        count = round(size)
        norms = [text for text, array in clues.factors.items() if _has_norm(array, size)]
        factor = f"a factor, such as the norm of {norms[0]}," if norms else "a factor,"
        return (
            f"it is {count} times too large: {factor} or {count} backward passes without"
            " zero_grad() in between"
        )
    return sign + _share(Fraction(size).limit_denominator(1000), size, right, clues)


def _share(share: Fraction, size: float, right: Any, clues: Clues) -> str:
    """A factor that is missing, or one that is no whole number."""
    exact = abs(float(share) - size) < 1e-6 * size and share.denominator <= _LARGEST_SHARE
    if not exact and share.numerator != 1:
        return _of_norm(size, right, clues) or f"it is {size:.6g} times the right one"
    if share.numerator != 1:
        return f"it is {share} times the right one"
    missing = share.denominator
    if missing == right.size and clues.divides:
        return f"a factor {missing} is missing, which is the number of elements: a mean for a sum"
    for text, array in clues.factors.items():
        if text.startswith("the slope") and np.allclose(array, missing, rtol=_CLOSE):
            return f"a factor {missing} is missing: {text} in the chain rule"
    return f"a factor {missing} is missing"


def _has_norm(array: Any, size: float) -> bool:
    """Whether several numbers have a norm."""
    values = np.asarray(array, float)
    return values.size > 1 and bool(abs(np.linalg.norm(values) - size) < _CLOSE * size)


_LARGEST_SHARE = 64
"""A fraction with a larger denominator is no number that somebody left out."""


def _of_norm(size: float, right: Any, clues: Clues) -> str:
    """A root or norm of a value that was left out, or put in once too often."""
    for text, array in clues.factors.items():
        values = np.asarray(array, float)
        norms = {
            "the norm of": np.linalg.norm(values),
            "the square of the norm of": (values**2).sum(),
        }
        norms["the root of"] = np.sqrt(values.item()) if values.size == 1 and values > 0 else 0.0
        for word, number in norms.items():
            if number and abs(size - number) < _CLOSE * number:
                return f"a division by {word} {text} is missing"
            if number and abs(size * number - 1) < _CLOSE:
                return f"a factor is missing: {word} {text}"
    for word, number in {"√": right.size**0.5, "": float(right.size)}.items():
        if right.size > 1 and abs(size - number) < _CLOSE * number:
            return f"a division by {word}{right.size} is missing, the number of elements"
    return ""


def _moved(given: Any, right: Any) -> str:
    """The right numbers at other places."""
    if given.ndim == 2 and given.shape[0] == given.shape[1] and is_close(given.T, right):
        return "it is transposed"
    for dim in range(given.ndim):
        if given.shape[dim] > 1 and is_close(np.flip(given, dim), right):
            return f"it runs backwards along dimension {dim}"
    if given.size > 1 and is_close(np.sort(given.ravel()), np.sort(right.ravel())):
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
