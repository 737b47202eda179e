"""`stft istft`: Fourier transforms of a signal's overlapping segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, dtype_error, runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import div, mul
from gradcli.ops.binding.arguments import check_not_integral
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.copies import contiguous
from gradcli.ops.elementwise.complex import real_part, view_as_complex, view_as_real
from gradcli.ops.indexing.strided import strided
from gradcli.ops.nn.spatial.padding import constant_pad_nd, pad
from gradcli.ops.shape.slicing import slice_op, unfold_backward
from gradcli.ops.shape.views import (
    squeeze_dim,
    squeeze_dim_in_place,
    transpose,
    unsqueeze,
    view,
)
from gradcli.ops.signal.fft import complex_to_complex, complex_to_real, real_to_complex


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
    Raises E204 for lengths that do not fit, and without `return_complex`.

    Example: torch.stft(arange(8.), 4, return_complex=True)
    """
    check_not_integral("stft", input, "RuntimeError")
    if not return_complex:
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
    if input.dtype.is_complex:
        result = complex_to_complex.apply(pieces, (2,), normalization, False)
    else:
        result = real_to_complex.apply(pieces, (2,), normalization, onesided is not False)
    result = transpose.written.apply(result, 1, 2)
    return squeeze_dim_in_place.apply(result, 0) if ndim == 1 else result


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
    if return_complex or not onesided:
        pieces = complex_to_complex.apply(spectra, (2,), normalization, True)
        pieces = pieces if return_complex else real_part(pieces)
    else:
        pieces = complex_to_real.apply(spectra, (2,), normalization, n_fft)
    ones = module_of(input.array).ones(win, input.dtype.to_real().numpy_dtype)
    weights = _window("istft", Tensor(ones) if window is None else window, win, n_fft)
    assert weights is not None
    pieces = mul.apply(pieces, view.apply(weights, (1, 1, n_fft)))
    whole = n_fft + hop * (count - 1)
    signal = unfold_backward.apply(pieces, (batch, whole), 1, n_fft, hop)
    squares = np.broadcast_to(weights.array**2, (1, count, n_fft))
    envelope = unfold_backward(squares, (1, whole), 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - start
    signal = slice_op.apply(signal, 1, start, min(end, whole), 1)
    envelope = envelope[:, start:end]
    if not envelope.size or np.abs(envelope).min() <= 1e-11:
        raise _wrong("istft", "the windows leave a place of the signal without weight")
    signal = div.apply(signal, Tensor(module_of(envelope).ascontiguousarray(envelope)))
    if single:
        signal = squeeze_dim.apply(signal, 0)
    missing = 0 if length is None else length - signal.array.shape[-1]
    return constant_pad_nd.apply(signal, (0, missing), 0) if missing > 0 else signal
