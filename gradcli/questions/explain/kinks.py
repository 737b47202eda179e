"""Finds elements on a kink (a tie is one too), where a function has several slopes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.custom_function import FunctionNode
from gradcli.autograd.graph import Graph, GraphNode
from gradcli.autograd.node import Node
from gradcli.autograd.recording.recorder import Event, Step
from gradcli.autograd.recording.trace_recorder import Call
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.record import Record
from gradcli.recorded.ledger import last_pass

_MOST = 1000
"""No more elements than this are listed for one node."""


class Kink(Record):
    """One element of an operand at which there is a choice.

    Attributes:
        convention: the choice that PyTorch made, in words.
        used: the gradient that the element got from this node.
        others: the gradients of the other choices.
    """

    node: GraphNode
    parameter: str
    index: tuple[int, ...]
    value: float
    convention: str
    used: float
    others: Sequence[float]


def kinks(graph: Graph, events: Sequence[Event], calls: Mapping[Node, Call]) -> list[Kink]:
    """Every element on a kink, in the order of the backward pass.

    Args:
        graph: the graph.
        events: the events of the backward pass.
        calls: the call that made each node.
    """
    kinks: list[Kink] = []
    for event in last_pass(graph, events):
        node, call = graph.find(event.node), calls.get(event.node)
        if isinstance(event, Step) and node is not None and call is not None:
            find = _KINKS.get(call.op.name)
            if find is None and call.op.name.startswith(_PROBED):
                find = _by_differences
            if find is not None:
                kinks += list(find(node, call, event))[:_MOST]
    return kinks


def unexamined(graph: Graph, calls: Mapping[Node, Call]) -> list[GraphNode]:
    """The nodes of ops that may have kinks or ties, and of which none are looked for."""
    nodes = []
    for node in graph.nodes:
        call = calls.get(node.node)
        name = getattr(getattr(node.node, "op", None) if call is None else call.op, "name", "")
        is_own = isinstance(node.node, FunctionNode)
        is_probed = name.startswith(_PROBED) and name not in _KINKS
        if is_own or (is_probed and (call is None or _wide_forward(call) is None)):
            nodes.append(node)
    return nodes


_PROBED = (
    "max_pool", "adaptive_max_pool", "fractional_max_pool", "cummax", "cummin", "aminmax", "cdist",
    "_pdist", "dist", "renorm", "multi_margin", "multilabel_margin", "_prelu", "rrelu", "fmod",
    "remainder", "copysign", "linalg_svdvals", "linalg_matrix_norm", "std", "grid_sampler",
)  # fmt: skip
"""How the names of ops begin whose kinks and ties are looked for by differences to both sides."""

_MOST_PROBED = 200
"""Operands of more elements are not examined so."""

_STEP, _APART = 1e-6, 1e-3
"""The step of these differences, and how far apart the slopes of a kink are at least."""

_STEEP = 1e3
"""A larger slope is that of a jump, which has no other slopes beside it."""

_EVENLY = "equal elements share the gradient evenly"

Find = Callable[[GraphNode, Call, Step], Iterator[Kink]]


def _kink(convention: str, at: Callable[[dict[str, Any]], Sequence[Any]], *slopes: Any) -> Find:
    """An elementwise function of `self` with a kink at given values, and the slopes beside it."""

    def find(node: GraphNode, call: Call, step: Step) -> Iterator[Kink]:
        operands = call.arguments
        array = _array(operands["self"])
        grad, passed = forced(step.grads[0]), forced(step.gradients[0])
        if grad is None or passed is None:
            return
        choices = [slope(operands) if callable(slope) else slope for slope in slopes]
        points = [point for point in at(operands) if isinstance(point, (int, float))]
        for index in np.argwhere(np.isin(array, points)):
            place = tuple(map(int, index))
            gradient, used = float(grad[place]), float(passed[place])
            others = [gradient * slope for slope in choices if gradient * slope != used]
            yield Kink(node, "self", place, float(array[place]), convention, used, others)

    return find


def _always(point: float) -> Callable[[dict[str, Any]], Sequence[Any]]:
    return lambda operands: (point,)


def _at_bounds(convention: str, slopes: Mapping[float, Sequence[float]]) -> Find:
    """The same where the slopes are others at each of the values."""
    finds = [_kink(convention, _always(point), *each) for point, each in slopes.items()]

    def find(node: GraphNode, call: Call, step: Step) -> Iterator[Kink]:
        for each in finds:
            yield from each(node, call, step)

    return find


def _norm(node: GraphNode, call: Call, step: Step) -> Iterator[Kink]:
    """A norm of zeros, which has a slope in each direction."""
    array, passed = _array(call.arguments["self"]), forced(step.gradients[0])
    grad = forced(step.grads[0])
    if grad is None or passed is None or array.dtype.kind == "c":
        return
    dims = call.arguments.get("dims", call.arguments.get("dim"))
    axes = tuple(range(array.ndim)) if dims in (None, ()) else dims
    if call.arguments.get("ord", call.arguments.get("p", 2)) not in (2, None):
        yield from _by_differences(node, call, step)
        return
    zero = np.broadcast_to((array == 0).all(axis=axes, keepdims=True), array.shape)
    for index in np.argwhere(zero):
        place = tuple(map(int, index))
        words = "the slope of a norm at 0 is 0, where each direction has its own"
        yield Kink(node, "self", place, 0.0, words, float(passed[place]), [])


Forward = Callable[[dict[str, Any]], list[Any]]


def _wide_forward(call: Call) -> tuple[dict[str, Any], Forward] | None:
    """The arguments of a call in double precision, and what computes its outputs of them; None for
    what is no function of these, or too large.
    """
    arguments = {
        name: _wide(_array(value)) if isinstance(value, Tensor) else value
        for name, value in call.arguments.items()
    }
    sizes = [value.size for value in arguments.values() if isinstance(value, np.ndarray)]
    if max(sizes, default=0) > _MOST_PROBED:
        return None

    def forward(operands: dict[str, Any]) -> list[Any]:
        output = call.op.forward(*(operands.get(name) for name in call.op.parameters))
        return list(output) if isinstance(output, (tuple, list)) else [output]

    with np.errstate(all="ignore"):
        try:
            again = forward(arguments)
        except (TypeError, ValueError, KeyError, AttributeError, GradcliError):
            return None
    output = call.output if isinstance(call.output, (tuple, list)) else [call.output]
    same = len(again) == len(output) and all(
        np.allclose(np.asarray(one), _array(other), rtol=1e-3, atol=1e-5, equal_nan=True)
        for one, other in zip(again, output, strict=True)
    )
    return (arguments, forward) if same else None


def _wide(array: Any) -> Any:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _by_differences(node: GraphNode, call: Call, step: Step) -> Iterator[Kink]:
    """Elements whose slopes to both sides differ, as differences have them."""
    probe = _wide_forward(call)
    if probe is None:
        return
    arguments, forward = probe
    grads = [None if grad is None else _array(grad) for grad in step.grads]
    words = "the slopes to the two sides differ"
    for number, parameter in enumerate(call.op.inputs):
        array = arguments.get(parameter)
        passed = step.gradients[number] if number < len(step.gradients) else None
        if passed is None or not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            continue
        gradient = _array(passed)
        for index in np.ndindex(array.shape) if gradient.shape == array.shape else ():
            sides = [_slope(arguments, parameter, index, each, forward, grads) for each in (-1, 1)]
            size = max(1.0, *map(abs, sides))
            if _APART * size < abs(sides[0] - sides[1]) and size < _STEEP:
                used = float(gradient[index])
                others = [each for each in sides if abs(each - used) > _APART * size]
                yield Kink(
                    node, parameter, index, float(array[index]), words, used,
                    [float(f"{each:.4g}") + 0.0 for each in others],
                )  # fmt: skip


def _slope(
    arguments: dict[str, Any],
    parameter: str,
    index: tuple[int, ...],
    side: int,
    forward: Forward,
    grads: Sequence[Any],
) -> float:
    """How the outputs, times their gradients, change with one element to one side of it."""
    moved = arguments[parameter].copy()
    moved[index] += side * _STEP
    with np.errstate(all="ignore"):
        before, after = forward(arguments), forward({**arguments, parameter: moved})
    change = sum(
        float(np.sum((np.asarray(b) - np.asarray(a)) * grad))
        for a, b, grad in zip(before, after, grads, strict=False)
        if grad is not None
    )
    return change / (side * _STEP)


def _elu_bends(operands: dict[str, Any]) -> Sequence[Any]:
    """Where an ELU has two slopes."""
    return (0,) if operands["alpha"] * operands["input_scale"] != 1 else ()


def _equal(node: GraphNode, call: Call, step: Step) -> Iterator[Kink]:
    """`maximum` and `minimum`: the gradient is halved where both are equal."""
    left, right = (_array(call.arguments[name]) for name in ("self", "other"))
    grad = forced(step.grads[0])
    for index in np.argwhere(np.equal(left, right)):
        place = tuple(map(int, index))
        gradient = float(grad[place])
        value = float(np.broadcast_to(left, grad.shape)[place])
        for number, parameter in enumerate(("self", "other")):
            passed = forced(step.gradients[number])
            if passed is not None:
                used = float(passed[place])
                words = "equal operands share the gradient evenly"
                yield Kink(node, parameter, place, value, words, used, [0.0, gradient])


def _largest(is_split: bool) -> Find:
    """A maximum or minimum over elements, of which several are equal."""

    def find(node: GraphNode, call: Call, step: Step) -> Iterator[Kink]:
        array, output = _array(call.arguments["self"]), call.output
        result = _array(output[0] if isinstance(output, tuple) else output)
        grad, passed = forced(step.grads[0]), forced(step.gradients[0])
        if grad is None or passed is None or not array.ndim:
            return
        axes = call.arguments.get("dims", call.arguments.get("dim"))
        axes = tuple(range(array.ndim)) if axes is None or axes == () else axes
        axes = (axes,) if isinstance(axes, int) else tuple(axes)
        splits = is_split or (call.op.name in ("max", "min") and "dim" not in call.arguments)
        words = _EVENLY if splits else "one of the equal elements gets the whole gradient"
        if not call.arguments.get("keepdim"):
            places = tuple(sorted(axis % array.ndim for axis in axes))
            result, grad = np.expand_dims(result, places), np.expand_dims(grad, places)
        equal = array == result
        count = equal.sum(axis=axes, keepdims=True)
        for index in np.argwhere(equal & (count > 1)):
            place = tuple(map(int, index))
            used = float(passed[place])
            whole = float(np.broadcast_to(grad, array.shape)[place])
            choices = {0.0, whole, whole / float(np.broadcast_to(count, array.shape)[place])}
            others = sorted(choices - {used})
            yield Kink(node, "self", place, float(array[place]), words, used, others)

    return find


def _sorted(node: GraphNode, call: Call, step: Step) -> Iterator[Kink]:
    """Equal elements next to each other in sorted order, each with the gradient of its place."""
    array, values = _array(call.arguments["self"]), _array(call.output[0])
    grad, passed = forced(step.grads[0]), forced(step.gradients[0])
    if grad is None or passed is None or not array.ndim:
        return
    axis = call.arguments.get("dim", -1)
    rows, ordered = np.moveaxis(array, axis, -1), np.moveaxis(values, axis, -1)
    gradients = np.moveaxis(grad, axis, -1)
    picked = (rows[..., :, None] == ordered[..., None, :]).any(-1)
    alike_in_row = (rows[..., :, None] == rows[..., None, :]).sum(-1)
    for index in np.argwhere(picked & (alike_in_row > 1)):
        row, place = tuple(map(int, index[:-1])), tuple(map(int, index))
        used = float(np.moveaxis(passed, axis, -1)[place])
        alike = ordered[row] == rows[place]
        choices = {float(each) for each in gradients[row][alike]}
        if alike.sum() < alike_in_row[place]:  # not all of them were picked
            choices.add(0.0)
        others = sorted(choices - {used})
        whole = list(place[:-1])
        whole.insert(axis % array.ndim, place[-1])
        words = "equal elements keep an order, and each gets the gradient of its place"
        yield Kink(node, "self", tuple(whole), float(rows[place]), words, used, others)


def _array(value: Any) -> Any:
    return np.asarray(to_host(forced(value.array if isinstance(value, Tensor) else value)))


def _zero(_given: dict[str, Any]) -> Sequence[Any]:
    return (0,)


_KINKS: dict[str, Find] = {
    "abs": _kink("the slope of abs at 0 is 0", _zero, -1, 1),
    "sgn": _kink("the slope of sgn at 0 is 0", _zero),
    "relu": _kink("the slope of relu at 0 is 0", _zero, 1),
    "leaky_relu": _kink(
        "the slope of leaky_relu at 0 is that of the negative side",
        _zero, 1, lambda given: given["negative_slope"],
    ),
    "elu": _kink(
        "the slope of elu at 0 is that of the negative side",
        _elu_bends, lambda g: g["scale"], lambda g: g["scale"] * g["alpha"] * g["input_scale"],
    ),
    "hardswish": _at_bounds(
        "the slope of hardswish at a bound is that beyond it", {-3: (0, -0.5), 3: (1, 1.5)}
    ),
    "hardsigmoid": _at_bounds(
        "the slope of hardsigmoid at a bound is 0", {-3: (0, 1 / 6), 3: (0, 1 / 6)}
    ),
    "linalg_vector_norm": _norm,
    "norm": _norm,
    "hardtanh": _kink(
        "the slope of hardtanh at a bound is 0", lambda g: (g["min_val"], g["max_val"]), 1, 0
    ),
    "clamp": _kink("the slope of clamp at a bound is 1", lambda g: (g["min"], g["max"]), 0, 1),
    "clamp_min": _kink("the slope of clamp at a bound is 1", lambda g: (g["min"],), 0, 1),
    "clamp_max": _kink("the slope of clamp at a bound is 1", lambda g: (g["max"],), 0, 1),
    "threshold": _kink(
        "the slope of threshold at the threshold is 0", lambda g: (g["threshold"],), 1
    ),
    "hardshrink": _kink(
        "the slope of hardshrink at a bound is 0", lambda g: (g["lambd"], -g["lambd"]), 1
    ),
    "softshrink": _kink(
        "the slope of softshrink at a bound is 0", lambda g: (g["lambd"], -g["lambd"]), 1
    ),
    "maximum": _equal,
    "minimum": _equal,
    "fmax": _equal,
    "fmin": _equal,
    "amax": _largest(True),
    "amin": _largest(True),
    "max": _largest(False),
    "min": _largest(False),
    "median": _largest(False),
    "nanmedian": _largest(False),
    "kthvalue": _largest(False),
    "mode": _largest(False),
    "sort": _sorted,
    "topk": _sorted,
}  # fmt: skip
