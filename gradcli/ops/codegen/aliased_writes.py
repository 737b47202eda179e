"""In-place ops on overlapping memory: an operand shares part of the memory that is written."""

from __future__ import annotations

from typing import Any

from gradcli.arrays.dtypes import can_cast, result_dtype
from gradcli.arrays.kernels.overlapping_writes import BLOCK_BYTES, in_memory_order
from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.ops.definition.doc import SCALAR, STEPS, WIDE
from gradcli.ops.definition.op import Function, Op
from gradcli.state import active


def written_in_order(
    entry: Op,
    body: Function,
    self: Tensor,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    result: Tensor,
) -> None:
    """Make the result of an op what PyTorch's loop leaves in the tensor: the loop reads elements
    that it has written already.

    A result that cannot be written to the tensor stays as it is. So does the result of an op that
    is not pointwise, or computes in another dtype: PyTorch computes it in memory of its own.

    Args:
        entry: the op.
        body: computes the op's result from the tensor and further arguments.
        self: the tensor, which is not written to yet.
        args, kwargs: the further arguments.
        result: what `body` computed from them.
    """
    if result.array.shape != self.array.shape or not can_cast(result.dtype, self.dtype):
        return
    tensors = [each.array for each in (self, *args) if type(each) is Tensor]
    if entry.loop == STEPS or not entry.pointwise or result_dtype(tensors) is not self.dtype:
        return
    positions = [number for number, each in enumerate(args) if _is_read(each, self)]

    def compute(values: Any, *others: Any) -> Any:
        replaced = list(args)
        for number, other in zip(positions, others, strict=True):
            replaced[number] = Tensor(other)
        return body(Tensor(values), *replaced, **kwargs).array

    operands = [self.array, *[args[number].array for number in positions]]
    recorder, active.state.recorder = active.state.recorder, None
    try:
        with NoGrad():
            result.array = in_memory_order(
                self.array, operands, _lanes(entry.loop, self.array.dtype), compute
            )
    finally:
        active.state.recorder = recorder


def copied_over(array: Any, source: Any) -> Any:
    """What a copy leaves in `array`, where it reads elements that it has written."""
    lanes = BLOCK_BYTES // array.dtype.itemsize
    return in_memory_order(array, [source], lanes, lambda values: values)


def _is_read(operand: Any, self: Tensor) -> bool:
    """Whether an argument is an operand with elements of its own, or in the tensor's memory."""
    return type(operand) is Tensor and (
        operand.array.ndim > 0 or operand.storage is self.storage is not None
    )


def _lanes(loop: str, dtype: Any) -> int:
    """How many elements the loop of an op reads before it writes them."""
    if loop == SCALAR or dtype.kind == "b":
        return 1
    if loop == WIDE:
        return 1 if dtype.kind in "iu" else 2 * BLOCK_BYTES // dtype.itemsize
    return BLOCK_BYTES // int(dtype.itemsize)
