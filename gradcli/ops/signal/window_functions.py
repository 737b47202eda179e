"""Window functions of signals: `hann_window hamming_window blackman_window` and their like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error
from gradcli.ops.binding.arguments import plain_integer
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.fill import check_count, checked_dtype, tensor_of
from gradcli.ops.definition.doc import describe
from gradcli.ops.definition.dtype_support import COMPLEX, check_dtype, dtype_names

_NOT_FLOATING = dtype_names("bool", "int", raises="RuntimeError") | COMPLEX


def _window_tensor(
    name: str,
    values: Callable[[Any], Any],
    length: Any,
    periodic: bool,
    dtype: Any,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    """The window of the values at the positions of its elements, from 0 on, as parts of it."""
    target = checked_dtype(name, dtype, dtypes.default_dtype())
    check_dtype(name, target, _NOT_FLOATING)
    length = plain_integer(name, "window_length", length)
    if length < 0:
        raise runtime_error(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    check_count(name, length)
    steps = max(length if periodic else length - 1, 1)
    positions = np.arange(length, dtype=target.numpy_dtype) / steps
    array = np.ones(1) if length == 1 else values(positions)
    return tensor_of(name, array.astype(target.numpy_dtype), device, requires_grad)


def _cosines(*weights: float) -> Callable[[Any], Any]:
    def values(positions: Any) -> Any:
        total = np.zeros_like(positions)
        for number, weight in reversed([*enumerate(weights)]):
            total = total + weight * np.cos(2 * np.pi * number * positions)
        return total

    return values


def _window(name: str, values: Callable[[Any], Any], words: str) -> None:
    @function(name)
    def window(
        window_length: int,
        periodic: bool = True,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return _window_tensor(name, values, window_length, periodic, dtype, device, requires_grad)

    describe(
        window,
        f"{words} of a length; `periodic` leaves out the last element of a longer one.",
        f"torch.{name}(4)",
    )


_window("hann_window", _cosines(0.5, -0.5), "A window that rises and falls as a cosine")
_window("blackman_window", _cosines(0.42, -0.5, 0.08), "A window of three cosines")
_window(
    "bartlett_window",
    lambda positions: 1 - np.abs(2 * positions - 1),
    "A window that rises and falls in a straight line",
)


@function("hamming_window")
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A window `alpha - beta * cos` of a length.

    Example: torch.hamming_window(4)
    """
    values, place = _cosines(alpha, -beta), (dtype, device, requires_grad)
    return _window_tensor("hamming_window", values, window_length, periodic, *place)


@function("kaiser_window")
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A window of Bessel functions of a length; the larger `beta`, the narrower.

    Example: torch.kaiser_window(4)
    """

    def values(positions: Any) -> Any:
        inner = np.sqrt(np.maximum(1 - (2 * positions - 1) ** 2, 0))
        return np.i0(beta * inner) / np.i0(beta)

    place = (dtype, device, requires_grad)
    return _window_tensor("kaiser_window", values, window_length, periodic, *place)
