"""`mkldnn_rnn_layer`: one direction of a layer of an LSTM, which PyTorch records as one node: all
its steps, and their gradients.

The gates stand in the order of the weights' rows: entering, forgetting, cell, leaving.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.kernels.in_c import are_plain, whole
from gradcli.arrays.kernels.sums import wide
from gradcli.arrays.native.dispatch import kernel
from gradcli.autograd.engine import backward
from gradcli.autograd.tensor import Tensor
from gradcli.ops.binding.functions import methods
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.op import Op, op
from gradcli.ops.elementwise.unary import sigmoid, tanh
from gradcli.ops.linalg.products.matrix_products import linear, matrix_product
from gradcli.ops.shape.joining import stack_function
from gradcli.state import active

# --- steps ----------------------------------------------------------------------------------------


def _in_order(length: int, reverse: bool) -> range:
    return range(length - 1, -1, -1) if reverse else range(length)


def lstm_layer(
    input: Any, input_weight: Any, weight: Any, biases: Any, first: tuple[Any, Any], reverse: bool
) -> tuple[Any, Any, Any, Any]:
    """All steps over an input.

    Args:
        input: shape (T, B, I).
        input_weight, weight: shapes (4 H, I) and (4 H, H), for the input and for the state.
        biases: both biases' sum, shape (4 H,).
        first: the first state, hidden and cell, each of shape (B, H).
        reverse: whether the last step comes first.

    Returns:
        The hidden states (T, B, H); the last hidden state and cell (B, H); what the gradient needs:
        gates and cell of every step, (T, 5, B, H).
    """
    steps, batch, _ = input.shape
    hidden, cell = first
    width = hidden.shape[-1]
    xp, dtype = module_of(input), input.dtype
    rows = matrix_product(input.reshape(steps * batch, -1), input_weight.T)
    rows += biases
    projected = rows.reshape(steps, batch, 4, width)
    turned = weight.T.copy()
    output = xp.empty((steps, batch, width), dtype)
    kept = xp.empty((steps, 5, batch, width), dtype)
    one = dtype.type(1)
    in_c = kernel("lstm_step") if are_plain(projected, cell) else None
    with np.errstate(over="ignore"):
        for step in _in_order(steps, reverse):
            gates = (hidden @ turned).reshape(batch, 4, width)
            if in_c is not None:
                in_c(gates, projected[step], cell, kept[step], output[step], width)
                hidden, cell = output[step], kept[step, 4]
                continue
            gates += projected[step]
            entering, forgetting, _, leaving, after = kept[step]
            new = np.tanh(gates[:, 2])
            np.negative(gates, out=gates)
            np.exp(gates, out=gates)
            gates += one
            np.divide(one, gates.swapaxes(0, 1), out=kept[step, :4])
            kept[step, 2] = new
            np.multiply(forgetting, cell, out=after)
            after += entering * new
            hidden = np.multiply(leaving, np.tanh(after), out=output[step])
            cell = after
    return output, hidden.copy(), cell.copy(), kept


def lstm_layer_gradients(
    grads: tuple[Any, Any, Any],
    input: Any,
    input_weight: Any,
    weight: Any,
    first: tuple[Any, Any],
    output: Any,
    kept: Any,
    reverse: bool,
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """The gradients of `lstm_layer` in the input, both weights, a bias, the first hidden state and
    the first cell.

    Args:
        grads: the gradients of the hidden states and of the last hidden state and cell; None where
            there is none.
        input, input_weight, weight, first, reverse: what the layer was given.
        output, kept: what it returned.
    """
    steps, batch, width = output.shape
    xp = module_of(input)
    cells = kept[:, 4]
    before, states = xp.empty(cells.shape, cells.dtype), xp.empty_like(output)
    for held, known, start in ((before, cells, first[1]), (states, output, first[0])):
        held[-1 if reverse else 0] = start
        if reverse:
            held[:-1] = known[1:]
        else:
            held[1:] = known[:-1]
    of_output, of_hidden, of_cell = grads
    if of_output is not None:
        of_output = whole(of_output)  # that of `batch_first` has its dimensions in another order
    if of_hidden is None:
        of_hidden = xp.zeros_like(first[0])
    of_cell = xp.zeros_like(first[1]) if of_cell is None else of_cell.copy()
    order = _in_order(steps, not reverse)
    slopes, of_hidden, of_cell = _back(order, of_output, of_hidden, of_cell, kept, before, weight)
    rows = slopes.reshape(steps * batch, 4 * width)
    return (
        matrix_product(rows, input_weight).reshape(input.shape),
        matrix_product(rows.T, input.reshape(steps * batch, -1)),
        matrix_product(rows.T, states.reshape(steps * batch, width)),
        rows.sum(0),
        of_hidden,
        of_cell,
    )


def _back(
    order: range, of_output: Any, of_hidden: Any, of_cell: Any, kept: Any, before: Any, weight: Any
) -> tuple[Any, Any, Any]:
    """The gradients of all gates, (T, B, 4, H), and of the first hidden state and cell."""
    steps, _, batch, width = kept.shape
    slopes = module_of(kept).empty((steps, batch, 4, width), kept.dtype)
    in_c = kernel("lstm_step_backward") if are_plain(of_hidden, of_output, of_cell, kept) else None
    if in_c is not None:
        for step in order:
            output_grad = None if of_output is None else of_output[step]
            in_c(of_hidden, output_grad, of_cell, kept[step], before[step], slopes[step], width)
            of_hidden = slopes[step].reshape(batch, 4 * width) @ weight
        return slopes, of_hidden, of_cell
    entering, forgetting, new, leaving, cells = (kept[:, gate] for gate in range(5))
    shown = np.tanh(cells)
    # First what the gates change, then that times the gradient of it.
    np.multiply(new * entering, 1 - entering, out=slopes[:, :, 0])
    np.multiply(before * forgetting, 1 - forgetting, out=slopes[:, :, 1])
    np.multiply(entering, 1 - new * new, out=slopes[:, :, 2])
    np.multiply(shown * leaving, 1 - leaving, out=slopes[:, :, 3])
    through = leaving * (1 - shown * shown)
    for step in order:
        if of_output is not None:
            of_hidden = of_hidden + of_output[step]
        of_cell = of_cell + of_hidden * through[step]
        slopes[step, :, :3] *= of_cell[:, None]
        slopes[step, :, 3] *= of_hidden
        of_cell = of_cell * forgetting[step]
        of_hidden = slopes[step].reshape(batch, 4 * width) @ weight
    return slopes, of_hidden, of_cell


# --- the op ---------------------------------------------------------------------------------------


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
