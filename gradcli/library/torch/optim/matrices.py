"""Optimisers that look at a parameter as a matrix: `Adafactor Muon`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.autograd.tensor import Tensor
from gradcli.errors import value_error
from gradcli.library.torch.optim.optimizer import (
    Group,
    Optimizer,
    State,
    number,
    scalar,
    stepped,
)
from gradcli.ops.binding.functions import methods, torch


def _check(value: Any, least: float, text: str) -> None:
    """Raise E204 for a setting below the least one."""
    if number(value) < least:
        raise value_error(f"{text} should be >= {least:g} but is: {value}")


class Adafactor(Optimizer):
    """Steps over the root of a running average of squares, of which a matrix keeps the means of its
    rows and columns alone; each is as large as the parameter's own elements.

    Raises E204 for a setting out of range.

    Example: torch.optim.Adafactor([tensor(1., requires_grad=True)], lr=0.1)
    """

    settings = (
        "lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *, foreach, maximize"
    )

    def check(self, settings: Group) -> None:
        _check(settings["lr"], 0, "Learning rate")
        if settings["beta2_decay"] > 0:
            raise value_error(f"beta2_decay should be <= 0 but is: {settings['beta2_decay']}")
        _check(settings["eps"][0] or 0, 0, "epsilon1")
        _check(settings["eps"][1], 0, "epsilon2")
        _check(settings["d"], 1, "Clipping threshold d")
        _check(settings["weight_decay"], 0, "weight_decay")

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            state["step"] = scalar(0.0)
            shape = gradient.shape
            if gradient.ndim > 1:
                state["row_var"] = Tensor(np.zeros((*shape[:-1], 1), gradient.dtype))
                state["col_var"] = Tensor(np.zeros((*shape[:-2], 1, shape[-1]), gradient.dtype))
            else:
                state["variance"] = Tensor(np.zeros(shape, gradient.dtype))
        step = stepped(state)
        parameter, grad, lr = Tensor(array), Tensor(gradient), number(group["lr"])
        least = group["eps"][0]
        least = float(np.finfo(array.dtype).eps) if least is None else least
        size = math.sqrt(array.size)
        alpha = max(group["eps"][1], _length(parameter) / size) * min(lr, 1 / math.sqrt(step))
        if group["weight_decay"]:
            methods.mul_(parameter, 1 - lr * group["weight_decay"])
        estimate = _squares(grad, state, step ** group["beta2_decay"], least)
        update = methods.rsqrt_(methods.clamp_(estimate, min=least * least))
        methods.mul_(update, grad)
        clipped = max(1.0, _length(update) / (size * group["d"]))
        methods.add_(parameter, update, alpha=-alpha / clipped)
        array[...] = parameter.array
        return 1


def _length(tensor: Tensor) -> float:
    return float(methods.norm(tensor, 2).item())


def _squares(grad: Tensor, state: State, share: float, least: float) -> Tensor:
    """The running average of squares, moved by a share towards those of a gradient."""
    if grad.ndim < 2:
        variance = state["variance"]
        methods.lerp_(variance, grad * grad, share)
        return Tensor(variance.array.copy())
    rows, columns = state["row_var"], state["col_var"]
    for averages, dim in ((rows, -1), (columns, -2)):
        lengths = torch.norm(grad, dim=dim, keepdim=True)
        means = methods.div_(methods.square_(lengths), grad.array.shape[dim])
        methods.lerp_(averages, means, share)
    whole = methods.clamp_(methods.mean(rows, dim=-2, keepdim=True), min=least)
    return methods.div_(torch.matmul(rows, columns), whole)


class Muon(Optimizer):
    """Steps along the nearest matrix with orthogonal rows to a running average of the gradients.

    Raises E204 for a parameter that is no matrix, and for a setting out of range.

    Example: torch.optim.Muon([torch.ones(2, 2, requires_grad=True)], lr=0.1)
    """

    written_by = "mul_"

    settings = (
        "lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True,"
        " ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-7, ns_steps=5, adjust_lr_fn=None"
    )

    def check(self, settings: Group) -> None:
        _check(settings["lr"], 0, "Learning rate")
        _check(settings["momentum"], 0, "momentum")
        _check(settings["weight_decay"], 0, "weight decay")
        kind = settings["adjust_lr_fn"]
        if kind not in (None, "original", "match_rms_adamw"):
            raise value_error(f"Adjust learning rate function {kind} is not supported")
        if len(settings["ns_coefficients"]) != 3:
            raise value_error("Coefficients must be a tuple of exactly 3 values")
        if settings["ns_steps"] >= 100:
            raise value_error("Number of steps must be less than 100 for computational efficiency")

    def begin(self, params: Any, settings: Group) -> None:
        super().begin(params, settings)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise value_error(
                        "Muon only supports 2D parameters whereas we found a parameter with size:"
                        f" torch.Size({list(parameter.array.shape)})"
                    )

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            state["momentum_buffer"] = Tensor(np.zeros_like(gradient))
        parameter, grad, lr = Tensor(array), Tensor(gradient), number(group["lr"])
        average, momentum = state["momentum_buffer"], group["momentum"]
        methods.lerp_(average, grad, 1 - momentum)
        update = methods.lerp(grad, average, momentum) if group["nesterov"] else average
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = array.shape
        share = math.sqrt(max(1, rows / columns))
        if group["adjust_lr_fn"] == "match_rms_adamw":
            share = 0.2 * math.sqrt(max(rows, columns))
        methods.mul_(parameter, 1 - lr * group["weight_decay"])
        methods.add_(parameter, update, alpha=-lr * share)
        array[...] = parameter.array
        return 1


def _orthogonal(matrix: Tensor, factors: Any, steps: int, least: float) -> Tensor:
    """A matrix with singular values near 1, in bfloat16: each step of Newton and Schulz moves them
    there by a polynomial of degree five.
    """
    first, third, fifth = factors
    tall = matrix.array.shape[0] > matrix.array.shape[1]
    iterate = methods.to(matrix, dtypes.bfloat16)
    iterate = methods.t(iterate) if tall else iterate
    iterate = iterate / methods.clamp(methods.norm(iterate), min=least)
    addmm = torch.addmm
    for _ in range(steps):
        gram = torch.matmul(iterate, methods.t(iterate))
        factor = addmm(gram, gram, gram, beta=third, alpha=fifth)
        iterate = addmm(iterate, factor, iterate, beta=first)
    return methods.t(iterate) if tall else iterate
