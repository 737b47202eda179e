"""The normal distribution's functions, `ndtr ndtri log_ndtr erfcx`, and the entropy `entr`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.kernels import half_precision
from gradcli.autograd.tensor import Tensor
from gradcli.ops.binding.arguments import in_single
from gradcli.ops.binding.catalogue import expose, function
from gradcli.ops.definition.doc import Hazard
from gradcli.ops.definition.dtype_support import COMPLEX, dtype_names
from gradcli.ops.definition.half_precision import by_kernel
from gradcli.ops.definition.op import Op, pointwise
from gradcli.ops.elementwise.unary import exp, log
from gradcli.ops.special.error_functions import by_scipy, erf


@function("ndtr", module="torch.special")
def ndtr(input: Tensor) -> Tensor:
    """The share of a standard normal distribution below the input."""
    return (erf.apply(input * math.sqrt(0.5)) + 1) * 0.5


ndtri = pointwise(
    "special_ndtri",
    by_scipy("ndtri"),
    floating=True,
    unsupported=dtype_names("half", "complex"),
    self=lambda grad, result: grad * math.sqrt(2 * math.pi) * exp(result**2 / 2),
    doc="The point below which a share of a normal distribution lies.",
    example="torch.special.ndtri(tensor([0.2, 0.5, 0.9]))",
)

log_ndtr = pointwise(
    "special_log_ndtr",
    by_scipy("log_ndtr"),
    floating=True,
    unsupported=dtype_names("half", "complex"),
    self=lambda grad, self, result: grad / math.sqrt(2 * math.pi) * exp(-(result + self**2 / 2)),
    doc="The logarithm of `ndtr`, also far below 0.",
)

erfcx: Op = pointwise(
    "special_erfcx",
    by_scipy("erfcx"),
    floating=True,
    unsupported=dtype_names("half", "complex"),
    self=lambda grad, self, result: (self * 2 * result - 2 / math.sqrt(math.pi)) * grad,
    doc="`erfc` times `exp(input ** 2)`.",
)


def _entropy(self: Any) -> Any:
    entropy = np.where(self > 0, -self * np.log(self), np.where(self == 0, 0.0, -np.inf))
    # What is nan is neither above, at nor below 0.
    return np.where(np.isnan(self), self, entropy).astype(self.dtype)[()]


entr = pointwise(
    "special_entr",
    lambda self: in_single(_entropy, self),
    floating=True,
    half=by_kernel(half_precision.entr),
    unsupported=COMPLEX,
    self=lambda grad, self: grad * -(log(self) + 1),
    doc="`-input * log(input)`; 0 at 0, -inf below.",
    hazard=Hazard(
        values=((lambda self: self < 0, "entr of a negative", "entr is -inf below 0"),),
        slopes=((lambda self: self == 0, "the slope of entr at 0 is infinite"),),
    ),
)

for _name, _entry in (("ndtri", ndtri), ("log_ndtr", log_ndtr), ("erfcx", erfcx), ("entr", entr)):
    expose(_entry, _name, module="torch.special", method=False)
