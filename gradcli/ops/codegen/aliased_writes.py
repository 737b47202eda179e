"""In-place ops on overlapping memory: an operand shares part of the memory that is written. Each
write is in the order of PyTorch's loops.

A loop runs over memory in the order that `outermost_first` finds for its output and operands. Where
all are contiguous, it reads a block of elements before it writes the block; else it reads and
writes one element after the other. So an element that an earlier block wrote is read with its new
value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import address_of
from gradcli.arrays.dtypes import can_cast, result_dtype
from gradcli.arrays.layout.strides import broadcast_strides, outermost_first, strides_of, window
from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.ops.definition.doc import SCALAR, STEPS, WIDE
from gradcli.ops.definition.op import Function, Op
from gradcli.record import Record
from gradcli.state import active

# --- loops over arrays ----------------------------------------------------------------------------


BLOCK_BYTES = 64
"""Bytes that most of PyTorch's loops read at once: two vectors of 32."""


def in_memory_order(
    written: Any, operands: Sequence[Any], lanes: int, compute: Callable[..., Any]
) -> Any:
    """The values of an array after a loop over it of which at least one operand shares its memory.

    Args:
        written: the array, to which this function does not write.
        operands: what is read, of shapes that broadcast to the array's.
        lanes: how many elements are a block, 1 for a loop without blocks.
        compute: returns the values to write, from one-dimensional pieces of the operands.
    """
    steps = [strides_of(written)]
    for each in operands:
        steps.append(broadcast_strides(each.shape, strides_of(each), written.shape))
    dims = outermost_first(written.shape, *steps)

    def in_order(array: Any) -> Any:
        return np.broadcast_to(array, written.shape).transpose(dims).flatten()

    shared = [np.may_share_memory(each, written) for each in operands]
    sharing = [each for each, shares in zip(operands, shared, strict=True) if shares]
    first = min([written, *sharing], key=address_of)
    places = _places(written, first)
    length = 1 + max(int(_places(each, first).max()) for each in (written, *sharing))
    loop = _Loop(
        # One more position, for an operand that is read once for a whole row.
        memory=np.append(window(first, (length,), (1,), 0), written.dtype.type(0)),
        writes=in_order(places),
        reads=[
            in_order(_places(each, first)) if shares else None
            for each, shares in zip(operands, shared, strict=True)
        ],
        values=[in_order(each) for each in operands],
        compute=compute,
        pending=set(),
    )
    row, strides = _row(written.shape, steps, dims)
    in_blocks = strides[0] == 1 and set(strides) <= {0, 1} and strides.count(0) <= 1
    loop.run(row, lanes if in_blocks else 1, strides.index(0) if 0 in strides else 0)
    return loop.memory[places]


def _places(array: Any, first: Any) -> Any:
    """The position of each element in memory, counted from the beginning of another array."""
    places: Any = (address_of(array) - address_of(first)) // array.itemsize
    for size, stride in zip(array.shape, strides_of(array), strict=True):
        places = np.add.outer(places, np.arange(size) * stride)
    return np.asarray(places)


def _row(
    shape: Sequence[int], steps: Sequence[Sequence[int]], dims: Sequence[int]
) -> tuple[int, list[int]]:
    """How many elements the innermost dimension has after all dimensions that continue it are
    joined to it, and the strides along it.
    """
    row, strides = 1, [1] * len(steps)
    for dim in reversed(dims):
        along = [each[dim] for each in steps]
        if row == 1:
            row, strides = shape[dim], along
        elif shape[dim] != 1 and [row * each for each in strides] == along:
            row *= shape[dim]
        elif shape[dim] != 1:
            break
    return row, strides


class _Loop(Record):
    """Reads and writes in order, many elements at a time where none of them depends on another."""

    memory: Any
    writes: Any
    reads: list[Any]
    values: list[Any]
    compute: Callable[..., Any]
    pending: set[int]
    begin: int = 0

    def run(self, row: int, lanes: int, repeated: int) -> None:
        """Run over rows of the given length in blocks of `lanes`, one by one at the end of a row.

        An operand with a stride of 0, by its number from 1, is read once for the blocks of a row.
        """
        held = self.reads[repeated - 1] if lanes > 1 and repeated else None
        if held is not None:
            origin = held.copy()
            held.reshape(-1, row)[:, : row - row % lanes] = len(self.memory) - 1
        order = self.writes.tolist()
        reads = [each.tolist() for each in self.reads if each is not None]
        for start, stop in _blocks(len(order), row, lanes):
            begins = held is not None and start % row == 0
            if begins or not all(self.pending.isdisjoint(each[start:stop]) for each in reads):
                self._compute(start)
            if begins:
                self.memory[-1] = self.memory[origin[start]]
            self.pending.update(order[start:stop])
        self._compute(len(order))

    def _compute(self, stop: int) -> None:
        """Compute and write the pending elements, up to a position."""
        part = slice(self.begin, stop)
        self.memory[self.writes[part]] = self.compute(
            *[
                values[part] if places is None else self.memory[places[part]]
                for places, values in zip(self.reads, self.values, strict=True)
            ]
        )
        self.begin = stop
        self.pending.clear()


def _blocks(count: int, row: int, lanes: int) -> Iterator[tuple[int, int]]:
    """The ends of blocks of rows; the rest of a row makes blocks of one."""
    for start in range(0, count, row):
        whole = start + row - row % lanes
        for first in range(start, whole, lanes):
            yield first, first + lanes
        for first in range(whole, start + row):
            yield first, first + 1


# --- ops ------------------------------------------------------------------------------------------


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
