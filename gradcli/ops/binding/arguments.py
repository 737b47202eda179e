"""Checks of the arguments of composed functions; generated functions check their own.
Dimensions, `dim=-1`, `dim=(0, 2)`, `size=(2, -1)`, are normalised too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.arrays import dtypes
from gradcli.autograd.batched import unbatched
from gradcli.autograd.tensor import Tensor
from gradcli.errors import (
    GradcliError,
    dtype_error,
    index_error,
    runtime_error,
    shape_error,
    type_error,
)
from gradcli.ops.binding.catalogue import function
from gradcli.ops.codegen.promotion import EVERYDAY
from gradcli.ops.codegen.runtime import not_a_tensor, type_name
from gradcli.ops.definition.dtype_support import check_dtype, dtype_names
from gradcli.ops.definition.op import Function, Op, out_of_range
from gradcli.state import active, look

NUMPY_NAMES = {
    "axis": "dim",
    "keepdims": "keepdim",
    "a": "input",
    "x": "input",
    "x1": "input",
    "x2": "other",
}
"""NumPy's names of arguments, which torch's functions take for their own."""


def check_tensors(name: str, **operands: Any) -> None:
    """Raise E202 for an operand of the function `name` that is not a tensor."""
    for number, (argument, value) in enumerate(operands.items(), 1):
        if type(value) is not Tensor:
            raise not_a_tensor(name, argument, number, value)


def check_filled(name: str, input: Tensor, batched: int) -> None:
    """Raise E301 where a dimension has no elements, but for that of the batch, which a tensor of
    `batched` dimensions has first.
    """
    shape = input.array.shape
    if 0 in shape[1 if len(shape) == batched else 0 :]:
        raise shape_error(f"{name}(): of the sizes {tuple(shape)} only that of the batch may be 0")


def check_number(name: str, argument: str, value: Any) -> None:
    """Raise E202 unless an argument is a Python number."""
    if type(value) not in (int, float, bool):
        raise type_error(
            f"{name}(): argument '{argument}' must be a number, not {type_name(value)}"
        )


def check_no_complex_number(name: str, *operands: Any) -> None:
    """Raise E203 where a complex number is combined with a tensor of a function that supports no
    complex dtypes: PyTorch's kernel raises.
    """
    if complex in map(type, operands) and Tensor in map(type, operands):
        raise dtype_error(
            f"{name}() is not defined for complex numbers", raises="NotImplementedError"
        )


def check_constant(name: str, argument: str, tensor: Tensor) -> None:
    """Raise E204 where a gradient would be recorded for an argument that has no derivative."""
    if tensor.requires_grad and active.state.grad_enabled:
        raise runtime_error(
            f"The function '{name}' is not differentiable with respect to argument '{argument}'."
            " This input cannot have requires_grad True."
        )


def number_in(value: Any) -> Any:
    """The number of a 0-dim tensor that does not require grad; any other value as it is."""
    if isinstance(value, Tensor) and not value.array.ndim and not value.requires_grad:
        return value.item()
    return value


def plain_float(name: str, argument: str, value: Any) -> float:
    """A real number, read from a 0-dim tensor that does not require grad if need be; raises E202
    for anything else.
    """
    number: float = number_in(value)
    check_number(name, argument, number)
    return number


def plain_integer(name: str, argument: str, value: Any) -> int:
    """A Python integer, read from a 0-dim tensor of integers if need be; raises E202 for
    anything else.
    """
    if type(value) is Tensor and not value.array.ndim and value.dtype.category == "int":
        value = value.item()
    if type(value) is not int:
        raise type_error(
            f"{name}(): argument '{argument}' must be an integer, not {type_name(value)}"
        )
    return value


def checked_values(check: Callable[..., None], *operands: Any) -> None:
    """Run a check of arrays' values, which raises what it finds. It is reported to the recorder,
    which may have to repeat it for other values.
    """
    if active.state.batch is not None:
        operands = tuple([unbatched(operand) for operand in operands])
    check(*operands)
    look(check, *operands)


def numbers_in(values: Tensor) -> Any:
    """The numbers that a tensor holds, in lists. It is reported to the recorder that what comes
    next depends on them.
    """
    numbers = values.array.tolist()

    def check(array: Any) -> None:
        if array.tolist() != numbers:
            raise type_error("the numbers are other ones")

    look(check, values.array)
    return numbers


def check_floating(
    name: str, tensor: Tensor, raises: str = "NotImplementedError", kernel: str = ""
) -> None:
    """Raise E202 for what is no tensor, E203 for a tensor of bools, integers or complex numbers, as
    the class that PyTorch raises; `kernel` as in `check_dtype`.
    """
    if type(tensor) is not Tensor or tensor.array.dtype not in EVERYDAY:
        check_tensors(name, input=tensor)
        wrong = dtype_names("bool", "int", "complex", raises=raises)
        check_dtype(name, tensor.dtype, wrong, kernel)


def check_not_integral(name: str, tensor: Tensor, raises: str = "NotImplementedError") -> None:
    """Raise E202 for what is no tensor, E203 for a tensor of bools or integers, as the class that
    PyTorch raises.
    """
    if type(tensor) is not Tensor or tensor.array.dtype not in EVERYDAY:
        check_tensors(name, input=tensor)
        check_dtype(name, tensor.dtype, dtype_names("bool", "int", raises=raises))


def check_same_dtype(name: str, input: Tensor, other: Tensor, text: str | None = None) -> None:
    """Raise E203 where two operands that are not promoted differ in dtype; `text` is PyTorch's."""
    if input.dtype is not other.dtype:
        problem = f"{name}(): the dtypes {input.dtype} and {other.dtype} differ"
        raise dtype_error(problem, text=text)


def check_constants(name: str, kernel: str = "", **operands: Tensor | None) -> None:
    """Raise E202 for an operand that is neither a tensor nor None, E408 for one that requires grad,
    which the function `name`, to PyTorch `kernel`, has no derivative for.
    """
    for argument, value in operands.items():
        if value is None:
            continue
        check_tensors(name, **{argument: value})
        if value.requires_grad and active.state.grad_enabled:
            raise GradcliError(
                "E408",
                f"{name}(): there is no derivative for `{argument}`, which requires grad",
                text=f"The function '{kernel or name}' is not differentiable with respect to"
                f" argument '{argument}'. This input cannot have requires_grad True.",
                help=f"detach it: `{argument}.detach()`",
            )


def in_dtype_of(value: Tensor, other: Tensor) -> Tensor:
    """An integer tensor in the dtype of a floating one that it is combined with; outside the
    graph, as integers have no gradient. A floating tensor stays as it is.
    """
    if value.dtype.category in ("int", "bool"):
        return Tensor(dtypes.cast(value.array, other.dtype))
    return value


def check_real(name: str, array: Any) -> None:
    """Raise E203 for an array of bools or of complex numbers."""
    if array.dtype not in EVERYDAY:
        check_dtype(name, dtypes.of_array(array), dtype_names("bool", "complex"))


def in_single(function: Function, self: Any, *arguments: Any) -> Any:
    """Call a function of an array. Half precision is computed in float32 and rounded once, as
    PyTorch does.
    """
    if self.dtype.itemsize == 2:
        return dtypes.narrowed(function(dtypes.widened(self), *arguments), self.dtype)
    return function(self, *arguments)


def expose_of_tensors(
    entry: Op, *aliases: str, inplace: bool = False, inplace_function: bool = False
) -> None:
    """Make an entry of two tensors reachable, as a function and a method that take no numbers."""

    def of_tensors(input: Tensor, other: Tensor) -> Tensor:
        check_tensors(entry.name, input=input, other=other)
        return entry.apply(input, other)

    register = function(
        entry.name,
        *aliases,
        method=True,
        inplace=inplace,
        inplace_function=inplace_function,
    )
    register(of_tensors)


# --- dimensions -----------------------------------------------------------------------------------


Dims = int | Sequence[int] | None


class FromTheEnd(int):
    """A dimension, or a position in one, that a program counted from the end: counted from the
    front.

    Attributes:
        written: the negative number that the program wrote.
    """

    written: int

    def __new__(cls, written: int, extent: int) -> FromTheEnd:
        dim = super().__new__(cls, written + extent)
        dim.written = written
        return dim

    def shown(self) -> int:
        """As `grad_fn._saved_dim` shows it: PyTorch reads the negative number as unsigned."""
        return self.written + (1 << 64)


def normal_dim(name: str, dim: Any, ndim: int) -> int:
    """A dimension counted from the front.

    Raises E302 where there is no such dimension; a 0-dim tensor has 0 and -1. Raises E202 for what
    is no integer.
    """
    if isinstance(dim, Tensor):
        dim = dim.__index__()
    if type(dim) is not int and type(dim) is not FromTheEnd:
        raise type_error(
            f"{name}(): dim must be an integer, not {type(dim).__name__}",
            text=f"{name}(): argument 'dim' must be int, not {type(dim).__name__}",
        )
    extent = max(ndim, 1)
    if not -extent <= dim < extent:
        raise index_error(
            f"{name}(): dimension {dim} does not exist in a tensor of {ndim} dimensions"
            f" (there are {-extent} to {extent - 1})",
            text=out_of_range(dim, ndim),
        )
    return dim if dim >= 0 else FromTheEnd(dim, extent)


def normal_dims(name: str, tensor: Tensor, dim: Dims) -> tuple[int, ...]:
    """The dimensions to reduce, counted from the front; all for None or an empty sequence.

    A 0-dim tensor has none. Raises E302 for a dimension that does not exist, or stands twice.
    """
    ndim = tensor.array.ndim
    if dim is None:
        return tuple(range(ndim))
    several = dim if isinstance(dim, (tuple, list)) else (dim,)
    dims = tuple(normal_dim(name, d, ndim) for d in several) or tuple(range(ndim))
    if len(set(dims)) != len(dims):
        twice = next(each for number, each in enumerate(dims) if each in dims[:number])
        raise index_error(
            f"{name}(): a dimension appears twice in {tuple(several)}",
            text=f"dim {twice} appears multiple times in the list of dims",
            raises="RuntimeError",
        )
    return dims if ndim else ()


def one_by_one(name: str, keyword: str, values: Sequence[Any], keyword_value: Any) -> Sequence[Any]:
    """Values passed one by one, `permute(1, 0)`, or by the keyword, `permute(dims=(1, 0))`.

    Raises E201 where both were, or neither.
    """
    if keyword_value is None:
        if not values:
            raise GradcliError("E201", f"{name}(): `{keyword}` is missing")
        return values
    if values:
        raise GradcliError("E201", f"{name}(): `{keyword}` was given twice")
    if type(keyword_value) is int:  # as a keyword it has to be a sequence
        raise type_error(f"{name}(): argument '{keyword}' must be tuple of ints, not int")
    return (keyword_value,)


def sizes_of(name: str, sizes: Sequence[Any]) -> tuple[int, ...]:
    """Sizes given one by one or as one sequence: `view(2, 3)`, `view((2, 3))`, `zeros(x.shape)`."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = sizes[0]
    if all(type(size) is int for size in sizes):
        return tuple(sizes)
    plain = []
    for number, size in enumerate(sizes):
        if isinstance(size, Tensor):
            size = size.__index__()
        if type(size) is not int:
            kind = type(size).__name__
            text = f"{name}(): argument 'size' (position 1) must be tuple of ints, not {kind}"
            if number:
                text = (
                    f"{name}(): argument 'size' failed to unpack the object at pos {number + 1}"
                    f' with error "type must be tuple of ints,but got {kind}"'
                )
            raise type_error(f"{name}(): a size must be an integer, not {kind}", text=text)
        plain.append(size)
    return tuple(plain)
