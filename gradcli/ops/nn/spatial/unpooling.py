"""Max unpooling, and fractional pooling with windows at random positions: `max_unpool2d
fractional_max_pool2d` and their like.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.kernels.windows.windows import Sizes
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, index_error, shape_error, value_error
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.arguments import check_filled, check_floating
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.random import uniform_array
from gradcli.ops.definition.doc import BY_VALUES, RANDOM, SAMPLES, describe
from gradcli.ops.definition.op import Op, op
from gradcli.ops.indexing.gather import scatter_tensor
from gradcli.ops.nn.spatial.pooling import picking, taken_at
from gradcli.ops.nn.spatial.unfold import per_dimension
from gradcli.ops.shape.views import reshape, squeeze_dim, unsqueeze

# --- max_unpool ---------------------------------------------------------------------------------


def _unpooled(self: Any, indices: Any, output_size: Sizes) -> Any:
    ndim = len(output_size)
    planes, size = prod(self.shape[:-ndim]), prod(output_size)
    if np.any((indices < 0) | (indices >= size)):
        raise index_error(
            f"max_unpool{ndim}d(): an index lies outside the {size} elements of the output",
            raises="RuntimeError",
        )
    result = module_of(self).zeros((planes, size), self.dtype)
    rows = (planes, prod(self.shape[-ndim:]))
    np.put_along_axis(result, indices.reshape(rows), self.reshape(rows), 1)
    return result.reshape(*self.shape[:-ndim], *output_size)


def _unpooled_decomposed(self: Tensor, indices: Tensor, output_size: Sizes) -> Tensor:
    leading, ndim = tuple(self.shape[: -len(output_size)]), len(output_size)
    rows, places = (reshape(each, (*leading, prod(each.shape[-ndim:]))) for each in (self, indices))
    empty = zeros(self, (*leading, prod(output_size)))
    return reshape(scatter_tensor(empty, len(leading), places, rows), (*leading, *output_size))


def _unpool(ndim: int) -> Op:
    return op(
        f"max_unpool{ndim}d",
        _unpooled,
        decomposition=_unpooled_decomposed,
        constant=("indices",),
        self=lambda grad, indices: taken_at(grad, indices, ndim),
        raises=BY_VALUES,
    )


_UNPOOL = {2: _unpool(2), 3: _unpool(3)}


def _unpooled_sizes(
    name: str, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, output_size: Any
) -> Sizes:
    default = tuple(
        (size - 1) * step + window - 2 * pad
        for size, step, window, pad in zip(sizes, stride, kernel, padding, strict=True)
    )
    if output_size is None:
        return default
    requested = tuple(output_size)[-len(sizes) :]
    for wanted, usual, step in zip(requested, default, stride, strict=False):
        if not usual - step < wanted < usual + step:
            raise value_error(
                f"{name}(): the output size {requested} cannot have been pooled to {sizes}"
            )
    return requested


def _expose_unpool(ndim: int) -> None:
    name = f"max_unpool{ndim}d"

    @function(name, module="torch.nn.functional")
    def max_unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Tensor:
        if indices.dtype.name != "int64":
            raise dtype_error(
                f"elements in indices should be type int64 but got: {indices.dtype.scalar_type}"
            )
        shape = input.array.shape
        if shape != indices.array.shape or len(shape) not in (ndim + 1, ndim + 2):
            raise shape_error(
                f"{name}(): an input of shape {shape} and indices of {indices.array.shape}"
            )
        check_filled(name, input, ndim + 2)
        check_floating(name, input)
        kernel = per_dimension(name, "kernel_size", kernel_size, ndim)
        steps = per_dimension(name, "stride", kernel_size if stride is None else stride, ndim)
        pads = per_dimension(name, "padding", padding, ndim, 0)
        counts = _unpooled_sizes(name, shape[-ndim:], kernel, steps, pads, output_size)
        if ndim > 1:
            return _UNPOOL[ndim].apply(input, indices, counts)
        raised = unsqueeze.apply(input, -1), unsqueeze.apply(indices, -1)
        return squeeze_dim.apply(_UNPOOL[2].apply(*raised, (*counts, 1)), len(shape))

    opening, closing = "[" * (ndim + 2), "]" * (ndim + 2)
    picked = ("1., 2.", "1, 2") if ndim == 1 else ("1.", "3")
    describe(
        max_unpool,
        f"What max_pool{ndim}d picked, put back where it was; 0 elsewhere. Raises E301 where the"
        " shapes do not fit, E204 for an output size that cannot be.",
        f"F.{name}({', '.join(f'tensor({opening}{each}{closing})' for each in picked)}, 2)",
    )


for _ndim in (1, 2, 3):
    _expose_unpool(_ndim)

# --- fractional_max_pool ------------------------------------------------------------------------


def _starts(sample: Any, size: int, count: int, window: int) -> Any:
    """Where the windows of a dimension begin, for each sample: shape (..., count)."""
    if count == 1:
        return module_of(sample).full((*sample.shape, 1), size - window)
    step = (size - window) / (count - 1)
    positions = np.arange(count - 1)
    starts = np.trunc((positions + sample[..., None]) * step) - np.trunc(sample[..., None] * step)
    last = module_of(sample).full((*sample.shape, 1), size - window)
    return np.concatenate([starts.astype(np.int64), last], -1)


def _fractional_array(
    self: Any, kernel_size: Sizes, output_size: Sizes, samples: Any
) -> tuple[Any, Any]:
    """The largest of each window and its position in row order; a nan is larger than anything."""
    ndim = len(kernel_size)
    sizes = self.shape[-ndim:]
    planes = self.reshape(-1, prod(sizes))
    samples = samples.reshape(len(planes), ndim)
    positions: Any = np.zeros((len(planes), *(1,) * (2 * ndim)), np.int64)
    for dim, (size, count, window) in enumerate(zip(sizes, output_size, kernel_size, strict=True)):
        # The samples are drawn for the last dimension first.
        starts = _starts(samples[:, ndim - 1 - dim], size, count, window)
        along = starts[:, :, None] + np.arange(window)
        aligned = [len(planes), *(1,) * (2 * ndim)]
        aligned[1 + dim], aligned[1 + ndim + dim] = count, window
        positions = positions + along.reshape(aligned) * prod(sizes[dim + 1 :])
    positions = np.broadcast_to(positions, (len(planes), *output_size, *kernel_size))
    positions = positions.reshape(len(planes), prod(output_size), prod(kernel_size))
    values = planes[np.arange(len(planes))[:, None, None], positions]
    ranked = np.where(np.isnan(values), np.inf, values)
    best = np.argmax(ranked, -1)[..., None]
    shape = (*self.shape[:-ndim], *output_size)
    return (
        np.take_along_axis(values, best, -1).reshape(shape),
        np.take_along_axis(positions, best, -1).reshape(shape),
    )


# Samples outside of [0, 1) put a window outside of the input.
_FRACTIONAL = {
    ndim: picking(f"fractional_max_pool{ndim}d", ndim, _fractional_array, raises=BY_VALUES)
    for ndim in (2, 3)
}


def _expose_fractional(ndim: int) -> None:
    name = f"fractional_max_pool{ndim}d"

    @function(name, module="torch.nn.functional", effects=(RANDOM,))
    def fractional_max_pool(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        check_floating(name, input)
        shape = input.array.shape
        if len(shape) not in (ndim + 1, ndim + 2):
            raise shape_error(f"{name}(): an input of shape {shape}")
        if (output_size is None) == (output_ratio is None):
            raise value_error(
                f"{name} requires specifying either an output_size or an output_ratio"
            )
        kernel = per_dimension(name, "kernel_size", kernel_size, ndim)
        sizes = shape[-ndim:]
        if output_size is None:
            ratios = (
                tuple(output_ratio) if isinstance(output_ratio, (tuple, list))
                else (output_ratio,) * ndim
            )  # fmt: skip
            counts = tuple(int(n * ratio) for n, ratio in zip(sizes, ratios, strict=True))
        else:
            counts = per_dimension(name, "output_size", output_size, ndim)
        for size, count, window in zip(sizes, counts, kernel, strict=True):
            if count < 1 or count + window - 1 > size:
                raise shape_error(
                    f"{name}(): {count} windows of {window} elements do not fit into {size}"
                )
        if _random_samples is None:
            batch = 1 if len(shape) == ndim + 1 else shape[0]
            drawn = (batch, shape[-ndim - 1], ndim)
            samples = uniform_array(name, drawn, input.dtype, None, 0.0, 1.0)
        else:
            samples = _random_samples.array
        values, indices = _FRACTIONAL[ndim].apply(input, kernel, counts, samples)
        return (values, indices) if return_indices else values

    describe(
        fractional_max_pool,
        "The largest of windows at random places, as many as `output_size` says, or as"
        " `output_ratio` says of the input's. Raises E301 where the windows do not fit, E204 unless"
        " one of the two is given.",
        f"F.{name}({SAMPLES[ndim]}, {4 - ndim}, output_size=2)",
    )


for _ndim in (2, 3):
    _expose_fractional(_ndim)
