"""Batching rules: how an op computes all examples at once.

A rule is a function of the running `vmap`, the op and its arguments, tensors of the `vmap`'s level
among them. It returns the result for all examples, examples first, or `At(result, dim)`.

- A pointwise op aligns its operands behind the dimension of the examples (`aligned`).
- A view, an op whose parameters name dimensions, one of linear algebra and one that its entry says
  it of see one dimension more in front (`leading`): dimensions and sizes are shifted.
- An op in space, which its name tells, sees the samples of all examples (`by_samples`).
- The rest has a rule of its own, in the files beside.
- An op without a rule, and most without one in PyTorch, run for one example after the other.

`Frame` is a level of a running `vmap`: how many examples it has, and which values differ from
example to example.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Self

from gradcli.arrays import dtypes
from gradcli.autograd.batched import BatchedArray, NeedsExamples, batched_tensor
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error
from gradcli.ops.binding.functions import methods
from gradcli.ops.codegen.promotion import NUMBERS
from gradcli.ops.creation.copies import clone
from gradcli.ops.creation.random import drawn
from gradcli.ops.definition.doc import READS
from gradcli.ops.definition.op import Op, registry
from gradcli.ops.shape.joining import stack_function
from gradcli.ops.shape.reshaping import movedim
from gradcli.ops.shape.slicing import select
from gradcli.ops.shape.views import expand, reshape, squeeze_dim, unsqueeze
from gradcli.record import Record
from gradcli.state import active

# --- a level of a running vmap --------------------------------------------------------------------


class Frame(Record):
    """One level of batching, while its function runs.

    Attributes:
        level: its number among the transforms that run, from 1.
        size: how many examples there are.
        randomness: "error", "different" or "same".
        outer: the `vmap` around it.
        below: whether ops on the values of all examples are recorded, once a transform inside the
            function differentiates; None before, while the session's mode says it.
        born: what that transform found in the session's place for tensors that were made.
    """

    level: int
    size: int
    randomness: str
    outer: Self | None
    below: bool | None = None
    born: Any = None

    def wrapped(self, value: Any) -> Any:
        """A tensor as one of this level; what is no tensor stays as it is."""
        if type(value) is not Tensor or self.holds(value):
            return value
        return batched_tensor(value, None, self.level)

    def holds(self, value: Any) -> bool:
        """Whether a value is a tensor of this level."""
        return (
            type(value) is Tensor
            and type(value.array) is BatchedArray
            and value.array.level == self.level
        )

    def is_batched(self, *values: Any) -> bool:
        """Whether one of the values differs from example to example."""
        return any(self.holds(value) and value.array.bdim is not None for value in values)

    def plain(self, value: Any) -> Any:
        """The value that all examples share."""
        return value.array.value if self.holds(value) else value

    def first(self, value: Tensor) -> Tensor:
        """The values of all examples, one example after the other in the first dimension."""
        if not self.is_batched(value):
            whole = self.plain(value)
            return expand.apply(unsqueeze.apply(whole, 0), (self.size, *whole.array.shape))
        array: BatchedArray = value.array
        return array.value if array.bdim == 0 else movedim(array.value, array.bdim, 0)

    def at(self, level: int) -> Self:
        """The running `vmap` of a level."""
        frame = self
        while frame.level != level:
            assert frame.outer is not None
            frame = frame.outer
        return frame

    def for_examples(self, pattern: Tensor, new: Tensor) -> Tensor:
        """A new tensor, with memory for each example where each has a pattern of its own."""
        array = pattern.array
        if type(array) is not BatchedArray:
            return new
        inner = self.for_examples(array.value, new)
        if array.bdim is None:
            return inner
        frame = self.at(array.level)
        return batched_tensor(frame.run(lambda: clone.apply(frame.first(inner))), 0, array.level)

    def drawn(
        self, sizes: tuple[int, ...], draw: Callable[[tuple[int, ...]], Any], like: Any = None
    ) -> Any:
        """Random numbers: drawn for all examples at once, or once, as the mode says. Those that are
        like an array have the examples where it has them.
        """
        if self.randomness == "error":
            self.check_drawing()
        apart = self.randomness == "different"
        at = 0
        if apart:
            if type(like) is BatchedArray and like.level == self.level:
                at = like.bdim or 0
            sizes = (*sizes[:at], self.size, *sizes[at:])
        array = self.run(lambda: drawn(sizes, draw))
        return BatchedArray(Tensor(array), at, self.level) if apart else array

    def check_drawing_by_examples(self) -> None:
        """Raise E204 unless each example may draw for itself."""
        if self.randomness != "different":
            text = _DRAWN if self.randomness == "error" else _DRAWN_ONCE
            raise runtime_error(text)

    def refuse_same_draws(self, value: Tensor) -> None:
        """Raise E204 for one draw that depends on the examples."""
        if self.randomness == "same" and self.is_batched(value):
            raise runtime_error(_DRAWN_ONCE)

    def check_drawing(self) -> None:
        """Raise E204 for random numbers where the mode is "error"; have examples draw one after
        the other where each draws for itself.
        """
        if self.randomness == "error":
            raise runtime_error(_DRAWN)
        if self.randomness == "different":
            raise NeedsExamples

    def own(self, value: Tensor) -> Tensor:
        """A copy of a value that each example has for itself."""
        whole = self.wrapped(value)
        return batched_tensor(self.run(lambda: clone.apply(self.first(whole))), 0, self.level)

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function outside this level, with the values of all examples."""
        state = active.state
        before = state.batch, state.grad_enabled, state.born
        state.batch = self.outer
        if self.below is not None:
            state.grad_enabled, state.born = self.below, self.born
        try:
            return function(*args)
        finally:
            state.batch, state.grad_enabled, state.born = before


_DRAWN = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or"
    " 'different' randomness flags on vmap or perform the randomness operation out of vmap"
)
"""PyTorch's text."""

_DRAWN_ONCE = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an"
    " issue with functorch"
)
"""PyTorch's text."""


# --- rules ----------------------------------------------------------------------------------------


Rule = Callable[..., Any]


class At(NamedTuple):
    """A result, and its dimension of examples; None where all share it."""

    value: Tensor
    bdim: int | None


_rules: dict[str, Rule] = {}
"""The rules of ops, by their keys in the registry."""


def batching(*keys: str) -> Callable[[Rule], Rule]:
    """Make a function the rule of the ops of these keys in the registry."""

    def decorate(rule: Rule) -> Rule:
        for key in keys:
            _rules[key] = rule
        return rule

    return decorate


def key_of(op: Op) -> str:
    """The key of an op in the registry."""
    return op.name if registry.get(op.name) is op else f"{op.name}.{op.node_name}"


@cache
def rule_of(op: Op) -> Rule:
    """The rule of an op."""
    key = key_of(op)
    if key in _rules:
        return _rules[key]
    if op.pointwise:
        return aligned
    if key in WITHOUT or READS in op.effects:
        return one_by_one
    if _rank(op):
        return by_samples
    in_front = op.leading or op.view or not (_DIMS | _SIZES).isdisjoint(op.parameters)
    return leading if in_front or op.forward.__module__.startswith(_OF_MATRICES) else one_by_one


_OF_MATRICES = "gradcli.ops.linalg."
"""The functions of matrices, of which any number stand in further dimensions in front."""


WITHOUT = frozenset(
    {
        "_ctc_loss", "_ctc_loss_backward", "_embedding_bag", "_embedding_bag_backward",
        "_embedding_bag_per_sample_weights_backward", "_grouped_mm", "_pdist_backward",
        "_pdist_forward", "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention_for_cpu_backward", "_trilinear",
        "_upsample_nearest_exact1d", "_upsample_nearest_exact1d_backward",
        "_upsample_nearest_exact2d", "_upsample_nearest_exact2d_backward",
        "_upsample_nearest_exact3d", "_upsample_nearest_exact3d_backward", "_weight_norm_interface",
        "affine_grid_generator", "fractional_max_pool2d", "fractional_max_pool2d_backward",
        "fractional_max_pool3d", "fractional_max_pool3d_backward", "index_reduce", "linalg_lu",
        "masked_fill.MaskedFillBackward1", "masked_scatter", "masked_scatter_backward",
        "max_unpool2d", "max_unpool3d", "mkldnn_rnn_layer", "multi_margin_loss",
        "multi_margin_loss_backward",
        "multilabel_margin_loss_backward", "multilabel_margin_loss_forward", "ormqr", "put",
        "renorm", "soft_margin_loss", "soft_margin_loss_backward", "take", "unfold_backward",
    }
)  # fmt: skip
"""The keys of ops for which PyTorch has no batching rule, recorded from it."""


def warn_of(key: str) -> None:
    """Warn as PyTorch does where an op of this key has no batching rule there."""
    if key in WITHOUT:
        name = "masked_fill.Tensor" if key.startswith("masked_fill.") else key
        message = (
            "There is a performance drop because we have not yet implemented the batching rule for"
            f" aten::{name}. Please file us an issue on GitHub so that we can prioritize its"
            " implementation."
        )
        active.state.warn("W013", message, text=message)


# --- pointwise ----------------------------------------------------------------------------------


def behind(value: Tensor, ndim: int, at: int = 1) -> Tensor:
    """A tensor with dimensions of size 1 put in before a position, `ndim` dimensions in all."""
    for _ in range(ndim - value.array.ndim):
        value = unsqueeze.apply(value, at)
    return value


def side_by_side(frame: Frame, *operands: Any) -> list[Any]:
    """Operands for an elementwise computation of all examples; numbers and None stay."""
    ndim = max([o.array.ndim for o in operands if type(o) is Tensor], default=0)
    result = []
    for operand in operands:
        if type(operand) is not Tensor:
            result.append(operand)
        elif frame.is_batched(operand):
            result.append(behind(frame.first(operand), ndim + 1))
        else:
            result.append(behind(frame.plain(operand), ndim + 1, 0))
    return result


def aligned(frame: Frame, op: Op, args: tuple[Any, ...]) -> Any:
    """An elementwise op. The dtype of the result is that for one example."""
    operands = side_by_side(frame, *args)
    ranks = {arg.array.ndim for arg in args if type(arg) is Tensor}
    if 0 in ranks:
        _check_some_example(frame, op, args)
        dtype = _promoted(op, args)
        if dtype is not None:
            count = len(op.tensors)
            operands[:count] = [
                methods.to(each, dtype) if type(each) is Tensor else each
                for each in operands[:count]
            ]
    return op.apply(*operands)


def _check_some_example(frame: Frame, op: Op, args: tuple[Any, ...]) -> None:
    """Raise PyTorch's IndexError where the dtype of two operands is found from the first example of
    one, a number each, and there is none.
    """
    operands = args[: len(op.tensors)]
    if frame.size or not op.rules or op.tensors[1:] != ("other",):
        return
    batched = [each for each in operands if frame.is_batched(each)]
    if len(batched) == 1 and batched[0].array.ndim == 0:
        raise GradcliError(
            "E302", "select(): index 0 out of range for tensor of size [0] at dimension 0"
        )


def _promoted(op: Op, args: tuple[Any, ...]) -> Any:
    """The dtype that operands are promoted to, one number of each example among them; None where
    they have one dtype.
    """
    read = [
        arg.array if type(arg) is Tensor else arg
        for arg in args[: len(op.tensors)]
        if type(arg) is Tensor or type(arg) in NUMBERS
    ]
    operand_dtypes = {array.dtype for array in read if hasattr(array, "dtype")}
    return dtypes.result_dtype(read) if len(operand_dtypes) > 1 else None


# --- one dimension more -------------------------------------------------------------------------

_DIMS = frozenset({"dim", "dims", "dim0", "dim1", "dim2", "dimension"})
_SIZES = frozenset({"size", "self_sizes", "input_size"})


def leading(frame: Frame, op: Op, args: tuple[Any, ...]) -> Any:
    """An op for which the examples are one more dimension in front."""
    arguments = dict(zip(op.parameters, args, strict=False))
    ndim = max(
        [arg.array.ndim for arg in args if type(arg) is Tensor and frame.is_batched(arg)], default=0
    )
    named = [name for name in arguments if name in _DIMS]
    lifted = (
        not ndim
        and any(arguments[name] not in ((), None) for name in named)
        and not (op.view or _SIZES & arguments.keys())
    )
    result = []
    for name, value in arguments.items():
        if type(value) is Tensor:
            value = frame.first(value)
            value = unsqueeze.apply(value, 1) if lifted else value
        elif name in _DIMS:
            value = shifted(value, ndim)
        elif name in _SIZES and not (name == "size" and op.name == "unfold"):
            value = (frame.size, *value)
        result.append(value)
    result_of_op = op.apply(*result)
    if not lifted:
        return result_of_op
    if type(result_of_op) is tuple:
        return tuple([_unlifted(each) for each in result_of_op])
    return _unlifted(result_of_op)


def _unlifted(value: Tensor) -> Tensor:
    return squeeze_dim.apply(value, 1) if value.array.ndim > 1 else value


def shifted(dims: Any, ndim: int) -> Any:
    """Dimensions of an example, as those behind the examples; None stands for all of them."""
    if dims is None:
        return tuple(range(1, ndim + 1))
    if isinstance(dims, (tuple, list)):
        return tuple([shifted(dim, ndim) for dim in dims])
    return dims + 1 if dims >= 0 else dims


# --- samples of one batch -----------------------------------------------------------------------


def folded(frame: Frame, value: Tensor, rank: int) -> Tensor:
    """The values of all examples with their samples as samples of one batch: `rank` dimensions."""
    whole = frame.first(value)
    shape = whole.array.shape
    if len(shape) == rank:
        return whole
    return reshape(whole, (shape[0] * shape[1], *shape[2:]))


def unfolded(frame: Frame, value: Tensor) -> Tensor:
    """A result of samples of all examples, the examples in front."""
    shape = value.array.shape
    return reshape(value, (frame.size, shape[0] // frame.size, *shape[1:]))


_SPATIAL = re.compile(r"([123])d(_with_indices)?(_backward)?$")


def _rank(op: Op) -> int:
    """The dimensions of an operand of an op in space: samples, channels and those of space; 0 for
    another op.
    """
    match = _SPATIAL.search(op.name)
    return int(match[1]) + 2 if match else {"im2col": 4, "col2im": 3}.get(op.name, 0)


def by_samples(frame: Frame, op: Op, args: tuple[Any, ...]) -> Any:
    """An op in space: the samples of all examples are those of one batch."""
    rank = _rank(op)
    first = next(arg for arg in args if type(arg) is Tensor)
    apart = first.array.ndim == rank
    result = []
    for name, arg in zip(op.parameters, args, strict=False):
        if type(arg) is Tensor:
            arg = folded(frame, arg, rank)
        elif name == "input_size":
            arg = (frame.size * arg[0], *arg[1:]) if apart else (frame.size, *arg)
        result.append(arg)
    outputs = op.apply(*result)
    if not apart:
        return outputs
    if type(outputs) is tuple:
        return tuple([unfolded(frame, each) for each in outputs])
    return unfolded(frame, outputs)


# --- one by one ---------------------------------------------------------------------------------


def one_by_one(frame: Frame, op: Op, args: tuple[Any, ...]) -> Any:
    """An op without a rule: it runs for one example after the other."""
    results = [op.apply(*[_example(frame, arg, n) for arg in args]) for n in range(frame.size)]
    if type(results[0]) is tuple:
        return tuple([stack_function(list(column)) for column in zip(*results, strict=True)])
    return stack_function(results)


def _example(frame: Frame, arg: Any, number: int) -> Any:
    if type(arg) is list:
        return [_example(frame, each, number) for each in arg]
    if type(arg) is not Tensor:
        return arg
    if not frame.is_batched(arg):
        return frame.plain(arg)
    return select.apply(arg.array.value, arg.array.bdim, number)
