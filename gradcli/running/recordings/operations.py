"""Operations that the program of a recording calls and that no other program has: those whose
results PyTorch computed, and its functions of recurrent layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.autograd.custom.function import Function, once_differentiable
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error
from gradcli.library.torch.nn.layers.recurrent.packed_sequences import (
    PackedSequence,
    pack_padded_sequence,
    pad_packed_sequence,
)
from gradcli.ops.arithmetic.arithmetic import add, mul, sub
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.binding.functions import methods, torch
from gradcli.ops.nn.attention import attention as attention_of

if TYPE_CHECKING:
    from gradcli.arrays.files.recording import Opaque, Recording

_CLOSE = 1e-1
"""How far a gradient may be from the recorded one, as a share of its largest element."""


class OtherInputsError(GradcliError):
    """Other values than those of the run reach an operation that is not computed anew."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "E204",
            f"{name} was computed by PyTorch, and its results are known for the values of the run"
            " alone",
            help="other inputs and differences cannot pass through it",
        )


def opaque_operation(
    recording: Recording,
    number: Any,
    inputs: Sequence[Any],
    read: Callable[[str], Any],
    has_numbers: bool,
) -> Any:
    """The results of an operation that is not computed anew, joined to the graph by the gradients
    that PyTorch computed. Raises as `opaque_name`.

    Args:
        read: gives an array of the recording by its name, in the dtype of the replay.
        has_numbers: whether these arrays hold numbers, and not shapes alone.
    """
    opaque_name(recording, number)
    opaque = recording.opaque[number]
    results = tuple(_tensor(read(name)) for name, _ in opaque.results)
    function = _function(read, opaque, results, len(inputs), has_numbers)
    outputs = function.apply(*inputs)
    return outputs if len(results) > 1 else outputs[0]


def opaque_name(recording: Recording, number: Any) -> str:
    """What PyTorch calls an operation; raises E504 where the recording has none of the number."""
    if type(number) is not int or not 0 <= number < len(recording.opaque):
        raise GradcliError("E504", f"{recording.path}: there is no opaque operation {number!r}")
    return recording.opaque[number].name


def _tensor(array: Any) -> Tensor:
    return Tensor(array if array.ndim else array[()])


def _function(
    read: Callable[[str], Any],
    opaque: Opaque,
    results: tuple[Tensor, ...],
    count: int,
    has_numbers: bool,
) -> type[Function]:
    """The custom function of one opaque operation."""
    passes = iter(opaque.passes)
    former: list[Any] = []

    def forward(ctx: Any, *inputs: Any) -> Any:
        ctx.mark_non_differentiable(
            *(each for each, (_, grad) in zip(results, opaque.results, strict=True) if not grad)
        )
        return results

    def backward(ctx: Any, *grads: Any) -> Any:
        # A pass that a question adds is the last one again, if what arrives is the same.
        former[:] = [next(passes, None)] if not former else [next(passes, former[0])]
        if former[0] is None:
            raise runtime_error(
                f"the derivative of {opaque.name} is not known: no backward pass of the run came"
                " through it"
            )
        arrived, left = former[0]
        for name, grad in zip(arrived, grads, strict=False):
            if name is not None and has_numbers:
                check_arrived(opaque.name, read(name), grad)
        left_grads = [None if name is None else _tensor(read(name)) for name in left]
        return tuple(left_grads[:count])

    name = opaque.node.removesuffix("Backward0").removesuffix("Backward") or "Opaque"
    body = {
        "__slots__": (),
        "forward": staticmethod(forward),
        "backward": staticmethod(once_differentiable(backward)),
    }
    return type(name, (Function,), body)


def check_arrived(name: str, theirs: Any, grad: Any) -> None:
    """Raise E204 where the gradient that arrives is not the one that PyTorch computed with: up to
    the rounding of half precision, in which a run may have computed what a replay does in float64.
    """
    ours = np.zeros_like(theirs) if grad is None else np.asarray(to_host(grad.array))
    largest = float(np.abs(theirs.astype(np.float64)).max()) if theirs.size else 0.0
    if ours.shape != theirs.shape or not np.allclose(
        ours.astype(np.float64), theirs.astype(np.float64), rtol=0, atol=_CLOSE * largest,
        equal_nan=True,
    ):  # fmt: skip
        raise runtime_error(
            f"the derivative of {name} is known from the recording alone, for the gradient that"
            " arrived in the run, and another one arrived",
            help="another seed, other inputs, and differences cannot pass through it",
        )


def cell(
    name: str, input: Any, state: Any, input_weight: Any, weight: Any, input_bias: Any, bias: Any
) -> Any:
    """`torch.lstm_cell` and its like: the cell of these weights, called."""
    kind = name.removesuffix("_cell")
    settings: dict[str, Any] = {
        "input_size": input_weight.array.shape[1],
        "hidden_size": weight.array.shape[1],
        "bias": bias is not None,
    }
    if kind.startswith("rnn"):
        settings["nonlinearity"] = kind.removeprefix("rnn_")
    cell = modules["torch.nn"][f"{_LAYERS[kind]}Cell"](**settings, device="meta")
    cell._parameters.update(
        weight_ih=input_weight, weight_hh=weight, bias_ih=input_bias, bias_hh=bias
    )
    return cell(input, tuple(state) if kind == "lstm" else state)


_LAYERS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN", "rnn_relu": "RNN"}


def recurrent(
    name: str,
    input: Any,
    state: Any,
    weights: Any,
    has_biases: Any,
    layers: Any,
    dropout: Any,
    train: Any,
    bidirectional: Any,
    batch_first: Any,
    masks: Sequence[Tensor] = (),
) -> Any:
    """`torch.lstm` and its like: the layer of these weights, called.

    Args:
        masks: what dropout multiplied the outputs of all layers but the last with.
    """
    if isinstance(has_biases, list):  # packed sequences: their counts stand behind the input
        counts, state, weights, has_biases, layers = state, weights, has_biases, layers, dropout
        layer = _layer(name, state, weights, has_biases, layers, batch_first, False)
        output, last = layer(PackedSequence(input, counts), state)
        return (output.data, *last) if name == "lstm" else (output.data, last)
    if not masks:
        layer = _layer(name, state, weights, has_biases, layers, bidirectional, batch_first)
        output, last = layer(input, state)
        return (output, *last) if name == "lstm" else (output, last)
    if batch_first:
        input = methods.transpose(input, 0, 1)
    directions, each = 2 if bidirectional else 1, len(weights) // layers
    states, lasts = state if name == "lstm" else (state,), []
    for number in range(layers):
        held = weights[number * each : (number + 1) * each]
        own = tuple(methods.narrow(s, 0, number * directions, directions) for s in states)
        first = own if name == "lstm" else own[0]
        layer = _layer(name, first, held, has_biases, 1, bidirectional, False)
        input, last = layer(input, first)
        lasts.append(last if name == "lstm" else (last,))
        if number < layers - 1:
            input = mul.apply(input, masks[number])
    if batch_first:
        input = methods.transpose(input, 0, 1)
    return (input, *(torch.cat(list(parts), 0) for parts in zip(*lasts, strict=True)))


def _layer(
    name: str,
    state: Any,
    weights: Any,
    has_biases: Any,
    layers: Any,
    bidirectional: Any,
    batch_first: Any,
) -> Any:
    """The recurrent layer that has these weights."""
    sizes = {"input_size": weights[0].array.shape[1], "hidden_size": weights[1].array.shape[1]}
    if name == "lstm" and state[0].array.shape[-1] != state[1].array.shape[-1]:
        sizes = {
            "input_size": weights[0].array.shape[1],
            "hidden_size": state[1].array.shape[-1],
            "proj_size": state[0].array.shape[-1],
        }
    settings: dict[str, Any] = {
        **sizes,
        "num_layers": layers,
        "bias": has_biases,
        "batch_first": batch_first,
        "bidirectional": bidirectional,
    }
    if name.startswith("rnn"):
        settings["nonlinearity"] = name.removeprefix("rnn_")
    layer = modules["torch.nn"][_LAYERS[name]](**settings, device="meta")
    for key, weight in zip(layer._flat_weights_names, weights, strict=True):
        layer._parameters[key] = weight
    return layer


def attention(
    drop: Any,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """`F.scaled_dot_product_attention`, whose weights dropout multiplied with `drop`."""
    return attention_of(
        query,
        key,
        value,
        attn_mask,
        lambda weights: mul.apply(weights, drop),
        is_causal,
        scale,
        enable_gqa,
    )


def packed(input: Any, lengths: Any, batch_first: Any) -> Any:
    """`torch._pack_padded_sequence`: the elements of sequences, and how many have each place."""
    return pack_padded_sequence(input, lengths, batch_first)[:2]


def padded(data: Any, counts: Any, batch_first: Any, padding: Any, length: Any) -> Any:
    """`torch._pad_packed_sequence`: the sequences side by side, and their lengths."""
    total = length if length > 0 else None
    return pad_packed_sequence(PackedSequence(data, counts), batch_first, padding, total)


def unscale(grads: Any, infinite: Any, inverse: Any) -> None:
    """What `GradScaler.unscale_` does: gradients by the scale, and whether one is not finite."""
    for grad in grads:
        if not bool(methods.all(methods.isfinite(grad))):
            methods.fill_(infinite, 1.0)
        methods.mul_(grad, methods.to(inverse, grad.dtype))


def update_scale(
    scale: Any, tracker: Any, infinite: Any, growth: Any, backoff: Any, interval: Any
) -> Any:
    """What `GradScaler.update` does."""
    if methods.item(infinite):
        methods.mul_(scale, backoff)
        methods.fill_(tracker, 0)
    elif methods.item(tracker) + 1 == interval:
        methods.mul_(scale, growth)
        methods.fill_(tracker, 0)
    else:
        methods.add_(tracker, 1)
    return scale


def recorded_number(number: float, *sources: Any) -> Any:
    """A number of the run that is one of those which the program read out of tensors, or was
    computed of them. Where a remedy leaves the reading out, it has the tensor's gradient.
    """
    result: Any = number * 1.0  # an object of its own, which is followed
    for each in sources:
        if type(each) is Tensor:
            result = add.apply(sub.apply(each, methods.detach(each)), result)
    return result


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: partial(recurrent, name) for name in _LAYERS},
    **{f"{name}_cell": partial(cell, f"{name}_cell") for name in _LAYERS},
    "attention": attention,
    "pack_padded_sequence": packed,
    "pad_packed_sequence": padded,
    "recorded_number": recorded_number,
    "unscale": unscale,
    "update_scale": update_scale,
}
"""The functions that the programs of recordings have, by the names that they have there."""
