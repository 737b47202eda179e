"""Linear layers: `Identity Linear Bilinear`."""

from __future__ import annotations

import math
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.library.torch.nn.init import kaiming_uniform_, uniform_
from gradcli.library.torch.nn.layer import new_parameter, register
from gradcli.library.torch.nn.module import Module
from gradcli.ops.binding.functions import F


class Identity(Module):
    """Returns its input; takes any arguments, so that it can stand for another layer.

    Example: nn.Identity()(tensor([-1.5, 0., 2.5]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """input @ weight.T + bias, for inputs (…, in_features).

    Example: nn.Linear(3, 2)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = new_parameter((out_features, in_features), device, dtype)
        self.register_parameter(
            "bias", new_parameter((out_features,), device, dtype) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight, then the bias."""
        kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            draw_bias(self.bias, self.in_features)

    def forward(self, input: Tensor) -> Tensor:
        parameters = self._parameters
        try:
            weight, bias = parameters["weight"], parameters["bias"]
        except KeyError:  # the program replaced or deleted a parameter
            weight, bias = self.weight, self.bias
        return F.linear(input, weight, bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features},"
            f" bias={self.bias is not None}"
        )


class Bilinear(Module):
    """input1 · weight[o] · input2 + bias[o] for each output o.

    Example: nn.Bilinear(3, 2, 4)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = new_parameter((out_features, in1_features, in2_features), device, dtype)
        self.register_parameter(
            "bias", new_parameter((out_features,), device, dtype) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight, then the bias."""
        bound = 1 / math.sqrt(self.weight.array.shape[1])
        for parameter in (self.weight, self.bias):
            if parameter is not None:
                uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features},"
            f" out_features={self.out_features}, bias={self.bias is not None}"
        )


def draw_bias(bias: Tensor, fan_in: int) -> None:
    """The first values of a bias of a layer with so many inputs for each output."""
    bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
    uniform_(bias, -bound, bound)


for _kind in (Identity, Linear, Bilinear):
    register("linear", _kind)
