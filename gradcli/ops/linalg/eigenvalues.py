"""`linalg.eig linalg.eigvals`: eigenvalues of matrices that need not be symmetric."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import on_the_host
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error
from gradcli.ops.arithmetic.conjugate import conj
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.results import named
from gradcli.ops.definition.doc import BY_VALUES
from gradcli.ops.definition.op import Op, op
from gradcli.ops.elementwise.complex import real_part
from gradcli.ops.linalg.decompositions import check_phases, converged
from gradcli.ops.linalg.linear_systems import adjoint_of, check_matrices, column_major
from gradcli.ops.linalg.solve import solve_ex
from gradcli.ops.shape.partial_writes import assign, fill, matrix_diagonal_of
from gradcli.ops.shape.views import unsqueeze
from gradcli.packages import imported


@on_the_host
def _eig_on_host(A: Any) -> tuple[Any, Any]:
    # LAPACK in the matrix's own precision, which the signs of the vectors depend on: NumPy's is
    # that of double precision.
    scipy_eig = imported("scipy.linalg").eig
    dtype = np.result_type(A.dtype, np.complex64)
    values, vectors = np.zeros(A.shape[:-1], dtype), np.zeros(A.shape, dtype)
    if not np.isfinite(A).all():
        raise runtime_error("eig(): the matrices hold nan or infinite elements")
    for position in np.ndindex(A.shape[:-2] if A.size else (0,)):
        values[position], vectors[position] = converged(
            "eig", scipy_eig, A[position], check_finite=False
        )
    return values, column_major(vectors)


def _eig_rule(grads: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    of_values, of_vectors = grads
    L, V = eigenvalues, eigenvectors
    if of_vectors is None:
        inner = unsqueeze(of_values, L.ndim) * adjoint_of(V)
        return solve_ex(adjoint_of(V), inner, True, False)[0]
    overlap = adjoint_of(V) @ of_vectors
    check_phases("eig", overlap)
    # Vectors have length 1, so the part of a gradient along its own vector changes nothing.
    own = real_part(matrix_diagonal_of(overlap))
    inner = overlap - adjoint_of(V) @ (V * unsqueeze(own, L.ndim - 1))
    conjugates = conj(L)
    gaps = unsqueeze(conjugates, L.ndim - 1) - unsqueeze(conjugates, L.ndim)
    fill(matrix_diagonal_of(gaps), 1.0)
    inner = inner / gaps
    if of_values is not None:
        assign(matrix_diagonal_of(inner), of_values)
    return solve_ex(adjoint_of(V), inner @ adjoint_of(V), True, False)[0]


_eig: Op = op(
    "linalg_eig",
    lambda A: _eig_on_host(A),
    outputs=("eigenvalues", "eigenvectors"),
    keeps_layout=True,
    A=_eig_rule,
    raises=BY_VALUES,
)


@function("eig", module="torch.linalg", autocast="float32")
def eig(A: Tensor) -> Any:
    """The eigenvalues of square matrices and eigenvectors of length 1, as columns; both complex.
    Raises E301 for others.
    """
    check_matrices("eig", A=A)
    return named("linalg_eig", "eigenvalues eigenvectors", _eig.apply(A))


@function("eigvals", module="torch.linalg", autocast="float32")
def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of square matrices, complex. Raises E301 for others."""
    check_matrices("eigvals", A=A)
    return _eig.apply(A)[0]
