"""Activations and dropout as layers."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import assertion_error, value_error
from gradcli.library.torch.nn.init import constant_
from gradcli.library.torch.nn.layer import FUNCTIONS, Layer, layer, new_parameter, register
from gradcli.library.torch.nn.module import Module
from gradcli.ops.binding.functions import F

for _name, _function, _settings, _template in (
    ("CELU", "celu", "alpha inplace", None),
    ("ELU", "elu", "alpha inplace", None),
    ("GELU", "gelu", "approximate", "approximate='{approximate}'"),
    ("GLU", "glu", "dim", None),
    ("Hardshrink", "hardshrink", "lambd", "{lambd}"),
    ("Hardsigmoid", "hardsigmoid", "inplace", None),
    ("Hardswish", "hardswish", "inplace", None),
    ("LeakyReLU", "leaky_relu", "negative_slope inplace", None),
    ("LogSigmoid", "logsigmoid", "", None),
    ("LogSoftmax", "log_softmax", "dim", None),
    ("Mish", "mish", "inplace", None),
    ("ReLU", "relu", "inplace", None),
    ("ReLU6", "relu6", "inplace", None),
    ("SELU", "selu", "inplace", None),
    ("SiLU", "silu", "inplace", None),
    ("Sigmoid", "sigmoid", "", None),
    ("Softmax", "softmax", "dim", None),
    ("Softmin", "softmin", "dim", None),
    ("Softplus", "softplus", "beta threshold", None),
    ("Softshrink", "softshrink", "lambd", "{lambd}"),
    ("Softsign", "softsign", "", None),
    ("Tanh", "tanh", "", None),
    ("Tanhshrink", "tanhshrink", "", None),
    ("Threshold", "threshold", "threshold value inplace", None),
):
    layer("activation", _name, _function, _settings, _template)


class _Hardtanh(Layer):
    """A hardtanh whose bounds are in order."""

    def check(self) -> None:
        low, high = self._values["min_val"], self._values["max_val"]
        if not low < high:
            raise assertion_error(
                f"Hardtanh(): min_val has to be below max_val, and {low} is not below {high}"
            )


layer("activation", "Hardtanh", "hardtanh", "min_val max_val inplace", base=_Hardtanh)


class _Randomised(Layer):
    """An activation that is random in training only."""

    def forward(self, input: Tensor) -> Tensor:
        values = self._values
        return F.rrelu(input, values["lower"], values["upper"], self.training, values["inplace"])


_EVALUATED = "nn.RReLU().eval()(tensor([-1.5, 0., 2.5]))"
layer("activation", "RReLU", "rrelu", "lower upper inplace", None, _Randomised, _EVALUATED)


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
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W).

    Example: nn.Softmax2d()(arange(16.).reshape(1, 1, 4, 4))
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise value_error(f"Softmax2d takes 3 or 4 dimensions, not {input.ndim}")
        return F.softmax(input, -3)


for _kind in (PReLU, Softmax2d):
    register("activation", _kind)


class _Dropout(Layer):
    """Sets elements, or whole channels, to 0 with probability p."""

    def check(self) -> None:
        p = self._values["p"]
        if not 0 <= p <= 1:
            raise value_error(
                f"{self._get_name()}(): p={p} is not between 0 and 1",
                text=f"dropout probability has to be between 0 and 1, but got {p}",
            )

    def forward(self, input: Tensor) -> Tensor:
        values = self._values
        function = FUNCTIONS[self.function]
        return function(input, values["p"], self.training, inplace=values["inplace"])


class _AlphaDropout(_Dropout):
    """The same to the lowest value of `selu`; it takes `inplace` and never writes to its input."""

    def forward(self, input: Tensor) -> Tensor:
        return FUNCTIONS[self.function](input, self._values["p"], self.training)


def _layer(name: str, function: str, base: type[Layer] = _Dropout) -> type[Layer]:
    return layer("dropout", name, function, "p inplace", "p={p}, inplace={inplace}", base)


Dropout = _layer("Dropout", "dropout")
_layer("Dropout1d", "dropout1d")
_layer("Dropout2d", "dropout2d")
_layer("Dropout3d", "dropout3d")
_layer("AlphaDropout", "alpha_dropout", _AlphaDropout)
_layer("FeatureAlphaDropout", "feature_alpha_dropout", _AlphaDropout)
