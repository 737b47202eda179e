"""`mkldnn_rnn_layer`: one direction of a layer of an LSTM, which PyTorch records as one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.arrays.kernels.recurrent import lstm_layer, lstm_layer_gradients
from gradcli.arrays.kernels.sums import wide
from gradcli.autograd.engine import backward
from gradcli.autograd.tensor import Tensor
from gradcli.ops.binding.functions import methods
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.op import Op, op
from gradcli.ops.elementwise.unary import sigmoid, tanh
from gradcli.ops.linalg.products.matrix_products import linear
from gradcli.ops.shape.joining import stack_function
from gradcli.state import active


def lstm_state(gates: Sequence[Tensor], cell: Tensor) -> tuple[Tensor, Tensor]:
    """The next hidden state and cell, from the four gates before their activations."""
    entering, forgetting, new, leaving = gates
    kept = sigmoid.apply(forgetting) * cell + sigmoid.apply(entering) * tanh.apply(new)
    return sigmoid.apply(leaving) * tanh.apply(kept), kept


def _layer_array(
    input: Any,
    weight0: Any,
    weight1: Any,
    weight2: Any,
    weight3: Any,
    hx_: Any,
    cx_: Any,
    reverse: bool,
) -> Any:
    dtype = input.dtype
    input, weight0, weight1, weight2, weight3, hx_, cx_ = map(
        wide, (input, weight0, weight1, weight2, weight3, hx_, cx_)
    )
    *results, steps = lstm_layer(input, weight0, weight1, weight2 + weight3, (hx_, cx_), reverse)
    return *(each.astype(dtype, copy=False) for each in results), steps


def _steps(operands: Sequence[Tensor], reverse: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The outputs, the last hidden state and the last cell, of the steps written out as ops."""
    input, input_weight, weight, input_bias, bias, hidden, cell = operands
    steps = methods.unbind(linear(input, input_weight, input_bias), 0)
    outputs = []
    for step in reversed(steps) if reverse else steps:
        gates = methods.chunk(step + linear(hidden, weight, bias), 4, 1)
        hidden, cell = lstm_state(gates, cell)
        outputs.append(hidden)
    return stack_function(outputs[::-1] if reverse else outputs), hidden, cell


def _recorded(grads: Sequence[Any], operands: Sequence[Tensor], reverse: bool) -> Any:
    """The gradients with their graph."""
    results = _steps(operands, reverse)
    pairs = [(out, grad) for out, grad in zip(results, grads, strict=False) if grad is not None]
    wanted = [tensor for tensor in operands if tensor.requires_grad]
    gradients = backward.grad(
        [out for out, _ in pairs],
        wanted,
        [grad for _, grad in pairs],
        create_graph=True,
        allow_unused=True,
    )
    by_tensor = dict(zip(map(id, wanted), gradients, strict=True))
    return [by_tensor.get(id(tensor)) for tensor in operands]


def _layer_rule(
    grads: Any,
    input: Any,
    weight0: Any,
    weight1: Any,
    weight2: Any,
    weight3: Any,
    hx_: Any,
    cx_: Any,
    result0: Any,
    result3: Any,
    reverse: bool,
) -> Any:
    inputs = (input, weight0, weight1, weight2, weight3, hx_, cx_)
    if type(result0) is not Tensor:
        return _gradients(grads, inputs, result0, result3, reverse)
    if active.state.grad_enabled:
        return _recorded(grads, inputs, reverse)
    # Of half precision, whose gradients are rounded once.
    arrays = [None if each is None else each.array for each in grads]
    operands = [each.array for each in inputs]
    gradients = _gradients(arrays, operands, result0.array, result3.array, reverse)
    return [None if each is None else Tensor(each) for each in gradients]


def _gradients(
    grads: Sequence[Any], operands: Sequence[Any], output: Any, steps: Any, reverse: bool
) -> list[Any]:
    """The gradients of arrays, computed in single precision."""
    dtype = operands[0].dtype
    input, weight0, weight1, _, _, hx_, cx_ = map(wide, operands)
    one, two, three = [None if each is None else wide(each) for each in grads[:3]]
    gradients = lstm_layer_gradients(
        (one, two, three), input, weight0, weight1, (hx_, cx_), wide(output), steps, reverse
    )
    of_input, of_weight0, of_weight1, of_bias, of_hx, of_cx = [
        None if each is None else each.astype(dtype, copy=False) for each in gradients
    ]
    return [of_input, of_weight0, of_weight1, of_bias, of_bias, of_hx, of_cx]


mkldnn_rnn_layer: Op = op(
    "mkldnn_rnn_layer",
    _layer_array,
    decomposition=lambda input, weight0, weight1, weight2, weight3, hx_, cx_, reverse: (
        *_steps((input, weight0, weight1, weight2, weight3, hx_, cx_), reverse),
        None,
    ),
    outputs=("result0", "result1", "result2", "result3"),
    differentiable=(0, 1, 2),
    inputs=("input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_"),
    joint=_layer_rule,
    raises=BY_KINDS,
)
