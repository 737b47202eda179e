"""How tensors are printed inside the transforms of `torch.func`: in their wrappers."""

from __future__ import annotations

from textwrap import indent

from gradcli.arrays.fusion.lazy import forced
from gradcli.arrays.printing import format_tensor
from gradcli.autograd.batched import BatchedArray
from gradcli.autograd.node import Node, reachable
from gradcli.autograd.tensor import AccumulateGrad, Tensor, gradient_edge
from gradcli.state import active


def described(tensor: Tensor) -> str:
    """The text of a tensor: what it is at each level that it belongs to, outermost inside."""
    array = tensor.array
    nodes: set[Node] = set()
    if tensor.requires_grad:
        nodes = set(reachable([gradient_edge(tensor)[0]]))
    if type(array) is BatchedArray:
        text = described(array.value)
        if array.bdim is not None:
            text = _wrapped(f"BatchedTensor(lvl={array.level}, bdim={array.bdim}", text)
    else:
        text = _bare(tensor, nodes)
    for transform in active.state.transforms:
        if not nodes.isdisjoint(getattr(transform, "entries", ())):
            text = _wrapped(f"GradTrackingTensor(lvl={transform.level}", text)
    return text


def _wrapped(head: str, text: str) -> str:
    return f"{head}, value=\n{indent(text, '    ')}\n)"


def _bare(tensor: Tensor, nodes: set[Node]) -> str:
    """The text of a tensor that is not batched; its history as far as it is none of a transform."""
    own = {edge for each in active.state.transforms for edge in getattr(each, "entries", ())}
    ends = [node for node in nodes if type(node) is AccumulateGrad and node not in own]
    if own.isdisjoint(nodes) or ends:
        return tensor.text()
    return format_tensor(forced(tensor.array))
