"""Fourier transforms: the entries of which `torch.fft` and `stft` are composed.

The transform of complex numbers, that of real ones, which keeps only the non-negative frequencies
where it is one-sided, and its inverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.autograd.inplace.writes import write
from gradcli.autograd.tensor import Tensor
from gradcli.ops.arithmetic.arithmetic import mul_number, zeros
from gradcli.ops.creation.copies import copy_
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.op import Op, op
from gradcli.ops.elementwise.complex import real_part
from gradcli.ops.shape.slicing import along, slice_
from gradcli.ops.shape.views import inverse_permutation
from gradcli.packages import imported

Dims = tuple[int, ...]

_FORWARD: dict[str, Any] = {"none": "backward", "root": "ortho", "full": "forward"}
_INVERSE: dict[str, Any] = {"none": "forward", "root": "ortho", "full": "backward"}
"""What divides a result (nothing, the root of the number of elements, or that number), in NumPy's
words, which name the direction that is divided."""


def _library(array: Any) -> Any:
    """What transforms an array: SciPy, which computes in single precision what is given in it, as
    PyTorch does and NumPy does not; on a GPU the library that replaces NumPy there.
    """
    if module_of(array) is not np:
        return np.fft
    return imported("scipy.fft")


# --- how results lie in memory ------------------------------------------------------------------
#
# As MKL's transforms leave them: the transformed dimensions innermost, the others by the size of
# their strides in the input.


def _order(strides: Sequence[int], dim: Dims) -> list[int]:
    """The dimensions of a result from the outermost to the innermost; `dim` in that order."""
    others = [d for d in range(len(strides)) if d not in dim]
    return [*sorted(others, key=lambda d: -strides[d]), *dim]


def _by_stride(strides: Sequence[int], dim: Dims) -> Dims:
    return tuple(sorted(dim, key=lambda d: -strides[d]))


def _laid_out(result: Any, order: Sequence[int]) -> Any:
    """The array with its dimensions in an order, from the outermost in memory to the innermost."""
    inner = module_of(result).ascontiguousarray(result.transpose(order))
    return inner.transpose(inverse_permutation(order))


# --- the entries --------------------------------------------------------------------------------


def _complex_to_complex(self: Any, dim: Dims, normalization: str, inverse: bool) -> Any:
    if not dim:
        return self.copy()
    transform = _library(self).ifftn if inverse else _library(self).fftn
    norm = (_INVERSE if inverse else _FORWARD)[normalization]
    result = transform(self, axes=dim, norm=norm).astype(self.dtype)
    return _laid_out(result, _order(self.strides, _by_stride(self.strides, dim)))


complex_to_complex: Op = op(
    "_fft_c2c",
    _complex_to_complex,
    keeps_layout=True,
    self=lambda grad, dim, normalization, inverse: complex_to_complex(
        grad, dim, normalization, not inverse
    ),
    raises=BY_KINDS,
)


def _real_to_complex(self: Any, dim: Dims, normalization: str, onesided: bool) -> Any:
    dtype = np.result_type(self.dtype, np.complex64)
    half = _library(self).rfftn(self, axes=dim, norm=_FORWARD[normalization]).astype(dtype)
    order = _order(self.strides, (*_by_stride(self.strides, dim[:-1]), dim[-1]))
    if onesided:
        return _laid_out(half, order)
    # The negative frequencies of real numbers are the conjugates of the positive ones.
    (last,) = dim
    size = self.shape[last]
    negative = half[along(half.ndim, last, slice((size - 1) // 2, 0, -1))]
    return _laid_out(np.concatenate([half, np.conj(negative)], last), order)


def _to_real_sizes(
    grad: Any, self_sizes: Dims, dim: Dims, normalization: str, onesided: bool
) -> Any:
    last = dim[-1]
    missing = self_sizes[last] - grad.shape[last]
    if onesided and missing:
        # The other frequencies are no output, so they have no gradient.
        whole = zeros(grad, (*grad.shape[:last], self_sizes[last], *grad.shape[last + 1 :]))
        kept = grad.shape[last]
        if type(grad) is Tensor:
            copy_(slice_(whole, last, 0, kept, 1), grad)
        else:
            whole[along(whole.ndim, last, slice(0, kept))] = grad
        grad = whole
    return real_part(complex_to_complex(grad, dim, normalization, True))


real_to_complex: Op = op(
    "_fft_r2c", _real_to_complex, keeps_layout=True, self=_to_real_sizes, raises=BY_KINDS
)


def _complex_to_real(self: Any, dim: Dims, normalization: str, last_dim_size: int) -> Any:
    sizes = [*(self.shape[d] for d in dim[:-1]), last_dim_size]
    whole = _library(self).irfftn(self, sizes, dim, _INVERSE[normalization])
    result = whole.astype(self.real.dtype)
    strides = list(self.strides)
    if len(dim) > 1:  # the last dimension's transform reads what the others' left
        others = _order(strides, _by_stride(strides, dim[:-1]))
        strides = [-others.index(d) for d in range(self.ndim)]
    return _laid_out(result, _order(strides, dim[-1:]))


def _to_half_sizes(grad: Any, dim: Dims, normalization: str) -> Any:
    result = real_to_complex(grad, dim, normalization, True)
    last = dim[-1]
    doubled = grad.shape[last] - result.shape[last]
    if doubled:
        # Each of these frequencies stands for two, itself and its negative.
        if type(result) is Tensor:
            twice = slice_(result, last, 1, 1 + doubled, 1)
            write(twice, mul_number(twice, 2))
        else:
            result[along(result.ndim, last, slice(1, 1 + doubled))] *= 2
    return result


complex_to_real: Op = op(
    "_fft_c2r", _complex_to_real, keeps_layout=True, self=_to_half_sizes, raises=BY_KINDS
)
