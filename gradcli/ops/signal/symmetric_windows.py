"""`torch.signal.windows`: windows that are symmetric unless `sym` is false."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli.arrays import dtypes
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error, value_error
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods, operators, torch
from gradcli.ops.creation.data import tensor
from gradcli.ops.creation.fill import checked_dtype
from gradcli.ops.definition.doc import describe

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
