"""Predicates and integer functions: `gcd lcm isin isreal is_nonzero is_same_size is_signed`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.layout.sizes import Size
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, shape_error
from gradcli.ops.binding.arguments import check_tensors, expose_of_tensors, sizes_of
from gradcli.ops.binding.catalogue import function
from gradcli.ops.codegen.promotion import NUMBERS
from gradcli.ops.definition.doc import READS, SCALAR
from gradcli.ops.definition.dtype_support import check_dtype, dtype_names
from gradcli.ops.definition.op import pointwise
from gradcli.ops.shape.views import view
from gradcli.state import look

_NO_INTEGERS = dtype_names("float", "complex", "bool")
gcd = pointwise(
    "gcd",
    lambda self, other: np.gcd(self, other),
    unsupported=_NO_INTEGERS,
    doc="The greatest common divisor of integers.",
    example="torch.gcd(tensor([3, 1, 2]), tensor([6, 4, 3]))",
    loop=SCALAR,
)
lcm = pointwise(
    "lcm",
    lambda self, other: np.lcm(self, other),
    unsupported=_NO_INTEGERS,
    doc="The least common multiple of integers.",
    example="torch.lcm(tensor([3, 1, 2]), tensor([6, 4, 3]))",
    loop=SCALAR,
)
for _entry in (gcd, lcm):
    expose_of_tensors(_entry, inplace_function=True)


_NEITHER_ORDERED = dtype_names("bool", "complex", raises="RuntimeError")


@function("isin")
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Where an element is among the test elements; one of the two may be a number.

    Example: torch.isin(tensor([3, 1, 2]), tensor([6, 4, 3]))
    """
    if type(elements) is not Tensor:
        check_tensors("isin", test_elements=test_elements)
    operands = {"elements": elements, "test_elements": test_elements}
    for argument, value in operands.items():
        if type(value) not in NUMBERS:
            check_tensors("isin", **{argument: value})
    arrays = [
        value.array if type(value) is Tensor else np.asarray(value) for value in operands.values()
    ]
    look(None, *arrays)
    for array in arrays:
        check_dtype("isin", dtypes.of_array(array), _NEITHER_ORDERED)
    # Few test elements are compared one by one, as a vector that must be a view of them.
    if type(test_elements) is Tensor and arrays[1].size < int(10 * arrays[0].size ** 0.145):
        view.forward(arrays[1], (arrays[1].size,))
    members = np.isin(arrays[0], arrays[1], assume_unique=assume_unique, invert=invert)
    return Tensor(members[()])


@function("isreal", method=True)
def isreal(input: Tensor) -> Tensor:
    """Where the imaginary part is 0; everywhere in a real tensor.

    Example: torch.isreal(tensor([3, 1, 2]))
    """
    return Tensor(np.isreal(input.array))


@function("is_nonzero", method=True, effects=(READS,))
def is_nonzero(input: Tensor) -> bool:
    """Whether a tensor's one element is not 0. Raises E203 where there is not exactly one.

    Example: torch.is_nonzero(tensor([2.]))
    """
    if input.array.size != 1:
        raise dtype_error(f"is_nonzero(): the tensor has {input.array.size} elements")
    return bool(input.array)


@function("is_same_size", method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape.

    Example: torch.is_same_size(tensor([3, 1, 2]), tensor([6, 4, 3]))
    """
    return bool(input.array.shape == other.array.shape)


@function("is_signed", method=True)
def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative values.

    Example: torch.is_signed(tensor([3, 1, 2]))
    """
    return input.dtype.is_signed


@function("broadcast_shapes")
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that shapes broadcast to. Raises E301 where they do not.

    Example: torch.broadcast_shapes((2, 1), (3,))
    """
    plain = [sizes_of("broadcast_shapes", (shape,)) for shape in shapes]
    try:
        return Size(np.broadcast_shapes(*plain))
    except ValueError:
        shown = " and ".join(map(str, plain))
        text = f"broadcast_shapes(): {shown} cannot be broadcast"
        raise shape_error(text) from None
