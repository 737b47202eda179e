"""What the page needs to compute a node anew for other values of the leaves (`compute.js`): the
operation, where its operands come from, and its arguments.

An operation that only moves elements needs no formula there: run on the numbers of the elements, it
says itself where each of its own comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite, prod
from typing import Any

import numpy as np

from gradcli.autograd.graph import GraphNode
from gradcli.autograd.recording.trace_recorder import Call
from gradcli.autograd.tensor import Tensor
from gradcli.ops.definition.op import Op
from gradcli.record import Record
from gradcli.recorded.annotated_graph import AnnotatedGraph

MOST_COMPUTED = 20_000
"""Of nodes with more elements in all the page does not compute anew: it would not keep up."""

COARSE = ("float16", "bfloat16")
"""The dtypes whose rounding not every browser knows."""

MOVING = {
    *("alias", "diagonal", "expand", "permute", "select", "slice", "split", "split_with_sizes"),
    *("squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view", "_reshape_alias"),
    *("_unsafe_view", "reshape", "flatten", "clone", "contiguous", "_to_copy", "cat", "stack"),
    *("embedding", "index", "index_select", "gather", "take", "flip", "roll", "tril", "triu"),
    *("repeat", "constant_pad_nd"),
}
"""The operations each of whose elements is an element of an operand, or zero."""


COMPARING = {
    "gt": ">", "lt": "<", "ge": ">=", "le": "<=", "eq": "==", "ne": "!=",
    "logical_and": "&", "logical_or": "|", "logical_not": "~",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_not": "~",
}  # fmt: skip
"""The operations that make conditions, with the operators that the page computes them by."""

CHOOSING = ("where", "masked_fill")
"""The operations in which a condition may be one that the page computes anew."""


def comparisons(calls: Iterable[Call]) -> dict[int, Call]:
    """The calls among these that made a condition, by the `id` of what came out."""
    return {id(each.output): each for each in calls if each.op.name.partition(".")[0] in COMPARING}


def recipe(node: GraphNode, annotated: AnnotatedGraph) -> dict[str, Any]:
    """How a node is computed from its operands; empty where the page cannot be told.

    `op` is the operation, `inputs` what its rules call the operands, `operands` where these come
    from, `order` the names of all that it was called with, in its order, `arguments` those that
    are no operands, tensors among them as `{"tensor": …}` and conditions that leaves decide as
    `{"compare": …}`; `places` of a moving operation has for
    each output the number of the operands' element behind each of its own, from 1, and 0 for a
    zero.
    """
    op: Op | None = getattr(node.node, "op", None)
    arguments = annotated.arguments(node)
    if op is None or arguments is None:
        return {}
    known = {
        "op": op.name.partition(".")[0],
        "inputs": [*op.inputs],
        "order": [name for name, value in arguments.items() if value is not None],
        "operands": [_operand(node, number, arguments) for number in range(len(node.edges))],
    }
    if known["op"] in MOVING:
        places = _places(node, op, arguments)
        return {} if places is None else {**known, "arguments": {}, "places": places}
    own = {
        name: _condition(value, annotated) or _argument(value)
        for name, value in arguments.items()
        if name not in (*op.inputs, *op.lists) and value is not None
    }
    return {**known, "arguments": own} if all(map(is_plain, own.values())) else {}


def _operand(node: GraphNode, position: int, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Where an operand's value comes from: an output of a node, or numbers; empty for one that is
    not given.
    """
    edge, op = node.edges[position], node.node.op
    if not op.lists and arguments.get(op.inputs[position]) is None:
        return {}
    if edge.node is not None:
        return {"node": edge.node.id, "output": edge.output_nr}
    value = _argument(edge.constant)
    return {"value": value if is_plain(value) else None}


def _condition(value: Any, annotated: AnnotatedGraph) -> dict[str, Any] | None:
    """A condition that leaves decide, as the page computes it: its operator and its operands, like
    those of a node or conditions; None for what is none.
    """
    call = annotated.comparisons.get(id(value))
    if call is None or not _is_decided(value, annotated):
        return None
    operands = [_compared(each, annotated) for each in call.arguments.values()]
    return {"compare": COMPARING[call.op.name.partition(".")[0]], "operands": operands}


def _is_decided(value: Any, annotated: AnnotatedGraph) -> bool:
    """Whether a value is one with a gradient, or a condition that such values decide."""
    call = annotated.comparisons.get(id(value))
    if call is None:
        return type(value) is Tensor and value.requires_grad
    return any(_is_decided(each, annotated) for each in call.arguments.values())


def _compared(value: Any, annotated: AnnotatedGraph) -> dict[str, Any]:
    """An operand of a condition; `value` is None where the graph does not have it."""
    condition = _condition(value, annotated)
    if condition is not None or not _is_decided(value, annotated):
        known = _argument(value)
        return condition or {"value": known if is_plain(known) else None}
    for node in annotated.graph.nodes:
        if node.leaf is value or (value.grad_fn is not None and node.node is value.grad_fn):
            return {"node": node.id, "output": value.output_nr}
    return {"value": None}


def _argument(value: Any) -> Any:
    """An argument as JSON has it: a tensor with its shape, for it may be empty; a record by its
    fields.
    """
    array = _array(value)
    if getattr(array, "ndim", None) is not None:
        few = array.size <= MOST_COMPUTED and array.dtype.kind in "biuf"
        return {"tensor": np.asarray(array).tolist() if few else None, "shape": [*array.shape]}
    if isinstance(value, Record):
        fields = {name: _argument(getattr(value, name)) for name in value.fields}
        return {name: each for name, each in fields.items() if each is not None}
    return [*map(_argument, value)] if isinstance(value, (tuple, list)) else value


def is_plain(value: Any) -> bool:
    """Whether JavaScript computes with a value as it stands: JSON has no infinities and no NaN."""
    if isinstance(value, (list, dict)):
        return all(map(is_plain, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (bool, int, str)) or (isinstance(value, float) and isfinite(value))


def _places(node: GraphNode, op: Op, arguments: Mapping[str, Any]) -> list[list[int]] | None:
    """For each output of an operation that moves elements the numbers of those that it takes; None
    where it does anything else.
    """
    if op.name == "embedding" and (arguments["padding_idx"] or -1) >= 0:
        return None  # its rows get no gradient
    if op.name == "constant_pad_nd" and arguments["value"]:
        return None
    numbered: list[Any] = []
    count = 0
    for edge in node.edges:
        shape = (
            edge.node.outputs[edge.output_nr][0] if edge.node else np.shape(_array(edge.constant))
        )
        size = prod(shape)
        numbered.append(np.arange(count + 1, count + size + 1, dtype=np.float64).reshape(shape))
        count += size
    if op.name == "_to_copy":
        return [[*range(1, count + 1)]]  # another dtype need not have the numbers
    operands: list[Any] = [
        numbered
        if name in op.lists
        else numbered[op.inputs.index(name)]
        if name in op.inputs
        else _plain_arrays(arguments[name])
        for name in op.parameters
    ]
    outputs = op.forward(*operands)
    parts = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    return [np.asarray(part).astype(np.int64).ravel().tolist() for part in parts]


def _array(value: Any) -> Any:
    return value.array if isinstance(value, Tensor) else value


def _plain_arrays(value: Any) -> Any:
    """An argument with arrays for its tensors, as a forward function takes it."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(_plain_arrays, value))
    return _array(value)
