"""Where the steps of a flat program compute: rows and columns that are repeated are written out for
one loop instead of loops over a few elements each, loops over many run block by block, and memory
that holds what nobody reads any more is used again, so that what one step has written the next ones
find in the processor's nearest cache.

The loops are NumPy's all the same, of functions that round each element on its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from gc import get_referents
from types import FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np

from gradcli.arrays.flat.recorded import Step
from gradcli.arrays.native import dispatch
from gradcli.state import State

BLOCK = 2048
"""Elements of a block: three arrays of floats take half of a processor's nearest cache."""

_SHORT = 256
"""Elements of the longest loops that are worth joining where an operand is repeated."""

_SEVERAL = 4
"""So many of them, at least."""

_INTERFACE = ("data", "descr", "shape", "strides", "typestr", "version")
"""What NumPy tells of an array's memory. As long as they stand here, Python keeps no new names for
each array that is asked: its table of names would fill with them, and be doubled.
"""

_ALIGNED = 64
"""Bytes that the memory of an array is aligned to: the longest of vectors, and a line of caches."""

_EXACT = {np.add, np.subtract, np.multiply, np.divide, np.negative}
"""Functions whose elements are rounded alike whichever way a loop goes through them."""

_COMPUTES = {"loop", "product", "copy", "kernel", "take", "pick", "place", "add", "where"}
_LOOKS = {"same", "nonzero"}
_WRITES_LAST = {"loop", "product", "copy", "take", "where"}

# fmt: off
WRITES_ANEW = {
    "add_scaled", "attention", "attention_backward", "batch_moments", "batch_norm",
    "batch_norm_backward", "cholesky", "cholesky_wide", "convolution", "erf", "gelu",
    "gelu_backward", "half_arithmetic", "half_to_single", "layer_norm", "lstm_step",
    "matrix_product", "max_pool", "quotient", "single_to_half", "softmax", "softmax_backward",
    "substitute", "substitute_wide", "weight_gradient",
}
# fmt: on
"""The kernels that write all elements of what they write to, and read none of them before, where it
is no operand too. The others add to what is there, or step it.
"""


def planned(
    steps: list[Step], own: list[Any], kept: Sequence[Any]
) -> tuple[Iterator[Step], list[bool]]:
    """The steps on memory that is used again and again, and of each array that is kept, whether
    steps write all of it before they read it, and nothing else does. The first two lists are left
    empty: each step is made when it is asked for, and what it was written down on is let go.

    Args:
        own: arrays that nothing but steps reads.
        kept: those whose elements are read after a run all the same, or given before.
    """
    joined = [part for each in steps for part in _joined(each, own)]
    steps.clear()
    joined = _chained(joined)
    return _placed(joined, own, kept)


# --- repeated operands ----------------------------------------------------------------------------


def _joined(step: Step, own: list[Any]) -> list[Step]:
    """A step, or the loops over rows that it is as one loop, and what writes out their operands."""
    if step[0] != "loop" or step[1] not in _EXACT:
        return [step]
    *operands, out = step[3:]
    shape = out.shape
    if out.ndim < 2 or shape[-1] > _SHORT or out.size < _SEVERAL * shape[-1] or not _is_dense(out):
        return [step]
    steps: list[Step] = []
    flat = []
    for each in operands:
        if not _is_dense(each) and any(each.strides):
            whole = np.empty(shape, each.dtype)
            own.append(whole)
            steps.append(("copy", each, whole))
            each = whole
        flat.append(_in_a_row(each))
    return [*steps, (*step[:3], *flat, _in_a_row(out))]


def _is_dense(array: Any) -> bool:
    """Whether the elements lie in a row, in the order of the dimensions."""
    return bool(array.flags.c_contiguous)


def _in_a_row(array: Any) -> Any:
    """A dense array, or a repeated element, as one dimension."""
    if _is_dense(array):
        return array.reshape(-1)
    first = array[(slice(1),) * array.ndim].reshape(1)
    return np.broadcast_to(first, (array.size,))


# --- chains ---------------------------------------------------------------------------------------


def _chained(steps: Sequence[Step]) -> list[Step]:
    """Loops in a row over as many elements, more than a block, as chains."""
    made: list[Step] = []
    links: list[Step] = []
    for step in [*steps, ()]:
        if links and not (step and _goes_on(links, step)):
            length = links[0][-1].size
            made += links if len(links) == 1 else [("chain", length, BLOCK, *links)]
            links = []
        if step and _may_be_linked(step):
            links.append(step)
        elif step:
            made.append(step)
    return made


def _may_be_linked(step: Step) -> bool:
    """Whether a step is a loop that may run in blocks."""
    return (
        step[0] == "loop"
        and step[-1].ndim == 1
        and step[-1].size > BLOCK
        and all(each.strides in ((0,), (each.itemsize,)) for each in step[3:])
        and step[-1].strides != (0,)
    )


def _goes_on(links: Sequence[Step], step: Step) -> bool:
    """Whether a loop may be the next one of a chain: what is written lies apart from all others,
    but for the same elements.
    """
    if not _may_be_linked(step) or step[-1].size != links[0][-1].size:
        return False
    out = step[-1]
    pairs = [(out, each) for link in links for each in link[3:]]
    pairs += [(link[-1], each) for link in links for each in step[3:-1]]
    return not any(_meet(one, other) and not _is_one(one, other) for one, other in pairs)


def _is_one(array: Any, other: Any) -> bool:
    return bool(
        span_of(array) == span_of(other)
        and array.itemsize == other.itemsize
        and array.strides == other.strides
    )


def _meet(array: Any, other: Any) -> bool:
    (low, high), (least, most) = span_of(array), span_of(other)
    return low < most and least < high


def span_of(array: Any) -> tuple[int, int]:
    """The addresses of the first byte of an array's and behind the last."""
    low = high = array.__array_interface__["data"][0]
    for size, stride in zip(array.shape, array.strides, strict=True):
        low += min((size - 1) * stride, 0)
        high += max((size - 1) * stride, 0)
    return low, high + array.itemsize


# --- memory ---------------------------------------------------------------------------------------


class _Memory:
    """Memory of a program's own.

    Attributes:
        low, high: the addresses of its first byte and behind its last.
        stays: whether it is kept, read by what is no step, or read before all of it is written.
        is_used: whether a step uses it.
        first, last: the numbers of the first and the last step that do.
        begins, ends: when these are, where each loop of a chain has a time of its own.
        bytes: as many as it takes, which are those of a block where one chain alone uses it.
    """

    __slots__ = ("begins", "bytes", "ends", "first", "high", "is_used", "last", "low", "stays")

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        self.bytes = high - low
        self.stays = self.is_used = False
        self.first = self.last = self.begins = self.ends = 0

    def use(self, step: int, time: int) -> None:
        """Note a use, which is later than those before."""
        if not self.is_used:
            self.is_used, self.first, self.begins = True, step, time
        self.last, self.ends = step, time

    def is_all_of(self, array: Any) -> bool:
        """Whether an array has each byte of it."""
        return span_of(array) == (self.low, self.high) and array.nbytes == self.high - self.low


class _Memories:
    """The memory of arrays that steps alone read and write, by its address."""

    def __init__(self, own: Iterable[Any]) -> None:
        spans = sorted({span_of(each) for each in own if each.nbytes})
        self.all = [_Memory(*each) for each in spans]
        self.lows = [each.low for each in self.all]

    def of(self, array: Any) -> _Memory | None:
        """The memory that an array lies in."""
        low = array.__array_interface__["data"][0]
        place = bisect_right(self.lows, low) - 1
        return self.all[place] if place >= 0 and low < self.all[place].high else None


def _placed(
    steps: list[Step], own: list[Any], kept: Sequence[Any]
) -> tuple[Iterator[Step], list[bool]]:
    """The steps, with what nobody reads any more written over by what is computed then; both lists
    are left empty.
    """
    memories = _Memories(own)
    time = 0
    for number, step in enumerate(steps):
        for link in _links_of(step):
            for array, writes in _arrays_of(link):
                memory = memories.of(array)
                if memory is not None:
                    begins = not memory.is_used and writes and memory.is_all_of(array)
                    memory.stays |= writes is None or not (memory.is_used or begins)
                    memory.use(number, time)
            time += 1
    anew = [memories.of(array) for array in kept]
    are_anew = [
        each is not None and not each.stays and each.is_used and each.is_all_of(array)
        for each, array in zip(anew, kept, strict=True)
    ]
    for each in anew:
        if each is not None:
            each.stays = True
    moving = [each for each in memories.all if each.is_used and not each.stays]
    _whole_chains(steps, moving)
    offsets, size = _offsets(moving)
    pool = np.empty(size + _ALIGNED, np.uint8)
    start = -span_of(pool)[0] % _ALIGNED
    at = {memory.low: start + offset for memory, offset in zip(moving, offsets, strict=True)}

    def moved(array: Any) -> Any:
        memory = memories.of(array)
        if memory is None or memory.low not in at:
            return array
        offset, strides = at[memory.low], array.strides
        if memory.bytes < memory.high - memory.low:
            return np.ndarray((BLOCK,), array.dtype, pool, offset, strides)
        offset += array.__array_interface__["data"][0] - memory.low
        return np.ndarray(array.shape, array.dtype, pool, offset, strides)

    own.clear()
    steps.reverse()
    return (_on(steps.pop(), moved) for _ in range(len(steps))), are_anew


def _whole_chains(steps: Sequence[Step], moving: Iterable[_Memory]) -> None:
    """Let memory that more than one chain uses be used from a chain's first loop to its last, since
    each block has all of them; what no other step uses needs one block.
    """
    begins = [0]
    for step in steps:
        begins.append(begins[-1] + len(_links_of(step)))
    for memory in moving:
        first, last = memory.first, memory.last
        if first == last and steps[first][0] == "chain":
            memory.bytes = memory.bytes // steps[first][1] * BLOCK
        else:
            memory.begins, memory.ends = begins[first], begins[last + 1] - 1


def _links_of(step: Step) -> Sequence[Step]:
    return step[3:] if step[0] == "chain" else (step,)


def _offsets(moving: Sequence[_Memory]) -> tuple[list[int], int]:
    """Where each memory begins, and how many bytes there are: what was used last is used again."""
    numbers = range(len(moving))
    wanted = [-(-each.bytes // _ALIGNED) * _ALIGNED for each in moving]
    ending = sorted(numbers, key=lambda number: moving[number].ends)
    offsets = [0] * len(moving)
    free: dict[int, list[int]] = {}
    size = ended = 0
    for number in sorted(numbers, key=lambda number: moving[number].begins):
        while moving[ending[ended]].ends < moving[number].begins:
            free.setdefault(wanted[ending[ended]], []).append(offsets[ending[ended]])
            ended += 1
        if free.get(wanted[number]):
            offsets[number] = free[wanted[number]].pop()
        else:
            offsets[number] = size
            size += wanted[number]
    return offsets, size


def _arrays_of(step: Step) -> Iterator[tuple[Any, bool | None]]:
    """The arrays of a step in the order in which it reads and writes them, and whether it writes
    all of one; None for those that it has in a way of its own.
    """
    kind = step[0]
    if kind not in _COMPUTES and kind not in _LOOKS:
        for each in _found_in(step[1:]):
            yield each, None
        return
    arrays = [each for each in step[1:] if type(each) is np.ndarray]
    written = _written_by(step, len(arrays))
    for number, each in enumerate(arrays):
        if number not in written:
            yield each, False
    for number in written:
        yield arrays[number], True


def _written_by(step: Step, count: int) -> Sequence[int]:
    """Which of so many arrays a step writes whole, in the order in which it has them."""
    if step[0] in _WRITES_LAST:
        return (count - 1,)
    if step[0] == "pick":
        return (1,)
    if step[0] != "kernel" or step[1] not in WRITES_ANEW:
        return ()
    pairs = zip(dispatch.letters(step[1]), step[2:], strict=True)
    kinds = [letter for letter, each in pairs if type(each) is np.ndarray]
    return [number for number, letter in enumerate(kinds) if letter.isupper()]


def _found_in(parts: Any) -> Iterator[Any]:
    """The arrays in what a step calls, and calls with, whatever holds them there: an array that is
    missed would be written over while somebody reads it.
    """
    seen: set[int] = set()
    left = [parts]
    while left:
        part = left.pop()
        if id(part) in seen or isinstance(part, _HOLDS_NONE):
            continue
        seen.add(id(part))
        if type(part) is np.ndarray:
            yield part
        elif type(part) is FunctionType:
            left += part.__closure__ or (), part.__defaults__ or (), part.__kwdefaults__ or ()
        else:
            left += get_referents(part)


_HOLDS_NONE = (State, type, ModuleType, np.ufunc, np.generic, str, bytes, int, float, NoneType)
"""Types of what leads to no array that was made as a program was written down."""


def _on(step: Step, moved: Callable[[Any], Any]) -> Step:
    """A step on the memory to which its arrays were moved."""
    if step[0] == "chain":
        return (*step[:3], *[_on(link, moved) for link in step[3:]])
    if step[0] not in _COMPUTES and step[0] not in _LOOKS:
        return step
    return tuple([moved(each) if type(each) is np.ndarray else each for each in step])
