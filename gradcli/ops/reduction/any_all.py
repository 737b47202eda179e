"""Logical reductions and counts: `any all count_nonzero`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.ops.binding.dims import Dims, normal_dims
from gradcli.ops.definition.doc import BY_KINDS, describe
from gradcli.ops.definition.op import Function, op
from gradcli.ops.reduction.sum import check_reduced, fold, reduction


def _truth(name: str, ufunc: Any) -> Function:
    """`any` or `all`: a bool, or uint8 for a uint8 tensor."""

    def forward(self: Any, dims: tuple[int, ...] | None, keepdim: bool) -> Any:
        truth = fold(ufunc, self.astype(np.bool_), dims, keepdim)
        return truth.astype(np.uint8) if self.dtype == np.uint8 else truth

    entry = op(name, forward, constant=("self",), raises=BY_KINDS)

    @reduction(name)
    def reduce(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Any:
        check_reduced(name, input, keepdim)
        return entry.apply(input, normal_dims(name, input, dim), keepdim)

    describe(
        reduce,
        f"Whether {name} elements are nonzero, over the given dimensions.",
        f"torch.{name}(tensor([True, False, True]))",
    )
    return reduce


any_ = _truth("any", np.logical_or)
all_ = _truth("all", np.logical_and)


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
