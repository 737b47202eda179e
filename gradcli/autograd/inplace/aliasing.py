"""Aliasing: which writes PyTorch rejects because tensors share memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import address_of
from gradcli.arrays.layout.strides import overlaps_itself, strides_of
from gradcli.autograd.batched import unbatched
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import GradcliError


def check_apart(tensor: Tensor, *operands: Any) -> None:
    """Raise E405 where the tensor shares memory with an operand."""
    for operand in operands:
        if operand is tensor:
            storage_of(tensor)
        if type(operand) is Tensor and operand.storage is tensor.storage is not None:
            _check_overlap(unbatched(tensor.array), unbatched(operand.array), same=False)


def check_memory(tensor: Tensor, *operands: Any) -> bool:
    """Raise E405 where several elements of the tensor share an address, or where it shares a part
    of its memory with an operand.

    Returns whether the write may change elements that it reads later, which PyTorch allows.
    """
    overlapping = check_parts(tensor, *operands)
    return check_places(tensor.array) or overlapping


def check_parts(tensor: Tensor, *operands: Any) -> bool:
    """Raise E405 where the tensor shares a part of its memory with an operand; all of it in the
    same order is allowed. Returns whether operands that are not compared may share memory.
    """
    overlapping = False
    if tensor.storage is not None:
        for operand in operands:
            if (
                operand is not tensor
                and type(operand) is Tensor
                and operand.storage is tensor.storage
            ):
                overlapping |= _check_overlap(unbatched(tensor.array), unbatched(operand.array))
    return overlapping


def check_places(array: Any) -> bool:
    """Raise E405 where a stride of 0 puts several elements of an array at one address. Returns
    whether elements may share an address otherwise, as in the windows of `unfold`.
    """
    if array.ndim and array.size and 0 in array.strides:
        for stride, size in zip(array.strides, array.shape, strict=True):
            if stride == 0 and size > 1:
                raise GradcliError(
                    "E405",
                    "several elements of the written tensor share one place in memory",
                    text="unsupported operation: more than one element of the written-to tensor"
                    " refers to a single memory location. Please clone() the tensor before"
                    " performing the operation.",
                    help="clone() the expanded tensor before writing to it",
                )
    return array.ndim > 1 and array.size > 1 and overlaps_itself(array.shape, array.strides)


def _check_overlap(written: Any, read: Any, same: bool = True) -> bool:
    """Raise E405 where an operand shows a part of the written memory, or all of it in another
    order; in the same order too unless `same` allows that. As in PyTorch, only arrays without gaps
    are compared. Returns whether arrays with gaps may share memory, unless they have the same
    order.
    """
    if not (written.size and read.size):
        return False
    first, second = address_of(written), address_of(read)
    if not (_without_gaps(written) and _without_gaps(read)):
        in_step = first == second and _steps(written) == _steps(read)
        return not in_step and type(written) is np.ndarray and np.may_share_memory(written, read)
    alike = written.size == read.size and strides_of(written) == strides_of(read)
    if same and first == second and alike:
        return False
    if first < second + read.nbytes and second < first + written.nbytes:
        raise GradcliError(
            "E405",
            "the written tensor and an operand share a part of their memory",
            text="unsupported operation: some elements of the input tensor and the written-to"
            " tensor refer to a single memory location. Please clone() the tensor before performing"
            " the operation.",
            help="clone() the operand before the write",
        )
    return False


def _steps(array: Any) -> list[tuple[int, int]]:
    """Size and stride of the dimensions that hold more than one element."""
    return [each for each in zip(array.shape, array.strides, strict=True) if each[0] > 1]


def _without_gaps(array: Any) -> bool:
    """Whether the elements fill a range of memory, each address once."""
    expected = array.itemsize
    for stride, size in sorted(zip(array.strides, array.shape, strict=True)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True
