"""`torch.fft`: `fft rfft irfft hfft` and their like in one, two and several dimensions; and
`stft istft`, the transforms of a signal's overlapping segments.

All are composed of three entries: the transform of complex numbers, that of real ones,
which keeps only the non-negative frequencies where it is one-sided, and its inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.autograd.inplace.writes import write
from gradcli.autograd.tensor import Tensor
from gradcli.errors import (
    GradcliError,
    dtype_error,
    index_error,
    runtime_error,
    shape_error,
    type_error,
)
from gradcli.ops.arithmetic.arithmetic import conj, conj_physical, div, mul, mul_number, zeros
from gradcli.ops.binding.arguments import check_not_integral, normal_dim, normal_dims
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.copies import contiguous, copy_, to
from gradcli.ops.creation.fill import checked_dtype, plain_number, tensor_of
from gradcli.ops.definition.doc import BY_KINDS, describe
from gradcli.ops.definition.op import Op, op
from gradcli.ops.elementwise.complex import real_part, view_as_complex, view_as_real
from gradcli.ops.indexing.strided import strided
from gradcli.ops.nn.spatial.padding import constant_pad_nd, pad
from gradcli.ops.shape.reshaping import roll
from gradcli.ops.shape.slicing import along, slice_op, unfold_backward
from gradcli.ops.shape.views import (
    expand,
    inverse_permutation,
    squeeze_dim,
    squeeze_dim_in_place,
    transpose,
    unsqueeze,
    view,
)

Dims = tuple[int, ...]

_FORWARD: dict[str, Any] = {"none": "backward", "root": "ortho", "full": "forward"}
_INVERSE: dict[str, Any] = {"none": "forward", "root": "ortho", "full": "backward"}
"""What divides a result (nothing, the root of the number of elements, or that number), in NumPy's
words, which name the direction that is divided."""


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


def _wide(array: Any) -> Any:
    """The operand in double precision on the host: NumPy's transforms in single precision are
    further from the truth than PyTorch's.
    """
    if module_of(array) is not np:
        return array
    return array.astype(np.result_type(array.dtype, np.float64), copy=False)


# --- the entries --------------------------------------------------------------------------------


def _complex_to_complex(self: Any, dim: Dims, normalization: str, inverse: bool) -> Any:
    if not dim:
        return self.copy()
    transform = np.fft.ifftn if inverse else np.fft.fftn
    norm = (_INVERSE if inverse else _FORWARD)[normalization]
    result = transform(_wide(self), axes=dim, norm=norm).astype(self.dtype)
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
    half = np.fft.rfftn(_wide(self), axes=dim, norm=_FORWARD[normalization]).astype(dtype)
    order = _order(self.strides, (*_by_stride(self.strides, dim[:-1]), dim[-1]))
    if onesided:
        return _laid_out(half, order)
    # The negative frequencies of real numbers are the conjugates of the positive ones.
    (last,) = dim
    size = self.shape[last]
    negative = half[along(half.ndim, last, slice((size - 1) // 2, 0, -1))]
    return _laid_out(np.concatenate([half, np.conj(negative)], last), order)


def _to_real_sizes(grad: Any, self: Any, dim: Dims, normalization: str, onesided: bool) -> Any:
    # The input is kept as PyTorch keeps it: a write to it is an error.
    self_sizes, last = tuple(self.shape), dim[-1]
    missing = self_sizes[last] - grad.shape[last]
    if onesided and missing:
        # The other frequencies are no output, so they have no gradient.
        whole = zeros(grad, (*grad.shape[:last], self_sizes[last], *grad.shape[last + 1 :]))
        kept = grad.shape[last]
        if type(grad) is Tensor:
            copy_(slice_op(whole, last, 0, kept, 1), grad)
        else:
            whole[along(whole.ndim, last, slice(0, kept))] = grad
        grad = whole
    return real_part(complex_to_complex(grad, dim, normalization, True))


real_to_complex: Op = op(
    "_fft_r2c", _real_to_complex, keeps_layout=True, self=_to_real_sizes, raises=BY_KINDS
)


def _complex_to_real(self: Any, dim: Dims, normalization: str, last_dim_size: int) -> Any:
    sizes = [*(self.shape[d] for d in dim[:-1]), last_dim_size]
    whole = np.fft.irfftn(_wide(self), sizes, dim, _INVERSE[normalization])
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
            twice = slice_op(result, last, 1, 1 + doubled, 1)
            write(twice, mul_number(twice, 2))
        else:
            result[along(result.ndim, last, slice(1, 1 + doubled))] *= 2
    return result


complex_to_real: Op = op(
    "_fft_c2r", _complex_to_real, keeps_layout=True, self=_to_half_sizes, raises=BY_KINDS
)


# --- arguments ------------------------------------------------------------------------------------


def _prepared(name: str, input: Any) -> Tensor:
    """The operand as a floating or complex tensor. Raises E203 for half precision."""
    if input.dtype.itemsize == 2 and input.dtype.is_floating_point:
        raise dtype_error(f"{name}() is not defined for {input.dtype}")
    if input.dtype.category in ("int", "bool"):
        return to(input, dtypes.default_dtype())
    return input


def _check_real(name: str, input: Tensor) -> None:
    if input.dtype.is_complex:
        raise dtype_error(f"{name} expects a real input tensor, but got {input.dtype.scalar_type}")


def _normalization(name: str, norm: Any, forward: bool) -> str:
    """What divides the result: see `fourier`. Raises E204 for an unknown mode."""
    if norm == "ortho":
        return "root"
    if norm not in (None, "backward", "forward"):
        raise runtime_error(
            f"{name}(): norm is 'forward', 'backward', 'ortho' or None, not {norm!r}"
        )
    return "full" if (norm == "forward") == forward else "none"


def _length(name: str, size: Any) -> int:
    """A number of points; raises E202 for what is no integer, E204 for none."""
    if type(size) is not int:
        raise type_error(f"{name}(): a length must be an integer")
    if size < 1:
        text = f"Invalid number of data points ({size}) specified"
        raise runtime_error(f"{name}(): a transform of {size} points", text)
    return size


def _axis(name: str, input: Tensor, dim: Any) -> int:
    _check_dimensions(name, input, dim)
    return normal_dim(name, dim, input.array.ndim)


def _check_dimensions(name: str, input: Tensor, dim: Any) -> None:
    """Raises E302 where a dimension of a 0-dim tensor is named."""
    if not input.array.ndim and dim is not None:
        first = dim if type(dim) is int else min(dim, default=0)
        raise index_error(
            f"{name}(): a 0-dim tensor has no dimension to transform",
            text=f"Dimension specified as {first} but tensor has no dimensions",
        )


def _axes(name: str, input: Tensor, s: Any, dim: Any) -> tuple[Dims, list[int | None]]:
    """The dimensions, and the size that each is brought to, None for its own; raises E302 for a
    dimension that does not exist or stands twice, E204 where sizes and dimensions do not pair.
    """
    sizes = None if s is None else [s] if type(s) is int else list(s)
    ndim = input.array.ndim
    if dim is not None:
        _check_dimensions(name, input, dim)
        dims = normal_dims(name, input, dim) if type(dim) is int or dim else ()
        if sizes is not None and len(sizes) != len(dims):
            raise runtime_error(
                f"{name}(): {len(sizes)} sizes were given for {len(dims)} dimensions",
                "When given, dim and shape arguments must have the same length",
            )
    else:
        count = ndim if sizes is None else len(sizes)
        if count > ndim:
            raise runtime_error(
                f"{name}(): {count} sizes were given for a tensor of {ndim} dimensions",
                f"Got shape with {count} values but input tensor only has {ndim} dimensions.",
            )
        dims = tuple(range(ndim - count, ndim))
    if sizes is None:
        return dims, [None] * len(dims)
    return dims, [None if size == -1 else _length(name, size) for size in sizes]


def _resized(input: Tensor, dims: Dims, sizes: Sequence[int | None]) -> Tensor:
    """The tensor with dimensions cut off or filled up with zeros."""
    shape = input.array.shape
    pad = [0] * (2 * len(shape))
    for dim, size in zip(dims, sizes, strict=True):
        if size is None or size == shape[dim]:
            continue
        if size < shape[dim]:
            input = slice_op.apply(input, dim, 0, size, 1)
        else:
            pad[2 * (len(shape) - 1 - dim) + 1] = size - shape[dim]
    return constant_pad_nd.apply(input, tuple(pad), 0) if any(pad) else input


def _check_points(name: str, input: Tensor, dims: Dims) -> None:
    for dim in dims:
        _length(name, input.array.shape[dim])


def _as_complex(input: Tensor) -> Tensor:
    return to(input, input.dtype.to_complex())


# --- one dimension --------------------------------------------------------------------------------


def _real_transform(
    name: str, input: Tensor, n: Any, dim: int, norm: Any, forward: bool, onesided: bool
) -> Tensor:
    axis = _axis(name, input, dim)
    input = _resized(input, (axis,), (None if n is None else _length(name, n),))
    _check_points(name, input, (axis,))
    normalization = _normalization(name, norm, forward)
    result = real_to_complex.apply(input, (axis,), normalization, onesided)
    return result if forward else conj(result)


def _transform(name: str, input: Tensor, n: Any, dim: int, norm: Any, forward: bool) -> Tensor:
    if not input.dtype.is_complex:
        return _real_transform(name, input, n, dim, norm, forward, False)
    axis = _axis(name, input, dim)
    input = _resized(input, (axis,), (None if n is None else _length(name, n),))
    _check_points(name, input, (axis,))
    normalization = _normalization(name, norm, forward)
    return complex_to_complex.apply(input, (axis,), normalization, not forward)


def _to_real(name: str, input: Tensor, n: Any, dim: int, norm: Any, forward: bool) -> Tensor:
    input = _as_complex(input)
    axis = _axis(name, input, dim)
    size = _length(name, 2 * (input.array.shape[axis] - 1) if n is None else n)
    if n is not None:
        input = _resized(input, (axis,), (size // 2 + 1,))
    if forward:
        input = conj(input)
    return complex_to_real.apply(input, (axis,), _normalization(name, norm, forward), size)


@function("fft", module="torch.fft", autocast="float32", numpy="fft.fft")
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along a dimension, cut or filled up to n elements."""
    return _transform("fft", _prepared("fft", input), n, dim, norm, True)


@function("ifft", module="torch.fft", autocast="float32", numpy="fft.ifft")
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `fft`."""
    return _transform("ifft", _prepared("ifft", input), n, dim, norm, False)


@function("rfft", module="torch.fft", autocast="float32", numpy="fft.rfft")
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The non-negative frequencies of a real tensor's `fft`. Raises E203 for a complex one."""
    input = _prepared("rfft", input)
    _check_real("rfft", input)
    return _real_transform("rfft", input, n, dim, norm, True, True)


@function("irfft", module="torch.fft", autocast="float32", numpy="fft.irfft")
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `rfft`: n real elements, an even number by default."""
    return _to_real("irfft", _prepared("irfft", input), n, dim, norm, False)


@function("hfft", module="torch.fft", autocast="float32")
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The `fft`, real, of a signal whose other half is the conjugate of this one."""
    return _to_real("hfft", _prepared("hfft", input), n, dim, norm, True)


@function("ihfft", module="torch.fft", autocast="float32")
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `hfft`. Raises E203 for a complex tensor."""
    input = _prepared("ihfft", input)
    _check_real("ihfft", input)
    return _real_transform("ihfft", input, n, dim, norm, False, True)


# --- several dimensions ---------------------------------------------------------------------------


def _transform_several(
    name: str, input: Tensor, s: Any, dim: Any, norm: Any, forward: bool
) -> Tensor:
    input = _as_complex(input)
    dims, sizes = _axes(name, input, s, dim)
    input = _resized(input, dims, sizes)
    _check_points(name, input, dims)
    normalization = _normalization(name, norm, forward)
    return complex_to_complex.apply(input, dims, normalization, not forward)


def _real_several(name: str, input: Tensor, s: Any, dim: Any) -> tuple[Tensor, Dims]:
    _check_real(name, input)
    dims, sizes = _axes(name, input, s, dim)
    if not dims:
        raise runtime_error(
            f"{name}() needs at least one dimension to transform",
            f"{name} must transform at least one axis",
        )
    input = _resized(input, dims, sizes)
    _check_points(name, input, dims)
    return input, dims


def _rfftn(name: str, input: Tensor, s: Any, dim: Any, norm: Any) -> Tensor:
    input, dims = _real_several(name, input, s, dim)
    return real_to_complex.apply(input, dims, _normalization(name, norm, True), True)


def _half_several(name: str, input: Tensor, s: Any, dim: Any) -> tuple[Tensor, Dims, int]:
    """A half spectrum brought to its sizes, its dimensions, and the size of the real result's last
    one.
    """
    input = _as_complex(input)
    dims, sizes = _axes(name, input, s, dim)
    if not dims:
        raise runtime_error(
            f"{name}() needs at least one dimension to transform",
            f"{name} must transform at least one axis",
        )
    last = sizes[-1]
    size = _length(name, 2 * (input.array.shape[dims[-1]] - 1) if last is None else last)
    halves = [*sizes[:-1], None if last is None else size // 2 + 1]
    input = _resized(input, dims, halves)
    _check_points(name, input, dims)
    return input, dims, size


def _irfftn(name: str, input: Tensor, s: Any, dim: Any, norm: Any) -> Tensor:
    input, dims, size = _half_several(name, input, s, dim)
    return complex_to_real.apply(input, dims, _normalization(name, norm, False), size)


def _hfftn(name: str, input: Tensor, s: Any, dim: Any, norm: Any) -> Tensor:
    input, dims, size = _half_several(name, input, s, dim)
    normalization = _normalization(name, norm, True)
    if len(dims) > 1:
        input = complex_to_complex.apply(input, dims[:-1], normalization, False)
    return complex_to_real.apply(conj(input), dims[-1:], normalization, size)


def _ihfftn(name: str, input: Tensor, s: Any, dim: Any, norm: Any) -> Tensor:
    input, dims = _real_several(name, input, s, dim)
    normalization = _normalization(name, norm, False)
    result = conj_physical.apply(real_to_complex.apply(input, dims[-1:], normalization, True))
    if len(dims) == 1:
        return result
    return complex_to_complex.apply(result, dims[:-1], normalization, True)


_SEVERAL: dict[str, tuple[Callable[..., Tensor], str]] = {
    "fft": (partial(_transform_several, forward=True), "The discrete Fourier transform"),
    "ifft": (partial(_transform_several, forward=False), "The inverse of `fft`"),
    "rfft": (_rfftn, "The non-negative frequencies of a real tensor's transform"),
    "irfft": (_irfftn, "The inverse of `rfft`, a real tensor"),
    "hfft": (_hfftn, "The real transform of a signal that is half of a symmetric one"),
    "ihfft": (_ihfftn, "The inverse of `hfft`"),
}


def _several(kind: str, body: Callable[..., Tensor], words: str) -> None:
    """The transform in two dimensions, `NAME2`, and in several, `NAMEn`."""
    two, all_of_them = f"{kind}2", f"{kind}n"

    @function(two, module="torch.fft")
    def in_two(
        input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None
    ) -> Tensor:
        return body(two, _prepared(two, input), s, dim, norm)

    @function(all_of_them, module="torch.fft")
    def in_several(
        input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None
    ) -> Tensor:
        return body(all_of_them, _prepared(all_of_them, input), s, dim, norm)

    describe(
        in_two,
        f"{words} in two dimensions, each cut or filled up to its size of `s`.",
        f"torch.fft.{two}(tensor([[2., 1.], [1., 3.]]))",
    )
    describe(in_several, f"{words} in several dimensions, all by default.")


for _kind, (_body, _words) in _SEVERAL.items():
    _several(_kind, _body, _words)

# --- frequencies ----------------------------------------------------------------------------------


def _add_frequencies(name: str, steps: Callable[[int], Any], summary: str) -> None:
    """The function of frequencies by their numbers of periods, `steps` of the length."""

    @function(name, module="torch.fft")
    def frequencies(
        n: int,
        d: float = 1.0,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        if type(n) is not int:
            raise type_error(f"{name}(): n must be an integer")
        d = float(plain_number(f"{name}()", d))
        target = checked_dtype(name, dtype, dtypes.default_dtype()).numpy_dtype
        array = steps(n).astype(target) * (1.0 / (n * d) if n else 1.0)
        return tensor_of(name, array.astype(target), device, requires_grad)

    describe(frequencies, summary, example=f"torch.fft.{name}(4)")


_add_frequencies(
    "fftfreq",
    lambda n: np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)]),
    "The frequencies that `fft` of n elements at distance d gives, in its order.",
)
_add_frequencies(
    "rfftfreq",
    lambda n: np.arange(n // 2 + 1),
    "The frequencies that `rfft` of n elements at distance d gives.",
)


def _shifted(name: str, input: Tensor, dim: Any, back: bool) -> Tensor:
    dims = normal_dims(name, input, dim)
    shape = input.array.shape
    shifts = tuple((shape[d] + back) // 2 for d in dims)
    return roll.apply(input, shifts, dims)


@function("fftshift", module="torch.fft")
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The elements turned along the dimensions, so that frequency 0 stands in the middle."""
    return _shifted("fftshift", input, dim, False)


@function("ifftshift", module="torch.fft")
def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """What `fftshift` turned, turned back."""
    return _shifted("ifftshift", input, dim, True)


def _wrong(name: str, message: str) -> GradcliError:
    return runtime_error(f"{name}(): {message}")


def _lengths(name: str, n_fft: Any, hop: Any, win: Any) -> tuple[int, int]:
    """How far apart pieces begin, and the window's length, with PyTorch's defaults."""
    hop = n_fft // 4 if hop is None else hop
    win = n_fft if win is None else win
    if n_fft < 1 or hop < 1 or not 0 < win <= n_fft:
        raise _wrong(name, f"pieces of {n_fft} elements, {hop} apart, with a window of {win}")
    return hop, win


def _window(name: str, window: Tensor | None, win: int, n_fft: int) -> Tensor | None:
    """The window with zeros on both sides, as long as a piece."""
    if window is None:
        return None
    if window.array.shape != (win,):
        raise _wrong(name, f"a window of shape {tuple(window.array.shape)}, not ({win},)")
    before = (n_fft - win) // 2
    if win == n_fft:
        return window
    return constant_pad_nd.apply(window, (before, n_fft - win - before), 0)


@function("stft", method=True, autocast="float32")
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """The Fourier transforms of pieces of signals, (length) or (N, length): (N, frequencies,
    pieces). With `center` the signal is extended so that piece t is centred at t * hop_length.
    Raises E204 for lengths that do not fit, and for real signals without `return_complex`.

    Example: torch.stft(arange(8.), 4, return_complex=True)
    """
    check_not_integral("stft", input, "RuntimeError")
    is_complex = any(each is not None and each.dtype.is_complex for each in (input, window))
    if return_complex is None and not is_complex:
        raise runtime_error(
            "stft requires the return_complex parameter be given for real inputs, and will further"
            " require that return_complex=True in a future PyTorch release."
        )
    ndim = input.array.ndim
    if ndim not in (1, 2):
        raise shape_error(f"stft(): a signal of shape {tuple(input.array.shape)}")
    hop, win = _lengths("stft", n_fft, hop_length, win_length)
    weights = _window("stft", window, win, n_fft)
    if center:
        extended = (1,) * (3 - ndim) + input.array.shape
        padded = pad(view.apply(input, extended), (n_fft // 2, n_fft // 2), pad_mode)
        input = view.apply(padded, padded.array.shape[-ndim:])
    if ndim == 1:
        input = unsqueeze.apply(input, 0)
    batch, length = input.array.shape
    if length < n_fft:
        raise _wrong("stft", f"a signal of {length} elements is shorter than {n_fft}")
    step, each = (stride // input.array.itemsize for stride in input.array.strides)
    count = 1 + (length - n_fft) // hop
    pieces = strided(input, (batch, count, n_fft), (step, hop * each, each), 0)
    if weights is not None:
        pieces = mul.apply(pieces, weights)
    normalization = "root" if normalized else "none"
    if is_complex:
        result = complex_to_complex.apply(pieces, (2,), normalization, False)
    else:
        result = real_to_complex.apply(pieces, (2,), normalization, onesided is not False)
    result = transpose.written.apply(result, 1, 2)
    result = squeeze_dim_in_place.apply(result, 0) if ndim == 1 else result
    return view_as_real.apply(result) if return_complex is False else result


@function("istft", method=True)
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal that `stft` was given: the pieces added up, divided by the windows' squares.
    Raises E204 where the windows leave a position without weight.

    Example: torch.istft(torch.stft(arange(8.), 4, return_complex=True), 4)
    """
    if not input.dtype.is_complex:
        raise dtype_error("istft() needs a complex tensor")
    single = input.array.ndim == 2
    if single:
        input = unsqueeze.apply(input, 0)
    if input.array.ndim != 3:
        raise shape_error(f"istft(): transforms of shape {tuple(input.array.shape)}")
    hop, win = _lengths("istft", n_fft, hop_length, win_length)
    batch, frequencies, count = input.array.shape
    if onesided is None:
        onesided = frequencies != n_fft
    if frequencies != (n_fft // 2 + 1 if onesided else n_fft):
        raise _wrong("istft", f"{frequencies} frequencies do not go with pieces of {n_fft}")
    parts = transpose.apply(view_as_real.apply(input), 1, 2)
    spectra = view_as_complex.apply(contiguous(parts))
    normalization = "root" if normalized else "full"
    if return_complex:
        pieces = complex_to_complex.apply(spectra, (2,), normalization, True)
    else:
        half = spectra if onesided else slice_op.apply(spectra, 2, 0, n_fft // 2 + 1, 1)
        pieces = complex_to_real.apply(half, (2,), normalization, n_fft)
    ones = module_of(input.array).ones(win, input.dtype.to_real().numpy_dtype)
    weights = _window("istft", Tensor(ones) if window is None else window, win, n_fft)
    assert weights is not None
    pieces = mul.apply(pieces, view.apply(weights, (1, 1, n_fft)))
    whole = n_fft + hop * (count - 1)
    signal = unfold_backward.apply(pieces, (batch, whole), 1, n_fft, hop)
    squares = expand(weights**2, (1, count, n_fft))
    envelope = unfold_backward.apply(squares, (1, whole), 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - start
    signal = slice_op.apply(signal, 1, start, min(end, whole), 1)
    envelope = slice_op.apply(envelope, 1, start, min(end, whole), 1)
    if not envelope.array.size or np.abs(envelope.array).min() <= 1e-11:
        raise _wrong("istft", "the windows leave a place of the signal without weight")
    signal = div.apply(signal, envelope)
    if single:
        signal = squeeze_dim.apply(signal, 0)
    missing = 0 if length is None else length - signal.array.shape[-1]
    return constant_pad_nd.apply(signal, (0, missing), 0) if missing > 0 else signal
