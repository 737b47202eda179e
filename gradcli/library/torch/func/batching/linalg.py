"""Batching rules of linear algebra on pairs of matrices; on one they are leading dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.library.torch.func.batching.rules import batching, behind
from gradcli.ops.definition.op import Op

if TYPE_CHECKING:
    from gradcli.library.torch.func.batching.frame import Frame


@batching("linalg_solve_triangular", "cholesky_solve", "triangular_solve", "linalg_lu_solve")
def _pair(frame: Frame, op: Op, args: Any) -> Any:
    count = len(op.tensors)
    ndim = max(arg.array.ndim for arg in args[:count])
    operands = []
    for name, arg in zip(op.tensors, args[:count], strict=True):
        rank = ndim - 1 if name == "pivots" else ndim
        operands.append(behind(frame.first(arg), rank + 1))
    return op.apply(*operands, *args[count:])


@batching("linalg_solve_ex")
def _solve(frame: Frame, op: Op, args: Any) -> Any:
    A, B, left, vector = args
    if vector:
        return op.apply(frame.first(A), behind(frame.first(B), A.array.ndim), left, True)
    ndim = max(A.array.ndim, B.array.ndim)
    operands = [behind(frame.first(each), ndim + 1) for each in (A, B)]
    return op.apply(*operands, left, False)
