"""Pooling, and convolutions: `Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d
ConvTranspose3d`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.errors import value_error
from gradcli.library.torch.nn.init import fans, kaiming_uniform_
from gradcli.library.torch.nn.layer import (
    FUNCTIONS,
    Layer,
    layer,
    new_parameter,
    register,
    register_base,
)
from gradcli.library.torch.nn.layers.linear import draw_bias
from gradcli.library.torch.nn.module import Module
from gradcli.ops.binding.functions import F

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def _each(value: Any, count: int) -> tuple[int, ...]:
    """One number for all dimensions, or one for each."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


class _Convolution(Module):
    """What all convolutions share.

    Attributes:
        dimensions: the number of spatial dimensions.
        transposed: whether the layer is the gradient of a convolution.
    """

    dimensions: ClassVar[int]
    transposed: ClassVar[bool] = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise value_error("groups must be a positive integer")
        for name, count in (("in_channels", in_channels), ("out_channels", out_channels)):
            if count % groups:
                raise value_error(f"{name} must be divisible by groups")
        if padding_mode not in _PADDING_MODES:
            known = ", ".join(map(repr, _PADDING_MODES))
            raise value_error(f"padding_mode must be one of {{{known}}}, but got {padding_mode=}")
        count = self.dimensions
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _each(kernel_size, count)
        self.stride = _each(stride, count)
        self.padding = padding if isinstance(padding, str) else _each(padding, count)
        self.dilation = _each(dilation, count)
        self.output_padding = _each(0, count)
        self.groups = groups
        self.padding_mode = padding_mode
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise value_error(
                    f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}"
                )
            if padding == "same" and any(step != 1 for step in self.stride):
                raise value_error("padding='same' is not supported for strided convolutions")
        first, second = out_channels, in_channels
        if self.transposed:
            first, second = second, first
        self.weight = new_parameter((first, second // groups, *self.kernel_size), device, dtype)
        self.register_parameter(
            "bias", new_parameter((out_channels,), device, dtype) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight, then the bias."""
        kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None and fans(self.weight)[0]:
            draw_bias(self.bias, fans(self.weight)[0])

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size},"
            f" stride={self.stride}"
        )
        none = (0,) * self.dimensions
        if self.padding != none:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.dimensions:
            text += f", dilation={self.dilation}"
        if self.transposed and self.output_padding != none:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Forward(_Convolution):
    """A convolution of (N, C, …) or (C, …).

    Example: nn.Conv2d(1, 2, 3)
    """

    def _sides(self) -> list[int]:
        """The padding of each side, last dimension first, as `pad` takes it."""
        padding = self.padding
        sides: list[int] = []
        for at in reversed(range(self.dimensions)):
            if padding == "same":
                total = self.dilation[at] * (self.kernel_size[at] - 1)
                sides += [total // 2, total - total // 2]
            else:
                sides += [0, 0] if isinstance(padding, str) else [padding[at]] * 2
        return sides

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution by any weight: what a class of the program's calls, or replaces."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._sides(), self.padding_mode)
            padding = 0
        return FUNCTIONS[f"conv{self.dimensions}d"](
            input, weight, bias, self.stride, padding, self.dilation, self.groups
        )


class _Transposed(_Convolution):
    """The gradient of a convolution, as a layer: it makes inputs of outputs' sizes.

    Example: nn.ConvTranspose2d(1, 2, 3)
    """

    transposed: ClassVar[bool] = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise value_error("a transposed convolution pads with zeros only")
        sizes = (in_channels, out_channels, kernel_size, stride, padding, dilation)
        super().__init__(*sizes, groups, bias, padding_mode, device, dtype)
        self.output_padding = _each(output_padding, self.dimensions)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        return FUNCTIONS[f"conv_transpose{self.dimensions}d"](
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            extra,
            self.groups,
            self.dilation,
        )

    def _extra(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """The output padding that gives the requested size; raises E204 if none does."""
        wanted = tuple(output_size)[-self.dimensions :]
        sizes = input.array.shape[-self.dimensions :]
        extra = []
        for at, size in enumerate(sizes):
            smallest = (
                (size - 1) * self.stride[at]
                - 2 * self.padding[at]
                + self.dilation[at] * (self.kernel_size[at] - 1)
                + 1
            )
            extra.append(wanted[at] - smallest)
        if any(not 0 <= more < step for more, step in zip(extra, self.stride, strict=True)):
            least = [size - more for size, more in zip(wanted, extra, strict=True)]
            most = [size + step - 1 for size, step in zip(least, self.stride, strict=True)]
            raise value_error(
                f"requested an output size of {tuple(output_size)}, but valid sizes range from"
                f" {least} to {most} (for an input of"
                f" torch.Size({list(input.array.shape[2:])}))"
            )
        return tuple(extra)


for _count in (1, 2, 3):
    for _name, _base in (("Conv", _Forward), ("ConvTranspose", _Transposed)):
        _body = {"__doc__": _base.__doc__, "dimensions": _count}
        register("conv", type(f"{_name}{_count}d", (_base,), _body))

register_base("conv", "_ConvNd", _Convolution)
register_base("conv", "_ConvTransposeNd", _Transposed)


class _Pooling(Layer):
    """A pooling whose stride is the size of its windows unless it is given."""

    def check(self) -> None:
        if self._values["stride"] is None:
            self._values["stride"] = self._values["kernel_size"]


class _Pooling1d(_Pooling):
    """One of a single dimension, which keeps its numbers as tuples."""

    def check(self) -> None:
        super().check()
        for name in ("kernel_size", "stride", "padding"):
            value: Any = self._values[name]
            self._values[name] = tuple(value) if isinstance(value, (tuple, list)) else (value,)


class _Fractional(Layer):
    """A pooling of windows at random positions, as many as a size or a ratio says."""

    def check(self) -> None:
        size_and_ratio = self._values["output_size"], self._values["output_ratio"]
        if (size_and_ratio[0] is None) == (size_and_ratio[1] is None):
            raise value_error(
                f"{type(self).__name__} requires specifying either an output size, or a pooling"
                " ratio"
                if size_and_ratio[0] is None
                else "only one of output_size and output_ratio may be specified"
            )
        dimensions = int(type(self).__name__[-2])
        for name in ("kernel_size", "output_size", "output_ratio"):
            value: Any = self._values[name]
            if value is not None and not isinstance(value, (tuple, list)):
                self._values[name] = (value,) * dimensions
        ratios: Any = self._values["output_ratio"]
        if ratios is not None and not all(0 < ratio < 1 for ratio in ratios):
            raise value_error(f"output_ratio must be between 0 and 1 (got {size_and_ratio[1]})")


class _Unpooling(_Pooling):
    """The inverse of a max pool: it takes the indices, and the size of its output where that is not
    what the windows say.
    """

    def check(self) -> None:
        super().check()
        dimensions = int(type(self).__name__[-2])
        for name in ("kernel_size", "stride", "padding"):
            value: Any = self._values[name]
            listed = isinstance(value, (tuple, list))
            self._values[name] = tuple(value) if listed else (value,) * dimensions

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return super().forward(input, indices, output_size=output_size)


_WINDOW = "kernel_size stride padding"
_SHOWN = "kernel_size={kernel_size}, stride={stride}, padding={padding}"

for _count in (1, 2, 3):
    for _name, _function, _settings, _template, _pooling in (
        (
            "AvgPool",
            "avg_pool",
            f"{_WINDOW} ceil_mode count_include_pad{' divisor_override' * (_count > 1)}",
            _SHOWN,
            _Pooling if _count > 1 else _Pooling1d,
        ),
        (
            "MaxPool",
            "max_pool",
            f"{_WINDOW} dilation return_indices ceil_mode",
            _SHOWN + ", dilation={dilation}, ceil_mode={ceil_mode}",
            _Pooling,
        ),
        ("MaxUnpool", "max_unpool", _WINDOW, None, _Unpooling),
        ("LPPool", "lp_pool", "norm_type kernel_size stride ceil_mode", None, Layer),
        ("AdaptiveAvgPool", "adaptive_avg_pool", "output_size", None, Layer),
        (
            "AdaptiveMaxPool",
            "adaptive_max_pool",
            "output_size return_indices",
            "output_size={output_size}",
            Layer,
        ),
        (
            "FractionalMaxPool",
            "fractional_max_pool",
            "kernel_size output_size output_ratio return_indices _random_samples",
            "",
            _Fractional,
        ),
    ):
        if _name != "FractionalMaxPool" or _count > 1:
            _ends = f"{_count}d"
            layer("pooling", _name + _ends, _function + _ends, _settings, _template, _pooling)
