"""Accumulation: gradients are summed to their inputs' sizes, cast, added, and stored in `.grad`.

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
from gradcli.arrays.layout.sizes import sizes_apart
from gradcli.arrays.layout.strides import copied_to_leaf
from gradcli.arrays.storage import own
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import AccumulateGrad, Tensor, meta_of, not_installed
from gradcli.errors import GradcliError

# Installed by gradcli.ops.
add: Callable[[Any, Any], Any] = not_installed
add_arrays: Callable[[Any, Any], Any] = not_installed
sum_to: Callable[[Any, tuple[int, ...]], Any] = not_installed
cast: Callable[[Any, Any], Any] = not_installed
copy: Callable[[Tensor], Tensor] = not_installed
clone: Callable[[Tensor], Tensor] = not_installed


def sum_to_size(
    node: Node, gradient: Any, array: Any, shape: tuple[int, ...], dtype: Any, index: int = 0
) -> Any:
    """A gradient summed to its input's shape and cast to its dtype. Raises E410 where summing
    cannot give that shape, and for a complex gradient of a real input that must not have one;
    `index` is the input's.
    """
    if array.shape != shape:
        try:
            gradient = sum_to(gradient, shape)
        except ValueError:
            raise GradcliError(
                "E410",
                f"{node.node_name} returned a gradient of shape {tuple(array.shape)} for an input"
                f" of shape {shape}",
                text=f"Function {node.node_name} returned an invalid gradient at index {index} -"
                f" got {list(array.shape)} but expected shape compatible with {list(shape)}",
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
    """A copy of a gradient for a leaf's `.grad`: memory of its own, with the leaf's strides."""
    if type(gradient) in ARRAYS:
        return gradient.copy() if leaf.flags.c_contiguous else copied_to_leaf(gradient, leaf)
    return own(gradient)


def accumulate_grad(leaf: AccumulateGrad, gradient: Any, create_graph: bool, recorder: Any) -> None:
    """Add a gradient to the leaf's `.grad`: in place, unless a graph of the gradient is
    recorded."""
    variable = leaf.variable
    meta = meta_of(variable)
    old = meta.grad
    if recorder is not None:
        recorder.arriving(leaf, gradient)
    if old is not None:
        old.array = forced(old.array)  # it may still be lazy
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
        if old.array.shape != gradient.shape:
            # The leaf's data was replaced by data of another shape.
            raise GradcliError(
                "E301",
                f"a gradient of shape {tuple(gradient.shape)} is added to a `.grad` of shape"
                f" {tuple(old.array.shape)}",
                text=sizes_apart(old.array.shape, gradient.shape),
                help="forget the old one: `w.grad = None`",
            )
        new = forced(add_arrays(old.array, gradient))
        if isinstance(old.array, np.ndarray):
            assign(old.array, new)
            new = old.array
        else:
            old.array = new
        if old.storage is not None:
            old.storage.count_write()
    if recorder is not None:
        recorder.leaf(leaf, before, gradient.array if create_graph else gradient, new)


def accumulate_array(
    leaf: AccumulateGrad, gradient: Any, fresh: bool, left_lazy: list[Tensor]
) -> None:
    """Add an array to the `.grad` of a leaf without hooks, in a pass that records nothing. `fresh`
    memory has no other owner and is not copied. A gradient that stays lazy is added to `left_lazy`,
    unless a single op computes it: its first reader can run that op.
    """
    variable = leaf.variable
    if not variable.requires_grad:  # `requires_grad_(False)` after the graph was made
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
    """The gradients that a pass returns, computed, and along with them the lazy ones of leaves."""
    lazy = [each for each in gradients if type(each) in LAZY]
    if not (left_lazy or lazy):
        return gradients
    evaluate([tensor.array for tensor in left_lazy] + lazy)
    for tensor in left_lazy:
        tensor.array = forced(tensor.array)
    return [forced(gradient) for gradient in gradients]


WORTH_STEALING = 1 << 15
"""Bytes from which on copying a gradient costs more than checking whether it can be stolen."""


def is_fresh(
    gradient: Any, grads: Any, gradients: Sequence[Any], leaf: AccumulateGrad, unseen: bool
) -> bool:
    """Whether a leaf may steal a gradient's memory: it has the leaf's strides, is not the node's
    incoming gradient, goes to one input only, and has no other owner.

    This holds for an array that a rule allocated. It holds for a view too, if gradients are
    `unseen` by hooks, the view covers all of its memory, and nothing else refers to that memory:
    references are counted, as PyTorch does.
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
    came_in = getattr(grads, "base", None) is base  # the incoming gradient is a view of it too
    del base
    return getrefcount(gradient.base) == (3 if came_in else 2)
