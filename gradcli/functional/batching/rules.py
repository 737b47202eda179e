"""Batching rules: how an op computes all examples at once.

A rule is a function of the running `vmap`, the op and its arguments, tensors of the `vmap`'s level
among them. It returns the result for all examples, examples first, or `At(result, dim)`.

- A pointwise op aligns its operands behind the dimension of the examples.
- Most others see one dimension more in front (`leading`): their arguments that name dimensions or
  sizes are shifted, which their parameters' names tell.
- The rest has a rule of its own, here and in the files beside.
- An op without a rule runs for one example after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.arrays import dtypes
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.binding.catalogue import methods
from gradcli.ops.codegen.promotion import NUMBERS
from gradcli.ops.definition.op import Op, registry
from gradcli.ops.shape.joining import stack_
from gradcli.ops.shape.slicing import select
from gradcli.ops.shape.views import squeeze_dim, unsqueeze

if TYPE_CHECKING:
    from gradcli.functional.batching.frame import Frame

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


_found: dict[Op, Rule] = {}


def key_of(op: Op) -> str:
    """The key of an op in the registry."""
    return op.name if registry.get(op.name) is op else f"{op.name}.{op.node_name}"


def rule_of(op: Op) -> Rule:
    """The rule of an op."""
    rule = _found.get(op)
    if rule is None:
        key = key_of(op)
        rule = _rules.get(key, aligned if op.pointwise else one_by_one)
        _found[op] = rule
    return rule


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
                methods["to"](each, dtype) if type(each) is Tensor else each
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
    found = {array.dtype for array in read if hasattr(array, "dtype")}
    return dtypes.result_dtype(read) if len(found) > 1 else None


# --- one dimension more -------------------------------------------------------------------------

_DIMS = frozenset({"dim", "dims", "dim0", "dim1", "dim2", "dimension"})
_SIZES = frozenset({"size", "self_sizes", "input_size"})


def leading(frame: Frame, op: Op, args: tuple[Any, ...]) -> Any:
    """An op for which the examples are one more dimension in front."""
    given = dict(zip(op.parameters, args, strict=False))
    ndim = max(
        [arg.array.ndim for arg in args if type(arg) is Tensor and frame.is_batched(arg)], default=0
    )
    named = [name for name in given if name in _DIMS]
    lifted = (
        not ndim
        and any(given[name] not in ((), None) for name in named)
        and not (op.view or _SIZES & given.keys())
    )
    result = []
    for name, value in given.items():
        if type(value) is Tensor:
            value = frame.first(value)
            value = unsqueeze.apply(value, 1) if lifted else value
        elif name in _DIMS:
            value = shifted(value, ndim)
        elif name in _SIZES and not (name == "size" and op.name == "unfold"):
            value = (frame.size, *value)
        result.append(value)
    made = op.apply(*result)
    if not lifted:
        return made
    if type(made) is tuple:
        return tuple([_unlifted(each) for each in made])
    return _unlifted(made)


def _unlifted(value: Tensor) -> Tensor:
    return squeeze_dim.apply(value, 1) if value.array.ndim > 1 else value


def shifted(dims: Any, ndim: int) -> Any:
    """Dimensions of an example, as those behind the examples; None stands for all of them."""
    if dims is None:
        return tuple(range(1, ndim + 1))
    if isinstance(dims, (tuple, list)):
        return tuple([shifted(dim, ndim) for dim in dims])
    return dims + 1 if dims >= 0 else dims


batching(
    "all", "amax", "amin", "aminmax", "any", "count_nonzero", "cummax", "cummin", "cumprod",
    "cumsum", "diag_embed", "diagonal", "diagonal_backward", "diagonal_scatter", "flip", "frexp",
    "glu", "glu_backward", "kthvalue", "log_softmax", "logcumsumexp", "logsumexp",
    "max.MaxBackward0", "mean.MeanBackward1", "median.MedianBackward1", "min.MinBackward0", "mode",
    "nanmedian.NanmedianBackward1", "nansum", "prod.ProdBackward1", "select",
    "select_backward", "select_scatter", "slice", "slice_backward", "slice_scatter", "softmax",
    "sort", "split", "split_with_sizes", "unsafe_split", "squeeze", "squeeze.SqueezeBackward1",
    "squeeze.SqueezeBackward2", "squeeze.SqueezeBackward3", "squeeze.SqueezeBackward4",
    "squeeze.SqueezeBackward5", "std", "std_mean", "sum.SumBackward1", "topk", "transpose",
    "transpose_", "tril", "triu", "unbind", "unfold", "unfold_backward", "unsqueeze", "unsqueeze_",
    "var", "var_mean", "view", "view_as_complex", "view_as_real", "_reshape_alias", "_unsafe_view",
    "_conj", "_neg_view", "clone", "contiguous", "alias", "_to_copy", "_to_copy.device",
    "_to_copy.integer", "zero", "_softmax_backward_data", "_log_softmax_backward_data",
    "_safe_softmax", "gather", "scatter", "scatter.ScatterBackward1", "scatter.reduce",
    "scatter.value_reduce", "scatter_add", "scatter_reduce", "pixel_shuffle", "pixel_unshuffle",
    "constant_pad_nd", "_fft_c2c", "_fft_c2r", "_fft_r2c", "linalg_vector_norm",
    "cholesky", "cholesky_inverse", "linalg_cholesky_ex", "linalg_cross",
    "linalg_det", "linalg_eig", "linalg_eigh", "linalg_householder_product", "linalg_inv_ex",
    "linalg_lu", "linalg_lu_factor_ex", "linalg_matrix_exp", "linalg_qr",
    "linalg_slogdet", "linalg_svd", "lu_unpack", "ormqr",
    "linalg_lstsq",
)(leading)  # fmt: skip


# --- one by one ---------------------------------------------------------------------------------


def one_by_one(frame: Frame, op: Op, args: tuple[Any, ...]) -> Any:
    """An op without a rule: it runs for one example after the other."""
    made = [op.apply(*[_example(frame, arg, n) for arg in args]) for n in range(frame.size)]
    if type(made[0]) is tuple:
        return tuple([stack_(list(column)) for column in zip(*made, strict=True)])
    return stack_(made)


def _example(frame: Frame, arg: Any, number: int) -> Any:
    if type(arg) is list:
        return [_example(frame, each, number) for each in arg]
    if type(arg) is not Tensor:
        return arg
    if not frame.is_batched(arg):
        return frame.plain(arg)
    return select.apply(arg.array.value, arg.array.bdim, number)
