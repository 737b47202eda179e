"""Rounding, and replacement of nan and infinity: `floor ceil round trunc frac nan_to_num positive`;
mantissas and exponents, `ldexp frexp nextafter`.

What is constant between its steps has gradient 0, also at the steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.dtypes import of_array
from gradcli.arrays.scalars import finfo
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, runtime_error
from gradcli.ops.arithmetic.arithmetic import conj, zeros_like
from gradcli.ops.binding.arguments import (
    check_floating,
    check_real,
    expose_of_tensors,
    in_single,
    plain_integer,
)
from gradcli.ops.binding.catalogue import expose, function
from gradcli.ops.binding.results import named
from gradcli.ops.definition.doc import BY_KINDS, STEPS
from gradcli.ops.definition.dtype_support import NOT_FLOATING, check_dtype, dtype_names
from gradcli.ops.definition.op import Op, op, pointwise, rounded_once
from gradcli.ops.elementwise.comparison import isfinite, where
from gradcli.ops.elementwise.power import power


def _steps(name: str, ufunc: Any, doc: str = "") -> Op:
    def forward(self: Any) -> Any:
        check_real(name, self)
        return self.copy() if self.dtype.kind in "iu" else ufunc(self)

    return pointwise(
        name,
        forward,
        ufunc=ufunc,
        self=lambda grad: zeros_like(grad),
        doc=doc,
        example=f"torch.{name}(tensor([-1.5, 0., 2.5]))",
        conventions="The gradient is 0 everywhere: a value constant between its steps.",
        numpy=ufunc.__name__,
    )


floor = _steps("floor", np.floor, "The largest integer that is not above the input.")
ceil = _steps("ceil", np.ceil, "The smallest integer that is not below the input.")
trunc = _steps("trunc", np.trunc, "The input without its fraction.")


def _frac_array(self: Any) -> Any:
    if self.dtype.kind in "biuc":
        raise dtype_error(
            f"frac() is defined for floating tensors, not {of_array(self)}",
            raises="NotImplementedError",
        )
    return self - np.trunc(self)


frac = pointwise(
    "frac",
    _frac_array,
    self=lambda grad: grad,
    doc="The input's fraction, with its sign.",
    example="torch.frac(tensor([-1.5, 0., 2.5]))",
)

# --- round --------------------------------------------------------------------------------------

# A half goes to the even neighbour.
round_to_integer = _steps("round", np.rint)


def _round_decimals(self: Any, decimals: int) -> Any:
    # The power of ten is exact where it is an integer, so its inverse is not multiplied with.
    scale = 10.0 ** abs(decimals)
    if decimals >= 0:
        return np.rint(self * scale) / scale
    return np.rint(self / scale) * scale


round_to_decimals = pointwise(
    "round",
    _round_decimals,
    node="RoundBackward1",
    half=rounded_once,
    self=lambda grad: zeros_like(grad),
)


@function("round", method=True, inplace_function=True)
def round_function(input: Tensor, *, decimals: int | None = None) -> Tensor:
    """The nearest integers, a half to the even one; or to a number of decimals, which may be
    negative. Raises E203 for decimals of integers.

    Conventions: A half goes to the even neighbour. The gradient is 0 everywhere.

    Example: torch.round(tensor([-1.5, 0., 2.5]))
    """
    if decimals is None:
        return round_to_integer.apply(input)
    count = plain_integer("round", "decimals", decimals)
    check_floating("round", input)
    return round_to_decimals.apply(input, count)


@function("round", module="torch.special")
def round_special(input: Tensor, *, decimals: int = 0) -> Tensor:
    """As `round`, always with a number of decimals.

    Conventions: A half goes to the even neighbour. The gradient is 0 everywhere.

    Example: torch.special.round(tensor([-1.5, 0., 2.5]))
    """
    return round_function(input, decimals=decimals)


# --- nan and inf --------------------------------------------------------------------------------


def _nan_to_num_array(
    self: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Any:
    if complex in (type(nan), type(posinf), type(neginf)):
        raise runtime_error("nan_to_num(): a complex number cannot take the place of a real one")
    if self.dtype.kind == "c":
        pairs = module_of(self).asarray(self)[..., None].view(self.real.dtype)
        return _nan_to_num_array(pairs, nan, posinf, neginf).view(self.dtype)[..., 0][()]
    if self.dtype.kind != "V":
        return np.nan_to_num(self, nan=nan or 0.0, posinf=posinf, neginf=neginf)
    # To NumPy bfloat16 is no floating dtype; its largest number is not that of float32.
    largest = finfo(of_array(self)).max
    wide = np.nan_to_num(
        self.astype(np.float32),
        nan=nan or 0.0,
        posinf=largest if posinf is None else posinf,
        neginf=-largest if neginf is None else neginf,
    )
    return wide.astype(self.dtype)


nan_to_num = pointwise(
    "nan_to_num",
    _nan_to_num_array,
    # What was replaced is constant.
    self=lambda grad, self: grad * isfinite(self),
    doc="The input with nan and infinities replaced by numbers.",
    example="torch.nan_to_num(tensor([1., inf, nan]))",
)


@function("positive", method=True)
def positive(input: Tensor) -> Tensor:
    """The tensor itself. Raises E203 for bools."""
    if input.dtype.category == "bool":
        raise dtype_error("positive() is not defined for bool tensors")
    return input


expose(floor, inplace_function=True)
expose(ceil, inplace_function=True)
expose(trunc, "trunc", "fix", inplace_function=True)
expose(frac, inplace_function=True)
expose(nan_to_num, inplace_function=True)


# --- mantissas and exponents ----------------------------------------------------------------------


def _power_of_two(value: Any) -> Any:
    # As in PyTorch, integers give an integer: 0 where they are negative.
    return power(2, value) if type(value) is Tensor else in_single(np.exp2, value)


_ldexp: Op = pointwise(
    "ldexp",
    lambda self, other: self * np.power(other.dtype.type(2), other),
    floating=True,
    self=lambda grad, other: grad * conj(_power_of_two(other)),
    other=lambda grad, result: grad * conj(result) * math.log(2),
    numpy="(({0}) * 2.0 ** ({1}))",
    loop=STEPS,
)


@function("ldexp", method=True, inplace_function=True)
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """`input * 2 ** other`."""
    # PyTorch raises a 2 of the input's dtype to the power first.
    if input.dtype.category == "float":
        check_dtype("ldexp", other.dtype, dtype_names("bool"))
    if input.dtype.is_complex:
        check_dtype("ldexp", other.dtype, dtype_names("float16"))
    return _ldexp.apply(input, other)


def _mantissa_and_exponent(self: Any) -> tuple[Any, Any]:
    mantissa, exponent = np.frexp(self.astype(np.float32) if self.dtype.itemsize == 2 else self)
    # What is not finite has no exponent.
    exponent = np.where(np.isfinite(self), exponent, 0).astype(np.int32)
    return mantissa.astype(self.dtype)[()], exponent[()]


_frexp = op(
    "frexp",
    _mantissa_and_exponent,
    outputs=("mantissa", "exponent"),
    differentiable=(0,),
    keeps_layout=True,
    leading=True,
    self=lambda grads, exponent: grads[0] / _power_of_two(exponent),
    raises=BY_KINDS,
)


@function("frexp", method=True)
def frexp(input: Tensor) -> Any:
    """Mantissas from 0.5 up to 1, and exponents, int32: `input = mantissa * 2 ** exponent`. Raises
    E203 for integers.

    Example: torch.frexp(tensor([0.5, 1., 2.5]))
    """
    check_floating("frexp", input, "RuntimeError")
    return named("frexp", "mantissa exponent", _frexp.apply(input))


nextafter: Op = pointwise(
    "nextafter",
    lambda self, other: np.nextafter(self, other),
    # The step is constant; where there is none the result is `other`, which is read as constant.
    self=lambda grad, self, other: where(self != other, grad, 0.0),
    other=lambda grad: zeros_like(grad),
    unsupported=NOT_FLOATING,
    doc="The next floating number after the input towards `other`.",
)
expose_of_tensors(nextafter, inplace=True)
