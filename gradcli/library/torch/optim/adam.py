"""Adam and its relatives: `Adam AdamW Adamax NAdam RAdam`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.kernels import in_c
from gradcli.autograd.tensor import Tensor
from gradcli.errors import value_error
from gradcli.library.torch.optim.optimizer import (
    Group,
    Optimizer,
    State,
    add_product,
    add_quotient,
    check_range,
    decayed,
    interpolate,
    narrowed,
    number,
    rounded,
    scalar,
    scale,
    stepped,
    zeros_like,
)


def _averages(state: State, array: Any, *more: str) -> None:
    """The initial state: a step count, and running averages of zero."""
    state["step"] = scalar(0.0)
    for name in ("exp_avg", *more):
        state[name] = zeros_like(array)


def _decayed(array: Any, gradient: Any, group: Group) -> tuple[Any, int]:
    """The gradient with the decay of the weights, or the weights decayed; how often they were
    written.
    """
    decay = group["weight_decay"]
    if decay == 0 or not group["decoupled_weight_decay"]:
        return decayed(array, gradient, decay), 0
    scale(array, 1 - number(group["lr"]) * decay)
    return gradient, 1


def _moments(state: State, gradient: Any, group: Group) -> tuple[Any, Any]:
    """The running averages of the gradient and of its square, after one more gradient."""
    beta1, beta2 = map(number, group["betas"])
    average, square = state["exp_avg"].array, state["exp_avg_sq"].array
    interpolate(average, gradient, 1 - beta1)
    scale(square, beta2)
    add_product(square, gradient, gradient, 1 - beta2)
    return average, square


def _numbers(step: float, group: Group) -> tuple[float, ...]:
    """The numbers of the kernel in C."""
    beta1, beta2 = group["betas"]
    settings = group["weight_decay"], group["decoupled_weight_decay"], group["eps"]
    return _numbers_of(step, number(group["lr"]), number(beta1), number(beta2), *settings)


@lru_cache(maxsize=16)  # the parameters of a group have the same ones in a step
def _numbers_of(
    step: float, lr: float, beta1: float, beta2: float, decay: float, decoupled: bool, eps: float
) -> tuple[float, ...]:
    return (
        0 if decoupled else decay,
        1 - lr * decay if decoupled else 1,
        beta1,
        beta2,
        (1 - beta2**step) ** 0.5,
        eps,
        -(lr / (1 - beta1**step)),
    )


class _Averaging(Optimizer):
    """The base of those with two decay rates of running averages."""

    not_negative = ("lr", "eps", "weight_decay")

    def check(self, settings: Group) -> None:
        super().check(settings)
        betas = settings["betas"]
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise value_error("betas must be either both floats or both Tensors")
        check_range("betas[0]", number(betas[0]), 0.0, 1.0)
        check_range("betas[1]", number(betas[1]), 0.0, 1.0)


class Adam(_Averaging):
    """Steps of about `lr`: the running average of the gradient over the root of its square's.

    Raises E204 for a setting out of range.

    Example: torch.optim.Adam([tensor(1., requires_grad=True)], lr=0.1)
    """

    written_by = "addcdiv_"

    settings = (
        "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach,"
        " maximize, capturable, differentiable, fused, decoupled_weight_decay=False"
    )
    before: ClassVar[dict[str, str]] = {"maximize": "foreach"}

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            more = ("max_exp_avg_sq",) if group["amsgrad"] else ()
            _averages(state, array, "exp_avg_sq", *more)
        step = stepped(state)
        if not group["amsgrad"]:
            writes = self.apply(array, gradient, state, group, _numbers(step, group))
            if writes:
                return writes
        gradient, writes = _decayed(array, gradient, group)
        average, square = _moments(state, gradient, group)
        beta1, beta2 = map(number, group["betas"])
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"].array
            np.maximum(largest, square, out=largest)
            square = largest
        root = narrowed(np.sqrt(square) / rounded((1 - beta2**step) ** 0.5, square), square)
        root = narrowed(root + rounded(group["eps"], square), square)
        add_quotient(array, average, root, -(number(group["lr"]) / (1 - beta1**step)))
        return 1 + writes

    def numbers(self, state: State, group: Group) -> tuple[float, ...] | None:
        return None if group["amsgrad"] else _numbers(stepped(state), group)

    def apply(
        self, array: Any, gradient: Any, state: State, group: Group, numbers: tuple[Any, ...]
    ) -> int:
        """A step by the kernel in C; 0 where there is none for these arrays."""
        averages = state["exp_avg"].array, state["exp_avg_sq"].array
        if not in_c.adam((array, gradient, *averages), numbers):
            return 0
        return 2 if group["weight_decay"] != 0 and group["decoupled_weight_decay"] else 1


class AdamW(Adam):
    """Adam with weight decay apart from the gradient.

    Example: torch.optim.AdamW([tensor(1., requires_grad=True)], lr=0.1)
    """

    written_by = "mul_"

    settings = (
        "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize,"
        " foreach, capturable, differentiable, fused"
    )

    def check(self, settings: Group) -> None:
        super().check(settings)
        settings["decoupled_weight_decay"] = True


class Adamax(_Averaging):
    """Adam with the largest gradient so far, which fades, in place of the root of the average.

    Example: torch.optim.Adamax([tensor(1., requires_grad=True)], lr=0.1)
    """

    written_by = "addcdiv_"

    settings = (
        "lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach, *, maximize,"
        " differentiable, capturable"
    )

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            _averages(state, array, "exp_inf")
        step = stepped(state)
        beta1, beta2 = group["betas"]
        gradient = decayed(array, gradient, group["weight_decay"])
        average, largest = state["exp_avg"].array, state["exp_inf"].array
        interpolate(average, gradient, 1 - beta1)
        scale(largest, beta2)
        np.maximum(largest, np.abs(gradient) + rounded(group["eps"], array), out=largest)
        add_quotient(array, average, largest, -(number(group["lr"]) / (1 - beta1**step)))
        return 1


class NAdam(_Averaging):
    """Adam with Nesterov's momentum, which looks one step ahead.

    Example: torch.optim.NAdam([tensor(1., requires_grad=True)], lr=0.1)
    """

    written_by = "addcdiv_"

    settings = (
        "lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3,"
        " decoupled_weight_decay=False, *, foreach, maximize, capturable, differentiable"
    )
    before: ClassVar[dict[str, str]] = {"maximize": "foreach"}

    def check(self, settings: Group) -> None:
        super().check(settings)
        check_range("momentum_decay", number(settings["momentum_decay"]))

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            state["step"], state["mu_product"] = scalar(0.0), scalar(1.0)
            state["exp_avg"], state["exp_avg_sq"] = zeros_like(array), zeros_like(array)
        step = stepped(state)
        lr = number(group["lr"])
        beta1, beta2 = group["betas"]
        gradient, writes = _decayed(array, gradient, group)
        decay = group["momentum_decay"]
        mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * decay)))
        mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * decay)))
        product = state["mu_product"]
        product.array = product.array * rounded(mu, product.array)
        so_far = float(product.array)
        average, square = _moments(state, gradient, group)
        root = np.sqrt(square / rounded(1 - beta2**step, square))
        root = root + rounded(group["eps"], square)
        add_quotient(array, gradient, root, -lr * (1.0 - mu) / (1.0 - so_far))
        add_quotient(array, average, root, (-lr * mu_next) / (1.0 - so_far * mu_next))
        return 2 + writes


class RAdam(_Averaging):
    """Adam that goes by the gradient's average alone until its square's is reliable.

    Example: torch.optim.RAdam([tensor(1., requires_grad=True)], lr=0.1)
    """

    settings = (
        "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *,"
        " foreach, maximize, capturable, differentiable"
    )
    before: ClassVar[dict[str, str]] = {
        "decoupled_weight_decay": "differentiable",
        "maximize": "foreach",
    }

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            _averages(state, array, "exp_avg_sq")
        step = stepped(state)
        lr = number(group["lr"])
        beta1, beta2 = group["betas"]
        gradient, writes = _decayed(array, gradient, group)
        average, square = _moments(state, gradient, group)
        correction = 1 - beta2**step
        change = average / rounded(1 - beta1**step, array) * rounded(lr, array)
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * (beta2**step) / correction
        if length > 5.0:
            root = np.sqrt(square) + rounded(group["eps"], array)
            change = change * (rounded(correction**0.5, array) / root)
            rectified = (length - 4) * (length - 2) * longest
            rectified = (rectified / ((longest - 4) * (longest - 2) * length)) ** 0.5
            change = change * rounded(rectified, array)
        array -= change.astype(array.dtype)
        return 1 + writes
