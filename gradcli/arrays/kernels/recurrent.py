"""One direction of a layer of an LSTM: all its steps, and their gradients.

The gates stand in the order of the weights' rows: entering, forgetting, cell, leaving.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.kernels.in_c import are_plain
from gradcli.arrays.kernels.linalg.products import matrix_product
from gradcli.arrays.native.dispatch import kernel


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
    turned = xp.ascontiguousarray(weight.T)
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
