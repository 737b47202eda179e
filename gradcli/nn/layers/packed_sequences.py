"""`torch.nn.utils.rnn`: sequences of different lengths in one tensor."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.nn.attributes import kind_of
from gradcli.ops.binding.arguments import check_tensors
from gradcli.ops.binding.catalogue import function, methods, modules


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
        sequences = list(methods["unbind"](sequences, 0))
    if not isinstance(sequences, (list, tuple)):
        raise GradcliError(
            "E202",
            f"pad_sequence() takes a list of tensors, not {kind_of(sequences)}",
            raises="RuntimeError",
        )
    if not sequences or padding_side not in ("left", "right"):
        problem = "there are no sequences" if not sequences else f"no side is {padding_side!r}"
        raise GradcliError("E204", f"pad_sequence(): {problem}", raises="RuntimeError")
    lengths = [sequence.array.shape[0] for sequence in sequences]
    longest, count = max(lengths), len(sequences)
    first = sequences[0]
    sizes = (count, longest) if batch_first else (longest, count)
    result: Tensor = modules["torch"]["full"](
        (*sizes, *first.array.shape[1:]), padding_value, dtype=first.dtype
    )
    for number, (sequence, length) in enumerate(zip(sequences, lengths, strict=True)):
        start = longest - length if padding_side == "left" else 0
        if batch_first:
            part = methods["narrow"](methods["select"](result, 0, number), 0, start, length)
        else:
            part = methods["select"](methods["narrow"](result, 0, start, length), 1, number)
        methods["copy_"](part, sequence)
    return result


@function("unpad_sequence", module="torch.nn.utils.rnn")
def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded tensor, each as long as `lengths` says."""
    check_tensors("unpad_sequence", padded_sequences=padded_sequences, lengths=lengths)
    rows = padded_sequences
    if not batch_first:
        rows = methods["transpose"](rows, 0, 1)
    counts = lengths.array.reshape(-1).tolist()
    return [
        methods["narrow"](row, 0, 0, int(length))
        for row, length in zip(methods["unbind"](rows, 0), counts, strict=False)
    ]
