"""A running `vmap`: it computes ops on batched values, one level at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.autograd.batched import BatchedArray
from gradcli.autograd.inplace.writes import check_inplace, write
from gradcli.autograd.tensor import Tensor, gradient_edge
from gradcli.errors import GradcliError, runtime_error
from gradcli.library.torch.func.batching.frame import Frame
from gradcli.library.torch.func.batching.indexing import (
    as_tensor,
    picked_by_examples,
    put_by_examples,
)
from gradcli.library.torch.func.batching.looping import by_own_rule, level_of, looped
from gradcli.library.torch.func.batching.rules import At, behind, key_of, rule_of, warn_of
from gradcli.library.torch.func.levels import described
from gradcli.library.torch.func.structure import leaves
from gradcli.ops.binding.arguments import normal_dim
from gradcli.ops.creation.copies import copy_
from gradcli.ops.definition.op import Op
from gradcli.ops.shape.reshaping import movedim
from gradcli.ops.shape.views import expand, unsqueeze
from gradcli.state import active


class Interpreter(Frame):
    """Computes what a function does on batched values, while it runs."""

    def picked(self, shown: Tensor, picked: dict[int, Any]) -> Tensor:
        """The elements of a tensor at positions that differ from example to example."""
        return picked_by_examples(shown, picked)

    def put(self, shown: Tensor, picked: dict[int, Any], value: Tensor) -> None:
        """Write values to such positions."""
        level = level_of([shown, value, *[as_tensor(each) for each in picked.values()]])
        frame = self.at(level)
        frame.run(put_by_examples, frame, shown, picked, value)

    def assign(self, tensor: Tensor, result: Tensor) -> bool:
        """Write a result to a batched tensor, for all examples; whether one of them is batched.

        Raises E405 where the examples' results would be written to what all of them share.
        """
        level = level_of([tensor, result])
        if not level:
            return False
        frame = self.at(level)
        if not frame.is_batched(tensor) and frame.is_batched(result):
            raise GradcliError("E405", _SHARED_WRITE)
        target = frame.plain(tensor)

        def write_all() -> None:
            if not frame.is_batched(tensor):
                copy_(target, frame.plain(result))
                return
            dim = tensor.array.bdim
            values = behind(frame.first(result), target.array.ndim)
            if dim or values.array.shape != target.array.shape or values.dtype != target.dtype:
                copy_(target if not dim else movedim(target, dim, 0), values)
                return
            check_inplace("copy_", target, values)
            node = values.grad_fn
            if node is not None and node.next_nodes[:1] == (gradient_edge(target)[0],):
                write(target, values)
            else:
                copy_(target, values)

        frame.run(write_all)
        return True

    def refuse(self, what: str, values: Any) -> None:
        """Raise E204 where one of the values differs from example to example."""
        if any(_differs(value) for value in values):
            raise runtime_error(
                _REFUSALS[what],
                help="choose between values with torch.where()" if what == "bool" else None,
            )

    def described(self, tensor: Tensor) -> str:
        """How a tensor is printed inside."""
        return described(tensor)

    def compute(self, op: Op, args: tuple[Any, ...]) -> Any:
        """The result's array, or arrays, of an op on batched values, and its arguments with all
        tensors as ones of the level that computed it; None where none of them is batched.
        """
        level = 0
        for arg in args:
            if type(arg) is Tensor:
                if type(arg.array) is BatchedArray and arg.array.level > level:
                    level = arg.array.level
            elif type(arg) is list or type(arg) is tuple:
                for each in arg:
                    if type(each) is Tensor and type(each.array) is BatchedArray:
                        level = max(level, each.array.level)
        return self.at(level)._computed(op, args) if level else None

    def looped(self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """The result of a function that reads the values of one example."""
        level = level_of(leaves((tuple(args), kwargs))) or self.level
        return looped(self.at(level), function, args, kwargs)

    def level_of(self, values: Any) -> int:
        """The innermost level among the batched ones of some values; 0 for none."""
        return level_of(leaves(values))

    def records_below(self, args: Any) -> bool:
        """Whether ops on the values of all examples are recorded, and those on examples are not."""
        state = active.state
        batched = [arg for arg in leaves(args) if self.is_batched(arg)]
        mode = state.grad_enabled if self.below is None else self.below
        return (
            mode
            and any(arg.array.value.requires_grad for arg in batched)
            and not any(arg.requires_grad for arg in batched)
        )

    def forward_of(self, function: Any) -> Callable[..., Any]:
        """The forward of a custom function that says how it computes all examples."""
        mode = active.state.grad_enabled

        def forward(*args: Any) -> Any:
            frame = self.at(level_of(leaves(args)))
            return by_own_rule(frame, function, args, mode)

        return forward

    def _computed(self, op: Op, args: tuple[Any, ...]) -> Any:
        args = tuple(
            [
                [self.wrapped(each) for each in arg]
                if type(arg) in (list, tuple) and any(type(each) is Tensor for each in arg)
                else self.wrapped(arg)
                for arg in args
            ]
        )
        values = [each for arg in args for each in (arg if type(arg) is list else (arg,))]
        if self.is_batched(*values):
            warn_of(key_of(op))
            result = self.run(rule_of(op), self, op, args)
        else:
            shared = [
                [self.plain(each) for each in arg] if type(arg) is list else self.plain(arg)
                for arg in args
            ]
            result = self.run(_shared, op, shared)
        if isinstance(result, (tuple, list)) and type(result) is not At:
            return tuple([self._array(each) for each in result]), args
        return self._array(result), args

    def _array(self, result: Any) -> BatchedArray:
        value, bdim = result if type(result) is At else (result, 0)
        return BatchedArray(value, bdim, self.level)

    def moved(self, leaf: Tensor, dim: int) -> Tensor:
        """A result outside this level, the examples in a dimension. Raises E302 where there is no
        such dimension.
        """
        ndim = leaf.array.ndim + 1
        if not self.is_batched(leaf):
            whole = unsqueeze.apply(self.plain(leaf), normal_dim("vmap", dim, ndim))
            sizes = list(whole.array.shape)
            sizes[dim] = self.size
            return expand.apply(whole, tuple(sizes))
        array: BatchedArray = leaf.array
        assert array.bdim is not None
        at = normal_dim("vmap", dim, ndim)
        return array.value if array.bdim == at else movedim(array.value, array.bdim, at)


def _differs(value: Any) -> bool:
    """Whether a value is a tensor that differs from example to example, at any level."""
    while type(value) is Tensor and type(value.array) is BatchedArray:
        if value.array.bdim is not None:
            return True
        value = value.array.value
    return False


_SHARED_WRITE = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor"
    " `other` in extra_args that has more elements than `self`. This happened due to `other` being"
    " vmapped over but `self` not being vmapped over in a vmap. Please try to use out-of-place"
    " operators instead of inplace arithmetic. If said operator is being called inside the PyTorch"
    " framework, please file a bug report instead."
)
"""PyTorch's text."""

_DYNAMIC = (
    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap"
    " over aten::{}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need"
    " this feature."
)

_REFUSALS = {
    "item": "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over"
    " calling .item() on a Tensor, please try to rewrite what you're doing with other operations."
    " If error is occurring somewhere inside PyTorch internals, please file a bug report.",
    "bool": "vmap: It looks like you're attempting to use a Tensor in some data-dependent control"
    " flow. We don't support that yet, please file an issue at"
    " https://github.com/pytorch/pytorch/issues .",
    "data": "accessing `data` under vmap transform is not allowed",
    "tolist": "Cannot access data pointer of Tensor that doesn't have storage",
    "storage": "Cannot access storage of BatchedTensorImpl",
    "nonzero": _DYNAMIC.format("nonzero"),
    "unique": _DYNAMIC.format("_unique2"),
    "masked_select": "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We"
    " cannot support this because for each batch this would return a differently shaped Tensor."
    " Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature.",
    "indexing by a mask": "vmap: We do not support batching operators that can support dynamic"
    " shape. Attempting to batch over indexing with a boolean mask.",
    "equal": "Batching rule not implemented for aten::equal. We could not generate a fallback.",
    "allclose": "vmap over torch.allclose isn't supported yet. Please file an issue at"
    " https://github.com/pytorch/pytorch/issues if you need this feature.",
}
"""PyTorch's texts, by what needs the values of one example."""


def _shared(op: Op, args: Sequence[Any]) -> Any:
    result = op.apply(*args)
    return [At(each, None) for each in result] if type(result) is tuple else At(result, None)
