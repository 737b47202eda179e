"""`linalg.eig linalg.eigvals`: eigenvalues of matrices that need not be symmetric."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor
from gradcli.ops.catalogue import function, refuse_out
from gradcli.ops.complex import real_part
from gradcli.ops.conjugate import conj
from gradcli.ops.entry import Op, op
from gradcli.ops.linalg import solve_ex
from gradcli.ops.linear_systems import adjoint_of, check_matrices, column_major
from gradcli.ops.return_types import return_type
from gradcli.ops.shape import unsqueeze
from gradcli.ops.slicing import diagonal


def _eig_array(A: Any) -> tuple[Any, Any]:
    dtype = np.result_type(A.dtype, np.complex64)
    if not A.size:
        xp = module_of(A)
        return xp.zeros(A.shape[:-1], dtype), xp.zeros(A.shape, dtype)
    values, vectors = np.linalg.eig(A)
    return values.astype(dtype), column_major(vectors.astype(dtype))


def _eye(value: Any) -> Any:
    array = value.array if type(value) is Tensor else value
    identity = module_of(array).eye(array.shape[-1], dtype=array.dtype)
    return Tensor(identity) if type(value) is Tensor else identity


def _eig_rule(grads: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    of_values, of_vectors = grads
    L, V = eigenvalues, eigenvectors
    adjoint = adjoint_of(V)
    if of_vectors is None:
        return solve_ex(adjoint, unsqueeze(of_values, L.ndim) * adjoint, True, False)[0]
    overlap = adjoint @ of_vectors
    # Vectors have length 1, so the part of a gradient along its own vector changes nothing.
    own = real_part(diagonal(overlap, 0, L.ndim - 1, L.ndim))
    identity = _eye(L)
    inner = overlap - (adjoint @ V) * unsqueeze(own, L.ndim - 1)
    gaps = conj(unsqueeze(L, L.ndim - 1) - unsqueeze(L, L.ndim)) + identity
    inner = inner / gaps * (1 - identity)
    if of_values is not None:
        inner = inner + unsqueeze(of_values, L.ndim) * identity
    return solve_ex(adjoint, inner @ adjoint, True, False)[0]


eig: Op = op(
    "linalg_eig",
    "LinalgEigBackward0",
    _eig_array,
    outputs=("eigenvalues", "eigenvectors"),
    keeps_layout=True,
    A=_eig_rule,
)
_EIG = return_type("linalg_eig", ("eigenvalues", "eigenvectors"))


@function("eig", module="torch.linalg")
def eig_(A: Tensor, *, out: Any = None) -> Any:
    """The eigenvalues of square matrices and eigenvectors of length 1, as columns; both complex.
    Raises E301 for others.
    """
    refuse_out("eig", out)
    check_matrices("eig", A=A)
    return _EIG(eig.apply(A))


@function("eigvals", module="torch.linalg")
def eigvals(A: Tensor, *, out: Any = None) -> Tensor:
    """The eigenvalues of square matrices, complex. Raises E301 for others."""
    refuse_out("eigvals", out)
    check_matrices("eigvals", A=A)
    values: Tensor = eig.apply(A)[0]
    return values
