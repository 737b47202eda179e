"""Activations as layers."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.nn.init import constant_
from gradcli.nn.layer import FUNCTIONS, REQUIRED, Layer, layer, new_parameter, register
from gradcli.nn.module import Module

_INPLACE = {"inplace": False}

for _name, _function, _settings, _template in (
    ("CELU", "celu", {"alpha": 1.0, "inplace": False}, "alpha={alpha}"),
    ("ELU", "elu", {"alpha": 1.0, "inplace": False}, "alpha={alpha}"),
    ("GELU", "gelu", {"approximate": "none"}, "approximate='{approximate}'"),
    ("GLU", "glu", {"dim": -1}, "dim={dim}"),
    ("Hardshrink", "hardshrink", {"lambd": 0.5}, "{lambd}"),
    ("Hardsigmoid", "hardsigmoid", _INPLACE, ""),
    ("Hardswish", "hardswish", _INPLACE, ""),
    (
        "LeakyReLU",
        "leaky_relu",
        {"negative_slope": 0.01, "inplace": False},
        "negative_slope={negative_slope}",
    ),
    ("LogSigmoid", "logsigmoid", {}, ""),
    ("LogSoftmax", "log_softmax", {"dim": None}, "dim={dim}"),
    ("Mish", "mish", _INPLACE, ""),
    ("ReLU", "relu", _INPLACE, ""),
    ("ReLU6", "relu6", _INPLACE, ""),
    ("SELU", "selu", _INPLACE, ""),
    ("SiLU", "silu", _INPLACE, ""),
    ("Sigmoid", "sigmoid", {}, ""),
    ("Softmax", "softmax", {"dim": None}, "dim={dim}"),
    ("Softmin", "softmin", {"dim": None}, "dim={dim}"),
    (
        "Softplus",
        "softplus",
        {"beta": 1.0, "threshold": 20.0},
        "beta={beta}, threshold={threshold}",
    ),
    ("Softshrink", "softshrink", {"lambd": 0.5}, "{lambd}"),
    ("Softsign", "softsign", {}, ""),
    ("Tanh", "tanh", {}, ""),
    ("Tanhshrink", "tanhshrink", {}, ""),
    (
        "Threshold",
        "threshold",
        {"threshold": REQUIRED, "value": REQUIRED, "inplace": False},
        "threshold={threshold}, value={value}",
    ),
):
    layer("activation", _name, _function, _settings, _template)


class _Hardtanh(Layer):
    """A hardtanh whose bounds are in order."""

    def check(self) -> None:
        low, high = self._values["min_val"], self._values["max_val"]
        if not low < high:
            raise GradcliError(
                "E204",
                f"Hardtanh(): min_val has to be below max_val, and {low} is not below {high}",
                raises="AssertionError",
            )


layer(
    "activation",
    "Hardtanh",
    "hardtanh",
    {"min_val": -1.0, "max_val": 1.0, "inplace": False},
    "min_val={min_val}, max_val={max_val}",
    _Hardtanh,
)


class _Randomised(Layer):
    """An activation that is random in training only."""

    def forward(self, input: Tensor) -> Tensor:
        values = self._values
        return FUNCTIONS["rrelu"](
            input, values["lower"], values["upper"], self.training, values["inplace"]
        )


layer(
    "activation",
    "RReLU",
    "rrelu",
    {"lower": 1 / 8, "upper": 1 / 3, "inplace": False},
    "lower={lower}, upper={upper}",
    _Randomised,
    "nn.RReLU().eval()(tensor([-1.5, 0., 2.5]))",
)


class PReLU(Module):
    """max(0, x) + weight · min(0, x), one weight for all channels or one for each.

    Example: nn.PReLU()(tensor([-1.5, 0., 2.5]))
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = new_parameter((num_parameters,), device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weights to the first value again."""
        constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return FUNCTIONS["prelu"](input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W).

    Example: nn.Softmax2d()(arange(16.).reshape(1, 1, 4, 4))
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise GradcliError("E204", f"Softmax2d takes 3 or 4 dimensions, not {input.ndim}")
        return FUNCTIONS["softmax"](input, -3)


for _kind in (PReLU, Softmax2d):
    register("activation", _kind)
