"""Pooling as layers."""

from __future__ import annotations

from typing import Any

from gradcli.errors import value_error
from gradcli.library.torch.nn.layer import Layer, layer


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
    for _name, _function, _settings, _template, _base in (
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
            layer("pooling", _name + _ends, _function + _ends, _settings, _template, _base)
