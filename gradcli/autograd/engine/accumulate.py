"""What the engine does to gradients: fits them to the inputs that they belong to, and adds them up.

Gradients are arrays, or tensors where a graph of them is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from gradcli.arrays.fusion.executor import assign, evaluate
from gradcli.arrays.fusion.lazy import LAZY, forced
from gradcli.arrays.gpu.array import ARRAYS
from gradcli.arrays.storage import own
from gradcli.arrays.strides import copied_to_leaf
from gradcli.autograd.node import AccumulateGrad, Node
from gradcli.autograd.tensor import Tensor, meta_of, not_installed
from gradcli.errors import GradcliError

# Installed by gradcli.ops.
add: Callable[[Any, Any], Any] = not_installed
plus: Callable[[Any, Any], Any] = not_installed
sum_to: Callable[[Any, tuple[int, ...]], Any] = not_installed
cast: Callable[[Any, Any], Any] = not_installed
copy: Callable[[Tensor], Tensor] = not_installed
clone: Callable[[Tensor], Tensor] = not_installed


def fit(node: Node, gradient: Any, array: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """A gradient summed to its input's shape and cast to its dtype; raises E410 where it cannot
    be."""
    if array.shape != shape:
        try:
            gradient = sum_to(gradient, shape)
        except ValueError:
            raise GradcliError(
                "E410",
                f"{node.node_name} returned a gradient of shape {tuple(array.shape)} for an input"
                f" of shape {shape}",
            ) from None
    if array.dtype is not dtype:
        if node.leaves_complex and array.dtype.kind == "c" != dtype.kind:
            raise GradcliError(
                "E410",
                f"{node.node_name} returned a complex gradient for a real input",
                help="make the operand complex first",
            )
        gradient = cast(gradient, dtype)
    return gradient


def kept(gradient: Any, leaf: Any) -> Any:
    """A gradient as a leaf keeps it: nobody else sees its memory, which is laid out as the leaf's
    array is.
    """
    if type(gradient) in ARRAYS:
        return gradient.copy() if leaf.flags.c_contiguous else copied_to_leaf(gradient, leaf)
    return own(gradient)


def accumulate_grad(leaf: AccumulateGrad, gradient: Any, create_graph: bool, recorder: Any) -> None:
    """Add a gradient to the leaf's `.grad`: in place, unless a graph of the gradient is
    recorded."""
    variable = leaf.variable
    meta = meta_of(variable)
    old = meta.grad
    if old is not None:
        old.array = forced(old.array)  # nobody may have asked for it so far
    before = None if recorder is None or old is None else own(old.array)
    if old is None:
        if create_graph:
            meta.grad = copy(gradient) if gradient.requires_grad else Tensor(own(gradient.array))
        else:
            meta.grad = Tensor(kept(gradient, variable.array))
        new = meta.grad.array
    elif create_graph:
        meta.grad = add(old, gradient)
        new = meta.grad.array
    else:
        new = forced(plus(old.array, gradient))
        if isinstance(old.array, np.ndarray):
            assign(old.array, new)
            new = old.array
        else:
            old.array = new
        if old.storage is not None:
            old.storage.count_write()
    if recorder is not None:
        recorder.leaf(leaf, before, gradient.array if create_graph else gradient, new)


def settle(leaf: AccumulateGrad, gradient: Any, fresh: bool, left_lazy: list[Tensor]) -> None:
    """Give a leaf that nobody listens to its gradient, in a pass that records nothing. `fresh`
    memory, which nobody else sees, need not be copied. A gradient that stays lazy is noted,
    unless it is one op away from memory: whoever reads it may as well do that op.
    """
    variable = leaf.variable
    if not variable.requires_grad:  # it may have been told so after the graph was made
        return
    meta = variable.meta or meta_of(variable)
    taken = meta.grad
    if taken is None:
        taken = meta.grad = Tensor(gradient if fresh else kept(gradient, variable.array))
    else:
        accumulate_grad(leaf, gradient, False, None)
    if type(taken.array) in LAZY and taken.array.length > 1:
        left_lazy.append(taken)


def computed(left_lazy: list[Tensor], gradients: list[Any]) -> list[Any]:
    """Compute the lazy arrays of leaves' gradients, and those among the gradients that a pass
    returns, all in one go; the latter computed.
    """
    lazy = [each for each in gradients if type(each) in LAZY]
    if not (left_lazy or lazy):
        return gradients
    evaluate([tensor.array for tensor in left_lazy] + lazy)
    for tensor in left_lazy:
        tensor.array = forced(tensor.array)
    return [forced(gradient) for gradient in gradients]


WORTH_STEALING = 1 << 15
"""Bytes from which on a copy costs more than finding out that none is needed."""


def is_fresh(
    gradient: Any, grads: Any, gradients: Sequence[Any], leaf: AccumulateGrad, unseen: bool
) -> bool:
    """Whether a leaf may have a gradient's memory for its own: it lies as the leaf does, is not
    what came in, was passed on once, and nobody else has it.

    That is so where a rule made it, and for a view, while gradients are `unseen` by hooks, where
    nobody else refers to the memory all of which it shows: as PyTorch does, this counts.
    """
    if (
        gradient is grads
        or getattr(leaf.variable.array, "strides", gradient.strides) != gradient.strides
        or sum([each is gradient for each in gradients]) != 1
    ):
        return False
    base = gradient.base
    if base is None:
        return True
    if not unseen or type(base) is not np.ndarray or base.nbytes != gradient.nbytes:
        return False
    came_in = getattr(grads, "base", None) is base  # what came in is a view of it too
    del base
    return getrefcount(gradient.base) == (3 if came_in else 2)
