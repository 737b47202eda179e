"""`parametrizations.orthogonal`: a weight whose columns, or rows, are orthonormal."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, value_error
from gradcli.library.torch.nn.module import Module, check_module
from gradcli.library.torch.nn.utils.parametrize import register_parametrization
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import linalg, methods, operators, torch


def _turned(matrix: Tensor) -> Any:
    return methods.transpose(matrix, -2, -1)


def _diagonal(matrix: Tensor) -> Any:
    return methods.diagonal(matrix, dim1=-2, dim2=-1)


def _is_orthogonal(q: Tensor) -> bool:
    rows, columns = q.array.shape[-2:]
    unit = torch.eye(columns, dtype=q.dtype)
    near = 10.0 * rows * torch.finfo(q.dtype).eps
    product = torch.matmul(methods.conj(_turned(q)), q)
    return bool(torch.allclose(product, methods.expand_as(unit, product), atol=near))


def _orthogonalised(matrix: Tensor) -> Any:
    """The factor Q of a tall matrix Q R, where the diagonal of R is not negative."""
    reflections, tau = torch.geqrf(matrix)
    q = linalg.householder_product(reflections, tau)
    return q * methods.unsqueeze(methods.sgn(_diagonal(reflections)), -2)


class _Orthogonal(Module):
    """An orthogonal matrix from any matrix, in one of three ways, times an orthogonal `base`.

    Attributes:
        orthogonal_map: "matrix_exp", "cayley" or "householder".
    """

    language_name = "torch.nn.utils.parametrizations._Orthogonal"

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.array.shape[-2] < X.array.shape[-1]
        if wide:
            X = _turned(X)
        if self.orthogonal_map == "householder":
            below = methods.tril(X, diagonal=-1)
            tau = operators.truediv(2.0, operators.add(1.0, methods.sum(below * below, dim=-2)))
            q = linalg.householder_product(below, tau)
            q = q * methods.unsqueeze(methods.int(_diagonal(X)), -2)
        else:
            q = self._of_skew(X)
        if "base" in self._buffers:
            q = torch.matmul(self.base, q)
        return _turned(q) if wide else q

    def _of_skew(self, X: Tensor) -> Any:
        """The first columns of an orthogonal matrix, from a skew-symmetric one."""
        rows, columns = X.array.shape[-2:]
        X = methods.tril(X)
        if rows != columns:
            zeros = methods.new_zeros(X, rows, rows - columns)
            zeros = methods.expand(zeros, *X.array.shape[:-2], -1, -1)
            X = torch.cat([X, zeros], dim=-1)
        skew = X - methods.conj(_turned(X))
        if self.orthogonal_map == "matrix_exp":
            q = torch.matrix_exp(skew)
        else:
            unit = torch.eye(rows, dtype=skew.dtype)
            halves = [torch.add(unit, skew, alpha=half) for half in (-0.5, 0.5)]
            q = linalg.solve(*halves)
        return q if rows == columns else operators.getitem(q, (..., slice(None, columns)))

    def right_inverse(self, Q: Tensor) -> Tensor:
        """What a weight is computed from; the base takes up what it was before."""
        with NoGrad():
            return self._inverse(Q)

    def _inverse(self, Q: Tensor) -> Any:
        first = Q
        if Q.shape != self.shape:
            raise value_error(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of"
                f" shape {Q.shape}."
            )
        wide = Q.array.shape[-2] < Q.array.shape[-1]
        if wide:
            Q = _turned(Q)
        rows, columns = Q.array.shape[-2:]
        if "base" not in self._buffers:
            if self.orthogonal_map != "householder":
                raise GradcliError(
                    "E205",
                    "It is not possible to assign to the matrix exponential or the Cayley"
                    " parametrizations when use_trivialization=False.",
                    raises="NotImplementedError",
                )
            reflections, tau = torch.geqrf(Q)
            methods.sign_(_diagonal(reflections))
            unused = torch.eq(tau, 0.0)
            methods.mul_(_diagonal(reflections), torch.where(unused, -1, 1))
            return _turned(reflections) if wide else reflections
        if rows != columns:
            drawn = torch.randn(*Q.array.shape[:-2], rows, rows - columns, dtype=Q.dtype)
            Q = _orthogonalised(torch.cat([Q, drawn], dim=-1))
        else:
            Q = methods.clone(Q) if _is_orthogonal(Q) else _orthogonalised(Q)
        self.base = Q
        unit = torch.zeros_like(first)
        methods.fill_(_diagonal(unit), -1.0)
        return unit


@function("orthogonal", module="torch.nn.utils.parametrizations")
def orthogonal(
    module: Any,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Any:
    """Keep a weight orthogonal; returns the module whose it is.

    Args:
        module: the module.
        name: the name of the parameter, a matrix or a batch of matrices.
        orthogonal_map: "matrix_exp", "cayley" or "householder"; the first for square matrices and
            the last for others where it is not given.
        use_trivialization: whether the weight is relative to the orthogonal one that it was first.

    Example: nn.utils.parametrizations.orthogonal(nn.Linear(2, 2)).weight.shape
    """
    check_module("orthogonal", module)
    weight = getattr(module, name, None) if name in module.language_names() else None
    if not isinstance(weight, Tensor):
        raise value_error(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise value_error(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    is_complex = weight.dtype.category == "complex"
    if orthogonal_map is None:
        square = weight.array.shape[-2] == weight.array.shape[-1]
        orthogonal_map = "matrix_exp" if square or is_complex else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise value_error(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got:'
            f" {orthogonal_map}"
        )
    if is_complex and orthogonal_map == "householder":
        raise value_error("The householder parametrization does not support complex tensors.")
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, parametrization, unsafe=True)
