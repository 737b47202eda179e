"""`torch.nn.utils.rnn`: sequences of different lengths in one tensor, padded or packed."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import to_host
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, type_error, value_error
from gradcli.library.torch.nn.attributes import kind_of
from gradcli.ops.binding.arguments import check_tensors, numbers_in
from gradcli.ops.binding.catalogue import function, modules
from gradcli.ops.binding.functions import methods, torch
from gradcli.ops.binding.results import ReturnType
from gradcli.ops.indexing import along


@function("pad_sequence", module="torch.nn.utils.rnn")
def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Tensors side by side along a new dimension, filled up to the length of the longest.

    Args:
        sequences: tensors (length, …), which differ in their lengths only.
        batch_first: whether the new dimension comes first, and not second.
        padding_value: what they are filled up with.
        padding_side: "right" or "left".

    Raises E202 for anything but a list of tensors, E204 for an empty one and for another side.
    """
    if isinstance(sequences, Tensor):
        sequences = list(methods.unbind(sequences, 0))
    if not isinstance(sequences, (list, tuple)):
        raise GradcliError(
            "E202",
            f"pad_sequence() takes a list of tensors, not {kind_of(sequences)}",
            raises="RuntimeError",
        )
    if not sequences or padding_side not in ("left", "right"):
        problem = "there are no sequences" if not sequences else f"no side is {padding_side!r}"
        raise runtime_error(f"pad_sequence(): {problem}")
    lengths = [sequence.array.shape[0] for sequence in sequences]
    longest, count = max(lengths), len(sequences)
    first = sequences[0]
    sizes = (count, longest) if batch_first else (longest, count)
    result: Tensor = torch.full((*sizes, *first.array.shape[1:]), padding_value, dtype=first.dtype)
    for number, (sequence, length) in enumerate(zip(sequences, lengths, strict=True)):
        start = longest - length if padding_side == "left" else 0
        if batch_first:
            part = methods.narrow(methods.select(result, 0, number), 0, start, length)
        else:
            part = methods.select(methods.narrow(result, 0, start, length), 1, number)
        methods.copy_(part, sequence)
    return result


@function("unpad_sequence", module="torch.nn.utils.rnn")
def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded tensor, each as long as `lengths` says."""
    rows = padded_sequences
    if not batch_first:
        rows = methods.transpose(rows, 0, 1)
    counts = np.ravel(numbers_in(lengths)).tolist()
    return [
        methods.narrow(row, 0, 0, int(length))
        for row, length in zip(methods.unbind(rows, 0), counts, strict=False)
    ]


# --- packed -------------------------------------------------------------------------------------


class PackedSequence(ReturnType):
    """Sequences without padding: the first step of all, the second of those that have one, ….

    Args:
        data: the steps, (sum of the lengths, …).
        batch_sizes: how many sequences have each step, int64.
        sorted_indices: the order in which the sequences were put, the longest first; None as given.
        unsorted_indices: the way back.

    Raises E202 for data and batch sizes that are no tensors.
    """

    __slots__ = ()

    language_name: ClassVar[str] = "torch.nn.utils.rnn.PackedSequence"
    fields: ClassVar[tuple[str, ...]] = (
        "data",
        "batch_sizes",
        "sorted_indices",
        "unsorted_indices",
    )
    language_attributes: ClassVar[frozenset[str]] = frozenset({*fields, "is_cuda", "to"})

    def __new__(
        cls,
        data: Any,
        batch_sizes: Any = None,
        sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> PackedSequence:
        check_tensors("PackedSequence", data=data, batch_sizes=batch_sizes)
        if batch_sizes.dtype is not dtypes.int64 or batch_sizes.ndim != 1:
            raise value_error("batch_sizes is a vector of torch.int64")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return tuple.__new__(cls, (data, batch_sizes, sorted_indices, unsorted_indices))

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in zip(self.fields, self, strict=True)]
        return f"PackedSequence({', '.join(shown)})"

    __str__ = __repr__

    @property
    def counts(self) -> list[int]:
        """The batch sizes."""
        return [int(each) for each in numbers_in(self[1])]

    @property
    def is_cuda(self) -> bool:
        """Whether the data are on a GPU."""
        return bool(self[0].device.type == "cuda")

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same with its data on another device, or of another dtype."""
        return PackedSequence(methods.to(self[0], *args, **kwargs), *self[1:])


modules["torch.nn.utils.rnn"]["PackedSequence"] = PackedSequence


@function("invert_permutation", module="torch.nn.utils.rnn")
def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The way back from an order; None for None."""
    return None if permutation is None else methods.argsort(permutation)


@function("pack_padded_sequence", module="torch.nn.utils.rnn")
def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """The steps of padded sequences without the padding.

    Args:
        input: (longest, batch, …), or (batch, longest, …) if `batch_first`.
        lengths: the length of each sequence.
        enforce_sorted: whether the longest comes first; otherwise they are put in that order.

    Raises E204 for lengths that are not positive, not sorted, or not one for each sequence, E301
    for one that is longer than the input.
    """
    if not isinstance(lengths, Tensor):
        lengths = torch.as_tensor(lengths, dtype=dtypes.int64)
    order = None
    if not enforce_sorted:
        lengths, order = methods.sort(lengths, descending=True)
        input = methods.index_select(input, 0 if batch_first else 1, order)
    steps = _check_lengths(input, lengths, batch_first)
    has_step = np.arange(steps[0])[:, None] < steps
    step, row = has_step.nonzero()
    longest, batch = input.array.shape[1::-1] if batch_first else input.array.shape[:2]
    index = row * longest + step if batch_first else step * batch + row
    data = along.pack_padded_sequence.apply(input, Tensor(index))
    return PackedSequence(data, Tensor(has_step.sum(1)), order)


def _check_lengths(input: Tensor, lengths: Tensor, batch_first: bool) -> Any:
    """The lengths as an array on the host; raises as `pack_padded_sequence` does."""
    problem = ""
    counts = to_host(lengths.array)
    if input.ndim < 2 or not input.array.size:
        problem = "Cannot pack empty tensors."
    elif counts.ndim != 1 or counts.dtype.kind != "i":
        problem = "`lengths` is a vector of integers"
    elif len(counts) != input.array.shape[not batch_first]:
        batch = input.array.shape[not batch_first]
        problem = (
            "Expected `len(lengths)` to be equal to batch_size, but got"
            f" {len(counts)} (batch_size={batch})"
        )
    elif (counts[1:] > counts[:-1]).any():
        problem = (
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True."
            " You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to"
            " sidestep this requirement if you do not need ONNX exportability."
        )
    elif counts[-1] <= 0:
        problem = (
            "Length of all samples has to be greater than 0, but found an element in 'lengths'"
            " that is <= 0"
        )
    elif counts[0] > input.array.shape[batch_first]:
        problem = (
            f"a sequence of {counts[0]} steps, and the input has {input.array.shape[batch_first]}"
        )
    if problem:
        raise runtime_error(problem)
    return counts


@function("pack_sequence", module="torch.nn.utils.rnn")
def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Tensors (length, …) packed; see `pack_padded_sequence`."""
    padded = pad_sequence(sequences)
    lengths = [sequence.array.shape[0] for sequence in sequences]
    return pack_padded_sequence(padded, lengths, enforce_sorted=enforce_sorted)


@function("unpack_sequence", module="torch.nn.utils.rnn")
def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of packed ones, each by itself."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), True)


@function("pad_packed_sequence", module="torch.nn.utils.rnn")
def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The steps of packed sequences side by side, and the length of each.

    Args:
        sequence: the packed sequences.
        batch_first: whether the batch comes first, and not the steps.
        padding_value: what they are filled up with.
        total_length: how many steps there are; those of the longest by default.

    Raises E202 for anything else, E204 for a total length that is too small.
    """
    if not isinstance(sequence, PackedSequence):
        raise type_error(f"pad_packed_sequence() takes no {kind_of(sequence)}")
    data, counts, back = sequence[0], sequence.counts, sequence[3]
    longest = len(counts)
    if total_length is not None and total_length < longest:
        raise value_error(
            "Expected total_length to be at least the length of the longest sequence in input, but"
            f" got total_length={total_length} and max sequence length being {longest}"
        )
    sizes = (total_length or longest, counts[0], *data.array.shape[1:])
    padded: Tensor = torch.full(sizes, padding_value, dtype=data.dtype)
    at = start = 0
    for end in range(1, longest + 1):
        if end < longest and counts[end] == counts[start]:
            continue  # steps of as many sequences are written at once
        count = counts[start]
        part = methods.narrow(data, 0, at, (end - start) * count)
        rows = methods.narrow(methods.narrow(padded, 0, start, end - start), 1, 0, count)
        methods.copy_(rows, methods.view(part, (end - start, count, *data.array.shape[1:])))
        at, start = at + (end - start) * count, end
    lengths = Tensor((np.array(counts)[:, None] > np.arange(counts[0])).sum(0))
    if batch_first:
        padded = methods.transpose(padded, 0, 1)
    if back is not None:
        padded = methods.index_select(padded, 0 if batch_first else 1, back)
        lengths = methods.index_select(lengths, 0, back)
    return padded, lengths
