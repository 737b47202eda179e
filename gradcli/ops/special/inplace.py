"""In-place forms that no single family has: those that are functions of `torch` too, as
`torch.exp_(x)`, and `fill_diagonal_`, `float_power_`, `polygamma_`.
"""

from __future__ import annotations

from typing import Any

from gradcli.autograd.inplace.writes import check_inplace, write
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import GradcliError
from gradcli.ops.binding.catalogue import check_write, in_place, method, methods, modules
from gradcli.ops.codegen.runtime import type_name
from gradcli.ops.creation.copies import fill_
from gradcli.ops.creation.fill import plain_number
from gradcli.ops.definition.op import pointwise
from gradcli.ops.elementwise import clamp, rounding  # noqa: F401
from gradcli.ops.elementwise.binary import float_power
from gradcli.ops.indexing import assignment  # noqa: F401
from gradcli.ops.shape.slicing import strided
from gradcli.ops.special.error_functions import polygamma

# --- functions ----------------------------------------------------------------------------------

_FUNCTIONS = (
    "abs_", "acos_", "acosh_", "arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan_",
    "arctanh_", "as_strided_", "asin_", "asinh_", "atan_", "atanh_", "ceil_", "clamp_",
    "clamp_max_", "clamp_min_", "clip_", "cos_", "cosh_", "deg2rad_", "detach_", "erf_",
    "erfc_", "exp2_", "exp_", "expm1_", "fix_", "floor_", "frac_", "index_put_", "log10_",
    "log1p_", "log2_", "log_", "logit_", "nan_to_num_", "neg_", "negative_", "rad2deg_",
    "reciprocal_", "round_", "rsqrt_", "sigmoid_", "sin_", "sinc_", "sinh_", "sqrt_", "square_",
    "tan_", "tanh_", "trunc_", "xlogy_",
)  # fmt: skip

for _name in _FUNCTIONS:
    modules["torch"][_name] = methods[_name]

# --- methods ------------------------------------------------------------------------------------


@method("fill_diagonal_")
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write a number along the main diagonal; `wrap` begins it anew below, in a tall matrix.

    Raises E301 for less than two dimensions, or more of several sizes.

    Example: tensor([[2., 1.], [1., 3.]]).fill_diagonal_(7.)
    """
    fill_value = plain_number("fill_diagonal_(): fill_value", fill_value)
    if type(wrap) is not bool:
        raise GradcliError("E202", f"fill_diagonal_(): wrap must be a bool, not {type_name(wrap)}")
    shape = self.array.shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise GradcliError(
            "E301", f"fill_diagonal_(): a tensor of shape {tuple(shape)} has no main diagonal"
        )
    storage_of(self)
    steps = [step // self.array.itemsize for step in self.array.strides]
    stride = sum(steps)
    fill_(strided(self, (min(shape),), (stride,), 0), fill_value)
    columns = shape[1]
    if wrap and len(shape) == 2 and shape[0] > columns + 1:
        below = steps[0] * (columns + 1)
        count = (self.array.size + columns) // (columns + 1) - columns
        fill_(strided(self, (count,), (stride,), below), fill_value)
    return self


@method("float_power_")
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """`float_power`, written to a tensor of its dtype; raises E203 for one of another.

    Example: torch.float_power(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    check_write(check_inplace, float_power, self, exponent)
    result = float_power(self, exponent)
    if result.dtype is not self.dtype:
        raise GradcliError(
            "E203", f"float_power_(): the result is {result.dtype}, and the tensor {self.dtype}"
        )
    write(self, result)
    return self


polygamma_written = pointwise(
    "polygamma_",
    "PolygammaBackward1",
    polygamma.forward,
    floating=True,
    refused=polygamma.refused,
    self=polygamma.rules["self"],
    example="torch.polygamma(1, tensor([0.5, 1., 2.]))",
)
methods["polygamma_"] = in_place("polygamma", polygamma_written.apply)
