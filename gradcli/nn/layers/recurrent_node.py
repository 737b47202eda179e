"""One direction of a layer of an LSTM as a single node, which is how PyTorch records it.

The node keeps the graph of the steps, recorded on copies of the inputs, and differentiates it when
it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.autograd.custom.function import refused
from gradcli.autograd.engine import backward
from gradcli.autograd.modes import EnableGrad
from gradcli.autograd.node import Node, freed
from gradcli.autograd.tensor import Tensor, alias, join_graph
from gradcli.state import active

Steps = Callable[[Sequence[Tensor]], list[Tensor]]


class MkldnnRnnLayerBackward0(Node):
    """The node: its inputs are the layer's input, weights and first state, its outputs the layer's
    output and last state.

    Attributes:
        inside: the copies of the inputs and the outputs that the steps gave for them; None when a
            backward pass has freed them.
    """

    __slots__ = ("inside",)

    node_name = "MkldnnRnnLayerBackward0"
    multiple = True

    def __init__(
        self, given: Sequence[Tensor], copies: list[Tensor], outputs: list[Tensor]
    ) -> None:
        join_graph(self, given, outputs)
        self.inside: tuple[list[Tensor], list[Tensor]] | None = (copies, outputs)

    def run(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        if self.inside is None:
            raise freed(self)
        copies, outputs = self.inside
        pairs = [
            (output, Tensor(grad))
            for output, grad in zip(outputs, grads, strict=True)
            if grad is not None
        ]
        wanted = [copy for copy in copies if copy.requires_grad]
        found = iter(
            backward.grad(
                [output for output, _ in pairs],
                wanted,
                [grad for _, grad in pairs],
                retain_graph=keep,
                allow_unused=True,
            )
        )
        if not keep:
            self.inside = None
        gradients = [next(found) if copy.requires_grad else None for copy in copies]
        return tuple(None if gradient is None else gradient.array for gradient in gradients)

    def run_recorded(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        """The gradients, which cannot be differentiated again."""
        arrays = [None if grad is None else grad.array for grad in grads]
        gradients = self.run(arrays, keep)
        return refused(tuple(None if each is None else Tensor(each) for each in gradients))


def as_one_node(steps: Steps, given: Sequence[Tensor]) -> list[Tensor]:
    """The results of `steps` on the tensors, behind one node where a gradient is required."""
    if not (active.state.grad_enabled and any(tensor.requires_grad for tensor in given)):
        return steps(given)
    copies = []
    for tensor in given:
        copy = alias(tensor)
        copy.requires_grad = tensor.requires_grad
        copies.append(copy)
    with EnableGrad():
        inner = steps(copies)
    outputs = [alias(output) for output in inner]
    node = MkldnnRnnLayerBackward0(given, copies, inner)
    for number, output in enumerate(outputs):
        output.grad_fn = node
        output.output_nr = number
        output.requires_grad = True
    return outputs
