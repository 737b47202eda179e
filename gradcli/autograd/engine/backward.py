"""`backward` and `grad`: the entry points of the engine; and warnings of passes that are likely
slips.

They begin at tensors, or at edges of the graph, which are where the gradient of a tensor flows,
without the tensor.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.fusion.lazy import forced
from gradcli.arrays.layout.strides import copied_as_it_lies
from gradcli.autograd.engine import accumulate
from gradcli.autograd.engine.engine import IdentityMap, Root, Target, run_backward
from gradcli.autograd.node import Node, extra_of
from gradcli.autograd.tensor import (
    AccumulateGrad,
    Tensor,
    gradient_edge,
    meta_of,
    not_installed,
    refuse_transformed,
    with_history,
)
from gradcli.errors import GradcliError, Label, Span, runtime_error, type_error, value_error
from gradcli.state import active


class GradientEdge(tuple[Any, ...]):
    """`torch.autograd.graph.GradientEdge(node, output_nr)`: an edge in place of a tensor."""

    __slots__ = ()

    language_name: ClassVar[str] = "torch.autograd.graph.GradientEdge"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"node", "output_nr"})

    def __new__(cls, node: Node, output_nr: int, ownership_token: Any = None) -> GradientEdge:
        return super().__new__(cls, (node, output_nr, ownership_token))

    @property
    def node(self) -> Node:
        """The node."""
        return self[0]

    @property
    def output_nr(self) -> int:
        """Which of its outputs."""
        return self[1]

    def __repr__(self) -> str:
        return f"GradientEdge(node={self[0]!r}, output_nr={self[1]}, ownership_token={self[2]!r})"

    __str__ = __repr__

    def tensor(self) -> Tensor:
        """A tensor with this history and no values, for code that reads only the history."""
        shape, dtype = self.node.metadata[self.output_nr]
        return with_history(np.zeros(shape, dtype)[()], self.node, self.output_nr)


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Where the gradient of a tensor flows; raises E402 for one that does not require grad."""
    if not isinstance(tensor, Tensor):
        raise type_error(f"get_gradient_edge() takes a tensor, not {type(tensor).__name__}")
    node, output_nr = gradient_edge(tensor)
    if node is None:
        raise GradcliError("E402", "get_gradient_edge() needs a tensor that requires grad")
    return GradientEdge(node, output_nr)


Tensors = Tensor | Sequence[Tensor]

in_one_batch: Callable[[Callable[..., Any], list[Any]], Any] = not_installed
"""Calls a function of gradients for all rows of seeds at once; installed by gradcli.language, as
only the batched form of `grad` needs it."""


def _several(value: Any, what: str) -> list[Any]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, GradientEdge):
        return [value.tensor()]
    if hasattr(type(value), "__iter__"):
        return [each.tensor() if isinstance(each, GradientEdge) else each for each in value]
    raise type_error(
        f"{what} must be a tensor or a sequence of tensors, not {type(value).__name__}"
    )


def _seed(
    number: int, output: Tensor, gradient: Any, create_graph: bool, identity_map: IdentityMap
) -> Any:
    """The gradient that a pass starts from, in the output's dtype; or a tensor."""
    array = output.array
    if gradient is None:
        # As in PyTorch: that an output does not require grad is found when the pass begins.
        if output.requires_grad and array.size != 1:
            raise GradcliError(
                "E401",
                "grad can be implicitly created only for scalar outputs",
                notes=(f"the output has shape {tuple(array.shape)}",),
                help=f"differentiate one number, such as `{output.name or 'y'}.sum()`, or pass a"
                f" seed of that shape: backward({_ones(array.shape)})",
            )
        if output.requires_grad and array.dtype.kind not in "fV":
            raise GradcliError(
                "E402",
                f"a gradient needs a floating output, and this one is {output.dtype}",
                text="grad can be implicitly created only for real scalar outputs but got"
                f" {output.dtype}",
            )
        seed: Any
        if isinstance(array, np.generic) or (type(array) is np.ndarray and not array.ndim):
            seed = array.dtype.type(1)
        else:
            seed = module_of(array).ones(array.shape, array.dtype)[()]
        return Tensor(seed) if create_graph else seed
    if not isinstance(gradient, Tensor):
        raise type_error(
            f"the gradient to start from must be a tensor, not {type(gradient).__name__}",
            text=f"gradients can be either Tensors or None, but got {type(gradient).__name__}",
            help="wrap it: `backward(tensor(1.))`",
        )
    if gradient.array.shape != array.shape:
        raise GradcliError(
            "E406",
            f"the seed has shape {tuple(gradient.array.shape)} and the output has shape"
            f" {tuple(array.shape)}",
            text=f"Mismatch in shape: grad_output[{number}] has a shape of"
            f" torch.Size({list(gradient.array.shape)}) and output[{number}] has a shape of"
            f" torch.Size({list(array.shape)}).",
            help=f"pass a seed of the output's shape: {_ones(array.shape)}",
        )
    if (gradient.array.dtype.kind == "c") is not (array.dtype.kind == "c"):
        raise GradcliError(
            "E406",
            f"the seed is {gradient.dtype} and the output {output.dtype}: both are complex, or none"
            " is",
            text="For complex Tensors, both grad_output and output are required to have the same"
            f" dtype. Mismatch in dtype: grad_output[{number}] has a dtype of {gradient.dtype} and"
            f" output[{number}] has a dtype of {output.dtype}.",
        )
    if gradient.array.dtype is not array.dtype:
        gradient = accumulate.cast(gradient, array.dtype)
    if create_graph:
        return gradient
    gradient.array = forced(gradient.array)
    identity_map.add(gradient)
    return gradient.array


def _ones(shape: tuple[int, ...]) -> str:
    return f"ones({', '.join(map(str, shape))})" if shape else "tensor(1.)"


def _roots(
    outputs: list[Any], gradients: list[Any] | None, create_graph: bool, identity_map: IdentityMap
) -> list[Root]:
    seeds = []
    for number, output in enumerate(outputs):
        if not isinstance(output, Tensor):
            raise GradcliError(
                "E202",
                f"only tensors can be differentiated, not {type(output).__name__}",
                text="Expected output to be a torch.Tensor",
                raises="AssertionError",
            )
        if gradients is not None and number >= len(gradients):  # PyTorch ignores surplus ones
            raise GradcliError(
                "E406", f"{len(gradients)} seeds were given for {len(outputs)} outputs"
            )
        gradient = gradients[number] if gradients else None
        seeds.append(_seed(number, output, gradient, create_graph, identity_map))
    roots: list[Root] = []
    for number, (output, seed) in enumerate(zip(outputs, seeds, strict=True)):
        node, output_nr = gradient_edge(output)
        duals = active.state.duals
        if node is None or (duals is not None and duals.hides_history(output)):
            labels: tuple[Label, ...] = ()
            if active.state.place is not None:
                labels = (Label(active.state.place, "differentiated here"),)
            raise GradcliError(
                "E402",
                "the tensor does not require grad and has no grad_fn",
                text=f"element {number} of tensors does not require grad and does not have a"
                " grad_fn",
                help="make an input with requires_grad=True, and compute the output from it;"
                " detach(), item() and torch.no_grad() cut the graph",
                labels=labels,
            )
        if type(node) is AccumulateGrad:
            check_root(output)
        roots.append((node, output_nr, seed))
    return roots


_IN_TRANSFORM = (
    "backward() called inside a functorch transform. This is not supported, please use"
    " functorch.grad or functorch.vjp instead or call backward() outside of functorch transforms."
)


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulate into `.grad` of the leaves the gradient of the tensors, as
    `torch.autograd.backward` does.

    Args:
        tensors: the outputs.
        grad_tensors: a seed of each output's shape; None means 1 for a one-element output.
        retain_graph: keep what the nodes saved for another pass; by default what `create_graph`
            says.
        create_graph: record a graph of the gradients.
        inputs: the only tensors whose `.grad` is written, in a sequence or as the values of a dict;
            all leaves when None. One that is no leaf retains its gradient from then on, and its
            node runs.

    Raises:
        GradcliError: E401 a seed is missing, E402 an output does not require grad, E406 a seed's
            shape does not fit, E403 or E404 from the nodes.

    Example: torch.autograd.backward(tensor(1., requires_grad=True) * 2)
    """
    refuse_transformed("backward()", _IN_TRANSFORM)
    outputs = _several(tensors, "tensors")
    seeds = None if grad_tensors is None else _several(grad_tensors, "the seed")
    if create_graph:
        warn_of_cycle()
    recorder = active.state.recorder
    if recorder is not None:
        recorder.differentiated(outputs, False)
    keep = create_graph if retain_graph is None else bool(retain_graph)
    identity_map = IdentityMap()
    if inputs is None:
        run_backward(
            _roots(outputs, seeds, create_graph, identity_map),
            keep_graph=keep,
            create_graph=create_graph,
            identity_map=identity_map,
        )
        if recorder is not None:
            recorder.differentiated(outputs, True)
        return
    wanted = _several(inputs.values() if type(inputs) is dict else inputs, "inputs")
    if not wanted:
        text = "`inputs` argument to `backward()` cannot be empty."
        raise runtime_error("inputs must not be empty", text=text)
    roots = _roots(outputs, seeds, create_graph, identity_map)
    targets = _targets(wanted)
    for tensor in wanted:
        retain_grad(tensor)
    run_backward(
        roots,
        keep_graph=keep,
        create_graph=create_graph,
        targets=targets,
        identity_map=identity_map,
    )
    if recorder is not None:
        recorder.differentiated(outputs, True)


def grad(
    outputs: Tensors,
    inputs: Tensors | dict[Any, Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of the outputs with respect to the inputs, as `torch.autograd.grad` gives them:
    a tuple, and for a dict of inputs a dict with its keys.

    Args and errors are those of `backward`; besides, E407 where an input is not in the graph,
    unless `allow_unused` (None is returned for it) or `materialize_grads` (zeros are).

    Example:
        x = tensor(1., requires_grad=True)
        torch.autograd.grad(x * x, x)
    """
    if isinstance(inputs, dict):
        values = list(inputs.values())
        options = (retain_graph, create_graph, only_inputs, allow_unused, is_grads_batched)
        gradients = grad(outputs, values, grad_outputs, *options, materialize_grads)
        return dict(zip(inputs, gradients, strict=True))
    if is_grads_batched:
        rows_of_seeds = _several(grad_outputs, "grad_outputs")
        _check_batched(_several(outputs, "outputs"), rows_of_seeds)

        def rows(*gradients: Any) -> Any:
            options = (retain_graph, create_graph, only_inputs, allow_unused, False)
            return grad(outputs, inputs, list(gradients), *options, materialize_grads)

        return in_one_batch(rows, rows_of_seeds)
    if materialize_grads and allow_unused is False:
        raise value_error(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got:"
            " allow_unused=False."
        )
    wanted = _several(inputs, "inputs")
    if not wanted:
        text = "`inputs` argument to `grad()` cannot be empty."
        raise runtime_error("grad() needs at least one input", text=text)
    outs = _several(outputs, "outputs")
    seeds = None if grad_outputs is None else _several(grad_outputs, "grad_outputs")
    identity_map = IdentityMap()
    as_tensors = create_graph or active.state.batch is not None
    on_tensors = as_tensors or getattr(active.state.recorder, "in_ops", False)
    roots = _roots(outs, seeds, on_tensors, identity_map)
    targets = _targets(wanted)
    gradients = run_backward(
        roots,
        keep_graph=create_graph if retain_graph is None else bool(retain_graph),
        create_graph=on_tensors,
        recorded=create_graph,
        targets=targets,
        accumulate=False,
        identity_map=identity_map,
    )
    return tuple(
        [
            _without_path(number, tensor, allow_unused, materialize_grads, create_graph)
            if gradient is None
            else gradient
            if as_tensors
            else _taken(gradient, identity_map, roots)
            for number, (tensor, gradient) in enumerate(zip(wanted, gradients, strict=True))
        ]
    )


def _taken(gradient: Any, identity_map: IdentityMap, roots: Sequence[Root]) -> Tensor:
    """What a pass returned, as a tensor of its own: the seed itself where it is the seed's."""
    if type(gradient) is not Tensor:
        seen = identity_map.find(gradient)
        return _handed_out(gradient) if seen is None else seen
    if any(gradient is seed for _, _, seed in roots):
        return gradient
    result = Tensor(copied_as_it_lies(gradient.array))  # whose ops a recorder heard
    recorder = active.state.recorder
    if recorder is not None:  # it may have gone in the middle of the pass
        recorder.computed(copied_as_it_lies, (gradient.array,), result.array)
    return result


def _without_path(
    number: int,
    tensor: Tensor,
    allow_unused: bool | None,
    materialize_grads: bool,
    create_graph: bool,
) -> Tensor | None:
    """None or zeros for an input that is not in the graph, as asked; else raises E407."""
    if materialize_grads:
        return Tensor(np.zeros_like(tensor.array)[()], requires_grad=create_graph)
    if allow_unused:
        return None
    name = f" (`{tensor.name}`)" if tensor.name else ""
    raise GradcliError(
        "E407",
        f"the input at index {number}{name} was not used to compute the outputs",
        text=f"The differentiated Tensor at index {number} appears to not have been used in the"
        " graph. Set allow_unused=True if this is the desired behavior.",
        help="pass allow_unused=True to get None for it",
    )


def _handed_out(gradient: Any) -> Tensor:
    """A gradient as `grad()` returns it, a copy; reported to the recorder."""
    result = Tensor(copied_as_it_lies(gradient))
    if active.state.recorder is not None:
        active.state.recorder.returned(gradient, result)
    return result


def _check_batched(outputs: list[Any], seeds: list[Any]) -> None:
    """Raise E406 unless each seed is one of rows, each of its output's shape."""
    for number, (output, seed) in enumerate(zip(outputs, seeds, strict=False)):
        shape = seed.array.shape if isinstance(seed, Tensor) else None
        if (shape is not None and shape[1:] != output.array.shape) or shape == ():
            raise GradcliError(
                "E406",
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output"
                " as the batch dimension. The sizes of the remaining dimensions are expected to"
                f" match the shape of corresponding output, but a mismatch was detected:"
                f" grad_output[{number}] has a shape of {seed.shape} and output[{number}] has a"
                f" shape of {output.shape}. If you only want some tensors in `grad_output` to be"
                " considered batched, consider using vmap.",
            )


def _targets(inputs: list[Any]) -> list[Target]:
    targets: list[Target] = []
    for number, tensor in enumerate(inputs):
        if not isinstance(tensor, Tensor):
            raise GradcliError(
                "E202",
                f"the input at index {number} is no tensor but {type(tensor).__name__}",
                text="all inputs have to be Tensors or GradientEdges, but got"
                f" {type(tensor).__name__}",
                raises="RuntimeError",
            )
        node, output_nr = gradient_edge(tensor)
        if node is None and tensor.requires_grad:
            node = AccumulateGrad(tensor)  # a loose view has no node in the graph
        if node is None:
            raise GradcliError(
                "E402",
                f"the input at index {number} does not require grad",
                text="One of the differentiated Tensors does not require grad",
            )
        targets.append((node, output_nr))
    return targets


def retain_grad(tensor: Tensor) -> None:
    """Keep the gradient of a non-leaf in its `.grad`; does nothing for a leaf. Raises E402 without
    requires_grad.

    Example: (tensor(1., requires_grad=True) * 2).retain_grad()
    """
    refuse_transformed(
        "retain_grad()",
        "You are attempting to call Tensor.retain_grad() inside of a function being transformed"
        " by a functorch transform. This is unsupported, please attempt to use the functorch"
        " transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call retain_grad() outside of a"
        " function being transformed instead.",
    )
    if tensor.retains_grad:
        return
    node, output_nr = gradient_edge(tensor)
    if not tensor.requires_grad:
        raise GradcliError(
            "E402",
            "retain_grad() needs a tensor that requires grad",
            text="can't retain_grad on Tensor that has requires_grad=False",
        )
    if node is None or isinstance(node, AccumulateGrad):
        return
    extra_of(node).retained[output_nr] = weakref.ref(tensor)
    meta_of(tensor).retains_grad = True


# --- warnings -------------------------------------------------------------------------------------


_COMPARES = r"[<>]|[=!]="


def check_root(output: Tensor) -> None:
    """Warn (W024) of backward() from a leaf that a comparison made: `requires_grad_()` gives it no
    history.
    """
    place, name = active.state.place, output.name
    if place is None or not name:
        return
    assigned = re.compile(rf"^[ \t]*({re.escape(name)} *=(?!=)(.*))$", re.MULTILINE)
    assignments = list(assigned.finditer(place.source.text, 0, place.start))
    if not assignments or re.search(_COMPARES, assignments[-1][2]) is None:
        return
    last = assignments[-1]
    active.state.warn(
        "W024",
        f"`{name}` comes from a comparison, which has no gradient: the pass reaches nothing but"
        f" `{name}` itself",
        help="compare by a smooth loss: `binary_cross_entropy_with_logits`, or `sigmoid` for the"
        " comparison",
        labels=(Label(Span(place.source, last.start(1), last.end(1)), "compared here"),),
    )


_CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter"
    " and its gradient which can cause a memory leak."
)
_TEXT = (
    f"{_CYCLE} We recommend using autograd.grad when creating the graph to avoid this. If you have"
    " to use this function, make sure to reset the .grad fields of your parameters to None after"
    " use to break the cycle and avoid the leak."
)
"""PyTorch's text."""


def warn_of_cycle() -> None:
    """Warn (W028), once in a session, of a pass that leaves gradients with a graph in `.grad`."""
    state = active.state
    if ("W028",) in state.warned:
        return
    state.warned.add(("W028",))
    state.warn(
        "W028",
        _CYCLE,
        text=_TEXT,
        help="torch.autograd.grad() returns such gradients without a cycle; `.grad = None` after"
        " use ends it",
    )
