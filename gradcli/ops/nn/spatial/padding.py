"""Padding: `torch.nn.functional.pad`, with a constant or with the tensor's own elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.layout.strides import in_suggested_format
from gradcli.arrays.scalars import checked_number
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, shape_error, type_error, value_error
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.arguments import check_filled, number_in, sizes_of
from gradcli.ops.binding.catalogue import autocasting, function
from gradcli.ops.codegen.runtime import type_name
from gradcli.ops.creation.copies import copy_
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.dtype_support import dtype_names
from gradcli.ops.definition.op import Op, op
from gradcli.ops.linalg.products.matrix_products import along_dims
from gradcli.ops.nn.spatial.numpy_forms import PADDING
from gradcli.ops.shape.slicing import slice_op

Sizes = tuple[int, ...]
"""Pairs of sizes, before and after, for the dimensions from the last one on."""


def _padded(self: Any, pad: Sequence[int], value: Any) -> Any:
    shape = list(self.shape)
    inner = [slice(None)] * len(shape)
    kept = list(inner)
    for i in range(len(pad) // 2):  # the pairs stand for dimensions from the last one on
        dim = len(shape) - 1 - i
        before, after = pad[2 * i], pad[2 * i + 1]
        size = shape[dim]
        kept[dim] = slice(max(0, -before), size - max(0, -after))
        shape[dim] = size + before + after
        inner[dim] = slice(max(0, before), shape[dim] - max(0, after))
    whole = module_of(self).full(shape, value, self.dtype)
    whole[tuple(inner)] = self[tuple(kept)]
    return in_suggested_format(whole, self)


# A negative pad cuts; the gradient is cut where the value was padded, and padded where it was cut.
constant_pad_nd: Op = op(
    "constant_pad_nd",
    _padded,
    keeps_layout=True,
    leading=True,
    self=lambda grad, pad: constant_pad_nd(grad, tuple(-size for size in pad), 0),
    raises=BY_KINDS,
)


def constant_pad(input: Tensor, pad: tuple[int, ...], value: Any) -> Tensor:
    """The tensor with a number put around it: pairs of sizes, before and after, from the last
    dimension on. Raises E301 where they do not fit.
    """
    ndim = input.array.ndim
    if len(pad) % 2:
        raise shape_error(f"Length of pad must be even but instead it equals {len(pad)}")
    for i in range(len(pad) // 2):
        if i >= ndim or input.array.shape[ndim - 1 - i] + pad[2 * i] + pad[2 * i + 1] < 0:
            raise shape_error(
                f"pad(): {pad} does not fit a tensor of shape {tuple(input.array.shape)}",
                text="Padding length should be less than or equal to two times the input dimension"
                f" but got padding length {len(pad)} and input of dimension {ndim}"
                if len(pad) > 2 * ndim
                else "narrow(): length must be non-negative.",
            )
    number = 0 if value is None else value
    return constant_pad_nd.apply(input, pad, checked_number(number, input.dtype))


@function("constant_pad_nd", numpy=PADDING)
def constant_pad_function(input: Tensor, pad: Any, value: Any = 0) -> Tensor:
    """`torch.nn.functional.pad` with a number.

    Example: torch.constant_pad_nd(tensor([0.5, 1.]), (1, 1))
    """
    return constant_pad(input, tuple(pad), value)


# --- padding with the tensor's own elements -----------------------------------------------------


def _reflected(size: int, before: int, after: int) -> Any:
    # Mirrored at the outermost elements, which are not repeated.
    where = np.abs(np.arange(-before, size + after))
    return np.where(where >= size, 2 * (size - 1) - where, where)


def _replicated(size: int, before: int, after: int) -> Any:
    return np.clip(np.arange(-before, size + after), 0, size - 1)


def _sources(shape: Sizes, pad: Sequence[int], source: Any) -> Any:
    """For each padded dimension, from the last one on, where its elements come from."""
    for i in range(len(pad) // 2):
        dim = len(shape) - 1 - i
        yield dim, source(shape[dim], pad[2 * i], pad[2 * i + 1])


def _by_source(name: str, source: Any) -> Op:
    """An entry that pads with the tensor's own elements."""

    def pad_array(self: Any, pad: Sequence[int]) -> Any:
        whole = self
        for dim, where in _sources(self.shape, pad, source):
            whole = np.take(whole, where, dim)
        return in_suggested_format(whole, self)

    def unpad_array(grad_output: Any, self: Any, pad: Sequence[int]) -> Any:
        grad = grad_output
        for dim, where in _sources(self.shape, pad, source):
            sizes = (*grad.shape[:dim], self.shape[dim], *grad.shape[dim + 1 :])
            inner = module_of(grad).zeros(sizes, grad.dtype)
            np.add.at(np.moveaxis(inner, dim, 0), where, np.moveaxis(grad, dim, 0))
            grad = inner
        return grad

    def unpadded(grad_output: Tensor, self: Tensor, pad: Sequence[int]) -> Tensor:
        ndim = len(pad) // 2
        matrices = [np.eye(size) for size in self.shape[-ndim:]]
        for dim, where in _sources(tuple(self.shape), pad, source):
            matrices[dim - len(self.shape)] = np.eye(self.shape[dim])[where]
        return along_dims(grad_output, matrices)

    backward: Op = op(
        f"{name}_backward",
        unpad_array,
        decomposition=unpadded,
        grad_output=lambda grad, pad: padded(grad, pad),
        self=lambda grad, self_sizes: zeros(grad, self_sizes),
        raises=BY_KINDS,
    )
    padded: Op = op(
        name,
        pad_array,
        keeps_layout=True,
        self=lambda grad, self, pad: backward(grad, self, pad),
        unsupported=dtype_names("bool"),
        raises=BY_KINDS,
    )
    return padded


_REFLECTION = [_by_source(f"reflection_pad{n}d", _reflected) for n in (1, 2, 3)]
_REPLICATION = [_by_source(f"replication_pad{n}d", _replicated) for n in (1, 2, 3)]


def _circular(input: Tensor, pad: Sizes) -> Tensor:
    """The tensor continued periodically, written part by part as PyTorch does."""
    shape = list(input.array.shape)
    inner, taken = [], []
    for i in range(len(pad) // 2):
        dim = len(shape) - 1 - i
        before, after = pad[2 * i], pad[2 * i + 1]
        taken.append((dim, max(-before, 0), shape[dim] - max(-after, 0)))
        shape[dim] += before + after
        inner.append((dim, max(before, 0), shape[dim] - max(after, 0)))
    whole: Tensor = zeros(input, tuple(shape))

    def part(tensor: Tensor, bounds: Any) -> Tensor:
        for dim, start, end in bounds:
            tensor = slice_op.apply(tensor, dim, start, end, 1)
        return tensor

    copy_(part(whole, reversed(inner)), part(input, reversed(taken)))
    for dim, start, end in reversed(inner):
        extent = shape[dim]
        if start:
            copy_(part(whole, [(dim, 0, start)]), part(whole, [(dim, end - start, end)]))
        if end < extent:
            after = extent - end
            copy_(part(whole, [(dim, end, extent)]), part(whole, [(dim, start, start + after)]))
    return whole


@function("pad", module="torch.nn.functional")
def pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """The tensor with elements put around it: pairs of sizes, before and after, from the last
    dimension on.

    Args:
        mode: "constant" puts `value` there, 0 when not given; "reflect", "replicate" and "circular"
            go on with the tensor's own elements.

    Raises E204 for any other mode, E301 where the sizes do not fit.

    Example: F.pad(tensor([0.5, 1., 2.]), (1, 1))
    """
    if not isinstance(pad, (tuple, list)):
        raise type_error(f"pad(): the sizes must be a tuple, not {type_name(pad)}")
    sizes = sizes_of("pad", (pad,))
    if len(sizes) % 2:
        raise shape_error(
            f"pad(): sizes come in pairs, and {sizes} is odd",
            text="Padding length must be divisible by 2",
        )
    if mode == "constant":
        return constant_pad(input, sizes, number_in(value))
    if mode not in ("reflect", "replicate", "circular"):
        text = f"Unrecognised padding mode {mode}"
        raise value_error(text, raises="NotImplementedError")
    if value:
        raise runtime_error(f"pad(): mode {mode!r} takes no value")
    count, ndim = len(sizes) // 2, input.array.ndim
    if count > ndim:
        raise shape_error(f"pad(): {count} pairs of sizes, and {ndim} dimensions")
    if not 1 <= count <= 3 or ndim not in (count + 1, count + 2):
        raise shape_error(
            f"pad(): mode {mode!r} pads the last {ndim - 1} or {ndim - 2} dimensions of {ndim}, not"
            f" {count}",
            raises="NotImplementedError",
            text=f"Padding size {len(sizes)} is not supported for {ndim}D input tensor.\nSupported"
            " combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)",
        )
    _check_own(input, sizes, mode)
    if mode == "circular":
        return _circular(input, sizes)
    check_filled("pad", input, count + 2)
    entry = (_REFLECTION if mode == "reflect" else _REPLICATION)[count - 1]
    if mode == "reflect" and count == 3:  # which autocast leaves as it is
        return entry.apply(input, sizes)
    return autocasting(entry.apply, "float32")(input, sizes)


def _check_own(input: Tensor, sizes: Sizes, mode: str) -> None:
    """Raise E301 where a tensor has too few elements to pad itself with."""
    for i in range(len(sizes) // 2):
        extent = input.array.shape[input.array.ndim - 1 - i]
        least = 0 if mode == "circular" else 1
        if extent + sizes[2 * i] + sizes[2 * i + 1] < least:
            raise shape_error(
                f"pad(): {sizes} leaves nothing of a tensor of {tuple(input.array.shape)}",
                text="Negative padding value is resulting in an empty dimension"
                if mode == "circular"
                else None,
            )
        most = {"reflect": extent - 1, "circular": extent}.get(mode)
        if not extent or (most is not None and max(sizes[2 * i], sizes[2 * i + 1]) > most):
            raise shape_error(
                f"pad(): {sizes} is too much for mode {mode!r} and a tensor of shape"
                f" {tuple(input.array.shape)}",
                text="Padding value causes wrapping around more than once."
                if mode == "circular"
                else f"Argument #{2 * i + 4}: Padding size should be less than the corresponding"
                f" input dimension, but got: padding {sizes[2 * i : 2 * i + 2]} at dimension"
                f" {input.array.ndim - 1 - i} of input {list(input.array.shape)}",
            )
