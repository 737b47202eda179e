"""Windows of signals: `torch.signal.windows`, which are symmetric unless `sym` is false, and
`hann_window hamming_window blackman_window` and their like, which are periodic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, type_error, value_error
from gradcli.ops.binding.arguments import plain_integer
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods, operators, torch
from gradcli.ops.creation.data import tensor
from gradcli.ops.creation.fill import check_count, checked_dtype, tensor_of
from gradcli.ops.definition.doc import describe
from gradcli.ops.definition.dtype_support import COMPLEX, check_dtype, dtype_names

_MODULE = "torch.signal.windows"

Points = Callable[[float, float], Tensor]
"""Numbers from one to another, as many as the window has."""

Values = Callable[..., Any]


def _bind(
    name: str, settings: dict[str, Any], keywords: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of a window, and those of its tensor; raises E201 for others."""
    own, common = dict(settings), {"dtype": None, "device": None, "requires_grad": False}
    for key, value in keywords.items():
        if key == "layout":
            continue
        table = own if key in own else common
        if key not in table:
            raise GradcliError("E201", f"{name}() got an unexpected keyword argument '{key}'")
        table[key] = value
    return own, common


def _window(name: str, words: str, **settings: Any) -> Callable[[Values], Values]:
    """Register a window: a function of its length, of whether it is symmetric, of points and of
    the settings, whose defaults are given.
    """
    # PyTorch computes these as sums of cosines, and says so in errors.
    sums = ("general_hamming", "hamming", "hann", "nuttall")
    checking = "general_cosine" if name in sums else name
    sample = ", a=[0.5, 0.5]" if name == "general_cosine" else ""

    def decorate(values: Values) -> Values:
        @function(name, module=_MODULE)
        def window(M: int, *, sym: bool = True, **options: Any) -> Tensor:
            own, common = _bind(name, settings, options)
            dtype = common["dtype"] = checked_dtype(name, common["dtype"], dtypes.default_dtype())
            if M < 0:
                raise value_error(f"{checking} requires non-negative window length, got M={M}")
            if dtype.name not in ("float32", "float64"):
                raise value_error(f"{checking} expects float32 or float64 dtypes, got: {dtype}")

            def points(start: float, end: float) -> Tensor:
                numbers: Tensor = torch.linspace(start, end, M, **common)
                return numbers

            if M == 0:
                return tensor([], **common)
            if M == 1 and name not in ("cosine", "gaussian", "exponential"):
                return tensor([1.0], **common)
            points_of_window: Tensor = values(M, sym, points, **own)
            return points_of_window

        describe(window, f"{words}, of a length.", f"torch.signal.windows.{name}(4{sample})")
        return values

    return decorate


@_window(
    "exponential", "A window that falls off exponentially around its centre", center=None, tau=1.0
)
def _exponential(M: int, sym: bool, points: Points, center: float | None, tau: float) -> Any:
    if tau <= 0:
        raise value_error(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise value_error("Center must be None for symmetric windows")
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2.0
    k = points(-center * (1 / tau), (-center + (M - 1)) * (1 / tau))
    return torch.exp(-torch.abs(k))


@_window("cosine", "A window that is half a sine wave")
def _cosine(M: int, sym: bool, points: Points) -> Any:
    step = math.pi / (M + 1 if not sym and M > 1 else M)
    return torch.sin(points(0.5 * step, (0.5 + (M - 1)) * step))


@_window("gaussian", "A window that is a normal distribution's density", std=1.0)
def _gaussian(M: int, sym: bool, points: Points, std: float) -> Any:
    if std <= 0:
        raise value_error(f"Standard deviation must be positive, got: {std} instead.")
    start = -(M if not sym and M > 1 else M - 1) / 2.0
    scale = 1 / (std * math.sqrt(2))
    return torch.exp(-(points(start * scale, (start + (M - 1)) * scale) ** 2))


@_window("kaiser", "A window of Bessel functions, the narrower the larger `beta` is", beta=12.0)
def _kaiser(M: int, sym: bool, points: Points, beta: float) -> Any:
    if beta < 0:
        raise value_error(f"beta must be non-negative, got: {beta} instead.")
    step = 2.0 * beta / (M - 1 if sym else M)
    k = points(-beta, min(beta, -beta + (M - 1) * step))
    width = tensor(beta, dtype=k.dtype)
    inner = torch.sqrt(width * width - torch.pow(k, 2))
    return torch.i0(inner) / torch.i0(width)


@_window("bartlett", "A window that rises and falls in a straight line")
def _bartlett(M: int, sym: bool, points: Points) -> Any:
    step = 2 / (M - 1 if sym else M)
    return operators.sub(1, torch.abs(points(-1, -1 + (M - 1) * step)))


@_window("general_cosine", "A window that is a sum of cosines of the weights `a`", a=None)
def _general_cosine(M: int, sym: bool, points: Points, a: Any) -> Any:
    if not isinstance(a, (list, tuple)):
        raise type_error("Coefficients must be a list/tuple")
    if not a:
        raise value_error("Coefficients cannot be empty")
    k = points(0, (M - 1) * (2 * math.pi / (M - 1 if sym else M)))
    weights = [(-1) ** number * weight for number, weight in enumerate(a)]
    options: dict[str, Any] = {"dtype": k.dtype, "requires_grad": k.requires_grad}
    columns = [
        methods.unsqueeze(row, -1)
        for row in (tensor(weights, **options), torch.arange(len(a), **options))
    ]
    return methods.sum(columns[0] * torch.cos(columns[1] * k), 0)


@_window("general_hamming", "A window that is a raised cosine", alpha=0.54)
def _general_hamming(M: int, sym: bool, points: Points, alpha: float) -> Any:
    return _general_cosine(M, sym, points, (alpha, 1.0 - alpha))


def _of_cosines(name: str, words: str, *weights: float) -> None:
    _window(name, words)(lambda M, sym, points: _general_cosine(M, sym, points, weights))


_of_cosines("blackman", "A window of three cosines", 0.42, 0.5, 0.08)
_of_cosines("hamming", "A window that is a raised cosine", 0.54, 1.0 - 0.54)
_of_cosines("hann", "A window that rises and falls as a cosine", 0.5, 0.5)
_of_cosines("nuttall", "A window of four cosines", 0.3635819, 0.4891775, 0.1365995, 0.0106411)


# --- windows of torch, periodic unless told otherwise ---------------------------------------------


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


def _register(name: str, values: Callable[[Any], Any], words: str) -> None:
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


_register("hann_window", _cosines(0.5, -0.5), "A window that rises and falls as a cosine")
_register("blackman_window", _cosines(0.42, -0.5, 0.08), "A window of three cosines")
_register(
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
