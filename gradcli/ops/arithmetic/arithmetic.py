"""Arithmetic: `+ - * / // %`, their functions, and the operators of programs, binary, unary and in
place; complex conjugates and negated views, which its derivative rules need.

PyTorch records a Python number as an operand in two forms. In a program, `x * 2`, the number is
wrapped as a tensor: the node has a second, empty edge. In a derivative formula the number stays a
number: the node's name ends in 1 and it has one edge. The operators of `Tensor`, which rules use,
are the second kind; those of the language the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of, new_zeros
from gradcli.arrays.dtypes import DTYPES, narrowed, widened
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.fusion.lazy import forced, write_barrier
from gradcli.arrays.fusion.lazy_conjugation import PLAIN, LazyConjugation, Reflection
from gradcli.arrays.kernels.sums import is_fused, multiply_add
from gradcli.arrays.scalars import checked_cast, plain_number
from gradcli.arrays.storage import Storage
from gradcli.autograd.batched import BatchedArray
from gradcli.autograd.engine import accumulate
from gradcli.autograd.inplace.writes import base_array, check_memory, is_recorded
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import GradcliError, dtype_error, runtime_error
from gradcli.ops.binding.catalogue import (
    expose,
    function,
    in_place,
    inplace_operators,
    operators,
    unary_operators,
)
from gradcli.ops.codegen.promotion import (
    EVERYDAY,
    NATIVE_SCALARS,
    NUMBERS,
    check_alpha,
    check_subtraction,
    check_width,
    of_halves,
)
from gradcli.ops.codegen.runtime import wrong_operand
from gradcli.ops.definition.doc import BY_KINDS, BY_VALUES, Hazard, Test
from gradcli.ops.definition.dtype_support import dtype_names
from gradcli.ops.definition.op import Function, Op, is_half, op, pointwise, rounded_once
from gradcli.state import active

COMPLEX = (np.dtype(np.complex64), np.dtype(np.complex128))
"""NumPy's complex dtypes."""

_REAL = frozenset({float, int, np.float32, np.float64})


def conj(value: Any) -> Any:
    """The complex conjugate: a real value is its own, and makes no node."""
    if type(value) in _REAL or (type(value) in HOST_ARRAYS and value.dtype.kind != "c"):
        return value
    array = value.array if type(value) is Tensor else value
    if getattr(array, "dtype", None) in COMPLEX:
        return _conjugate(value) if type(value) is Tensor else np.conj(value)
    return value.conjugate() if type(value) is complex else value


def _conjugate(tensor: Tensor) -> Tensor:
    if type(tensor.array) is BatchedArray:
        return conj_physical.apply(tensor)
    conjugated, negated = reflection_of(tensor)
    return _reflected(conjugate, tensor, (not conjugated, negated))


def negated(tensor: Tensor) -> Tensor:
    """A view that shows a tensor's elements negated."""
    conjugated, negated = reflection_of(tensor)
    return _reflected(neg_view, tensor, (conjugated, not negated))


def _reflected(view: Op, tensor: Tensor, reflection: Reflection) -> Tensor:
    """What an op returns, with the memory that follows the tensor's."""
    result: Tensor = view.apply(tensor)
    result.array = lazy_conjugation_of(tensor).shown(tensor.array, reflection)
    return result


def lazy_conjugation_of(tensor: Tensor) -> LazyConjugation:
    """All storages that are views of a tensor's memory, conjugated or negated."""
    storage = storage_of(tensor)
    if storage.lazy_conjugation is None:
        storage.lazy_conjugation = LazyConjugation(base_array(tensor))
    return storage.lazy_conjugation


def reflection_of(tensor: Tensor) -> Reflection:
    """How a tensor shows the memory that it shares with others: conjugated, or negated."""
    storage = tensor.storage
    if storage is None or storage.lazy_conjugation is None:
        return PLAIN
    return storage.lazy_conjugation.reflection(tensor.array)


# The views have memory of their own, kept equal to the tensor's:
# `arrays/fusion/lazy_conjugation.py`.

conjugate: Op = op(
    "_conj", lambda self: np.conj(self), view=True, self=lambda grad: conj(grad), raises=BY_KINDS
)

neg_view: Op = op(
    "_neg_view", lambda self: -self, view=True, self=lambda grad: -grad, raises=BY_KINDS
)

conj_physical: Op = pointwise("conj_physical", lambda self: np.conj(self), linear=True, written={})


# --- half precision -------------------------------------------------------------------------------


_GROUP = 32
"""Elements that PyTorch adds at a time."""


def is_unrecorded_half(tensor: Tensor) -> bool:
    """Whether a rule reads a tensor of half precision and nothing is recorded: where PyTorch has a
    kernel for the rule, which rounds once.
    """
    return is_half(tensor.array) and not active.state.grad_enabled


def rounded_rule(rule: Function, *tensors: Tensor) -> Tensor:
    """A rule of tensors of half precision computed in float32 and rounded once."""
    dtype = tensors[0].array.dtype
    return Tensor(narrowed(rule(*[widened(tensor.array) for tensor in tensors]), dtype))


def check_factor(argument: str, factor: Any, *operands: Any) -> None:
    """Raise E203 for a factor that operands of their dtype are not multiplied with: a bool beside
    what is none, a float beside integers.
    """
    kind = np.result_type(*operands).kind
    if type(factor) is bool and kind != "b":
        raise dtype_error(
            f"{argument} is a bool, which only bools are multiplied with",
            text=f"Boolean {argument} only supported for Boolean results.",
        )
    if type(factor) is float and kind in "iub":
        raise dtype_error(
            f"{argument} must be an integer for tensors of integers",
            text=f"For integral input tensors, argument {argument} must not be a floating point"
            " number.",
        )


def factor_of_dtype(factor: Any, dtype: Any) -> Any:
    """A number that elements of an array's dtype are multiplied with: beside integers it loses its
    fraction. Raises E204 where it has an imaginary part that the dtype has none for.
    """
    if isinstance(factor, complex) and dtype.kind != "c":
        if factor.imag == 0:
            return factor_of_dtype(factor.real, dtype)
        name = DTYPES[dtype.name].c_name
        raise runtime_error(
            f"{factor} is complex, and the tensors are not",
            text=f"value cannot be converted to type {name} without overflow",
        )
    return checked_cast(factor, DTYPES[dtype.name]) if dtype.kind in "iu" else factor


def with_multiple(self: Any, other: Any, alpha: Any) -> Any:
    """`self + alpha * other`. Half precision takes alpha in its dtype, and is rounded once in whole
    groups of elements; the product of one that is in no whole group is rounded too.
    """
    check_alpha(self, other, alpha)
    if type(self) in NUMBERS:
        self = other.dtype.type(self)
    elif type(other) in NUMBERS:
        other = self.dtype.type(other)
    if other.dtype.kind == "b":
        alpha = bool(alpha)
    if not (is_half(self) and is_half(other)):
        return multiply_add(self, other, alpha)
    number = other.dtype.type(alpha).astype(np.float32)
    product = module_of(other).asarray(widened(other) * number)
    flat = product.ravel(order="K")  # a view: the product has no gaps
    alone = flat[flat.size // _GROUP * _GROUP :]
    alone[...] = alone.astype(self.dtype).astype(np.float32)
    return narrowed(widened(self) + product, self.dtype)[()]


# --- arithmetic -----------------------------------------------------------------------------------


_BOOL = np.dtype(np.bool_)
_BFLOAT16 = "E"
"""The character of bfloat16's NumPy dtype, which has no promotion with Python's numbers."""


def zeros_like(value: Any) -> Any:
    """Zeros of a value's shape and dtype: the gradient of what is constant, also where the value is
    inf or nan.
    """
    if type(value) is Tensor:
        return _own(Tensor(zeros_like(value.array)))
    return module_of(value).zeros(value.shape, value.dtype)[()]


def zeros(value: Any, sizes: tuple[int, ...]) -> Any:
    """Zeros of a shape in a value's dtype, an array or a tensor as the value is one."""
    if type(value) is Tensor:
        return _own(Tensor(zeros(value.array, sizes)))
    return new_zeros(value, sizes)


def _own(new: Tensor) -> Tensor:
    """A new tensor that a rule may write to: inside `vmap` each example has it for itself."""
    batch = active.state.batch
    return new if batch is None else batch.own(new)


def ones(value: Any, sizes: tuple[int, ...]) -> Any:
    """Ones of a shape in a value's dtype, an array or a tensor as the value is one."""
    if type(value) is Tensor:
        return Tensor(ones(value.array, sizes))
    return module_of(value).ones(sizes, value.dtype)


# --- where they are not finite ------------------------------------------------------------------

_DIFFERENCE = Hazard(infinities=("inf - inf", "the difference of two infinities has no value"))
_PRODUCT = Hazard(infinities=("0*inf", "0 times an infinity has no value"), steep=True)

_BY_ZERO: tuple[tuple[Test, str, str], ...] = (
    (lambda self, other: self == other == 0, "0/0", "0 / 0 has no value"),
    (lambda self, other: other == 0, "division by zero", "a number divided by 0"),
)
_QUOTIENT = Hazard(
    values=_BY_ZERO,
    slopes=((lambda other: other == 0, "the slope of a division by 0 is infinite"),),
    infinities=("inf/inf", "the ratio of two infinities has no value"),
    steep=True,
    undefined=True,
)

# --- sums and differences -----------------------------------------------------------------------


def _scaled(grad: Any, alpha: Any) -> Any:
    """The gradient times a number; no node where the number is 1."""
    return grad if alpha == 1 else grad * conj(alpha)


def _total(self: Any, other: Any, alpha: Any = 1) -> Any:
    if type(alpha) is not int:
        check_factor("alpha", alpha, self, other)
    if alpha != 1:
        return with_multiple(self, other, alpha)
    total = self + other
    if type(total) in NATIVE_SCALARS or total.dtype.kind != "c":
        return total
    return self + other * 1  # as PyTorch's alpha, by which a nan in one part reaches both


def _gradients_added(self: Any, other: Any) -> Any:
    """The sum of two gradients of one dtype."""
    if type(self) in NATIVE_SCALARS:
        return self + other
    dtype = self.dtype
    if dtype.itemsize == 2 and self.size >= dtypes.MANY:
        return of_halves(np.add, _total, self, other)
    return self + other if dtype.kind != "c" else _total(self, other)


def _difference(self: Any, other: Any, alpha: Any = 1) -> Any:
    # After promotion both have one dtype: both are bool.
    if getattr(self, "dtype", None) is _BOOL or getattr(other, "dtype", None) is _BOOL:
        check_subtraction(self, other)
    if type(alpha) is not int:
        check_factor("alpha", alpha, self, other)
    if alpha == 1:
        difference = self - other
        if type(difference) in NATIVE_SCALARS or difference.dtype.kind != "c":
            return difference
        return self - other * 1
    if is_half(self) and is_half(other):
        return with_multiple(self, other, -alpha)
    check_alpha(self, other, alpha)
    if is_fused(self, other):
        return multiply_add(self, other, -alpha)
    return self - other * alpha


add = pointwise(
    "add",
    _total,
    ufunc=np.add,
    self=lambda grad: grad,
    other=lambda grad, alpha: _scaled(grad, alpha),
    doc="The sum: `input + alpha * other`.",
    hazard=_DIFFERENCE,
)

sub = pointwise(
    "sub",
    lambda self, other, alpha=1: _difference(self, other, alpha),
    ufunc=np.subtract,
    self=lambda grad: grad,
    other=lambda grad, alpha: _scaled(-grad, alpha),
    doc="The difference: `input - alpha * other`.",
    hazard=_DIFFERENCE,
)

rsub_number = pointwise(
    "rsub",
    lambda self, other, alpha=1: _difference(other, self, alpha),
    ufunc=lambda self, other: np.subtract(other, self),
    node="RsubBackward1",
    self=lambda grad, alpha: _scaled(-grad, alpha),
    hazard=_DIFFERENCE,
)
rsub_tensor = pointwise(
    "rsub",
    lambda self, other, alpha=1: _difference(other, self, alpha),
    ufunc=lambda self, other: np.subtract(other, self),
    self=lambda grad, alpha: _scaled(-grad, alpha),
    other=lambda grad: grad,
    hazard=_DIFFERENCE,
)


@function("rsub")
def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """`other - alpha * input`. Raises E203 for bools."""
    check_subtraction(input.array, other.array if type(other) is Tensor else other)
    if type(other) is Tensor:
        return rsub_tensor.apply(input, other, alpha)
    if type(other) is complex and input.array.dtype == np.float64:
        other = np.complex128(other)  # NumPy's float64 is a float: the difference would be Python's
    return rsub_number.apply(*with_number(input, other), alpha)


def _negative(self: Any) -> Any:
    if self.dtype is _BOOL:
        raise dtype_error(
            "`-` is not defined for bool tensors",
            text="Negation, the `-` operator, on a bool tensor is not supported. If you are trying"
            " to invert a mask, use the `~` or `logical_not()` operator instead.",
            help="use `~`",
        )
    return -self


neg = pointwise(
    "neg",
    _negative,
    ufunc=np.negative,
    self=lambda grad: -grad,
    doc="The input with its sign turned.",
    example="torch.neg(tensor([-1.5, 0., 2.5]))",
)

# --- products and quotients ---------------------------------------------------------------------

mul = pointwise(
    "mul",
    lambda self, other: self * other,
    exact_numbers=True,
    ufunc=np.multiply,
    self=lambda grad, other: grad * conj(other),
    other=lambda grad, self: grad * conj(self),
    doc="The product, element by element.",
    hazard=_PRODUCT,
)

div = pointwise(
    "div",
    lambda self, other: self / other,
    floating=True,
    exact_numbers=True,
    ufunc=np.divide,
    self=lambda grad, other: grad / conj(other),
    other=lambda grad, self, other: -grad * conj((self / other) / other),
    doc="The quotient, element by element; integers become floating.",
    hazard=_QUOTIENT,
)

reciprocal = pointwise(
    "reciprocal",
    lambda self: 1 / self,
    floating=True,
    ufunc=np.reciprocal,
    self=lambda grad, result: -grad * conj(result * result),
    doc="1 over the input.",
    hazard=Hazard(
        values=((lambda self: self == 0, "division by zero", "a number divided by 0"),),
        slopes=((lambda self: self == 0, "the slope of a division by 0 is infinite"),),
    ),
)


def _checked_division(kind: str, self: Any, other: Any) -> tuple[Any, Any]:
    """The operands of a division. By an integer of zero it is an error, as PyTorch makes it; floats
    give inf or nan.
    """
    if kind not in "iub":
        return self, other
    self, other = forced(self), forced(other)  # the check would be no part of a plan
    if not np.all(other) and np.size(self):
        raise GradcliError(
            "E206", "integer division by zero", text="ZeroDivisionError", raises="RuntimeError"
        )
    return self, other


_BOOL_OR_COMPLEX = dtype_names("bool", "complex")


def _rounded_quotient(self: Any, other: Any, rounding_mode: str) -> Any:
    kind = np.result_type(self, other).kind
    self, other = _checked_division(kind, self, other)
    if kind in "iub":
        quotient = np.floor_divide(self, other)
        if rounding_mode == "trunc":
            # Rounded down where it is negative and inexact: one more gives the quotient rounded to
            # zero.
            quotient = quotient + ((quotient < 0) & (np.remainder(self, other) != 0))
        return quotient.astype(np.result_type(self, other))
    if rounding_mode == "trunc":
        return np.trunc(self / other)
    # NumPy's floor_divide and PyTorch's agree but for a zero divisor, where PyTorch divides.
    return np.where(np.equal(other, 0), self / other, np.floor_divide(self, other))[()]


div_rounded = pointwise(
    "div",
    _rounded_quotient,
    node="DivBackward2",
    # The quotient is constant between its steps. PyTorch keeps the operands all the same, and so a
    # write to them is an error.
    self=lambda grad, other: zeros_like(grad),
    other=lambda grad, self, other: zeros_like(grad),
    unsupported=_BOOL_OR_COMPLEX,
    raises=BY_VALUES,
    hazard=_QUOTIENT,
)


@function("div", "divide", method=True, inplace=True)
def divide(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """The quotient, element by element; integers become floating. It is rounded where
    `rounding_mode` is "floor" or "trunc"; raises E204 for any other mode.
    """
    if rounding_mode is None:
        return div.apply(input, other)
    if rounding_mode not in ("floor", "trunc"):
        raise runtime_error(
            f"div(): rounding_mode is 'floor', 'trunc' or None, not {rounding_mode!r}"
        )
    return div_rounded.apply(input, other, rounding_mode)


def no_derivative(
    name: str, help: str, raises: str = "RuntimeError", *, pytorch: str = ""
) -> Function:
    """The rule of an op that PyTorch defines no derivative for: it raises E409. `pytorch` is how
    PyTorch names what has none, where that is not `name`.

    Where the op's node has a name of its own, PyTorch's error is a NotImplementedError.
    """

    text = f"derivative for aten::{pytorch or name} is not implemented"
    if raises == "NotImplementedError":
        text = f"the derivative for '{pytorch or name}' is not implemented."

    def rule(grad: Any) -> Any:
        raise GradcliError(
            "E409",
            f"the derivative of {name} is not implemented",
            text=text,
            raises=raises,
            help=help,
        )

    return rule


_no_quotient = no_derivative("floor_divide", "divide with `/`, and floor() a detached value")


def _floored(self: Any, other: Any) -> Any:
    return _rounded_quotient(self, other, "floor")


floor_divide_tensor = pointwise(
    "floor_divide",
    _floored,
    node="NotImplemented",
    self=_no_quotient,
    other=_no_quotient,
    unsupported=_BOOL_OR_COMPLEX,
    doc="The quotient rounded down.",
    numpy="({0} // {1})",
    raises=BY_VALUES,
)
floor_divide_number = pointwise(
    "floor_divide_number",
    _floored,
    node="NotImplemented",
    self=_no_quotient,
    unsupported=_BOOL_OR_COMPLEX,
    raises=BY_VALUES,
)
floor_divide_of_number = pointwise(
    "floor_divide_of_number",
    lambda other, self: _floored(self, other),
    node="NotImplemented",
    other=_no_quotient,
    unsupported=_BOOL_OR_COMPLEX,
    raises=BY_VALUES,
)


def _remainder(self: Any, other: Any) -> Any:
    dtype = np.result_type(self, other)
    self, other = _checked_division(dtype.kind, self, other)
    if dtype.kind != "f":
        return np.remainder(self, other)
    # The sign is the divisor's, but a zero keeps the sign of the dividend, which NumPy's does not.
    rest = np.fmod(self, other)
    return np.where((rest != 0) & (np.less(other, 0) != (rest < 0)), rest + other, rest)[()]


def _fmod(self: Any, other: Any) -> Any:
    return np.fmod(*_checked_division(np.result_type(self, other).kind, self, other))


_MODULUS: dict[str, Any] = {
    "unsupported": _BOOL_OR_COMPLEX,
    "hazard": Hazard(values=_BY_ZERO),
    "raises": BY_VALUES,
}

remainder_number = pointwise(
    "remainder",
    lambda self, other: _remainder(self, other),
    self=lambda grad: grad,
    doc="What division leaves, with the sign of the divisor: Python's `%`.",
    conventions="On the steps the gradient is that between them.",
    **_MODULUS,
)
remainder_tensor = pointwise(
    "remainder",
    _remainder,
    node="RemainderBackward1",
    self=lambda grad: grad,
    other=lambda grad, self, other: -grad * div_rounded(self, other, "floor"),
    **_MODULUS,
)
fmod_number = pointwise(
    "fmod",
    lambda self, other: _fmod(self, other),
    self=lambda grad: grad,
    doc="What division leaves, with the sign of the dividend: C's `fmod`.",
    **_MODULUS,
)
fmod_tensor = pointwise(
    "fmod",
    _fmod,
    node="FmodBackward1",
    self=lambda grad: grad,
    other=lambda grad, self, other: -grad * div_rounded(self, other, "trunc"),
    **_MODULUS,
)


_no_modulus = no_derivative(
    "a number modulo a tensor", "make the number a tensor first", pytorch="remainder"
)

remainder_of_number = pointwise(
    "remainder",
    lambda other, self: _remainder(self, other),
    node="NotImplemented",
    other=_no_modulus,
    **_MODULUS,
)


def _by_operand(name: str, number: Op, tensor: Op, of_number: Op | None = None) -> Function:
    """A function of overloads: the second operand is a number or a tensor; or the first one is a
    number.
    """

    def overloaded(input: Any, other: Any) -> Tensor:
        if type(input) is Tensor and type(other) is not Tensor:
            return number.apply(*with_number(input, other))
        if of_number is not None and type(other) is Tensor and type(input) is not Tensor:
            return of_number.apply(*with_number(other, input))
        if type(other) is Tensor and type(input) is not Tensor:
            raise wrong_operand(tensor, "self", input)
        return tensor.apply(input, other)

    return function(name, method=True, inplace=True)(overloaded)


def with_number(tensor: Tensor, number: Any) -> tuple[Tensor, Any]:
    """A tensor and a number for an op that does not wrap the number: the tensor in their common
    dtype.

    A float beside an integer tensor makes the tensor floating; the number keeps its value in the
    tensor's dtype.
    """
    if type(number) is int:
        check_width(number)
    if type(number) in (float, int) and tensor.array.dtype in EVERYDAY:
        return tensor, number
    dtype = dtypes.result_dtype((tensor.array, number))
    if dtype.is_complex and tensor.dtype.is_floating_point:
        return tensor, number  # a complex number promotes a floating tensor
    if tensor.array.dtype is not dtype.numpy_dtype:
        tensor = Tensor(dtypes.cast(tensor.array, dtype))
    elif dtype.category == "int":
        number = plain_number(number, dtype)
    elif dtype.category == "bool" or dtype is dtypes.bfloat16:
        number = dtypes.cast(number, dtype)
    return tensor, number


floor_divide = _by_operand(
    "floor_divide", floor_divide_number, floor_divide_tensor, floor_divide_of_number
)
remainder = _by_operand("remainder", remainder_number, remainder_tensor, remainder_of_number)
fmod = _by_operand("fmod", fmod_number, fmod_tensor)

# --- numbers as they are: what the formulas of derivatives write --------------------------------

mul_number = pointwise(
    "mul",
    lambda self, other: self * other,
    node="MulBackward1",
    half=rounded_once,
    self=lambda grad, other: grad * conj(other),
    hazard=_PRODUCT,
)
div_number = pointwise(
    "div",
    lambda self, other: self / other,
    node="DivBackward1",
    floating=True,
    half=rounded_once,
    self=lambda grad, other: grad / conj(other),
    hazard=_QUOTIENT,
)
add_number = pointwise(
    "add",
    lambda self, other: self + other,
    node="AddBackward1",
    self=lambda grad: grad,
    hazard=_DIFFERENCE,
)
sub_number = pointwise(
    "sub",
    lambda self, other: self - other,
    node="SubBackward1",
    self=lambda grad: grad,
    hazard=_DIFFERENCE,
)


def _formula_operators() -> dict[str, Function]:
    """The operators of `Tensor`: numbers are not wrapped."""

    def either(tensor: Op, number: Op) -> Function:
        def operator(self: Tensor, other: Any) -> Any:
            if type(other) is Tensor:
                return tensor.apply(self, other)
            if (
                type(other) is float
                and self.array.dtype.char == _BFLOAT16
                and not tensor.exact_numbers
            ):
                other = dtypes.cast(other, dtypes.bfloat16)
            if self.array.dtype.kind in "iub":
                return tensor.apply(self, other)  # their dtype depends on the number
            return number.apply(self, other)

        return operator

    def over(self: Tensor, other: Any) -> Any:
        return mul_number.apply(reciprocal.apply(self), other)

    sums, products = either(add, add_number), either(mul, mul_number)
    return {
        "__add__": sums,
        "__radd__": sums,
        "__sub__": either(sub, sub_number),
        "__rsub__": lambda self, other: sub.apply(other, self),
        "__mul__": products,
        "__rmul__": products,
        "__truediv__": either(div, div_number),
        "__rtruediv__": over,
        "__neg__": lambda self: neg.apply(self),
    }


for _name, _operator in _formula_operators().items():
    setattr(Tensor, _name, _operator)

# --- what programs write ------------------------------------------------------------------------

expose(add, inplace=True)
expose(sub, "sub", "subtract", inplace=True)
expose(mul, "mul", "multiply", inplace=True)
expose(neg, "neg", "negative", inplace_function=True)
expose(div, "true_divide", inplace=True)
expose(reciprocal, inplace_function=True)

accumulate.add, accumulate.add_arrays = add, _gradients_added


# --- operators of programs ------------------------------------------------------------------------


def _commutative(entry: Op) -> Function:
    """An operator that puts its tensor first, as PyTorch does with `2 * x`."""

    def operator(left: Any, right: Any) -> Any:
        return entry.apply(left, right) if type(left) is Tensor else entry.apply(right, left)

    return operator


def _minus(left: Any, right: Any) -> Any:
    return sub.apply(left, right) if type(left) is Tensor else rsub(right, left)


def _over(left: Any, right: Any) -> Any:
    # A number over a tensor is its reciprocal times the number.
    return (
        div.apply(left, right) if type(left) is Tensor else mul.apply(reciprocal.apply(right), left)
    )


def _by_sides(function: Function, of_number: Op) -> Function:
    def operator(left: Any, right: Any) -> Any:
        if type(left) is Tensor:
            return function(left, right)
        return of_number.apply(*with_number(right, left))

    return operator


operators.update(
    {
        "+": _commutative(add),
        "-": _minus,
        "*": _commutative(mul),
        "/": _over,
        "//": _by_sides(floor_divide, floor_divide_of_number),
        "%": _by_sides(remainder, remainder_of_number),
    }
)


def _updating(ufunc: Any, general: Function) -> Function:
    """An in-place operator which writes directly to the memory where nothing is recorded and
    nothing has to be brought into line: the step of an optimizer.
    """

    def operator(self: Tensor, other: Any) -> Tensor:
        if type(other) is not Tensor:
            return general(self, other)
        state = active.state
        array, operand = self.array, other.array
        dtype = array.dtype
        if (
            dtype is not operand.dtype
            or type(array) is not np.ndarray
            or type(operand) is not np.ndarray
            or (dtype is not _SINGLE and dtype is not _DOUBLE)
            or array.shape != operand.shape
            or state.recorder is not None
            or state.born is not None
            or (state.grad_enabled and is_recorded(self, other))
        ):
            return general(self, other)
        storage = self.storage or storage_of(self)
        if storage.lazy_conjugation is not None:
            return general(self, other)
        if (
            other.storage is storage or type(storage) is not Storage or not array.flags.c_contiguous
        ) and check_memory(self, other):
            return general(self, other)
        if state.pending_readers:
            write_barrier(array)
        ufunc(array, operand, array)
        storage.count_write()
        return self

    return operator


_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)

inplace_operators.update(
    {
        "+": _updating(np.add, in_place("add", lambda self, other: add.apply(self, other))),
        "-": _updating(np.subtract, in_place("sub", lambda self, other: sub.apply(self, other))),
        "*": _updating(np.multiply, in_place("mul", lambda self, other: mul.apply(self, other))),
        "/": _updating(np.divide, in_place("div", lambda self, other: div.apply(self, other))),
        "//": in_place("floor_divide", floor_divide),
        "%": in_place("remainder", remainder),
    }
)
unary_operators.update({"-": lambda value: neg.apply(value), "+": lambda value: value})
