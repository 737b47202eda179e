"""Optimisers with a step size for each element: `RMSprop Adagrad Adadelta Rprop`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.errors import value_error
from gradcli.library.torch.optim.optimizer import (
    Group,
    Optimizer,
    State,
    add_product,
    add_quotient,
    add_scaled,
    decayed,
    interpolate,
    number,
    rounded,
    scalar,
    scale,
    stepped,
    zeros_like,
)


class RMSprop(Optimizer):
    """The gradient over the root of the running average of its square.

    Raises E204 for a setting out of range.

    Example: torch.optim.RMSprop([tensor(1., requires_grad=True)], lr=0.1)
    """

    written_by = "addcdiv_"

    settings = (
        "lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, capturable,"
        " foreach, maximize, differentiable"
    )
    before: ClassVar[dict[str, str]] = {"momentum": "alpha", "centered": "weight_decay"}
    not_negative = ("lr", "eps", "momentum", "weight_decay", "alpha")

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            state["step"] = scalar(0.0)
            state["square_avg"] = zeros_like(array)
            if group["momentum"] > 0:
                state["momentum_buffer"] = zeros_like(array)
            if group["centered"]:
                state["grad_avg"] = zeros_like(array)
        stepped(state)
        gradient = decayed(array, gradient, group["weight_decay"])
        alpha, square = group["alpha"], state["square_avg"].array
        scale(square, alpha)
        add_product(square, gradient, gradient, 1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].array
            interpolate(mean, gradient, 1 - alpha)
            variance = square.copy()
            add_product(variance, mean, mean, -1)
            root = np.sqrt(variance)
        else:
            root = np.sqrt(square)
        root = root + rounded(group["eps"], array)
        lr = number(group["lr"])
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"].array
            scale(buffer, group["momentum"])
            add_quotient(buffer, gradient, root, 1)
            add_scaled(array, buffer, -lr)
        else:
            add_quotient(array, gradient, root, -lr)
        return 1


class Adagrad(Optimizer):
    """The gradient over the root of the sum of all its squares so far.

    Example: torch.optim.Adagrad([tensor(1., requires_grad=True)], lr=0.1)
    """

    written_by = "addcdiv_"

    settings = (
        "lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach, *,"
        " maximize, differentiable, fused"
    )
    before: ClassVar[dict[str, str]] = {"eps": "weight_decay"}
    not_negative = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")

    def begin(self, params: Any, settings: Group) -> None:
        super().begin(params, settings)
        for group in self.param_groups:
            for parameter in group["params"]:
                each = group["initial_accumulator_value"]
                if parameter.array.dtype.kind == "c":
                    each = complex(each, each)
                first = np.full_like(parameter.array, each)
                self.state[parameter] = {"step": scalar(0.0), "sum": Tensor(first)}

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:  # a parameter of a group that was added later
            state["step"] = scalar(0.0)
            state["sum"] = Tensor(np.full_like(array, group["initial_accumulator_value"]))
        step = stepped(state)
        gradient = decayed(array, gradient, group["weight_decay"])
        total = state["sum"].array
        add_product(total, gradient, gradient, 1)
        root = np.sqrt(total) + rounded(group["eps"], array)
        lr = number(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        add_quotient(array, gradient, root, -lr)
        return 1


class Adadelta(Optimizer):
    """Steps as large as earlier ones, by running averages of squares of both gradients and
    steps.

    Example: torch.optim.Adadelta([tensor(1., requires_grad=True)], lr=0.1)
    """

    settings = (
        "lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach, *, capturable, maximize,"
        " differentiable"
    )
    before: ClassVar[dict[str, str]] = {"foreach": "differentiable", "maximize": "capturable"}
    not_negative = ("lr", "eps", "weight_decay")

    def check(self, settings: Group) -> None:
        super().check(settings)
        if not 0.0 <= settings["rho"] <= 1.0:
            raise value_error(f"rho has to be from 0 to 1, and is {settings['rho']}")

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            state["step"] = scalar(0.0)
            state["square_avg"] = zeros_like(array)
            state["acc_delta"] = zeros_like(array)
        stepped(state)
        gradient = decayed(array, gradient, group["weight_decay"])
        rho, eps = group["rho"], rounded(group["eps"], array)
        square, steps = state["square_avg"].array, state["acc_delta"].array
        scale(square, rho)
        add_product(square, gradient, gradient, 1 - rho)
        change = np.sqrt(steps + eps) / np.sqrt(square + eps) * gradient
        scale(steps, rho)
        add_product(steps, change, change, 1 - rho)
        add_scaled(array, change, -number(group["lr"]))
        return 1


class Rprop(Optimizer):
    """Steps by the gradient's sign, longer while it stays the same and shorter when it turns.

    Example: torch.optim.Rprop([tensor(1., requires_grad=True)], lr=0.1)
    """

    written_by = "addcmul_"

    settings = (
        "lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable, foreach, maximize,"
        " differentiable"
    )
    before: ClassVar[dict[str, str]] = {"capturable": ""}

    def check(self, settings: Group) -> None:
        super().check(settings)
        etas = settings["etas"]
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise value_error(f"Invalid eta values: {etas[0]}, {etas[1]}")

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        if not state:
            state["step"] = scalar(0.0)
            state["prev"] = zeros_like(array)
            state["step_size"] = Tensor(np.full_like(array, number(group["lr"])))
        stepped(state)
        shorter, longer = group["etas"]
        before, size = state["prev"].array, state["step_size"].array
        sign = np.sign(gradient * before)
        kind = array.dtype.type
        factor = np.where(sign > 0, kind(longer), np.where(sign < 0, kind(shorter), kind(1)))
        size[...] = np.clip(size * factor, *map(kind, group["step_sizes"]))
        gradient = np.where(sign < 0, kind(0), gradient)
        add_product(array, np.sign(gradient), size, -1)
        before[...] = gradient
        return 1
