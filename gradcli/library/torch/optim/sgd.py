"""Stochastic gradient descent: `SGD ASGD`."""

from __future__ import annotations

from typing import Any

from gradcli.arrays.backend import module_of
from gradcli.arrays.kernels import in_c
from gradcli.autograd.tensor import Tensor
from gradcli.errors import value_error
from gradcli.library.torch.optim.optimizer import (
    Group,
    Optimizer,
    State,
    add_scaled,
    decayed,
    number,
    scalar,
    scale,
    scaled_sum,
    stepped,
    zeros_like,
)


class SGD(Optimizer):
    """parameter -= lr · gradient, or · a running sum of gradients with momentum.

    Raises E204 for a setting out of range, and for `nesterov` without momentum or with dampening.

    Example: torch.optim.SGD([tensor(1., requires_grad=True)], lr=0.1)
    """

    settings = (
        "lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize, foreach,"
        " differentiable, fused"
    )
    not_negative = ("lr", "momentum", "weight_decay")

    def check(self, settings: Group) -> None:
        super().check(settings)
        if settings["nesterov"] and (settings["momentum"] <= 0 or settings["dampening"] != 0):
            raise value_error("Nesterov momentum requires a momentum and zero dampening")

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        gradient = self._direction(array, gradient, state, group, group["momentum"])
        add_scaled(array, gradient, -number(group["lr"]))
        return 1

    def scheduled(self, group: Group) -> tuple[str, ...]:
        return ("lr", "momentum") if group["momentum"] and not group["nesterov"] else ("lr",)

    def numbers(self, state: State, group: Group) -> tuple[float, ...] | None:
        factor = -number(group["lr"])
        return (factor, group["momentum"]) if len(self.scheduled(group)) == 2 else (factor,)

    def apply(
        self, array: Any, gradient: Any, state: State, group: Group, numbers: tuple[Any, ...]
    ) -> int:
        factor, momentum = numbers if len(numbers) == 2 else (*numbers, group["momentum"])
        gradient = self._direction(array, gradient, state, group, momentum)
        return int(in_c.add_scaled(array, gradient, factor, array))

    def _direction(
        self, array: Any, gradient: Any, state: State, group: Group, momentum: Any
    ) -> Any:
        """What is taken off, times the rate; the momentum goes on."""
        gradient = decayed(array, gradient, group["weight_decay"])
        if group["momentum"]:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = Tensor(module_of(gradient).array(gradient))
            else:
                scale(buffer.array, momentum)
                add_scaled(buffer.array, gradient, 1 - group["dampening"])
            if group["nesterov"]:
                return scaled_sum(gradient, buffer.array, momentum)
            return buffer.array
        return gradient


class ASGD(Optimizer):
    """Stochastic gradient descent with the average of the parameters over time.

    Raises E204 for a setting out of range.

    Example: torch.optim.ASGD([tensor(1., requires_grad=True)], lr=0.1)
    """

    written_by = "mul_"

    settings = (
        "lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach, maximize,"
        " differentiable, capturable"
    )
    not_negative = ("lr", "weight_decay")

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        lr, lambd = number(group["lr"]), group["lambd"]
        if not state:
            state["step"] = scalar(0.0)
            state["eta"] = scalar(lr)
            state["mu"] = scalar(1.0)
            state["ax"] = zeros_like(array)
        step = stepped(state)
        gradient = decayed(array, gradient, group["weight_decay"])
        rate, share = state["eta"], state["mu"]
        average = state["ax"].array
        scale(array, 1 - lambd * float(rate.array))
        add_scaled(array, gradient, -float(rate.array))
        if float(share.array) == 1:
            average[...] = array
        else:
            average += (array - average) * share.array.astype(array.dtype)
        # Loaded again both have the parameter's dtype, but what is written to them the default one.
        rate.array = rate.array.dtype.type(
            scalar(lr / ((1 + lambd * lr * step) ** group["alpha"])).array
        )
        share.array = share.array.dtype.type(scalar(1 / max(1, step - group["t0"])).array)
        return 2
