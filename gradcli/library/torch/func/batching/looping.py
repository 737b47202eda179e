"""Functions that read the values of one example: they run for one example after the other."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from gradcli.autograd.batched import BatchedArray, NeedsExamples, batched_tensor
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor, join_graph
from gradcli.errors import GradcliError
from gradcli.library.torch.func.batching.frame import Frame
from gradcli.library.torch.func.derivatives import vjp
from gradcli.library.torch.func.structure import leaves, rebuilt
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.definition.doc import RANDOM
from gradcli.ops.shape.joining import stack_function
from gradcli.ops.shape.slicing import select
from gradcli.state import active

Function = Callable[..., Any]


class Looped(Node):
    """The node of a function that ran for one example after the other; so does its gradient.

    Attributes:
        frame: the `vmap` in which it ran.
        function: from the leaves of its arguments to the tensors of its result.
        flat: the leaves.
        inputs: the positions of those that its edges lead to.
    """

    __slots__ = ("flat", "frame", "function", "inputs", "multiple")

    node_name = "LoopedBackward"
    frame: Frame
    flat: list[Any]
    inputs: list[int]
    function: Function

    def run(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        count = len(self.flat)

        def pulled(*values: Any) -> Any:
            given, seeds = list(values[:count]), values[count:]

            def of_inputs(*inputs: Tensor) -> Any:
                for position, value in zip(self.inputs, inputs, strict=True):
                    given[position] = value
                return tuple(self.function(*given))

            _, pull = vjp(of_inputs, *[given[position] for position in self.inputs])
            return pull(tuple(seeds))

        seeds = grads if isinstance(grads, list) else [grads]
        whole = [
            zeros(self.frame.wrapped(Tensor(0.0)), shape) if seed is None else seed
            for seed, (shape, _) in zip(seeds, self.metadata, strict=True)
        ]
        args = (*self.flat, *whole)
        level = level_of(leaves(args)) or self.frame.level
        return tuple(looped(self.frame.at(level), pulled, args, {}))

    run_recorded = run


def looped(frame: Frame, function: Function, args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of a function on values of a level, computed example by example.

    Raises E205 for a function that writes to its tensor.
    """
    name = getattr(function, "__name__", "the function")
    if name.endswith("_") and not name.startswith("__"):
        raise GradcliError(
            "E205", f"vmap: {name}() cannot write the examples of a batch one by one"
        )
    if isinstance(function, FunctionType) and RANDOM in vars(function).get("effects", ()):
        frame.check_drawing_by_examples()
    structure = (tuple(args), kwargs)
    flat = leaves(structure)

    def of_leaves(*values: Any) -> Any:
        given, named = rebuilt(structure, list(values))
        try:
            return function(*given, **named)
        except NeedsExamples:  # an example is a batch of the `vmap` around this one
            return active.state.batch.looped(function, given, named)

    results = frame.run(
        lambda: [of_leaves(*[_example(frame, leaf, n) for leaf in flat]) for n in range(frame.size)]
    )
    columns = [list(column) for column in zip(*map(leaves, results), strict=True)]
    found = [
        batched_tensor(frame.run(stack_function, column), 0, frame.level)
        if type(column[0]) is Tensor
        else column[0]
        for column in columns
    ]
    _record(frame, of_leaves, flat, found)
    return rebuilt(results[0], found)


def _record(frame: Frame, of_leaves: Function, flat: list[Any], found: list[Any]) -> None:
    """Make the node of results, if gradients are enabled and an argument requires one."""
    inputs = [n for n, leaf in enumerate(flat) if type(leaf) is Tensor and leaf.requires_grad]
    inputs = [n for n in inputs if frame.holds(flat[n])]
    at = [
        n for n, leaf in enumerate(found) if type(leaf) is Tensor and leaf.array.dtype.kind in "fcV"
    ]
    if not (active.state.grad_enabled and inputs and at):
        return
    node = Looped()
    node.frame, node.flat, node.inputs = frame, flat, inputs
    node.multiple = len(at) > 1

    def function(*values: Any) -> Any:
        returned = leaves(of_leaves(*values))
        return [returned[n] for n in at]

    node.function = function
    join_graph(node, [flat[n] for n in inputs], [found[n] for n in at])
    for output_nr, n in enumerate(at):
        found[n].grad_fn, found[n].output_nr, found[n].requires_grad = node, output_nr, True


def _example(frame: Frame, leaf: Any, number: int) -> Any:
    if not frame.is_batched(leaf):
        return frame.plain(leaf)
    array: BatchedArray = leaf.array
    return select.apply(array.value, array.bdim, number)


def level_of(values: list[Any]) -> int:
    """The innermost level among the batched ones of some values; 0 for none."""
    return max(
        [v.array.level for v in values if type(v) is Tensor and type(v.array) is BatchedArray],
        default=0,
    )
