"""Levels of nested `torch.func` transforms: which tensors each differentiates with respect to.

A transform gives its function new tensors for its inputs. They require grad whether or not the
given ones do, so each level differentiates with respect to its own inputs only, even where the
function also uses the given tensor itself. Where a given tensor requires grad already, be
it for an outer transform or for a later `backward()`, the new one is a view of it, and the results
stay connected; otherwise it is a leaf private to the level, and results that depend only on such
leaves carry no history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.autograd.node import AccumulateGrad, Node, reachable
from gradcli.autograd.tensor import Tensor, alias, gradient_edge, with_history
from gradcli.errors import GradcliError
from gradcli.functional.batching.description import described
from gradcli.functional.structure import leaves, mapped
from gradcli.ops.creation.copies import detach
from gradcli.state import active


class Entry(Node):
    """Where a gradient leaves a level: it flows on to the given tensor as it is."""

    __slots__ = ()

    node_name = "AliasBackward0"

    def __init__(self, tensor: Tensor) -> None:
        node, output_nr = gradient_edge(tensor)
        state = active.state
        state.sequence_nr += 1
        self.next_nodes = (node,)
        self.input_nrs = (output_nr,)
        self.metadata = ((tensor.array.shape, tensor.array.dtype),)
        self.sequence_nr = state.sequence_nr
        self.place = state.place
        self.assigned = None
        self.extra = None

    def run(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        return (grads,)

    run_recorded = run


class Level:
    """One call of a transformed function, from its inputs to its results.

    Attributes:
        level: its number among the transforms that run, from 1.
        connected: whether operations were recorded around the transform; if not, its results carry
            no history.
        edges: where the gradients of the inputs arrive; they keep the graph's ends alive.
    """

    __slots__ = ("_before", "_frames", "_own", "connected", "edges", "level")

    def __init__(self) -> None:
        self.connected = active.state.grad_enabled
        self._own: list[Tensor] = []
        self.edges: list[Node | None] = []
        self._before: list[bool] = []
        self._frames: list[Any] = []

    def __enter__(self) -> Level:
        state = active.state
        self._before.append(state.grad_enabled)
        frame = state.batch
        if frame is not None and frame.below is None:
            frame.below = state.grad_enabled
        else:
            frame = None
        self._frames.append(frame)
        state.grad_enabled = True
        state.transforms.append(self)
        self.level = len(state.transforms)
        return self

    def __exit__(self, *exception: object) -> None:
        state = active.state
        state.grad_enabled = self._before.pop()
        frame = self._frames.pop()
        if frame is not None:
            frame.below = None
        state.transforms.pop()

    def enter(self, value: Any) -> Any:
        """The inputs that the function is called with: a structure of tensors like the given one.

        Raises E202 for a leaf that is no tensor, E402 for one that cannot require grad.
        """
        return mapped(self._input, value)

    def _input(self, tensor: Any) -> Tensor:
        if not isinstance(tensor, Tensor):
            raise GradcliError(
                "E202",
                f"only tensors can be differentiated with respect to, not {type(tensor).__name__}",
                raises="ValueError",
            )
        if tensor.array.dtype.kind not in "fcV":
            raise GradcliError(
                "E402",
                f"only floating and complex tensors can require grad, not {tensor.dtype}",
                text="only Tensors of floating point dtype can require gradients",
            )
        frame = active.state.batch
        if frame is not None:  # a variable for each example, also where all share its value
            tensor = frame.wrapped(tensor)
        if self.connected and tensor.requires_grad:
            new = with_history(alias(tensor).array, Entry(tensor))
        else:
            new = alias(tensor)
            new.requires_grad = True
            self._own.append(new)
        self.edges.append(gradient_edge(new)[0])
        return new

    def described(self, tensor: Tensor) -> str:
        """How a tensor is printed inside."""
        return described(tensor)

    def close(self) -> None:
        """End the level: what depends only on its own leaves is constant outside it."""
        for tensor in self._own:
            tensor.requires_grad = False

    def open(self) -> None:
        """Make the inputs variables again, to differentiate what was computed from them."""
        for tensor in self._own:
            tensor.requires_grad = True

    def separated(self, value: Any) -> Any:
        """Results as they leave the closed level, apart from the tensors that were recorded."""

        def separate(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor) or not self.connects([leaf]):
                return self.released(leaf)
            return with_history(alias(leaf).array, Entry(leaf))

        return mapped(separate, value)

    def connects(self, tensors: Sequence[Tensor]) -> bool:
        """Whether a gradient can flow through the tensors to the outside of the closed level."""
        return self.connected and reaches_leaf(tensors)

    def released(self, value: Any) -> Any:
        """Results as they leave the closed level: without history where nothing outside is
        reached.
        """

        def release(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor) or not leaf.requires_grad or self.connects([leaf]):
                return leaf
            return detach(leaf)

        return mapped(release, value)


def reaches_leaf(tensors: Sequence[Tensor]) -> bool:
    """Whether a leaf that requires grad is in the graphs of the tensors."""
    return any(
        isinstance(node, AccumulateGrad) and node.variable.requires_grad
        for node in reachable([gradient_edge(tensor)[0] for tensor in tensors])
    )


def tensors_of(name: str, value: Any) -> list[Tensor]:
    """The leaves of what a function returned; raises E202 for one that is no tensor."""
    found = leaves(value)
    for leaf in found:
        if not isinstance(leaf, Tensor):
            raise GradcliError(
                "E202",
                f"{name}(): the function has to return tensors, not {type(leaf).__name__}",
                raises="RuntimeError",
            )
    return found
