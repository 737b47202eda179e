"""Complex tensors: their parts, conjugates, angles, and how they are built from real ones.

The gradient of a real number with respect to a complex one is PyTorch's: the direction in which the
number grows fastest, so a step against it makes the number smaller.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.arrays.layout.strides import (
    in_row_order,
    laid_out_like,
    laid_out_like_operands,
    strides_of,
    window,
)
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, shape_error, type_error
from gradcli.ops.arithmetic.arithmetic import (
    conj,
    conj_physical,
    negated,
    reflection_of,
    zeros_like,
)
from gradcli.ops.binding.arguments import check_tensors
from gradcli.ops.binding.catalogue import expose, expose_written, function, in_place
from gradcli.ops.creation.copies import clone, contiguous, copy_
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.op import Op, op, pointwise
from gradcli.ops.elementwise.comparison import where
from gradcli.ops.elementwise.unary import abs_op, is_complex, sgn
from gradcli.ops.shape.slicing import select

# --- a complex tensor as pairs of real numbers ----------------------------------------------------


def _pairs(self: Any) -> Any:
    array = module_of(self).asarray(self)
    pairs = array[..., None].view(self.real.dtype)
    if pairs.size:
        return pairs
    return window(pairs, pairs.shape, [*(2 * step for step in strides_of(array)), 1], 0)


view_as_real: Op = op(
    "view_as_real",
    _pairs,
    view=True,
    self=lambda grad: view_as_complex(_in_pairs(grad)),
    numpy="np.stack([np.real({0}), np.imag({0})], -1)",
    raises=BY_KINDS,
)

view_as_complex: Op = op(
    "view_as_complex",
    lambda self: self.view(np.result_type(self.dtype, np.complex64))[..., 0],
    view=True,
    self=view_as_real,
    numpy="({head}[..., 0] + 1j * {head}[..., 1])",
    raises=BY_KINDS,
)


def _in_pairs(value: Any) -> Any:
    """The value with its last dimension's elements beside each other, as pairs must be."""
    return contiguous(value) if type(value) is Tensor else module_of(value).ascontiguousarray(value)


def real_part(value: Any) -> Any:
    """The real part of a complex array or tensor: what rules call."""
    if type(value) is not Tensor:
        return value.real
    # The parts of a conjugate are those of the tensor that it shows.
    pairs = view_as_real.apply(conj(value) if _is_conjugate(value) else value)
    return select.apply(pairs, -1, 0)


def imaginary_part(value: Any) -> Any:
    """The imaginary part of a complex array or tensor: what rules call."""
    if type(value) is not Tensor:
        return value.imag
    if _is_conjugate(value):
        return select.apply(negated(view_as_real.apply(conj(value))), -1, 1)
    return select.apply(view_as_real.apply(value), -1, 1)


def _is_conjugate(tensor: Tensor) -> bool:
    return reflection_of(tensor)[0]


@function("view_as_real")
def view_as_real_function(input: Tensor) -> Tensor:
    """A complex tensor's real and imaginary parts as a new last dimension of size 2; it shares the
    memory. Raises E203 for other tensors, and for a conjugate.

    Example: torch.view_as_real(tensor([1.+2.j, 3.j]))
    """
    _check_complex("view_as_real", input)
    if _is_conjugate(input):
        raise dtype_error(
            "view_as_real(): a conjugate has no memory of its own to show",
            help="copy it first: `x.resolve_conj()`",
        )
    return view_as_real.apply(input)


@function("view_as_complex", autocast="float32")
def view_as_complex_function(input: Tensor) -> Tensor:
    """A complex tensor on the memory of a real one, whose last dimension holds the two parts.
    Raises E203 for integers, E301 where the last dimension's size is not 2 or its elements do not
    lie beside each other.

    Example: torch.view_as_complex(tensor([[2., 1.], [1., 3.]]))
    """
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise dtype_error(f"view_as_complex() needs float32 or float64, not {input.dtype}")
    shape, strides = input.array.shape, strides_of(input.array)
    if not shape or shape[-1] != 2:
        raise shape_error(
            f"view_as_complex(): the last dimension's size is 2, and this shape is {shape}"
        )
    if strides[-1] != 1 or any(step % 2 for step in strides[:-1]):
        raise shape_error(
            "view_as_complex(): the two parts of a number do not lie beside each other",
            help="copy it first: `x.contiguous()`",
        )
    return view_as_complex.apply(input)


def _check_complex(name: str, input: Tensor) -> None:
    if not input.dtype.is_complex:
        raise dtype_error(f"{name}() is for complex tensors, and this is {input.dtype}")


@function("real")
def real(input: Tensor) -> Tensor:
    """The real part, a view of the tensor; a real tensor itself.

    Example: torch.real(tensor([0.5, 1., 2.5]))
    """
    return real_part(input) if input.dtype.is_complex else input


@function("imag")
def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view of the tensor. Raises E203 for a real tensor.

    Example: torch.imag(tensor([1.+2.j, 3.j]))
    """
    _check_complex("imag", input)
    return imaginary_part(input)


def set_real(tensor: Tensor, value: Any) -> None:
    """Write the real part."""
    copy_(real(tensor), value)


def set_imag(tensor: Tensor, value: Any) -> None:
    """Write the imaginary part; raises E203 for a real tensor."""
    copy_(imag(tensor), value)


# --- conjugates -----------------------------------------------------------------------------------


@function("conj", method=True, numpy="conj")
def conj_function(input: Tensor) -> Tensor:
    """The complex conjugate, a view: what is written to it is written to the tensor, conjugated. A
    real tensor itself.

    Example: torch.conj(tensor([0.5, 1., 2.5]))
    """
    check_tensors("conj", input=input)
    return conj(input)


@function("conj_physical", method=True, numpy="conj")
def conj_physical_function(input: Tensor) -> Tensor:
    """The complex conjugate, copied at once; a real tensor itself.

    Example: torch.conj_physical(tensor([0.5, 1., 2.5]))
    """
    return conj_physical.apply(input) if input.dtype.is_complex else input


expose_written(
    "conj_physical", in_place("conj_physical", lambda self: conj_physical.written(self)), True
)


@function("resolve_conj", method=True, numpy="{head}")
def resolve_conj(input: Tensor) -> Tensor:
    """A copy of what `conj()` returned; any other tensor itself.

    Example: torch.resolve_conj(tensor([0.5, 1., 2.5]))
    """
    return clone.apply(input) if _is_conjugate(input) else input


@function("resolve_neg", method=True)
def resolve_neg(input: Tensor) -> Tensor:
    """A copy of a view that shows its memory negated; any other tensor itself.

    Example: torch.resolve_neg(tensor([0.5, 1., 2.5]))
    """
    return clone.apply(input) if reflection_of(input)[1] else input


@function("is_conj", method=True)
def is_conj(input: Tensor) -> bool:
    """Whether the tensor is what `conj()` returned, or a view of that.

    Example: torch.is_conj(tensor([0.5, 1., 2.5]))
    """
    return _is_conjugate(input)


@function("is_neg", method=True)
def is_neg(input: Tensor) -> bool:
    """Whether the tensor is a view that shows its memory negated, as a conjugate's `imag` does.

    Example: torch.is_neg(tensor([0.5, 1., 2.5]))
    """
    return reflection_of(input)[1]


@function("_neg_view", method=True)
def neg_view(input: Tensor) -> Tensor:
    """A view that shows the tensor's elements negated."""
    if input.dtype.category == "bool":
        raise type_error("_neg_view(): a bool has no negative", raises="NotImplementedError")
    return negated(input)


# --- from real tensors ----------------------------------------------------------------------------


def _complex_array(real: Any, imag: Any) -> Any:
    shape = np.broadcast_shapes(real.shape, imag.shape)
    result = module_of(real).empty(shape, np.result_type(real.dtype, np.complex64))
    result.real, result.imag = real, imag
    return laid_out_like(real, result)[()] if real.shape == shape else result[()]


_complex: Op = op(
    "complex",
    _complex_array,
    keeps_layout=True,
    # PyTorch keeps the parts, though the gradient needs their kind alone: a write to them is an
    # error.
    real=lambda grad, real: real_part(grad),
    imag=lambda grad, imag: imaginary_part(grad),
    numpy="({0} + 1j * ({1}))",
    raises=BY_KINDS,
)


def _polar_array(abs: Any, angle: Any) -> Any:
    real, imag = abs * np.cos(angle), abs * np.sin(angle)
    return _complex_array(laid_out_like_operands(real, abs, angle), imag)


def _polar_rule(grad: Any, result: Any, needs: list[bool]) -> tuple[Any, Any]:
    grad = conj(grad)
    return (
        real_part(grad * sgn(result)) if needs[0] else None,
        real_part(grad * (result * 1j)) if needs[1] else None,
    )


_polar: Op = op(
    "polar",
    _polar_array,
    inputs=("abs", "angle"),
    keeps_layout=True,
    joint=_polar_rule,
    numpy="(({0}) * np.exp(1j * ({1})))",
    raises=BY_KINDS,
)


def _check_parts(name: str, first: Tensor, second: Tensor) -> None:
    """Raise E203 unless two tensors can be the parts of a complex one."""
    for tensor in (first, second):
        if tensor.dtype not in (dtypes.float32, dtypes.float64):
            raise dtype_error(
                f"{name}() needs two tensors of float32 or float64, not {tensor.dtype}",
                text="Expected both inputs to be Half, Float or Double tensors but got"
                f" {first.dtype.scalar_type} and {second.dtype.scalar_type}",
                raises="NotImplementedError" if tensor.dtype is dtypes.float16 else "RuntimeError",
            )
    if first.dtype is not second.dtype:
        raise dtype_error(
            f"{name}(): the dtypes {first.dtype} and {second.dtype} differ",
            text=f"Expected object of scalar type {first.dtype.scalar_type} but got scalar type"
            f" {second.dtype.scalar_type} for second argument",
        )


@function("complex")
def complex_of_parts(real: Tensor, imag: Tensor) -> Tensor:
    """The complex tensor of two real ones, broadcast. Raises E203 where their dtypes differ or are
    neither float32 nor float64.

    Example: torch.complex(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    _check_parts("complex", real, imag)
    return _complex.apply(real, imag)


@function("polar", autocast="float32")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """The complex tensor of two real ones, its magnitudes and angles. Raises E203 where their
    dtypes differ or are neither float32 nor float64.

    Example: torch.polar(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    _check_parts("polar", abs, angle)
    return _polar.apply(abs, angle)


# --- angles ---------------------------------------------------------------------------------------


def _angle_array(self: Any) -> Any:
    if self.dtype.kind == "c":
        return in_row_order(np.angle(self))
    # The angle of a nan is nan, and that of both zeros is 0.
    pi = self.dtype.type(np.pi)
    return np.where(np.isnan(self), self, np.where(self < 0, pi, 0)).astype(self.dtype)[()]


def _angle_rule(grad: Any, self: Any) -> Any:
    if not is_complex(self):
        return zeros_like(grad)
    # At 0, where there is no angle, the gradient is 0.
    return where(self == 0, 0.0, grad * self / abs_op(self) ** 2 * 1j)


angle = pointwise(
    "angle",
    _angle_array,
    floating=True,
    self=_angle_rule,
    doc="The angle of complex numbers; pi for negative real ones.",
    example="torch.angle(tensor([0.5, 1., 2.5]))",
)
expose(angle)
