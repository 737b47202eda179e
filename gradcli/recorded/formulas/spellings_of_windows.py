"""How the language spells convolutions, pools and transforms, whose entries take the geometry of
their windows in one argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gradcli.recorded.symbols.tree import Call, Constant, Item, Keyword, Symbol, lifted

Bound = Mapping[str, Any]
SpelledWindows = Callable[[Bound, tuple[int, ...], int], Symbol]
"""From the operands and arguments of a step, the shape of its first output and the number of the
one that is wanted.
"""


def _sizes(values: Any) -> Any:
    """Sizes as they are written: one number where all dimensions have the same."""
    return values[0] if len(set(values)) == 1 else tuple(values)


def _written(value: Any) -> Symbol:
    if isinstance(value, np.ndarray):
        return Call("tensor", (Constant(value.tolist()),))
    return lifted(value)


def _call(name: str, operands: list[Any], **named: tuple[Any, Any]) -> Call:
    """A call with the arguments that differ from their defaults, each given with its default."""
    written = [
        Keyword(key, _written(value))
        for key, (value, default) in named.items()
        if _differs(value, default)
    ]
    return Call(name, (*map(lifted, operands), *written))


def _differs(value: Any, default: Any) -> bool:
    return isinstance(value, (Symbol, np.ndarray)) or value != default


def _convolution(bound: Bound, shape: tuple[int, ...], _nr: int) -> Symbol:
    geometry = bound["geometry"]
    windows, ndim = geometry.windows, len(shape) - 2
    operands = [bound["input"], bound["weight"]]
    operands += [] if bound["bias"] is None else [bound["bias"]]
    named = {
        "stride": (_sizes(windows.stride), 1),
        "padding": (_sizes(windows.padding), 0),
        "groups": (geometry.groups, 1),
        "dilation": (_sizes(windows.dilation), 1),
    }
    if not geometry.transposed:
        return _call(f"F.conv{ndim}d", operands, **named)
    # What is left of the sizes after the last window.
    counts = bound["sizes"][2:]
    rest = [
        size - ((count - 1) * s - 2 * p + d * (k - 1) + 1)
        for size, count, s, p, d, k in zip(
            geometry.sizes, counts, windows.stride, windows.padding, windows.dilation,
            windows.kernel, strict=True,
        )
    ]  # fmt: skip
    named["output_padding"] = (_sizes(rest), 0)
    return _call(f"F.conv_transpose{ndim}d", operands, **named)


def _largest(ndim: int) -> SpelledWindows:
    def write(bound: Bound, _shape: tuple[int, ...], nr: int) -> Symbol:
        windows = bound["windows"]
        named = {
            "stride": (_sizes(windows.stride), _sizes(windows.kernel)),
            "padding": (_sizes(windows.padding), 0),
            "dilation": (_sizes(windows.dilation), 1),
            "ceil_mode": (bound["ceil_mode"], False),
            "return_indices": (nr == 1, False),
        }
        call = _call(f"F.max_pool{ndim}d", [bound["self"], _sizes(windows.kernel)], **named)
        return Item(call, Constant(1)) if nr else call

    return write


def _mean(ndim: int) -> SpelledWindows:
    def write(bound: Bound, _shape: tuple[int, ...], _nr: int) -> Symbol:
        how = bound["argument"]
        windows = how.windows
        named = {
            "stride": (_sizes(windows.stride), _sizes(windows.kernel)),
            "padding": (_sizes(windows.padding), 0),
            "ceil_mode": (how.ceil_mode, False),
            "count_include_pad": (how.count_include_pad, True),
            "divisor_override": (how.divisor, None),
        }
        return _call(f"F.avg_pool{ndim}d", [bound["self"], _sizes(windows.kernel)], **named)

    return write


def _adaptive_mean(ndim: int) -> SpelledWindows:
    return lambda bound, _shape, _nr: Call(
        f"F.adaptive_avg_pool{ndim}d", (bound["self"], Constant(tuple(bound["argument"])))
    )


def _picked(name: str, *arguments: str, **named: str) -> SpelledWindows:
    """A pool that gives the largest elements and their places."""

    def write(bound: Bound, _shape: tuple[int, ...], nr: int) -> Symbol:
        keywords: dict[str, tuple[Any, Any]]
        keywords = {key: (bound[source], None) for key, source in named.items()}
        keywords["return_indices"] = (nr == 1, False)
        call = _call(name, [bound[each] for each in arguments], **keywords)
        return Item(call, Constant(1)) if nr else call

    return write


_NORMS = {
    False: {"none": None, "full": "forward"},
    True: {"none": "forward", "full": None},
}
"""The name of a transform's scaling: by whether it is an inverse, and by the entry's word."""


def _fourier(name: str, bound: Bound, inverse: bool, **more: tuple[Any, Any]) -> Symbol:
    dims = tuple(bound["dim"])
    if len(dims) == 1:
        name, dims = name.removesuffix("n"), dims[0]
    norm = _NORMS[inverse].get(bound["normalization"], "ortho")
    return _call(f"torch.fft.{name}", [bound["self"]], **more, dim=(dims, None), norm=(norm, None))


def _to_real(bound: Bound, shape: tuple[int, ...], _nr: int) -> Symbol:
    dims, size = tuple(bound["dim"]), bound["last_dim_size"]
    if len(dims) == 1:
        return _fourier("irfftn", bound, True, n=(size, None))
    sizes = tuple(shape[dim] for dim in dims)
    return _fourier("irfftn", bound, True, s=(sizes, None))


def _folding(name: str, operands: list[Any], windows: Any) -> Symbol:
    named = {
        "dilation": (_sizes(windows.dilation), 1),
        "padding": (_sizes(windows.padding), 0),
        "stride": (_sizes(windows.stride), 1),
    }
    return _call(name, [*operands, _sizes(windows.kernel)], **named)


OF_WINDOWS: dict[str, SpelledWindows] = {
    "convolution": _convolution,
    **{f"max_pool{n}d_with_indices": _largest(n) for n in (2, 3)},
    **{f"avg_pool{n}d": _mean(n) for n in (2, 3)},
    **{f"_adaptive_avg_pool{n}d": _adaptive_mean(n) for n in (2, 3)},
    **{
        f"adaptive_max_pool{n}d": _picked(f"F.adaptive_max_pool{n}d", "self", "output_size")
        for n in (2, 3)
    },
    **{
        f"fractional_max_pool{n}d": _picked(
            f"F.fractional_max_pool{n}d", "self", "kernel_size", "output_size",
            _random_samples="samples",
        )
        for n in (2, 3)
    },
    "im2col": lambda bound, _shape, _nr: _folding("F.unfold", [bound["self"]], bound["windows"]),
    "col2im": lambda bound, _shape, _nr: _folding(
        "F.fold", [bound["self"], tuple(bound["output_size"])], bound["windows"]
    ),
    "_fft_c2c": lambda bound, _shape, _nr: _fourier(
        "ifftn" if bound["inverse"] else "fftn", bound, bound["inverse"]
    ),
    "_fft_r2c": lambda bound, _shape, _nr: _fourier(
        "rfftn" if bound["onesided"] else "fftn", bound, False
    ),
    "_fft_c2r": _to_real,
}  # fmt: skip
