"""Distributions of matrices, `LKJCholesky Wishart`, and of vectors whose covariance a few columns
and a diagonal give, `LowRankMultivariateNormal`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.layout.sizes import Size
from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, assertion_error, value_error
from gradcli.library.torch.distributions.distribution import (
    CORRELATION_FACTOR,
    COVARIANCE,
    FACTOR,
    POSITIVE,
    POSITIVE_VECTOR,
    REAL,
    REAL_VECTOR,
    Constraints,
    Distribution,
    Formulas,
    broadcast_all,
    formula,
    greater_than,
    independent,
    minus,
    over,
    plus,
    times,
)
from gradcli.library.torch.distributions.elementary import (
    Beta,
    Chi2,
    chosen_matrix,
    log_diagonal,
    mahalanobis,
    matrix_times,
    precision_factor,
    standard_normal,
)
from gradcli.ops.binding.functions import linalg, methods, operators, torch

# --- vectors --------------------------------------------------------------------------------------


def _turned(matrix: Any) -> Any:
    return methods.transpose(matrix, -2, -1)


def _add_to_diagonal(matrix: Any) -> Any:
    """A matrix of a batch, with ones added to the diagonal where it stands."""
    size = matrix.shape[-1]
    flat = methods.view(matrix, (-1, size * size))
    diagonal = operators.getitem(flat, (slice(None), slice(None, None, size + 1)))
    methods.add_(diagonal, 1)
    return matrix


class LowRankMultivariateNormal(Distribution):
    """Vectors around `loc`, with the covariance `cov_factor @ cov_factor.T` and `cov_diag` on its
    diagonal.
    """

    fields: ClassVar[tuple[str, ...]] = ("capacitance", "diagonal", "factor")

    home = "torch.distributions.lowrank_multivariate_normal"
    constraints: ClassVar[Constraints] = {
        "loc": REAL_VECTOR,
        "cov_factor": independent(REAL, 2),
        "cov_diag": POSITIVE_VECTOR,
    }
    support = REAL_VECTOR
    has_rsample = True
    computed: ClassVar[Formulas] = {
        "covariance_matrix": lambda self: self.wide(
            torch.matmul(self.factor, _turned(self.factor)) + methods.diag_embed(self.diagonal)
        ),
        "precision_matrix": lambda self: self.wide(self._precision()),
        "scale_tril": lambda self: self.wide(self._scale()),
        "variance": lambda self: methods.expand(
            methods.sum(methods.pow(self.factor, 2), -1) + self.diagonal,
            (*self.batch_shape, *self.event_shape),
        ),
    }

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        if loc.ndim < 1:
            raise value_error("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.ndim < 2:
            raise value_error(
                "cov_factor must be at least two-dimensional, with optional leading batch"
                " dimensions"
            )
        if cov_factor.shape[-2:-1] != event:
            raise value_error(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise value_error(f"cov_diag must be a batch of vectors with shape {event}")
        column = [methods.unsqueeze(each, -1) for each in (loc, cov_diag)]
        try:
            wide = torch.broadcast_tensors(column[0], cov_factor, column[1])
        except GradcliError as error:
            shapes = f"loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            raise value_error(f"Incompatible batch shapes: {shapes}") from error
        self.arguments = {
            "loc": operators.getitem(wide[0], (..., 0)),
            "cov_factor": wide[1],
            "cov_diag": operators.getitem(wide[2], (..., 0)),
        }
        self.factor, self.diagonal = cov_factor, cov_diag
        over_diagonal = _turned(cov_factor) / methods.unsqueeze(cov_diag, -2)
        inner = methods.contiguous(torch.matmul(over_diagonal, cov_factor))
        self.capacitance = linalg.cholesky(_add_to_diagonal(inner))
        super().__init__(self.loc.shape[:-1], event, validate_args)

    mean = formula(lambda self: self.loc)
    mode = mean
    variance = formula(lambda self: Distribution.__getattr__(self, "variance"))

    def wide(self, matrix: Any) -> Any:
        """A matrix for each of the batch."""
        return methods.expand(matrix, (*self.batch_shape, *self.event_shape, *self.event_shape))

    def _precision(self) -> Any:
        solved = self.solved(_turned(self.factor) / methods.unsqueeze(self.diagonal, -2))
        inverse = methods.diag_embed(methods.reciprocal(self.diagonal))
        return inverse - torch.matmul(_turned(solved), solved)

    def solved(self, matrix: Any) -> Any:
        """What the factor of the capacitance matrix makes a matrix of."""
        return linalg.solve_triangular(self.capacitance, matrix, upper=False)

    def _scale(self) -> Any:
        roots = methods.unsqueeze(methods.sqrt(self.diagonal), -1)
        scaled = self.factor / roots
        inner = methods.contiguous(torch.matmul(scaled, _turned(scaled)))
        return roots * linalg.cholesky(_add_to_diagonal(inner))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self.shape_of(sample_shape)
        first = standard_normal(Size((*shape[:-1], self.factor.shape[-1])), self.loc)
        second = standard_normal(shape, self.loc)
        spread = matrix_times(self.factor, first)
        return self.loc + spread + methods.sqrt(self.diagonal) * second

    def log_determinant(self) -> Any:
        """The logarithm of the covariance's determinant."""
        logs = methods.sum(methods.log(self.diagonal), -1)
        return times(2, log_diagonal(self.capacitance)) + logs

    def distance(self, apart: Any) -> Any:
        """The squared distances that the covariance measures."""
        over_diagonal = _turned(self.factor) / methods.unsqueeze(self.diagonal, -2)
        near = matrix_times(over_diagonal, apart)
        whole = methods.sum(methods.pow(apart, 2) / self.diagonal, -1)
        return whole - mahalanobis(self.capacitance, near)

    def log_density(self, value: Any) -> Any:
        distance = self.distance(value - self.loc)
        constant = self.event_shape[0] * math.log(2 * math.pi)
        return times(-0.5, plus(constant, self.log_determinant()) + distance)

    def entropy(self) -> Any:
        constant = self.event_shape[0] * (1.0 + math.log(2 * math.pi))
        entropy = times(0.5, plus(constant, self.log_determinant()))
        return methods.expand(entropy, self.batch_shape) if self.batch_shape else entropy


# --- matrices -------------------------------------------------------------------------------------


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, the nearer to independence the larger
    `concentration`.
    """

    fields: ClassVar[tuple[str, ...]] = ("beta", "dim")

    home = "torch.distributions.lkj_cholesky"
    language_attributes = Distribution.language_attributes | {"dim"}
    constraints: ClassVar[Constraints] = {"concentration": POSITIVE}
    support = CORRELATION_FACTOR

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise value_error(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (each,) = broadcast_all(concentration)
        self.arguments = {"concentration": each}
        marginal = plus(each, 0.5 * (dim - 2))
        offset = torch.arange(dim - 1, dtype=each.dtype)
        offset = torch.cat([methods.new_zeros(offset, (1,)), offset])
        second = methods.unsqueeze(marginal, -1) - times(0.5, offset)
        self.beta = Beta(plus(offset, 0.5), second)
        super().__init__(each.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        y = methods.unsqueeze(self.beta.sample(sample_shape), -1)
        with NoGrad():
            normal = methods.tril(torch.randn(self.shape_of(sample_shape), dtype=y.dtype), -1)
            sphere = normal / methods.norm(normal, dim=-1, keepdim=True)
            methods.fill_(operators.getitem(sphere, (..., 0, slice(None))), 0.0)
            rows = torch.sqrt(y) * sphere
            left = minus(1, torch.sum(methods.pow(rows, 2), dim=-1))
            diagonal = methods.sqrt(torch.clamp(left, min=torch.finfo(rows.dtype).tiny))
            return rows + methods.diag_embed(diagonal)

    def log_density(self, value: Any) -> Any:
        diagonal = methods.diagonal(value, dim1=-1, dim2=-2)
        diagonal = operators.getitem(diagonal, (..., slice(1, None)))
        shift = methods.unsqueeze(times(2, minus(self.concentration, 1)), -1)
        steps = torch.arange(2, self.dim + 1)
        steps = methods.view(steps, (*(1 for _ in self.batch_shape), -1))  # a pairing that is meant
        order = plus(shift, self.dim) - steps
        density = torch.sum(order * methods.log(diagonal), dim=-1)
        less = self.dim - 1
        alpha = plus(self.concentration, 0.5 * less)
        top = methods.mvlgamma(minus(alpha, 0.5), less)
        bottom = times(torch.lgamma(alpha), less)
        return density - (plus(0.5 * less * math.log(math.pi), top) - bottom)


class Wishart(Distribution):
    """Positive definite matrices, sums of `df` products of normal vectors with themselves, whose
    covariance a matrix, its inverse or its Cholesky factor gives.
    """

    fields: ClassVar[tuple[str, ...]] = ("chi2", "factor")

    constraints = formula(
        lambda self: {
            "covariance_matrix": COVARIANCE,
            "precision_matrix": COVARIANCE,
            "scale_tril": FACTOR,
            "df": greater_than(self.event_shape[-1] - 1),
        }
    )
    computed: ClassVar[Formulas] = {
        "covariance_matrix": lambda self: self.wide(
            torch.matmul(self.factor, _turned(self.factor))
        ),
        "precision_matrix": lambda self: self.wide(self._inverse()),
        "scale_tril": lambda self: self.wide(self.factor),
    }
    support = COVARIANCE
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = chosen_matrix(
            assertion_error,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if matrix.ndim < 2:
            raise value_error(
                "scale_tril must be at least two-dimensional, with optional leading batch"
                " dimensions"
            )
        size, batch = matrix.shape[-1], matrix.shape[:-2]
        if isinstance(df, Tensor):
            batch = torch.broadcast_shapes(batch, df.shape)
            freedom = methods.expand(df, batch)
        else:
            freedom = torch.tensor(df, dtype=matrix.dtype)
        _check_freedom(df, freedom, size)
        self.arguments = {name: methods.expand(matrix, (*batch, -1, -1)), "df": freedom}
        super().__init__(batch, matrix.shape[-2:], validate_args)
        if name == "scale_tril":
            self.factor = matrix
        elif name == "covariance_matrix":
            self.factor = linalg.cholesky(matrix)
        else:
            self.factor = precision_factor(matrix)
        steps = methods.expand(torch.arange(size, dtype=self.factor.dtype), (*batch, -1))
        self.chi2 = Chi2(methods.unsqueeze(freedom, -1) - steps)

    def wide(self, matrix: Any) -> Any:
        """A matrix for each of the batch."""
        return methods.expand(matrix, (*self.batch_shape, *self.event_shape))

    def _inverse(self) -> Any:
        unit = torch.eye(self.event_shape[-1], dtype=self.factor.dtype)
        return methods.cholesky_solve(unit, self.factor)

    def _freedom(self, factor: Any = None) -> Any:
        each = self.df if factor is None else factor
        return methods.view(each, (*self.batch_shape, 1, 1))

    mean = formula(lambda self: self._freedom() * self.covariance_matrix)

    @formula
    def mode(self) -> Any:
        factor = minus(minus(self.df, self.event_shape[-1]), 1)
        factor = torch.where(torch.le(factor, 0), math.nan, factor)
        return self._freedom(factor) * self.covariance_matrix

    @formula
    def variance(self) -> Any:
        matrix = self.covariance_matrix
        diagonal = methods.diagonal(matrix, dim1=-2, dim2=-1)
        outer = torch.einsum("...i,...j->...ij", diagonal, diagonal)
        return self._freedom() * (methods.pow(matrix, 2) + outer)

    def _bartlett(self, sample_shape: Any) -> Any:
        """Draws by Bartlett's decomposition."""
        size = self.event_shape[-1]
        roots = methods.sqrt(self.chi2.rsample(sample_shape))
        roots = methods.clamp(roots, min=torch.finfo(roots.dtype).eps)
        noise = methods.diag_embed(roots, dim1=-2, dim2=-1)
        rows, columns = torch.tril_indices(size, size, offset=-1)
        shape = (*self.shape_of(sample_shape)[:-2], size * (size - 1) // 2)
        operators.setitem(noise, (..., rows, columns), torch.randn(shape, dtype=noise.dtype))
        factor = torch.matmul(self.factor, noise)
        return torch.matmul(factor, _turned(factor))

    def _are_definite(self, drawn: Any) -> Any:
        """Which draws are positive definite, all of the batch in one."""
        held = COVARIANCE.truth_of(drawn)
        return held.any(tuple(range(-len(self.batch_shape), 0))) if self.batch_shape else held

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = self._bartlett(sample_shape)
        # PyTorch draws those anew that are definite, until they are; its generator goes on so.
        again = np.asarray(self._are_definite(drawn))
        for _ in range(_TRIES if again.any() else 0):
            new = self._bartlett((int(again.sum()),))
            operators.setitem(drawn, Tensor(again), new)
            again = again.copy()
            again[again] = ~self._are_definite(new)
            if not again.any():
                break
        return drawn

    def log_density(self, value: Any) -> Any:
        freedom, size = self.df, self.event_shape[-1]
        scale = plus(size * math.log(2) / 2, log_diagonal(self.factor))
        solved = methods.cholesky_solve(value, self.factor)
        trace = methods.sum(methods.diagonal(solved, dim1=-2, dim2=-1), dim=-1)
        determinant = linalg.slogdet(value)[1]
        return (
            -freedom * scale
            - methods.mvlgamma(over(freedom, 2), size)
            + over(minus(minus(freedom, size), 1), 2) * determinant
            - over(trace, 2)
        )

    def entropy(self) -> Any:
        freedom, size = self.df, self.event_shape[-1]
        half = over(freedom, 2)
        scale = times(size + 1, plus(size * math.log(2) / 2, log_diagonal(self.factor)))
        steps = methods.expand(over(torch.arange(size, dtype=half.dtype), 2), (*half.shape, -1))
        digammas = methods.sum(torch.digamma(methods.unsqueeze(half, -1) - steps), -1)
        rest = over(minus(minus(freedom, size), 1), 2) * digammas
        mean = over(times(freedom, size), 2)
        return scale + methods.mvlgamma(half, size) - rest + mean


def _check_freedom(df: Any, freedom: Tensor, size: int) -> None:
    """Raise E204 for too few degrees of freedom."""
    if methods.item(methods.any(torch.le(freedom, size - 1))):
        df = df.item() if isinstance(df, Tensor) and df.ndim == 0 else df
        raise value_error(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")


_TRIES = 10
"""How often draws are made anew."""
