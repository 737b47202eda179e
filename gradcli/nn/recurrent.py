"""Recurrent layers: `RNN LSTM GRU`, and their cells, which do one step.

A layer's inputs are projected for all steps at once; the steps then go one by one, composed of
ops as in PyTorch. (PyTorch runs a float32 LSTM of one direction as one node of its own.)
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.nn.initialisation import uniform_
from gradcli.nn.layer import FUNCTIONS, register
from gradcli.nn.module import Module
from gradcli.nn.parameters import new_parameter
from gradcli.ops.catalogue import methods, modules
from gradcli.ops.joining import cat_, stack_

State = tuple[Tensor, ...]


def _parts(gates: Tensor, count: int) -> Any:
    return modules["torch"]["unsafe_chunk"](gates, count, 1)


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return FUNCTIONS["linear"](input, weight, bias)


# --- one step -------------------------------------------------------------------------------------


def _rnn_step(function: str, projected: Tensor, hidden: Tensor, state: State) -> State:
    """The next state of a plain recurrent network from both projections."""
    return (modules["torch"][function](hidden + projected),)


def _lstm_step(projected: Tensor, hidden: Tensor, state: State) -> State:
    """The next state (h, c) of an LSTM from both projections."""
    sigmoid, tanh = modules["torch"]["sigmoid"], modules["torch"]["tanh"]
    entering, forgetting, cell, leaving = _parts(hidden + projected, 4)
    kept = sigmoid(forgetting) * state[1] + sigmoid(entering) * tanh(cell)
    return sigmoid(leaving) * tanh(kept), kept


def _gru_step(projected: Tensor, hidden: Tensor, state: State) -> State:
    """The next state of a GRU from both projections."""
    sigmoid, tanh = modules["torch"]["sigmoid"], modules["torch"]["tanh"]
    given, remembered = _parts(projected, 3), _parts(hidden, 3)
    reset = sigmoid(remembered[0] + given[0])
    update = sigmoid(remembered[1] + given[1])
    new = tanh(given[2] + remembered[2] * reset)
    return ((state[0] - new) * update + new,)


class _Recurrent(Module):
    """What layers and cells share.

    Attributes:
        gates: how many blocks of rows the weights have.
        states: how many tensors the state is made of.
    """

    __slots__ = ()

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
            return _lstm_step(projected, hidden, state)
        if self.gates == 3:
            return _gru_step(projected, hidden, state)
        return _rnn_step(self.nonlinearity, projected, hidden, state)

    def _zeros(self, like: Tensor, *sizes: int) -> Tensor:
        return Tensor(module_of(like.array).zeros(sizes, like.array.dtype))


# --- layers ---------------------------------------------------------------------------------------


class _Layers(_Recurrent):
    """Layers of steps over inputs (time, batch, input_size), or (batch, time, …) if
    `batch_first`; without a batch (time, input_size).
    """

    __slots__ = ()

    def _set_up(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        proj_size: int,
        device: Any,
        dtype: Any,
    ) -> None:
        name = self._get_name()
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise GradcliError("E204", f"{name}(): dropout is a probability, and {dropout} is none")
        if hidden_size <= 0 or num_layers <= 0:
            raise GradcliError("E204", f"{name}(): hidden_size and num_layers have to be positive")
        if not 0 <= proj_size < hidden_size:
            raise GradcliError("E204", f"{name}(): proj_size has to be below hidden_size")
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

    def _direction(self, input: Tensor, suffix: str, state: State) -> tuple[list[Tensor], State]:
        """The outputs of all steps in one direction, and the last state."""
        weights = self._parameters
        projection = weights.get(f"weight_hr_{suffix}")
        hidden_weight, hidden_bias = (
            weights[f"weight_hh_{suffix}"],
            weights.get(f"bias_hh_{suffix}"),
        )
        assert hidden_weight is not None
        projected = FUNCTIONS["linear"](
            input, weights[f"weight_ih_{suffix}"], weights.get(f"bias_ih_{suffix}")
        )
        steps = list(methods["unbind"](projected, 0))
        backward = suffix.endswith("_reverse")
        outputs = []
        for step in reversed(steps) if backward else steps:
            hidden = _linear(state[0], hidden_weight, hidden_bias)
            state = self.next_state(step, hidden, state)
            if projection is not None:
                state = (_linear(state[0], projection, None), *state[1:])
            outputs.append(state[0])
        return outputs[::-1] if backward else outputs, state

    def _check(self, input: Tensor, hx: Any) -> None:
        name = self._get_name()
        if input.ndim not in (2, 3):
            raise GradcliError("E204", f"{name} takes 2 or 3 dimensions, not {input.ndim}")
        if input.array.shape[-1] != self.input_size:
            raise GradcliError(
                "E301",
                f"{name} takes inputs of size {self.input_size}, not {input.array.shape[-1]}",
            )

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        self._check(input, hx)
        batched = input.ndim == 3
        given = () if hx is None else (hx if isinstance(hx, tuple) else (hx,))
        if not batched:
            input = methods["unsqueeze"](input, 1)
            given = tuple(methods["unsqueeze"](state, 1) for state in given)
        elif self.batch_first:
            input = methods["transpose"](input, 0, 1)
        first = self._first(input, given)
        finals: list[State] = []
        for layer in range(self.num_layers):
            directions = []
            for suffix in self._suffixes(layer):
                outputs, state = self._direction(input, suffix, first[len(finals)])
                finals.append(state)
                directions.append(stack_(outputs))
            input = cat_(directions, -1) if self.bidirectional else directions[0]
            if self.dropout and self.training and layer < self.num_layers - 1:
                input = FUNCTIONS["dropout"](input, self.dropout, True)
        last = tuple(stack_(list(states)) for states in zip(*finals, strict=True))
        if not batched:
            input = methods["squeeze"](input, 1)
            last = tuple(methods["squeeze"](state, 1) for state in last)
        elif self.batch_first:
            input = methods["transpose_"](input, 0, 1)  # as PyTorch does, whose node it makes
        return input, (last if self.states > 1 else last[0])

    def _first(self, input: Tensor, given: State) -> list[State]:
        """The first state of each layer and direction; E301 where one does not fit."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        batch = input.array.shape[1]
        widths = (self.proj_size or self.hidden_size, self.hidden_size)[: self.states]
        if not given:
            given = tuple(self._zeros(input, count, batch, width) for width in widths)
        for state, width in zip(given, widths, strict=True):
            if state.array.shape != (count, batch, width):
                raise GradcliError(
                    "E301",
                    f"the first state has shape {tuple(state.array.shape)}, and should have"
                    f" {(count, batch, width)}",
                )
        return list(zip(*(methods["unbind"](state, 0) for state in given), strict=True))

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
    """h = tanh(W x + b + U h + c), or relu in place of tanh."""

    __slots__ = ()

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
        super().__init__()
        if nonlinearity not in ("tanh", "relu"):
            raise GradcliError("E204", f"nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        self.nonlinearity = nonlinearity
        self._set_up(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )


class _Gated(_Layers):
    """Layers with gates, which `RNN` does without."""

    __slots__ = ()

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
            raise GradcliError("E204", f"{self._get_name()}() has no proj_size; LSTM has")
        self._set_up(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )


class LSTM(_Gated):
    """Long short-term memory: a cell that gates open and close."""

    __slots__ = ()

    gates: ClassVar[int] = 4
    states: ClassVar[int] = 2


class GRU(_Gated):
    """Gated recurrent units: the state is mixed with a new one."""

    __slots__ = ()

    gates: ClassVar[int] = 3


# --- cells ----------------------------------------------------------------------------------------


class _Cell(_Recurrent):
    """One step on (batch, input_size), or (input_size)."""

    __slots__ = ()

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
            raise GradcliError(
                "E204", f"{self._get_name()} takes 1 or 2 dimensions, not {input.ndim}"
            )
        batched = input.ndim == 2
        given = () if hx is None else (hx if isinstance(hx, tuple) else (hx,))
        if not batched:
            input = methods["unsqueeze"](input, 0)
            given = tuple(methods["unsqueeze"](state, 0) for state in given)
        if not given:
            sizes = (input.array.shape[0], self.hidden_size)
            given = (self._zeros(input, *sizes),) * self.states
        projected = _linear(input, self.weight_ih, self.bias_ih)
        hidden = _linear(given[0], self.weight_hh, self.bias_hh)
        state = self.next_state(projected, hidden, given)
        if not batched:
            state = tuple(methods["squeeze"](each, 0) for each in state)
        return state if self.states > 1 else state[0]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        return text if self.bias else f"{text}, bias=False"


class RNNCell(_Cell):
    """One step of `RNN`."""

    __slots__ = ()

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
            raise GradcliError(
                "E204",
                f"nonlinearity is 'tanh' or 'relu', not {self.nonlinearity!r}",
                raises="RuntimeError",
            )
        return super().forward(input, hx)

    def extra_repr(self) -> str:
        text = super().extra_repr()
        return text if self.nonlinearity == "tanh" else f"{text}, nonlinearity={self.nonlinearity}"


class LSTMCell(_Cell):
    """One step of `LSTM`."""

    __slots__ = ()

    gates: ClassVar[int] = 4
    states: ClassVar[int] = 2


class GRUCell(_Cell):
    """One step of `GRU`."""

    __slots__ = ()

    gates: ClassVar[int] = 3


for _kind in (RNN, LSTM, GRU, RNNCell, LSTMCell, GRUCell):
    register("rnn", _kind)
