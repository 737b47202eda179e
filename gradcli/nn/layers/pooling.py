"""Pooling as layers."""

from __future__ import annotations

from typing import Any

from gradcli.errors import GradcliError
from gradcli.nn.layer import REQUIRED, Layer, Settings, layer


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
        given = self._values["output_size"], self._values["output_ratio"]
        if (given[0] is None) == (given[1] is None):
            raise GradcliError(
                "E204", f"{type(self).__name__}(): give either output_size or output_ratio"
            )
        dimensions = int(type(self).__name__[-2])
        for name in ("kernel_size", "output_size", "output_ratio"):
            value: Any = self._values[name]
            if value is not None and not isinstance(value, (tuple, list)):
                self._values[name] = (value,) * dimensions
        ratios: Any = self._values["output_ratio"]
        if ratios is not None and not all(0 < ratio < 1 for ratio in ratios):
            raise GradcliError(
                "E204",
                f"{type(self).__name__}(): output_ratio must be between 0 and 1, not {given[1]}",
            )


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


_WINDOW: Settings = {"kernel_size": REQUIRED, "stride": None, "padding": 0}
_COUNTED: Settings = {"ceil_mode": False, "count_include_pad": True}
_WINDOW_TEXT = "kernel_size={kernel_size}, stride={stride}, padding={padding}"

layer("pooling", "AvgPool1d", "avg_pool1d", {**_WINDOW, **_COUNTED}, _WINDOW_TEXT, _Pooling1d)

for _count in (1, 2, 3):
    layer(
        "pooling", f"MaxUnpool{_count}d", f"max_unpool{_count}d", _WINDOW, _WINDOW_TEXT, _Unpooling
    )
    if _count > 1:
        layer(
            "pooling",
            f"FractionalMaxPool{_count}d",
            f"fractional_max_pool{_count}d",
            {
                "kernel_size": REQUIRED,
                "output_size": None,
                "output_ratio": None,
                "return_indices": False,
                "_random_samples": None,
            },
            "",
            _Fractional,
        )
        layer(
            "pooling",
            f"AvgPool{_count}d",
            f"avg_pool{_count}d",
            {**_WINDOW, **_COUNTED, "divisor_override": None},
            _WINDOW_TEXT,
            _Pooling,
        )
    layer(
        "pooling",
        f"MaxPool{_count}d",
        f"max_pool{_count}d",
        {**_WINDOW, "dilation": 1, "return_indices": False, "ceil_mode": False},
        _WINDOW_TEXT + ", dilation={dilation}, ceil_mode={ceil_mode}",
        _Pooling,
    )
    layer(
        "pooling",
        f"LPPool{_count}d",
        f"lp_pool{_count}d",
        {"norm_type": REQUIRED, "kernel_size": REQUIRED, "stride": None, "ceil_mode": False},
        "norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}",
    )
    layer(
        "pooling",
        f"AdaptiveAvgPool{_count}d",
        f"adaptive_avg_pool{_count}d",
        {"output_size": REQUIRED},
        "output_size={output_size}",
    )
    layer(
        "pooling",
        f"AdaptiveMaxPool{_count}d",
        f"adaptive_max_pool{_count}d",
        {"output_size": REQUIRED, "return_indices": False},
        "output_size={output_size}",
    )
