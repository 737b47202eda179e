"""Layers that change shapes: flattening, padding, folding, shuffling, resampling."""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.errors import type_error
from gradcli.library.torch.nn.attributes import kind_of
from gradcli.library.torch.nn.layer import REQUIRED, Layer, Settings, layer, register
from gradcli.library.torch.nn.module import Module
from gradcli.ops.binding.functions import F
from gradcli.ops.codegen.runtime import type_name
from gradcli.ops.definition.doc import SAMPLES
from gradcli.ops.shape.reshaping import flatten, unflatten

# --- flattening -----------------------------------------------------------------------------------


class Flatten(Module):
    """Makes one dimension of several, by default of all but the first.

    Example: nn.Flatten()(tensor([[2., 1.], [1., 3.]]))
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Makes several dimensions of one.

    Example: nn.Unflatten(1, (2, 1))(tensor([[2., 1.], [1., 3.]]))
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise type_error(
                f"the sizes are a tuple, not {kind_of(unflattened_size)}",
                text="unflattened_size must be a tuple of ints, but found type"
                f" {type_name(unflattened_size)}",
            )
        for position, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise type_error(
                    "unflattened_size must be tuple of ints, but found element of type"
                    f" {type_name(size)} at pos {position}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


for _kind in (Flatten, Unflatten):
    register("flatten", _kind)

# --- padding --------------------------------------------------------------------------------------


class _Padding(Layer):
    """Pads the last dimensions: one number for all sides, or two for each, the last one first.

    Attributes:
        mode: what `pad` fills the margin with.
        dimensions: how many dimensions are padded.
    """

    defaults: ClassVar[Settings] = {"padding": REQUIRED, "value": REQUIRED}
    mode: ClassVar[str]
    dimensions: ClassVar[int]

    def check(self) -> None:
        padding = self._values["padding"]
        count = 2 * self.dimensions
        sides = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * count
        self._values["padding"] = sides

    def forward(self, input: Tensor) -> Tensor:
        value = self._values.get("value", 0.0) if self.mode == "constant" else None
        return F.pad(input, self._values["padding"], self.mode, value)


for _count in (1, 2, 3):
    for _name, _mode, _settings, _template in (
        ("ConstantPad", "constant", "padding value", "padding={padding}, value={value}"),
        ("ZeroPad", "constant", "padding", "{padding}"),
        ("ReflectionPad", "reflect", "padding", "{padding}"),
        ("ReplicationPad", "replicate", "padding", "{padding}"),
        ("CircularPad", "circular", "padding", "{padding}"),
    ):
        _base = type("_Padding", (_Padding,), {"mode": _mode, "dimensions": _count})
        _arguments = "1, 7." if "value" in _settings else "1"
        _example = f"nn.{_name}{_count}d({_arguments})({SAMPLES[_count]})"
        layer("padding", f"{_name}{_count}d", "pad", _settings, _template, _base, _example)

# --- folding and shuffling ------------------------------------------------------------------------

for _home, _name, _function, _settings in (
    ("fold", "Unfold", "unfold", "kernel_size dilation padding stride"),
    ("fold", "Fold", "fold", "output_size kernel_size dilation padding stride"),
    ("channelshuffle", "ChannelShuffle", "channel_shuffle", "groups"),
    ("pixelshuffle", "PixelShuffle", "pixel_shuffle", "upscale_factor"),
    ("pixelshuffle", "PixelUnshuffle", "pixel_unshuffle", "downscale_factor"),
):
    layer(_home, _name, _function, _settings)

# --- resampling -----------------------------------------------------------------------------------


class _Resampling(Layer):
    """Resamples the spatial dimensions to a size, or by a factor."""

    def check(self) -> None:
        factor = self._values["scale_factor"]
        if isinstance(factor, (tuple, list)):
            self._values["scale_factor"] = tuple(float(each) for each in factor)
        elif factor is not None:
            self._values["scale_factor"] = float(factor)

    def extra_repr(self) -> str:
        name = "size" if self._values["scale_factor"] is None else "scale_factor"
        return f"{name}={self._values[name]}, mode={self._values['mode']!r}"


class _Fixed(_Resampling):
    """One whose mode is in its name."""

    mode: ClassVar[str]

    def check(self) -> None:
        super().check()
        self._values["mode"] = self.mode
        self._values["align_corners"] = True if self.mode == "bilinear" else None

    def forward(self, input: Tensor) -> Tensor:
        values = self._values
        return F.interpolate(
            input,
            values["size"],
            values["scale_factor"],
            values["mode"],
            values["align_corners"],
        )


_SETTINGS = "size scale_factor mode align_corners recompute_scale_factor"
layer("upsampling", "Upsample", "interpolate", _SETTINGS, base=_Resampling)
for _mode in ("nearest", "bilinear"):
    _base = type("_Fixed", (_Fixed,), {"mode": _mode})
    _name = f"Upsampling{_mode.title()}2d"
    layer("upsampling", _name, "interpolate", "size scale_factor", base=_base)
