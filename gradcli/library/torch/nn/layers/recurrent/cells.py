"""One step of recurrent layers, and the cells that do one: `RNNCell LSTMCell GRUCell`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, shape_error, value_error
from gradcli.library.torch.nn.init import uniform_
from gradcli.library.torch.nn.layer import new_parameter, register
from gradcli.library.torch.nn.module import Module
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.binding.functions import F, methods, torch
from gradcli.ops.nn.recurrent import lstm_state
from gradcli.state import computed

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
