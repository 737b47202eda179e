"""Maxima and minima: `max min amax amin aminmax argmax argmin`; those of truths, `any all`, and
`count_nonzero`.

Over the whole tensor, ties share the gradient; over a dimension, the element whose index is
returned gets it all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, index_error, runtime_error
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.arguments import Dims, check_tensors, normal_dim, normal_dims
from gradcli.ops.binding.results import named
from gradcli.ops.definition.doc import BY_KINDS, describe
from gradcli.ops.definition.dtype_support import COMPLEX, dtype_names
from gradcli.ops.definition.op import Function, Op, op, rounded_once
from gradcli.ops.elementwise.clamp import maximum, minimum
from gradcli.ops.elementwise.comparison import logical_and, logical_or
from gradcli.ops.indexing.along import scatter_tensor
from gradcli.ops.indexing.masks import masked_fill_tensor
from gradcli.ops.reduction.sum import check_reduced, fold, kept_sizes, reduction, sum_all, sum_dims
from gradcli.ops.shape.views import reshape, unsqueeze

# --- gradients ----------------------------------------------------------------------------------


def shared_evenly(grad: Any, self: Any, result: Any) -> Any:
    """The gradient of a value picked from all elements: those equal to it share it; where it is
    nan, those that are nan.
    """
    chosen = logical_or(self == result, logical_and(self != self, result != result))
    share = grad / sum_all(chosen)
    return masked_fill_tensor(zeros(grad, chosen.shape), chosen, share)


def put_selected(
    grads: Any, indices: Any, self_sizes: tuple[int, ...], dim: int, keepdim: bool
) -> Any:
    """The gradient of values picked along a dimension: it goes to the elements at the indices."""
    grad = grads[0]
    if self_sizes and not keepdim:
        grad = unsqueeze(grad, dim)
        indices = unsqueeze(indices, dim)
    return scatter_tensor(zeros(grad, self_sizes), dim, indices, grad)


def _shared_by_count(
    grad: Any, self: Any, result: Any, dims: tuple[int, ...], keepdim: bool
) -> Any:
    """The gradient of the extreme over dimensions: the elements equal to it share it."""
    if not keepdim:
        sizes = kept_sizes(self.shape, dims)
        grad, result = reshape(grad, sizes), reshape(result, sizes)
    extreme = result == self
    return grad / sum_dims(extreme, dims, True) * extreme


# --- over everything ----------------------------------------------------------------------------


def check_not_empty(name: str, array: Any, dims: tuple[int, ...] | None = None) -> None:
    """Raise where there is no element to pick: E302 for a dimension of size 0, else E204."""
    empty = [dim for dim in dims or () if not array.shape[dim]]
    if empty:
        said = "aminmax" if name == "aminmax" else f"{name}()"
        raise index_error(f"{said}: Expected reduction dim {empty[0]} to have non-zero size.")
    if dims is None and not array.size:
        raise runtime_error(
            f"{name}(): a tensor of shape {tuple(array.shape)} has no elements",
            text="aminmax(): cannot compute aminmax over an empty dimension as the operation has no"
            " identity."
            if name == "aminmax"
            else f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify"
            " the reduction dim with the 'dim' argument.",
        )


def _extreme_of_all(name: str, node_name: str, ufunc: Any) -> Op:
    def forward(self: Any) -> Any:
        check_not_empty(name, self)
        return fold(ufunc, self, None)

    return op(
        name,
        forward,
        half=rounded_once,
        node=node_name,
        self=shared_evenly,
        unsupported=COMPLEX,
        raises=BY_KINDS,
    )


max_all = _extreme_of_all("max", "MaxBackward1", np.maximum)
min_all = _extreme_of_all("min", "MinBackward1", np.minimum)

# --- along a dimension --------------------------------------------------------------------------


def picked(self: Any, indices: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """Values and indices of one position in a dimension; the indices keep the dimension."""
    values = np.take_along_axis(self, indices, dim)
    if keepdim:
        return values, indices
    return np.squeeze(values, dim)[()], np.squeeze(indices, dim)[()]


def _extreme_along(name: str, argument: Function) -> Op:
    def forward(self: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
        if not self.ndim:
            return self[()], np.int64(0)
        check_not_empty(name, self, (dim,))
        return picked(self, argument(self, axis=dim, keepdims=True), dim, keepdim)

    return op(
        name,
        forward,
        outputs=("values", "indices"),
        differentiable=(0,),
        self=put_selected,
        unsupported=dtype_names("complex", raises="RuntimeError"),
        raises=BY_KINDS,
    )


max_dim = _extreme_along("max", np.argmax)
min_dim = _extreme_along("min", np.argmin)


def _add_extreme(name: str, binary: Op, of_all: Op, along: Op) -> None:
    """`max` or `min` in its three forms: of all, along a dimension, and of two tensors."""

    @reduction(name)
    def extreme(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        if type(dim) is Tensor:
            other, dim = dim, None
        if other is not None:
            check_tensors(name, input=input, other=other)
            return binary.apply(input, other)
        check_reduced(name, input, keepdim)
        if dim is None:
            if keepdim:
                raise GradcliError("E201", f"{name}(): keepdim needs a dimension")
            return of_all.apply(input)
        at = normal_dim(name, dim, input.array.ndim)
        return named(name, "values indices", along.apply(input, at, keepdim))

    describe(
        extreme,
        f"The {name}imum of all elements; along `dim`, the values with their indices; of two"
        " tensors, element by element.",
        conventions="Ties share the gradient evenly; along `dim`, the first one found gets it all.",
    )


_add_extreme("max", maximum, max_all, max_dim)
_add_extreme("min", minimum, min_all, min_dim)

# --- over dimensions ----------------------------------------------------------------------------


def _extreme_over(name: str, ufunc: Any) -> tuple[Op, Function]:
    def forward(self: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
        check_not_empty(name, self, dims)
        return fold(ufunc, self, dims, keepdim)

    entry = op(
        name,
        forward,
        half=rounded_once,
        self=_shared_by_count,
        unsupported=COMPLEX,
        numpy=f".{name[1:]}(axis, keepdims)",
        raises=BY_KINDS,
    )

    @reduction(name)
    def extreme(input: Tensor, dim: Dims = (), keepdim: bool = False) -> Any:
        check_reduced(name, input, keepdim)
        if type(dim) in (tuple, list) and not dim:
            check_not_empty(name, input.array)
        return entry.apply(input, normal_dims(name, input, dim), keepdim)

    describe(
        extreme,
        f"The {name[1:]}imum over the dimensions; ties share the gradient.",
        conventions="Ties share the gradient evenly.",
    )
    return entry, extreme


amax, amax_op = _extreme_over("amax", np.maximum)
amin, amin_op = _extreme_over("amin", np.minimum)


def _aminmax_array(self: Any, dims: tuple[int, ...], keepdim: bool) -> tuple[Any, Any]:
    check_not_empty("aminmax", self, dims)
    return fold(np.minimum, self, dims, keepdim), fold(np.maximum, self, dims, keepdim)


def _aminmax_rule(
    grads: Any, self: Any, min: Any, max: Any, dims: tuple[int, ...], keepdim: bool
) -> Any:
    shares = [
        _shared_by_count(grad, self, extreme, dims, keepdim)
        for grad, extreme in zip(grads, (min, max), strict=True)
        if grad is not None
    ]
    return shares[0] if len(shares) == 1 else shares[0] + shares[1]


_aminmax = op(
    "aminmax",
    _aminmax_array,
    outputs=("min", "max"),
    self=_aminmax_rule,
    unsupported=COMPLEX,
    raises=BY_KINDS,
)


@reduction("aminmax")
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The minimum and the maximum, of all elements or along a dimension; ties share the
    gradient.
    """
    check_reduced("aminmax", input, keepdim)
    ndim = input.array.ndim
    if dim is None:
        check_not_empty("aminmax", input.array)
    dims = tuple(range(ndim)) if dim is None else (normal_dim("aminmax", dim, ndim),)[:ndim]
    return named("aminmax", "min max", _aminmax.apply(input, dims, keepdim))


# --- indices ------------------------------------------------------------------------------------


def _index_of_extreme(name: str, argument: Function) -> Function:
    def forward(self: Any, dim: int | None, keepdim: bool) -> Any:
        if not (self.size if dim is None or not self.ndim else self.shape[dim]):
            raise index_error(
                f"{name}(): there are no elements to choose from",
                text=f"{name}(): Expected reduction dim to be specified for input.numel() == 0.",
            )
        index = argument(self, axis=dim if self.ndim else None, keepdims=keepdim)
        return index if isinstance(index, np.ndarray) else np.int64(index)

    entry = op(
        name,
        forward,
        constant=("self",),
        unsupported=dtype_names("bool", "complex", raises="RuntimeError"),
        numpy=f".{name}(axis, keepdims)",
        raises=BY_KINDS,
    )

    @reduction(name)
    def index_of(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        check_reduced(name, input, keepdim)
        at = None if dim is None else normal_dim(name, dim, input.array.ndim)
        return entry.apply(input, at, keepdim)

    describe(
        index_of, f"The index of the first {name[3:]}imum along `dim`, or in the flattened tensor."
    )
    return index_of


argmax = _index_of_extreme("argmax", np.argmax)
argmin = _index_of_extreme("argmin", np.argmin)


# --- any, all, counts -----------------------------------------------------------------------------


def _add_truth(name: str, ufunc: Any) -> None:
    """`any` or `all`: a bool, or uint8 for a uint8 tensor."""

    def forward(self: Any, dims: tuple[int, ...] | None, keepdim: bool) -> Any:
        truth = fold(ufunc, self.astype(np.bool_), dims, keepdim)
        return truth.astype(np.uint8) if self.dtype == np.uint8 else truth

    entry = op(name, forward, constant=("self",), raises=BY_KINDS)

    @reduction(name)
    def reduce(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Any:
        check_reduced(name, input, keepdim)
        # No dimensions are none to reduce, where other reductions take them for all.
        none = isinstance(dim, (tuple, list)) and not dim
        return entry.apply(input, () if none else normal_dims(name, input, dim), keepdim)

    describe(
        reduce,
        f"Whether {name} elements are nonzero, over the given dimensions.",
        f"torch.{name}(tensor([True, False, True]))",
    )


_add_truth("any", np.logical_or)
_add_truth("all", np.logical_and)


_count_nonzero = op(
    "count_nonzero",
    lambda self, dims: fold(np.add, self != 0, dims, dtype=np.int64),
    constant=("self",),
    raises=BY_KINDS,
)


@reduction("count_nonzero")
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """How many elements are not zero, over the given dimensions; int64.

    Example: torch.count_nonzero(tensor([True, False, True]))
    """
    check_reduced("count_nonzero", input)
    return _count_nonzero.apply(input, normal_dims("count_nonzero", input, dim))
