"""Recurrent layers: `RNN LSTM GRU`, and the cells that do one step: `RNNCell LSTMCell GRUCell`; and
`torch.nn.utils.rnn`, sequences of different lengths in one tensor, padded or packed.

A layer's inputs are projected for all steps at once; the steps then go one by one, composed of ops
as in PyTorch. One direction of an LSTM in single precision is one node, as there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of, to_host
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, shape_error, type_error, value_error
from gradcli.library.torch.nn.attributes import kind_of, names
from gradcli.library.torch.nn.init import uniform_
from gradcli.library.torch.nn.layer import new_parameter, register, register_base
from gradcli.library.torch.nn.module import Module
from gradcli.ops.binding.arguments import check_tensors, numbers_in
from gradcli.ops.binding.catalogue import autocasting, function, modules
from gradcli.ops.binding.functions import F, methods, torch
from gradcli.ops.binding.results import ReturnType
from gradcli.ops.indexing import along
from gradcli.ops.indexing.basic import getitem
from gradcli.ops.nn.recurrent import lstm_state, mkldnn_rnn_layer
from gradcli.ops.shape.joining import cat_function, stack_function
from gradcli.state import active, charge_tensors, computed

# --- sequences of different lengths ---------------------------------------------------------------


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


# --- layers and cells -----------------------------------------------------------------------------


# --- cells ----------------------------------------------------------------------------------------


State = tuple[Tensor, ...]


def _gru_step(projected: Tensor, hidden: Tensor, state: State) -> State:
    """The next state of a GRU from both projections."""
    sigmoid, tanh = torch.sigmoid, torch.tanh
    projections, remembered = (torch.unsafe_chunk(each, 3, 1) for each in (projected, hidden))
    reset = sigmoid(remembered[0] + projections[0])
    update = sigmoid(remembered[1] + projections[1])
    new = tanh(projections[2] + remembered[2] * reset)
    return ((state[0] - new) * update + new,)


class Recurrent(Module):
    """What layers and cells share.

    Attributes:
        gates: how many blocks of rows the weights have.
        states: how many tensors the state has.
    """

    gates: ClassVar[int]
    states: ClassVar[int] = 1

    def reset_parameters(self) -> None:
        """Draw all parameters, in their order."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            uniform_(weight, -bound, bound)

    def next_state(self, projected: Tensor, hidden: Tensor, state: State) -> State:
        """The state after one step, from the projections of the input and of the state."""
        if self.gates == 4:
            return lstm_state(torch.unsafe_chunk(hidden + projected, 4, 1), state[1])
        if self.gates == 3:
            return _gru_step(projected, hidden, state)
        return (modules["torch"][self.nonlinearity](hidden + projected),)

    def _zeros(self, like: Tensor, *sizes: int) -> Tensor:
        return Tensor(computed(module_of(like.array).zeros, sizes, like.array.dtype))


# --- cells ----------------------------------------------------------------------------------------


class _Cell(Recurrent):
    """One step on (batch, input_size), or (input_size)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = self.gates * hidden_size
        for name, width in (("weight_ih", input_size), ("weight_hh", hidden_size)):
            self.register_parameter(name, new_parameter((rows, width), device, dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, new_parameter((rows,), device, dtype) if bias else None)
        self.reset_parameters()

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        if input.ndim not in (1, 2):
            raise value_error(
                f"{self._get_name()}: Expected input to be 1D or 2D, got {input.ndim}D instead"
            )
        batched = input.ndim == 2
        states = self._states_of(hx)
        if not batched:
            input = methods.unsqueeze(input, 0)
            states = tuple(methods.unsqueeze(state, 0) for state in states)
        if not states:
            sizes = (input.array.shape[0], self.hidden_size)
            states = (self._zeros(input, *sizes),) * self.states
        self._check_sizes(input, states)
        projected = F.linear(input, self.weight_ih, self.bias_ih)
        hidden = F.linear(states[0], self.weight_hh, self.bias_hh)
        state = self.next_state(projected, hidden, states)
        if not batched:
            state = tuple(methods.squeeze(each, 0) for each in state)
        return state if self.states > 1 else state[0]

    def _check_sizes(self, input: Tensor, states: tuple[Tensor, ...]) -> None:
        """Raise E301 where the input, the state and the weights do not go together."""
        batch, width = input.array.shape
        text = None
        if width != self.input_size:
            text = f"input has inconsistent input_size: got {width} expected {self.input_size}"
        for number, state in enumerate(states):
            rows = methods.size(state, 0)
            if text is None and rows != batch:
                text = f"Input batch size {batch} doesn't match hidden{number} batch size {rows}"
            if text is None and (size := methods.size(state, 1)) != self.hidden_size:
                text = f"hidden{number} has inconsistent hidden_size: got {size}, expected"
                text += f" {self.hidden_size}"
        if text is not None:
            raise shape_error(text)

    def _states_of(self, hx: Any) -> tuple[Tensor, ...]:
        """The tensors of a state, none for None; raises E202 and E204 for what is no state."""
        if hx is None:
            return ()
        several = self.states > 1
        states = hx if several and isinstance(hx, (tuple, list)) else (hx,)
        name = self._get_name()
        for state in states:
            if not isinstance(state, Tensor):
                raise GradcliError(
                    "E202",
                    f"{name} takes {self.states} tensors as its state, not {type(state).__name__}",
                    raises="TypeError" if several else "AttributeError",
                    text=f"'{type(state).__name__}' object "
                    + ("is not iterable" if several else "has no attribute 'dim'"),
                )
        if len(states) != self.states:
            raise runtime_error("lstm_cell expects two hidden states")
        for number, state in enumerate(states):
            if state.ndim not in (1, 2):
                what = f"hx[{number}]" if several else "hidden"
                raise value_error(
                    f"{name}: Expected {what} to be 1D or 2D, got {state.ndim}D instead"
                )
        return tuple(states)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        return text if self.bias else f"{text}, bias=False"


class RNNCell(_Cell):
    """One step of `RNN`.

    Example: nn.RNNCell(2, 4)
    """

    gates: ClassVar[int] = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise runtime_error(f"Unknown nonlinearity: {self.nonlinearity}")
        return super().forward(input, hx)

    def extra_repr(self) -> str:
        text = super().extra_repr()
        return text if self.nonlinearity == "tanh" else f"{text}, nonlinearity={self.nonlinearity}"


class LSTMCell(_Cell):
    """One step of `LSTM`.

    Example: nn.LSTMCell(2, 4)
    """

    gates: ClassVar[int] = 4
    states: ClassVar[int] = 2


class GRUCell(_Cell):
    """One step of `GRU`.

    Example: nn.GRUCell(2, 4)
    """

    gates: ClassVar[int] = 3


for _kind in (RNNCell, LSTMCell, GRUCell):
    register("rnn", _kind)


# --- layers ---------------------------------------------------------------------------------------


_LAYER_TENSORS = 32
"""Tensors that are made in the time that a layer's parameters take, with their initial values."""


def _rows(state: State, start: int, end: int) -> State:
    """The state of some sequences of a batch."""
    return tuple(methods.narrow(each, 0, start, end - start) for each in state)


def _joined(states: Sequence[State]) -> State:
    """The states of sequences, side by side."""
    return tuple(cat_function(list(parts), 0) for parts in zip(*states, strict=True))


def _check_dropout(dropout: float, num_layers: int) -> None:
    """Raise E204 for what is no probability, and warn where it acts on nothing."""
    if isinstance(dropout, bool) or not 0 <= dropout <= 1:
        raise value_error(
            "dropout should be a number in range [0, 1] representing the probability of an"
            " element being zeroed"
        )
    if dropout and num_layers == 1:
        text = (
            "dropout option adds dropout after all but last recurrent layer, so non-zero"
            f" dropout expects num_layers greater than 1, but got dropout={dropout} and"
            " num_layers=1"
        )
        active.state.warn("W009", "dropout= acts between layers: there is one", text=text)


class _Layers(Recurrent):
    """Layers of steps over inputs (time, batch, input_size), or (batch, time, …) if
    `batch_first`; without a batch (time, input_size).

    Example: isinstance(nn.LSTM(1, 1), nn.RNNBase)
    """

    language_attributes = Recurrent.language_attributes | names(
        "_all_weights _flat_weights _flat_weights_names all_weights flatten_parameters mode"
    )

    @property
    def mode(self) -> str:
        """What PyTorch calls the kind of layer."""
        name = self._get_name()
        return f"RNN_{self.nonlinearity.upper()}" if self.gates == 1 else name

    @property
    def _all_weights(self) -> list[list[str]]:
        """The names of the parameters of each layer and direction."""
        suffixes = [each for layer in range(self.num_layers) for each in self._suffixes(layer)]
        return [
            [name for name in self._parameters if name.endswith(f"_{suffix}")]
            for suffix in suffixes
        ]

    @property
    def all_weights(self) -> list[list[Tensor | None]]:
        """The parameters of each layer and direction."""
        return [[self._parameters[name] for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor | None]:
        return [weight for weights in self.all_weights for weight in weights]

    def flatten_parameters(self) -> None:
        """Nothing: it is for a GPU's kernels."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if proj_size and self.states == 1:
            raise value_error(
                f"{self._get_name()}() has no proj_size; LSTM has",
                "proj_size argument is only supported for LSTM, not RNN or GRU",
            )
        _check_dropout(dropout, num_layers)
        for what, count in (("hidden_size", hidden_size), ("num_layers", num_layers)):
            if count <= 0:
                raise value_error(f"{what} must be greater than zero")
        charge_tensors(_LAYER_TENSORS * num_layers)
        if not 0 <= proj_size < hidden_size:
            raise value_error(
                "proj_size should be a positive integer or zero to disable projections"
                if proj_size < 0
                else "proj_size has to be smaller than hidden_size"
            )
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        width = proj_size or hidden_size
        rows = self.gates * hidden_size
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else width * (2 if bidirectional else 1)
            for suffix in self._suffixes(layer):
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, inputs),
                    "weight_hh": (rows, width),
                }
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for kind, shape in shapes.items():
                    self.register_parameter(f"{kind}_{suffix}", new_parameter(shape, device, dtype))
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        """The ends of the parameters' names of a layer, one for each direction."""
        return [f"l{layer}", f"l{layer}_reverse"] if self.bidirectional else [f"l{layer}"]

    def _direction(self, input: Tensor, suffix: str, state: State) -> tuple[Tensor, State]:
        """The outputs of all steps in one direction, one after the other, and the last state."""
        if not self._is_one_node(input):
            return self._steps(input, suffix, state)
        weights = self._weights(suffix)
        # PyTorch uses zeros for biases that are left out.
        rows = self.gates * self.hidden_size
        present = [self._zeros(input, rows) if weight is None else weight for weight in weights]

        output, *last, _ = autocasting(mkldnn_rnn_layer.apply, "short")(
            input, *present, *state, suffix.endswith("_reverse")
        )
        return output, tuple(last)

    def _weights(self, suffix: str) -> list[Tensor | None]:
        """The weights and biases of a direction, None for a bias that is left out."""
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return [self._parameters.get(f"{kind}_{suffix}") for kind in kinds]

    def _is_one_node(self, input: Tensor) -> bool:
        """Whether PyTorch has a kernel for a whole direction."""
        casting = active.state.autocast
        fits = input.array.dtype == np.float32 or (casting and input.dtype is casting.dtype)
        return bool(fits and input.array.size and self.gates == 4 and not self.proj_size)

    def _steps(self, input: Tensor, suffix: str, state: State) -> tuple[Tensor, State]:
        """The same, composed of ops."""
        input_weight, hidden_weight, input_bias, hidden_bias = self._weights(suffix)
        projected = F.linear(input, input_weight, input_bias)
        steps = list(methods.unbind(projected, 0))
        backward = suffix.endswith("_reverse")
        outputs = []
        for step in reversed(steps) if backward else steps:
            state = self._step(step, suffix, state, hidden_weight, hidden_bias)
            outputs.append(state[0])
        return stack_function(outputs[::-1] if backward else outputs), state

    def _step(self, step: Tensor, suffix: str, state: State, weight: Any, bias: Any) -> State:
        """The next state, from the projection of an input."""
        state = self.next_state(step, F.linear(state[0], weight, bias), state)
        projection = self._parameters.get(f"weight_hr_{suffix}")
        if projection is None:
            return state
        return F.linear(state[0], projection, None), *state[1:]

    def _packed_direction(
        self, data: Tensor, suffix: str, first: State, counts: list[int]
    ) -> tuple[Tensor, State]:
        """The outputs of all steps of packed sequences, and the last state of each sequence."""
        input_weight, weight, input_bias, bias = self._weights(suffix)
        projected = F.linear(data, input_weight, input_bias)
        charge_tensors(len(counts))
        steps = []
        at = 0
        for count in counts:
            steps.append(methods.narrow(projected, 0, at, count))
            at += count
        backward = suffix.endswith("_reverse")
        before = counts[-1 if backward else 0]
        state = _rows(first, 0, before) if backward else first
        outputs, ended = [], []
        for step in reversed(steps) if backward else steps:
            count = step.array.shape[0]
            if count > before:  # backwards, the shorter sequences begin later
                state = _joined([state, _rows(first, before, count)])
            elif count < before:
                ended.append(_rows(state, count, before))
                state = _rows(state, 0, count)
            before = count
            state = self._step(step, suffix, state, weight, bias)
            outputs.append(state[0])
        if backward:
            return cat_function(outputs[::-1], 0), state
        return cat_function(outputs, 0), _joined([state, *reversed(ended)])

    def _check(self, input: Tensor) -> None:
        name = self._get_name()
        if input.dtype is not self.weight_ih_l0.dtype and active.state.autocast is None:
            raise GradcliError(
                "E203",
                f"RNN input dtype ({input.dtype}) does not match weight dtype"
                f" ({self.weight_ih_l0.dtype}). Convert input: input.to({self.weight_ih_l0.dtype}),"
                f" or convert model: model.to({input.dtype})",
                raises="ValueError",
            )
        if input.ndim not in (2, 3):
            raise value_error(f"{name}: Expected input to be 2D or 3D, got {input.ndim}D instead")
        if input.array.shape[-1] != self.input_size:
            raise shape_error(
                f"{name} takes inputs of size {self.input_size}, not {input.array.shape[-1]}",
                text="input.size(-1) must be equal to input_size. Expected"
                f" {self.input_size}, got {input.array.shape[-1]}",
            )

    def forward(self, input: Any, hx: Any = None) -> Any:
        states: State = () if hx is None else (hx,)
        if isinstance(hx, (tuple, list)):
            states = tuple(hx)
        if len(states) < self.states and isinstance(hx, Tensor):
            states = tuple(getitem(hx, number) for number in range(self.states))
        if isinstance(input, PackedSequence):
            return self._packed(input, states)
        self._check(input)
        batched = input.ndim == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = methods.unsqueeze(input, batch_dim)
            states = tuple(methods.unsqueeze(state, 1) for state in states)
        if self.batch_first:
            input = methods.transpose(input, 0, 1)
            if self._is_one_node(input):
                input = methods.contiguous(input)
        first = self._first(input, states, input.array.shape[1], self._is_one_node(input))
        input, last = self._through(input, first, self._direction)
        if self.batch_first:
            # As PyTorch does, whose node each makes: that of an LSTM is not written to.
            swap = methods.transpose if self.gates == 4 else methods.transpose_
            input = swap(input, 0, 1)
        if not batched:
            input = methods.squeeze(input, batch_dim)
            last = tuple(methods.squeeze(state, 1) for state in last)
        return input, (last if self.states > 1 else last[0])

    def _packed(self, input: PackedSequence, states: State) -> Any:
        """The outputs for packed sequences, packed, and the last states in the order as given."""
        data, sizes, order, back = input
        self._check(data)
        counts = input.counts
        if data.ndim != 2 or not counts or counts != sorted(counts, reverse=True):
            raise value_error(f"{self._get_name()} takes what pack_padded_sequence() gives")
        if order is not None:
            states = tuple(methods.index_select(state, 1, order) for state in states)
        data, last = self._through(
            data,
            self._first(data, states, counts[0], False),
            lambda data, suffix, state: self._packed_direction(data, suffix, state, counts),
        )
        if back is not None:
            last = tuple(methods.index_select(state, 1, back) for state in last)
        packed = PackedSequence(data, sizes, order, back)
        return packed, (last if self.states > 1 else last[0])

    def _through(
        self,
        input: Tensor,
        first: list[State],
        run: Callable[[Tensor, str, State], tuple[Tensor, State]],
    ) -> tuple[Tensor, State]:
        """The outputs of the last layer and the last states of all; `run` runs a direction."""
        finals: list[State] = []
        for layer in range(self.num_layers):
            directions = []
            for suffix in self._suffixes(layer):
                outputs, state = run(input, suffix, first[len(finals)])
                finals.append(state)
                directions.append(outputs)
            input = cat_function(directions, -1) if self.bidirectional else directions[0]
            if self.dropout and self.training and layer < self.num_layers - 1:
                input = F.dropout(input, self.dropout, True)
        return input, tuple(stack_function(list(states)) for states in zip(*finals, strict=True))

    def _first(self, input: Tensor, states: State, batch: int, one_node: bool) -> list[State]:
        """The first state of each layer and direction; E301 where one does not fit."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        widths = (self.proj_size or self.hidden_size, self.hidden_size)[: self.states]
        if not states:
            states = tuple(self._zeros(input, count, batch, width) for width in widths)
        for number, (state, width) in enumerate(zip(states, widths, strict=True)):
            if state.array.shape != (count, batch, width):
                raise shape_error(
                    f"Expected hidden{f'[{number}]' if self.states > 1 else ''} size"
                    f" {(count, batch, width)}, got {list(state.array.shape)}"
                )
        if one_node:
            apart = [[methods.select(state, 0, n) for n in range(count)] for state in states]
        else:
            apart = [methods.unbind(state, 0) for state in states]
        return list(zip(*apart, strict=True))

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0.0),
            ("bidirectional", False),
        ):
            if self.lookup(name) != default:
                text += f", {name}={self.lookup(name)}"
        return text


class RNN(_Layers):
    """h = tanh(W x + b + U h + c), or relu in place of tanh.

    Example: nn.RNN(2, 4)
    """

    gates: ClassVar[int] = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise value_error(
                f"Unknown nonlinearity {nonlinearity!r}. Select from 'tanh' or 'relu'."
            )
        shape = (input_size, hidden_size, num_layers)
        super().__init__(*shape, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        self.nonlinearity = nonlinearity


class LSTM(_Layers):
    """Long short-term memory: a cell that gates open and close.

    Example: nn.LSTM(2, 4)
    """

    gates: ClassVar[int] = 4
    states: ClassVar[int] = 2


class GRU(_Layers):
    """Gated recurrent units: the state is mixed with a new one.

    Example: nn.GRU(2, 4)
    """

    gates: ClassVar[int] = 3


for _layer in (RNN, LSTM, GRU):
    register("rnn", _layer)

register_base("rnn", "RNNBase", _Layers)
