"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.optim.arithmetic import add_scaled, scale, scaled_sum
from gradcli.optim.optimizer import Group, Optimizer, State, check_range, number, register


@register
class SGD(Optimizer):
    """parameter -= lr · gradient, or · a running sum of gradients with momentum.

    Raises E204 for a setting out of range, and for `nesterov` without momentum or with dampening.
    """

    __slots__ = ()

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_range("lr", number(lr))
        check_range("momentum", momentum)
        check_range("weight_decay", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise GradcliError("E204", "nesterov=True needs momentum, and no dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        weight_decay, momentum = group["weight_decay"], group["momentum"]
        if weight_decay:
            gradient = scaled_sum(gradient, array, weight_decay)
        if momentum:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = Tensor(module_of(gradient).array(gradient))
            else:
                scale(buffer.array, momentum)
                add_scaled(buffer.array, gradient, 1 - group["dampening"])
            if group["nesterov"]:
                gradient = scaled_sum(gradient, buffer.array, momentum)
            else:
                gradient = buffer.array
        add_scaled(array, gradient, -number(group["lr"]))
        return 1
