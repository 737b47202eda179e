"""Products of groups of rows with a matrix each, as a mixture of experts has them: `grouped_mm`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.doc import BY_VALUES
from gradcli.ops.definition.op import Op, op
from gradcli.ops.linalg.products.matrix_products import check_dtypes, product
from gradcli.ops.shape.views import transpose


def _groups(offs: Any) -> list[slice]:
    """The parts of a dimension that end at some offsets."""
    return [slice(start, end) for start, end in pairwise([0, *offs.tolist()])]


def _grouped(self: Any, mat2: Any, offs: Any = None) -> Any:
    """The product of each group; elements of no group, which PyTorch leaves as they lie in memory,
    are zeros.
    """
    if offs is None:
        return product(self, mat2)
    if self.ndim == 3:
        out = zeros(self, (self.shape[1], mat2.shape[1]))
        for one, part in zip(self, _groups(offs), strict=True):
            out[:, part] = product(one, mat2[:, part])
    elif mat2.ndim == 3:
        out = zeros(self, (self.shape[0], mat2.shape[2]))
        for one, part in zip(mat2, _groups(offs), strict=True):
            out[part] = product(self[part], one)
    else:
        parts = _groups(offs)
        out = zeros(self, (len(parts), self.shape[0], mat2.shape[1]))
        for number, part in enumerate(parts):
            out[number] = product(self[:, part], mat2[part])
    return out


def _transposed(matrices: Any) -> Any:
    return transpose(matrices, -2, -1)


_grouped_mm: Op = op(
    "_grouped_mm",
    _grouped,
    constant=("offs",),
    self=lambda grad, mat2, offs: _grouped_mm(grad, _transposed(mat2), offs),
    mat2=lambda grad, self, offs: _grouped_mm(_transposed(self), grad, offs),
    raises=BY_VALUES,
)


@function("grouped_mm", module="torch.nn.functional")
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """The products of groups of rows, or of columns, with a matrix each: of rows (n, k) and
    matrices (groups, k, m), of matrices (groups, n, k) and columns (k, m), and, for each group a
    matrix, of columns (n, k) and rows (k, m). float64 is taken too, which PyTorch refuses.

    Args:
        offs: (groups,) int32, where each group ends; without it both are batches of matrices.
        bias: must be None, as in PyTorch.
        out_dtype: the dtype of both, if any.

    Raises E203, E204, E301 or E303 where the operands do not go together.

    Example: F.grouped_mm(torch.ones(3, 4), torch.ones(2, 4, 4), offs=tensor([1, 3]).int())
    """
    _check_matrices(mat_a.array, mat_b.array)
    _check_groups(mat_a.array, mat_b.array, None if offs is None else offs.array)
    if bias is not None:
        raise runtime_error("Bias not supported yet")
    if out_dtype not in (None, mat_a.dtype):
        raise runtime_error("Grouped gemm output dtype must match `mat_a` dtype")
    check_dtypes("grouped_mm", mat_a.array, mat_b.array)
    return _grouped_mm.apply(mat_a, mat_b, offs)


@function("_grouped_mm")
def torch_grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """`F.grouped_mm` by position; see there.

    Example: torch._grouped_mm(torch.ones(3, 4), torch.ones(2, 4, 4), tensor([1, 3]).int())
    """
    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def _check_matrices(left: Any, right: Any) -> None:
    """Raise E203 or E301 where an operand is none for a grouped product, as PyTorch does."""
    for name, array in (("mat_a", left), ("mat_b", right)):
        dtype = dtypes.of_array(array)
        if dtype.category != "float":
            text = (
                f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got"
                f" {dtype.scalar_type}"
            )
            raise dtype_error(f"grouped_mm(): {name} is {dtype}", text=text)
    for name, array in (("mat_a", left), ("mat_b", right)):
        if array.ndim not in (2, 3):
            raise shape_error(
                f"grouped_mm(): {name} of shape {array.shape} is no matrix and no batch of them",
                text=f"{name} has to be 2 or 3d",
            )
    if (left.ndim == 3 or right.ndim == 3) and left.shape[-1] != right.shape[-2]:
        raise shape_error(
            f"grouped_mm(): the shapes {left.shape} and {right.shape} cannot be multiplied",
            text="contraction dimension of mat_a and mat_b must match",
        )
    for array in (left, right):
        _check_strides(array)


def _check_strides(array: Any) -> None:
    """Raise E301 unless the rows, or the columns, of matrices lie apart by multiples of 16 bytes,
    each without gaps.
    """
    if not array.size:
        return
    step = [size // array.itemsize for size in array.strides]
    for near, far in ((-1, -2), (-2, -1)):
        if step[near] == 1 and step[far] >= max(1, array.shape[near]):
            if array.strides[far] % 16:
                raise runtime_error("strides should be multiple of 16 bytes")
            return
    raise runtime_error(
        f"Invalid strides/sizes, got {step} for strides and {list(array.shape)} for sizes"
    )


def _check_groups(left: Any, right: Any, offs: Any) -> None:
    """Raise E204 or E301 where the groups do not go with the operands, as PyTorch does."""
    if (offs is None) != (left.ndim == right.ndim == 3):
        raise runtime_error(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if offs is None:
        if left.shape[0] != right.shape[0]:
            raise runtime_error("batched dimension has to match")
        return
    if offs.ndim != 1:
        raise runtime_error("offs has to be 1D")
    if offs.dtype != np.int32:
        raise runtime_error("Offsets have to be int32")
    batch = left if left.ndim == 3 else right
    if batch.ndim == 3 and batch.shape[0] != offs.shape[0]:
        raise runtime_error("matrix batch sizes have to match")
