"""`renorm`: slices that are longer than allowed, made shorter."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.arithmetic.arithmetic import reciprocal
from gradcli.ops.arithmetic.conjugate import conj
from gradcli.ops.binding.arguments import check_not_integral, check_tensors
from gradcli.ops.binding.catalogue import function, refuse_out
from gradcli.ops.binding.dims import normal_dim
from gradcli.ops.definition.op import Op, op
from gradcli.ops.elementwise.comparison import where
from gradcli.ops.elementwise.complex import real_part
from gradcli.ops.elementwise.unary import is_complex
from gradcli.ops.linalg.norms import norm_gradient, vector_norm
from gradcli.ops.reduction.sum import sum_dims

_LEAST = 1e-7
"""Added to a norm before it divides."""


def _others(ndim: int, dim: int) -> tuple[int, ...]:
    return tuple(d for d in range(ndim) if d != dim)


def _renorm_array(self: Any, p: float, dim: int, maxnorm: float) -> Any:
    norm = vector_norm(self, p, _others(self.ndim, dim), True)
    scale = np.where(norm > maxnorm, maxnorm / (norm + _LEAST), 1)
    return (self * scale).astype(self.dtype)


def _renorm_rule(grad: Any, self: Any, p: float, dim: int, maxnorm: float) -> Any:
    dims = _others(self.ndim, dim)
    norm = vector_norm(self, p, dims, True)
    product = conj(self) * grad
    along = sum_dims(real_part(product) if is_complex(self) else product, dims, True)
    inverse = reciprocal(norm + _LEAST)
    slope = norm_gradient(along, self, norm, p, dims, True)
    shortened = inverse * maxnorm * (grad if slope is None else grad - inverse * slope)
    return where(norm > maxnorm, shortened, grad)


renorm: Op = op("renorm", "RenormBackward0", _renorm_array, self=_renorm_rule)


@function("renorm", method=True, inplace=True)
def renorm_(input: Tensor, p: Any, dim: int, maxnorm: Any, *, out: Any = None) -> Tensor:
    """The tensor with each slice along `dim` whose p-norm is above `maxnorm` scaled down to it.
    Raises E204 unless p is positive and maxnorm not negative, E301 for fewer than two dimensions.

    Example: torch.renorm(tensor([[2., 1.], [1., 3.]]), 2, 0, 1.)
    """
    refuse_out("renorm", out)
    check_tensors("renorm", input=input)
    check_not_integral("renorm", input, "RuntimeError")
    if p <= 0 or maxnorm < 0:
        raise GradcliError(
            "E204",
            f"renorm(): p is positive and maxnorm not negative, not {p} and {maxnorm}",
            raises="RuntimeError",
        )
    if input.array.ndim < 2:
        raise GradcliError("E301", "renorm() needs at least two dimensions")
    at = normal_dim("renorm", dim, input.array.ndim)
    return renorm.apply(input, float(p), at, float(maxnorm))
