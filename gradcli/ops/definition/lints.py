"""Lints of ops: warnings about operations that PyTorch runs but that are probably mistakes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gradcli.autograd.node import Metadata, Node
from gradcli.autograd.tensor import Tensor
from gradcli.errors import Label, RuleSpan
from gradcli.state import active

_PAIRING = ("None", "unsqueeze", "outer(", "ger(")
"""Source texts that state that every pair is intended."""


def metadata_of_pair(name: str, result: Any, first: Any, second: Any) -> Metadata:
    """The metadata of a pointwise result of two operands that is no NumPy scalar.

    Warns (W001) where a column and a vector of one length, (N, 1) and (N,), made a matrix. The
    check runs when a node is made, so scalars and plain numbers cost nothing.
    """
    shape = result.shape
    if len(shape) > 1 and (type(first) is not np.ndarray or first.shape != shape):
        ndim, other_ndim = getattr(first, "ndim", 0), getattr(second, "ndim", 0)
        if ndim != other_ndim and (first if ndim > other_ndim else second).shape[-1] == 1:
            _check_outer(name, np.shape(first), np.shape(second))
    return ((shape, result.dtype),)


def _check_outer(name: str, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    column, vector = sorted((first, second), key=len, reverse=True)
    length = vector[-1] if vector else 1
    if column[-2:] != (length, 1) or length < 2:
        return
    place = active.state.place
    if type(place) is RuleSpan:
        return
    if place is not None and any(word in place.text for word in _PAIRING):
        return  # the program states that it intends pairs
    active.state.warn(
        "W001",
        f"{name}: the shapes {first} and {second} make {np.broadcast_shapes(first, second)}:"
        " every element is paired with every other",
        help="for pairs one by one give both one shape: `.squeeze(1)` on the column, or"
        " `[:, None]` on the vector; write that here if every pair is meant",
    )


def check_same_shape(name: str, input: Tensor, target: Tensor) -> None:
    """Warn (W004) of a loss whose input and target are broadcast."""
    if input.array.shape != target.array.shape:
        target_name, wanted = _name_of(target) or "target", _name_of(input) or "input"
        active.state.warn(
            "W004",
            f"{name}(): the input has shape {tuple(input.array.shape)} and the target"
            f" {tuple(target.array.shape)}: they are broadcast before they are compared",
            text=f"Using a target size ({target.shape}) that is different to the input size"
            f" ({input.shape}). This will likely lead to incorrect results due to broadcasting."
            " Please ensure they have the same size.",
            help=f"give both the same shape: `{target_name}.view_as({wanted})` where the sizes"
            " allow it",
        )


def _name_of(tensor: Tensor) -> str | None:
    """The variable that holds a tensor, None where it has no name."""
    return tensor.name or (None if tensor.grad_fn is None else tensor.grad_fn.assigned)


def check_copied(data: Any) -> None:
    """Warn (W005) of `torch.tensor` of a tensor."""
    if type(data) is Tensor:
        active.state.warn(
            "W005",
            "torch.tensor() copies the values of a tensor, and the copy is cut from the graph",
            text="To copy construct from a tensor, it is recommended to use"
            " sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True),"
            " rather than torch.tensor(sourceTensor).",
            help="write `x.detach().clone()` for a copy, or use the tensor itself",
        )


def check_constant(tensor: Tensor) -> None:
    """Warn (W007) of a Python number made from a tensor that requires grad."""
    if tensor.requires_grad:
        active.state.warn(
            "W007",
            "the number that this gives carries no gradient, and the tensor requires grad",
            text="Converting a tensor with requires_grad=True to a scalar may lead to unexpected"
            " behavior.\nConsider using tensor.detach() first.",
            help="write `x.item()` where a plain number is meant, or compute on with the tensor",
        )


def check_freedom(name: str, count: int, correction: float) -> None:
    """Warn (W008) of a variance that divides by zero or less."""
    if count <= correction:
        active.state.warn(
            "W008",
            f"{name}(): the number of elements, {count}, less a correction of {correction:g}"
            " leaves nothing to divide by",
            text=f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than"
            " the reduction factor (input numel divided by output numel).",
            help="`correction=0` divides by the number of elements",
        )


def implicit_dim(name: str, input: Tensor) -> int:
    """The dimension that `softmax` and its relatives take where none is given, with a warning
    (W006).
    """
    dim = 0 if input.array.ndim in (0, 1, 3) else 1
    active.state.warn(
        "W006",
        f"{name}(): no dim is given, and {dim} is taken",
        text=f"Implicit dimension choice for {name} has been deprecated. Change the call to include"
        " dim=X as an argument.",
        help=f"say which dimension: `dim={dim}`, or `dim=-1` for the last",
    )
    return dim


def check_resized(name: str, former: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Warn (W010) of a tensor with elements, given as `out`, that gets another shape."""
    active.state.warn(
        "W010",
        f"{name}(): an output with one or more elements was resized since it had shape"
        f" {tuple(former)}, which does not match the required output shape {tuple(shape)}",
        text="An output with one or more elements was resized since it had shape"
        f" {list(former)}, which does not match the required output shape {list(shape)}. This"
        " behavior is deprecated, and in a future PyTorch release outputs will not be resized"
        " unless they have zero elements. You can explicitly reuse an out tensor t by resizing it,"
        " inplace, to zero elements with t.resize_(0).",
        help="give a tensor of that shape, or one without elements: `torch.empty(0)`",
    )


def check_kept(tensor: Tensor) -> None:
    """Warn (W003) of reading the gradient of a non-leaf that keeps none."""
    if tensor.grad is None and not tensor.retains_grad and tensor.requires_grad:
        name = f"`{tensor.name}`" if tensor.name else "the tensor"
        active.state.warn(
            "W003",
            f"{name} was made by an operation: its .grad is not kept, and is None",
            text="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its"
            " .grad attribute won't be populated during autograd.backward(). If you indeed want the"
            " .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf"
            " Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf"
            " Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information.",
            help=f"call `{tensor.name or 'y'}.retain_grad()` before the backward pass, or read the"
            " .grad of a leaf",
            labels=() if tensor.grad_fn is None else _created_here(tensor.grad_fn),
        )


# --- formulas that lose what they compute ---------------------------------------------------------

_SAME_VALUES = ("SqueezeBackward0", "SqueezeBackward1", "UnsqueezeBackward0", "ViewBackward0")
"""Nodes of ops that hand on their input's values in another shape."""


def check_scores(name: str, input: Tensor, node_name: str) -> None:
    """Warn (W020) of a loss that takes scores and is given what the node of this name made of
    them.
    """
    node = input.grad_fn
    while node is not None and node.node_name in _SAME_VALUES:
        node = node.next_nodes[0]
    if node is None or node.node_name != node_name:
        return
    op = node_name.removesuffix("Backward0").lower()
    called = f"`{input.name}` is" if input.name else "its input is"
    active.state.warn(
        "W020",
        f"{name}() applies {op} itself, and {called} the result of one already: gradients shrink",
        help=f"give it what goes into {op}",
        labels=_created_here(node),
    )


def check_normalised(name: str, input: Tensor) -> None:
    """Warn (W030) of a loss of log probabilities whose classes stand in a dimension other than that
    along which a softmax made them.
    """
    node = input.grad_fn
    shape = input.array.shape
    if node is not None and node.node_name == "LogBackward0":
        node = node.next_nodes[0]
    if node is None or node.node_name not in ("LogSoftmaxBackward0", "SoftmaxBackward0"):
        return
    dim = getattr(node, "argument_dim", 1) % max(len(shape), 1)
    # Of as many rows as classes the rows may be what is chosen from, as in a contrastive loss.
    if len(shape) < 2 or dim == 1 or shape[dim] == shape[1]:
        return
    active.state.warn(
        "W030",
        f"{name}() takes the classes along dim=1, and the softmax of its input goes along"
        f" dim={dim}: the probabilities of an example's classes do not sum to 1",
        help="write `dim=1` in the softmax",
        labels=_created_here(node),
    )


def check_logarithm(node: Node) -> None:
    """Warn (W022) of a logarithm of what can round to 0 or overflow first."""
    inner = node.next_nodes[0]
    inner_name = "" if inner is None else inner.node_name
    name = node.node_name.removesuffix("Backward0").lower()
    if inner_name in _LOGARITHMS and name == "log":
        what, instead = _LOGARITHMS[inner_name]
    elif inner_name == "ExpBackward0" and name == "log1p":
        what, instead = "exp can overflow", "softplus(x)"
    elif inner is not None and name == "log" and _is_exp_inside(inner):
        of_sum = inner_name.startswith("Sum")
        what, instead = "exp can overflow", "logsumexp(x, dim)" if of_sum else "softplus(x)"
    else:
        return
    active.state.warn(
        "W022",
        f"{name}: {what} before the logarithm is taken",
        help=f"`{instead}` computes both in one step",
        span=node.place,
        labels=_created_here(inner) if inner is not None else (),
    )


_LOGARITHMS = {
    "SoftmaxBackward0": ("softmax can round to 0", "log_softmax(x, dim)"),
    "SigmoidBackward0": ("sigmoid can round to 0", "logsigmoid(x)"),
}


def _is_exp_inside(node: Node) -> bool:
    """Whether a node is the sum of exponentials, or of 1 and one. Exponentials of a difference do
    not count in a sum: there the largest was subtracted, as `logsumexp` does.
    """
    inner = [each for each in node.next_nodes if each is not None]
    if len(inner) != 1 or inner[0].node_name != "ExpBackward0":
        return False
    exponent = inner[0].next_nodes[0]
    if node.node_name.startswith("Sum") and exponent is not None:
        return exponent.node_name != "SubBackward0"
    text = "" if node.place is None else node.place.text
    is_one_more = node.node_name == "AddBackward0" and re.search(_ONE_MORE, text) is not None
    return is_one_more or node.node_name.startswith("Sum")


_ONE_MORE = r"^\(*1(\.0*)? *\+|\+ *1(\.0*)?\)*$"


def _created_here(node: Node) -> tuple[Label, ...]:
    return () if node.place is None else (Label(node.place, f"{node.node_name} makes it here"),)
