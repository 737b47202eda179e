"""Functions that read the values of one example: they run for one example after the other;
and custom functions that say how they compute all examples.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar

from gradcli.autograd.batched import BatchedArray, NeedsExamples, batched_tensor
from gradcli.autograd.custom_function import DETAILS
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor, join_graph
from gradcli.errors import GradcliError, runtime_error, value_error
from gradcli.library.torch.func.batching.rules import Frame
from gradcli.library.torch.func.derivatives import vjp
from gradcli.library.torch.func.structure import leaves, mapped, rebuilt, same_form, spec_of
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.arguments import normal_dim
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
            examples, seeds = list(values[:count]), values[count:]

            def of_inputs(*inputs: Tensor) -> Any:
                for position, value in zip(self.inputs, inputs, strict=True):
                    examples[position] = value
                return tuple(self.function(*examples))

            _, pull = vjp(of_inputs, *[examples[position] for position in self.inputs])
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
        arguments, named = rebuilt(structure, list(values))
        try:
            return function(*arguments, **named)
        except NeedsExamples:  # an example is a batch of the `vmap` around this one
            return active.state.batch.looped(function, arguments, named)

    results = frame.run(
        lambda: [of_leaves(*[_example(frame, leaf, n) for leaf in flat]) for n in range(frame.size)]
    )
    columns = [list(column) for column in zip(*map(leaves, results), strict=True)]
    results_batched = [
        batched_tensor(frame.run(stack_function, column), 0, frame.level)
        if type(column[0]) is Tensor
        else column[0]
        for column in columns
    ]
    _record(frame, of_leaves, flat, results_batched)
    return rebuilt(results[0], results_batched)


def _record(frame: Frame, of_leaves: Function, flat: list[Any], results: list[Any]) -> None:
    """Make the node of results, if gradients are enabled and an argument requires one."""
    inputs = [n for n, leaf in enumerate(flat) if type(leaf) is Tensor and leaf.requires_grad]
    inputs = [n for n in inputs if frame.holds(flat[n])]
    at = [
        n
        for n, leaf in enumerate(results)
        if type(leaf) is Tensor and leaf.array.dtype.kind in "fcV"
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
    join_graph(node, [flat[n] for n in inputs], [results[n] for n in at])
    for output_nr, n in enumerate(at):
        results[n].grad_fn, results[n].output_nr, results[n].requires_grad = node, output_nr, True


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


def no_tensor(name: str, value: Any) -> GradcliError:
    """The error of what a mapped function returned where a tensor was wanted."""
    return value_error(
        f"vmap({name}, ...): `{name}` must only return Tensors, got type {shown_class(value)}. Did"
        " you mean to set out_dims= to None for output?"
    )


def shown_class(value: Any) -> str:
    """The class of a value as PyTorch's errors have it."""
    if isinstance(value, Tensor):
        return "<class 'torch.Tensor'>"
    return f"<class '{getattr(type(value), 'language_name', None) or type(value).__name__}'>"


class VmapInfo:
    """What a custom function's `vmap` receives about the batch.

    Attributes:
        batch_size: how many examples there are.
        randomness: what random numbers they may draw.
    """

    __slots__ = ("batch_size", "randomness")

    language_name: ClassVar[str] = "torch._functorch.autograd_function.VmapInfo"
    language_attributes: ClassVar[frozenset[str]] = frozenset(__slots__)

    def __init__(self, batch_size: int, randomness: str) -> None:
        self.batch_size = batch_size
        self.randomness = randomness


def by_own_rule(frame: Frame, function: Any, args: tuple[Any, ...], mode: bool) -> Any:
    """What a custom function's `vmap` makes of batched arguments, batched again. `mode` says
    whether its ops are recorded.

    Raises E204 for an answer that is no output with its dimensions, E202 and E302 for a dimension
    that is none of the output's.
    """

    def dim_of(value: Any) -> int | None:
        return value.array.bdim if frame.is_batched(value) else None

    def computed() -> Any:
        state = active.state
        if frame.below is None:
            state.grad_enabled = mode
        values = mapped(frame.plain, args)
        return function.vmap(VmapInfo(frame.size, frame.randomness), mapped(dim_of, args), *values)

    answer = frame.run(computed)
    if type(answer) is not tuple or len(answer) != 2:
        got = f"{len(answer)} returns" if type(answer) is tuple else f"a {shown_class(answer)}"
        raise runtime_error(
            "vmap(): the vmap staticmethod has to return an output and its out_dims",
            text="Expected the vmap staticmethod to have two returns, an output and out_dims with"
            f" pytree structure compatible with the output. Got {got} instead",
        )
    output, dims = answer
    parts = leaves(output)
    for value in parts:
        if not isinstance(value, Tensor):
            raise no_tensor("apply", value)
        if not value.array.ndim:
            raise value_error("vmap(): an output of the vmap staticmethod has no dimension")
    single = dims is None or isinstance(dims, int)
    if not single and not same_form(output, dims):
        raise runtime_error(
            "vmap(): the out_dims of the vmap staticmethod do not fit its output",
            text="The autograd.Function's vmap staticmethod returned an incompatible (output,"
            f" out_dims) tuple. Expected out_dims={dims!r} to be compatible with the structure of"
            f" `output`. out_dims has structure {spec_of(dims)} but output has structure"
            f" {spec_of(output)}. {DETAILS}",
        )
    every = [dims] * len(parts) if single else leaves(dims)
    return rebuilt(
        output,
        [
            value
            if dim is None
            else batched_tensor(value, normal_dim("vmap", dim, value.array.ndim), frame.level)
            for value, dim in zip(parts, every, strict=True)
        ],
    )
