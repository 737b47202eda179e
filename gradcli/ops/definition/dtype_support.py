"""Dtype support: which dtypes an op does not support, stated in its entry, and the errors for them.

    unsupported=dtype_names("complex")
    unsupported=dtype_names("bool", "int") | dtype_names("complex", raises="RuntimeError")

A dtype is named by its category (`bool`, `int`, `float`, `complex`), by its own name (`uint8`), or
by `half`, which is float16 and bfloat16.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradcli.arrays.dtypes import DType
from gradcli.errors import GradcliError, dtype_error

Unsupported = Mapping[str, str]
"""The error class that is raised, by the name of the dtype."""

_HALVES = ("float16", "bfloat16")


def dtype_names(*names: str, raises: str = "NotImplementedError") -> dict[str, str]:
    """The value of an entry's `unsupported=` for the dtypes of these names; `raises` is the class
    of PyTorch's error.
    """
    return dict.fromkeys(names, raises)


NOTHING: dict[str, str] = dtype_names()
INTEGRAL = dtype_names("bool", "int")
COMPLEX = dtype_names("complex")
NOT_FLOATING = INTEGRAL | COMPLEX
NOT_SINGLE_OR_DOUBLE = NOT_FLOATING | dtype_names("half")


WITHOUT_COMPLEX_GRADIENT = frozenset(
    {
        "_trilinear",
        "embedding",
        "index_reduce",
        "nan_to_num",
        "normal",
        "scatter_reduce",
        "select_scatter",
        "silu",
        "slice_scatter",
    }
)
"""Ops that compute complex results, which PyTorch does not differentiate."""

LEAVING_COMPLEX = frozenset(
    {
        "AddrBackward0",
        "DiagonalScatterBackward0",
        "DistBackward0",
        "FillBackward3",
        "IndexFillBackward1",
        "LdexpBackward0",
        "Logaddexp2Backward0",
        "LogaddexpBackward0",
        "MaskedFillBackward1",
        "WhereBackward0",
    }
)
"""Nodes for which PyTorch does not take the real part of a real input's gradient."""


def no_complex_gradient(name: str) -> GradcliError:
    """The error for a complex result that would be recorded."""
    return dtype_error(
        f"{name}() has no derivative where the result is complex",
        help="detach() the operands where no gradient is needed",
    )


def check_dtype(name: str, dtype: DType, unsupported: Unsupported, kernel: str = "") -> None:
    """Raise E203 where the function `name` does not support a dtype; `unsupported` has the
    class, `kernel` is what PyTorch calls it, where that is not its usual kernel's name.
    """
    raises = unsupported.get(dtype.name) or unsupported.get(dtype.category)
    if raises is None and dtype.name in _HALVES:
        raises = unsupported.get("half")
    if raises is not None:
        raise not_defined(name, dtype, raises, kernel, _help(dtype, unsupported))


def not_defined(
    name: str, dtype: DType, raises: str, kernel: str = "", help: str | None = None
) -> GradcliError:
    """The error of a function that does not support a dtype."""
    from gradcli.ops.definition.kernel_names import not_implemented  # lazy: start-up

    plain = f"{name}() is not defined for {dtype}"
    text = None
    if raises == "NotImplementedError":
        text = not_implemented(kernel or name, dtype.scalar_type)
    return dtype_error(plain, raises=raises, text=text, help=help)


def check_floating_dtype(name: str, dtype: DType, text: str | None = None) -> None:
    """Raise E203, as RuntimeError, for an integer or bool dtype; `text` is PyTorch's, where that is
    not the usual one.
    """
    try:
        check_dtype(name, dtype, _NO_MEAN)
    except GradcliError as error:
        error.text = text or (
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point"
            f" or complex dtype. Got: {dtype.scalar_type}"
        )
        raise


_NO_MEAN = dtype_names("bool", "int", raises="RuntimeError")


def _help(dtype: DType, unsupported: Unsupported) -> str | None:
    """The help for such an error where the function takes floating tensors."""
    if dtype.category in ("bool", "int") and {"bool", "int"} <= unsupported.keys():
        return "make it floating: `x.float()`"
    if dtype.name in _HALVES:
        return "widen it: `x.float()`"
    return None
