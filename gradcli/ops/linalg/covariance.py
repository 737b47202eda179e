"""Covariance and correlation: `cov corrcoef`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import div, mul, sub
from gradcli.ops.arithmetic.conjugate import conj
from gradcli.ops.binding.arguments import check_tensors, checked_values
from gradcli.ops.binding.catalogue import function
from gradcli.ops.elementwise.clamp import clamp
from gradcli.ops.elementwise.complex import complex_of_parts, imaginary_part, real_part
from gradcli.ops.elementwise.unary import sqrt
from gradcli.ops.linalg.products.matrix_products import mm
from gradcli.ops.reduction.sum import sum_all, sum_dims
from gradcli.ops.shape.slicing import diagonal
from gradcli.ops.shape.views import squeeze, t, unsqueeze, view


def _checked_weights(name: str, weights: Any, count: int, kinds: tuple[str, ...]) -> None:
    check_tensors("cov", **{name: weights})
    if weights.array.shape != (count,):
        raise shape_error(f"cov(): {name} must be a vector of {count} elements")
    if weights.dtype.category not in kinds:
        raise dtype_error(f"cov(): {name} cannot be {weights.dtype}")
    checked_values(_check_signs, name, weights.array)


def _check_signs(name: str, weights: Any) -> None:
    """Raise E204 for a negative weight."""
    if (weights < 0).any():
        raise runtime_error(f"cov(): {name} cannot be negative")


@function("cov", method=True)
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariance of variables, which are rows, over observations, which are columns.

    The divisor is the count of observations less `correction`; `fweights` says how often each
    observation was made, `aweights` how much it counts.

    Example: torch.cov(tensor([0.5, 1., 2.]))
    """
    if input.array.ndim > 2:
        raise shape_error(
            f"cov(): the input has {input.array.ndim} dimensions, and two are the most"
        )
    rows = input if input.array.ndim == 2 else view.apply(input, (1, input.array.size))
    count = rows.array.shape[1]
    weights = fweights
    if fweights is not None:
        _checked_weights("fweights", fweights, count, ("int",))
    if aweights is not None:
        _checked_weights("aweights", aweights, count, ("float",))
        weights = aweights if fweights is None else mul.apply(fweights, aweights)
    total = Tensor(np.int64(count)) if weights is None else sum_all.apply(weights)
    weighted = rows if weights is None else mul.apply(rows, weights)
    mean = div.apply(sum_dims.apply(weighted, (1,), False), total)
    divisor = total - correction
    if aweights is not None and correction:
        assert weights is not None
        divisor = total - correction * sum_all.apply(mul.apply(weights, aweights)) / total
    if divisor.array <= 0:
        divisor = Tensor(np.zeros_like(divisor.array)[()])
    centred = sub.apply(rows, unsqueeze.apply(mean, 1))
    scaled = centred if weights is None else mul.apply(centred, weights)
    return squeeze(div.apply(mm.apply(centred, conj(t.apply(scaled))), divisor))


@function("corrcoef", method=True)
def corrcoef(input: Tensor) -> Tensor:
    """Pearson's correlation of variables, which are rows, over observations, which are columns.

    Example: torch.corrcoef(tensor([0.5, 1., 2.]))
    """
    covariance = cov(input)
    if not covariance.array.ndim:
        return div.apply(covariance, covariance)
    deviation = sqrt.apply(diagonal.apply(covariance, 0, 0, 1))
    size = deviation.array.shape[0]
    by_row = div.apply(covariance, view.apply(deviation, (size, 1)))
    correlation = div.apply(by_row, view.apply(deviation, (1, size)))
    if not correlation.dtype.is_complex:
        return clamp(correlation, -1, 1)
    parts = clamp(real_part(correlation), -1, 1), clamp(imaginary_part(correlation), -1, 1)
    return complex_of_parts(*parts)
