"""Edges of the graph as values: where the gradient of a tensor flows, without the tensor."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor, gradient_edge, with_history
from gradcli.errors import GradcliError, type_error


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
