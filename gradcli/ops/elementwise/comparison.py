"""Comparison and selection: `== < isnan isclose where`, logic on bools and bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.fusion import tile_kernels
from gradcli.arrays.layout.strides import laid_out_like_operands
from gradcli.arrays.scalars import as_zero_dim
from gradcli.autograd.inplace.writes import check_data
from gradcli.autograd.tensor import Tensor, refuse_batched, storage_of
from gradcli.errors import dtype_error, runtime_error
from gradcli.ops.arithmetic.arithmetic import COMPLEX, no_derivative, zeros_like
from gradcli.ops.binding.arguments import (
    check_real,
    check_same_dtype,
    check_tensors,
    expose_of_tensors,
)
from gradcli.ops.binding.catalogue import (
    expose,
    function,
    in_place,
    inplace_operators,
    method,
    methods,
    operators,
    unary_operators,
)
from gradcli.ops.codegen.promotion import NUMBERS
from gradcli.ops.codegen.runtime import wrong_operand
from gradcli.ops.definition.doc import BY_KINDS, NEVER, READS, SCALAR
from gradcli.ops.definition.dtype_support import dtype_names
from gradcli.ops.definition.op import Function, Op, op, pointwise
from gradcli.state import look

# --- comparisons leave the graph ----------------------------------------------------------------


def _comparison(
    name: str, symbol: str, ufunc: Any, forward: Function, doc: str, *aliases: str
) -> None:
    entry = pointwise(name, forward, ufunc=ufunc, doc=doc)
    expose(entry, name, *aliases, function=False)

    @function(name, *aliases)
    def compared(input: Tensor, other: Any) -> Tensor:
        check_tensors(name, input=input)
        return entry.apply(input, other)

    answer = _written_answer(name, forward)
    for alias in (name, *aliases):
        methods[f"{alias}_"] = in_place(name, answer, written_as=f"{alias}_")
    operators[symbol] = lambda left, right: entry.apply(left, right)


def _written_answer(name: str, forward: Function) -> Function:
    """What the in-place form of a comparison writes. Only it stays in the graph, with no gradient
    to pass on.
    """

    def zeros(grad: Any) -> Any:
        return zeros_like(grad)

    node = f"{name.capitalize()}Backward"
    with_tensor = pointwise(f"{name}_", forward, node=f"{node}1", self=zeros, other=zeros)
    with_number = pointwise(f"{name}_.Scalar", forward, node=f"{node}0", self=zeros)

    def answer(self: Tensor, other: Any) -> Tensor:
        return (with_number if type(other) in NUMBERS else with_tensor).apply(self, other)

    return answer


def _equality(symbol: str, answer: bool) -> None:
    """Define `==` or `!=` for operands that are neither tensors nor numbers too."""
    compare = operators[symbol]

    def compared(left: Any, right: Any) -> Any:
        other = right if type(left) is Tensor else left
        return compare(left, right) if type(other) in _COMPARED else answer

    operators[symbol] = compared


_COMPARED = frozenset({Tensor, bool, int, float, complex})

_comparison(
    "eq", "==", np.equal, lambda self, other: np.equal(self, other), "Where the two are equal."
)
_comparison(
    "ne",
    "!=",
    np.not_equal,
    lambda self, other: np.not_equal(self, other),
    "Where the two differ.",
    "not_equal",
)
_equality("==", False)
_equality("!=", True)


def _ordering(name: str, symbol: str, compare: Function, doc: str, alias: str) -> None:
    """A comparison that complex numbers do not support: they have no order."""

    def forward(self: Any, other: Any) -> Any:
        for operand in (self, np.complex64(other) if type(other) is complex else other):
            if getattr(operand, "dtype", None) in COMPLEX:
                check_real(name, operand)
        return compare(self, other)

    _comparison(name, symbol, compare, forward, doc, alias)


_ordering("lt", "<", np.less, "Where the input is less.", "less")
_ordering("le", "<=", np.less_equal, "Where the input is less or equal.", "less_equal")
_ordering("gt", ">", np.greater, "Where the input is greater.", "greater")
_ordering("ge", ">=", np.greater_equal, "Where the input is greater or equal.", "greater_equal")


def _logical(name: str, ufunc: Any, doc: str) -> Op:
    return pointwise(name, lambda self, other: ufunc(self, other), doc=doc, loop=SCALAR)


logical_and = _logical("logical_and", np.logical_and, "Where both are nonzero.")
logical_or = _logical("logical_or", np.logical_or, "Where at least one is nonzero.")
logical_xor = _logical("logical_xor", np.logical_xor, "Where exactly one is nonzero.")


def _question(name: str, forward: Function, doc: str, sample: str, **facts: Any) -> Op:
    """A test of each element, which leaves the graph."""
    return pointwise(name, forward, doc=doc, example=f"torch.{name}(tensor([{sample}]))", **facts)


_NUMBERS, _NOT_FINITE = "-1.5, 0., 2.5", "1., inf, nan"
logical_not = _question(
    "logical_not",
    lambda self: np.logical_not(self),
    "Where the input is zero.",
    _NUMBERS,
    raises=NEVER,
)
for _entry in (logical_and, logical_or, logical_xor):
    expose_of_tensors(_entry)
expose(logical_not)
for _entry in (logical_and, logical_or, logical_xor, logical_not):
    # PyTorch does not see these writes: a leaf takes them, and a history stays.
    methods[f"{_entry.name}_"] = in_place(_entry.name, methods[_entry.name], check=check_data)


def _bitwise(name: str, symbol: str, ufunc: Any, doc: str, *excluded: str) -> None:
    entry = pointwise(
        name,
        lambda self, other: ufunc(self, other),
        unsupported=dtype_names("float", "complex", *excluded),
        doc=doc,
        example=f"torch.{name}(tensor([3, 1, 2]), tensor([1, 2, 3]))",
    )
    expose(entry, inplace=True)
    operators[symbol] = lambda left, right: entry.apply(left, right)
    inplace_operators[symbol] = methods[f"{name}_"]


_bitwise("bitwise_and", "&", np.bitwise_and, "The bits that both integers have.")
_bitwise("bitwise_or", "|", np.bitwise_or, "The bits that at least one integer has.")
_bitwise("bitwise_xor", "^", np.bitwise_xor, "The bits that exactly one integer has.")
_bitwise("bitwise_left_shift", "<<", np.left_shift, "The bits moved up by `other` places.", "bool")
_bitwise(
    "bitwise_right_shift", ">>", np.right_shift, "The bits moved down by `other` places.", "bool"
)


bitwise_not = pointwise(
    "bitwise_not",
    lambda self: np.invert(self),
    unsupported=dtype_names("float", "complex"),
    doc="The bits turned; for bools, the opposite.",
    example="torch.bitwise_not(tensor([3, 1, 2]))",
)
expose(bitwise_not, inplace=True)


def _inverted(value: Tensor) -> Tensor:
    if value.dtype.category in ("float", "complex"):
        raise dtype_error(
            f"`~` is not defined for {value.dtype}",
            text="~ (operator.invert) is only implemented on integer and Boolean-type tensors",
            raises="TypeError",
        )
    return bitwise_not.apply(value)


unary_operators["~"] = _inverted

# --- questions about values ---------------------------------------------------------------------

isnan = _question(
    "isnan", lambda self: np.isnan(self), "Where the input is nan.", _NOT_FINITE, raises=NEVER
)
isinf = _question(
    "isinf", lambda self: np.isinf(self), "Where the input is infinite.", _NOT_FINITE, raises=NEVER
)
isfinite = _question(
    "isfinite",
    lambda self: np.isfinite(self),
    "Where the input is neither infinite nor nan.",
    _NUMBERS,
    raises=NEVER,
)
_NO_COMPLEX = dtype_names("complex", raises="RuntimeError")
isposinf = _question(
    "isposinf",
    lambda self: np.equal(self, np.inf),
    "Where the input is inf.",
    _NOT_FINITE,
    unsupported=_NO_COMPLEX,
)
isneginf = _question(
    "isneginf",
    lambda self: np.equal(self, -np.inf),
    "Where the input is -inf.",
    _NOT_FINITE,
    unsupported=_NO_COMPLEX,
)
signbit = _question(
    "signbit",
    lambda self: np.signbit(self) if self.dtype.kind != "b" else np.zeros_like(self),
    "Where the input's sign is negative, also for -0.",
    _NUMBERS,
)
for _entry in (isnan, isinf, isfinite, isposinf, isneginf, signbit):
    expose(_entry)


def _isclose_array(self: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    if self.dtype.kind in "biu":  # as numbers that a difference does not leave
        floating = dtypes.default_dtype().numpy_dtype
        distance = np.abs(self.astype(floating) - other.astype(floating))
    else:
        distance = np.abs(self - other)
    near = distance <= atol + np.abs(rtol * other)
    close = np.equal(self, other) | (near & np.isfinite(distance))
    if equal_nan and self.dtype.kind in "fcV":
        close |= np.isnan(self) & np.isnan(other)
    return laid_out_like_operands(close, self, other)


_isclose = op(
    "isclose", _isclose_array, constant=("self", "other"), keeps_layout=True, raises=BY_KINDS
)


@function("isclose", method=True)
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Where `|input - other| <= atol + rtol * |other|`. Raises E203 where the dtypes differ, E204
    for a negative tolerance.
    """
    kinds = input.dtype.scalar_type, other.dtype.scalar_type
    check_same_dtype("isclose", input, other, f"{kinds[0]} did not match {kinds[1]}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:
            raise runtime_error(
                f"isclose(): {name} is negative, or no number",
                text=f"{name} must be greater than or equal to zero, but got {tolerance:g}",
            )
    close: Tensor = _isclose.apply(input, other, rtol, atol, equal_nan)
    # PyTorch starts from where both are equal and writes into that where both are nan, and where
    # the tolerances allow more; the result's version counts what it wrote.
    if equal_nan and input.dtype.category in ("float", "complex"):
        storage_of(close).count_write()
    if rtol or atol:
        storage_of(close).count_write()
    return close


@function("allclose", method=True, effects=(READS,))
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether `isclose` holds everywhere."""
    refuse_batched("allclose", input, other)
    look(None, input.array, other.array)
    return bool(isclose(input, other, rtol, atol, equal_nan).array.all())


@function("equal", method=True, effects=(READS,))
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same values, of whatever dtype."""
    refuse_batched("equal", input, other)
    look(None, input.array, other.array)
    if input.array.shape != other.array.shape:
        return False
    return bool(np.array_equal(input.array, other.array))


# --- the step function ---------------------------------------------------------------------------


_no_step = no_derivative("heaviside", "take heaviside() of a detached tensor")
_heaviside = pointwise(
    "heaviside",
    lambda self, values: np.where(self == 0, values, (self > 0).astype(self.dtype))[()],
    node="NotImplemented",
    self=_no_step,
    values=_no_step,
    unsupported=_NO_COMPLEX,
    loop=SCALAR,
)


@function("heaviside", method=True, inplace=True)
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 where the input is negative, 1 where it is positive, `values` where it is 0. Raises E203
    where the dtypes differ.

    Example: torch.heaviside(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    check_same_dtype("heaviside", input, values)
    return _heaviside.apply(input, values)


# --- where --------------------------------------------------------------------------------------


def _choose(condition: Any, self: Any, other: Any) -> Any:
    return tile_kernels.choose(condition, self, other)[()]


choose = pointwise(
    "where",
    _choose,
    constant=("condition",),
    self=lambda grad, condition: where(condition, grad, 0.0),
    other=lambda grad, condition: where(condition, 0.0, grad),
    numpy="where",
)


def where(condition: Any, self: Any, other: Any) -> Any:
    """`self` where the condition holds, `other` elsewhere: what rules call, of either kind."""
    if any(type(value) is Tensor for value in (condition, self, other)):
        return choose.apply(condition, self, other)
    return _choose(condition, self, other)


def _checked_where(condition: Any, input: Any, other: Any) -> Tensor:
    for argument, value in (("input", input), ("other", other)):
        if type(value) not in _COMPARED:
            raise wrong_operand(choose, argument, value)
    if condition.array.dtype not in (np.bool_, np.uint8):
        raise dtype_error(
            f"where(): the condition must be a bool tensor, and this one is {condition.dtype}",
            text="where expected condition to be a boolean tensor, but got a tensor with dtype"
            f" {condition.dtype.scalar_type}",
            help="compare: `x > 0`",
        )
    if condition.array.dtype == np.uint8:
        condition = Tensor(condition.array.astype(np.bool_))
    pair = [input, other]
    for at, value in enumerate(pair):
        if type(value) in _COMPARED and type(value) is not Tensor and type(pair[1 - at]) is Tensor:
            dtype = dtypes.result_dtype((pair[1 - at].array, value))
            as_zero_dim(value, dtype)
    return choose.apply(condition, input, other)


@function("where")
def where_function(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """`input` where the condition holds, `other` elsewhere, in their common dtype; both may be
    numbers. The condition alone gives the indices of its nonzero elements, a tensor for each
    dimension.

    Raises E203 for a condition that is not bool.

    Conventions: The branch not taken has gradient 0, and further back 0 * inf is nan.

    Example: torch.where(tensor([True, False, True]), tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    if input is None and other is None:
        from gradcli.ops.indexing.masks import nonzero  # lazy: family: masks

        check_tensors("where", condition=condition)
        return nonzero(condition, as_tuple=True)
    return _checked_where(condition, input, other)


@method("where")
def where_method(self: Any, condition: Tensor, other: Any) -> Tensor:
    """The tensor where the condition holds, `other` elsewhere.

    Conventions: The branch not taken has gradient 0, and further back 0 * inf is nan.

    Example: torch.where(tensor([True, False, True]), tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    return _checked_where(condition, self, other)
