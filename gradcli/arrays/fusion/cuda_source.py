"""CUDA source: NumPy's ufuncs as expressions, and a plan's operations as the statements of one
kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.fusion.tile_kernels import cast_tile, choose_tile, copy_tile

C_TYPES: dict[Any, str] = {
    np.dtype(np.bool_): "bool",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
}
"""The element types that kernels support."""

EXPRESSIONS: dict[Any, str] = {
    **{
        each: f"{each.__name__}({{0}})"
        for each in (
            np.sqrt, np.cbrt, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p,
            np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh, np.floor, np.ceil, np.trunc,
            np.rint, np.isinf, np.isfinite, np.signbit,
        )
    },
    **{
        each: f"{each.__name__.replace('arc', 'a')}({{0}})"
        for each in (np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh)
    },
    **{
        each: f"{each.__name__.replace('arc', 'a').replace('power', 'pow')}({{0}}, {{1}})"
        for each in (np.power, np.hypot, np.arctan2, np.copysign, np.fmod, np.fmax, np.fmin)
    },
    **{
        each: f"{{0}} {operator} {{1}}"
        for each, operator in (
            (np.add, "+"), (np.subtract, "-"), (np.multiply, "*"), (np.divide, "/"),
            (np.equal, "=="), (np.not_equal, "!="), (np.less, "<"), (np.less_equal, "<="),
            (np.greater, ">"), (np.greater_equal, ">="), (np.logical_and, "&&"),
            (np.logical_or, "||"),
        )
    },
    # nan is larger and smaller than anything.
    np.maximum: "({0} >= {1} || {0} != {0}) ? {0} : {1}",
    np.minimum: "({0} <= {1} || {0} != {0}) ? {0} : {1}",
    np.negative: "-{0}",
    np.positive: "{0}",
    np.absolute: "fabs({0})",
    np.square: "{0} * {0}",
    np.reciprocal: "1 / {0}",
    np.sign: "{0} != {0} ? {0} : ({0} > 0) - ({0} < 0)",
    np.logical_xor: "!{0} != !{1}",
    np.logical_not: "!{0}",
    np.isnan: "{0} != {0}",
    cast_tile: "{0}",
    copy_tile: "{0}",
    choose_tile: "{0} ? {1} : {2}",
}  # fmt: skip
"""The kernels of plans in CUDA's C++, whose functions have the precision of their operands."""

_OF_BOOLS = {
    np.bitwise_and: "{0} && {1}",
    np.bitwise_or: "{0} || {1}",
    np.bitwise_xor: "{0} != {1}",
    np.invert: "!{0}",
}
"""The same, where the operands are bools."""


class Unwritten(Exception):
    """A plan has an operation or a dtype that kernels do not support."""


def operand_types(kernel: Any, kinds: Sequence[Any], result: Any) -> list[Any]:
    """The dtypes in which a kernel of a plan reads its operands.

    Args:
        kernel: the kernel.
        kinds: the operands' dtypes, or Python types for numbers.
        result: the dtype of its result.

    Raises Unwritten where there is no such kernel.
    """
    if kernel is choose_tile:
        return [np.dtype(np.bool_), result, result]
    if not isinstance(kernel, np.ufunc):
        return [
            result if isinstance(kind, type) and kind in (bool, int, float) else kind
            for kind in kinds
        ]
    try:
        types = tuple(int if kind is bool else kind for kind in kinds)
        return list(kernel.resolve_dtypes((*types, None))[:-1])
    except TypeError as failure:
        raise Unwritten from failure


def statement(
    name: str, kernel: Any, operands: Sequence[str], types: Sequence[Any], to: Any
) -> str:
    """The statement that computes one value of a plan.

    Raises Unwritten where there is no expression for it.
    """
    expression = EXPRESSIONS.get(kernel)
    if expression is None and all(each == np.bool_ for each in types):
        expression = _OF_BOOLS.get(kernel)
    if expression is None or to not in C_TYPES or any(each not in C_TYPES for each in types):
        raise Unwritten
    read = [f"(({C_TYPES[dtype]}){text})" for text, dtype in zip(operands, types, strict=True)]
    return f"const {C_TYPES[to]} {name} = ({C_TYPES[to]})({expression.format(*read)});"


# --- sums ---------------------------------------------------------------------------------------

BLOCK_SIZE = 256
"""Threads of a block; each block leaves one partial sum."""


def begin_sums(count: int) -> str:
    """The statements before the loop of a kernel that sums values."""
    return "\n".join(
        f"__shared__ double shared{i}[{BLOCK_SIZE}]; double sum{i} = 0;" for i in range(count)
    )


def end_sums(count: int) -> str:
    """The statements after the loop: the threads of a block add their sums pairwise, in an order
    that does not depend on which thread runs first.
    """
    text = [f"shared{i}[threadIdx.x] = sum{i};" for i in range(count)]
    halves = " ".join(
        f"shared{i}[threadIdx.x] += shared{i}[threadIdx.x + step];" for i in range(count)
    )
    text += [
        "__syncthreads();",
        f"for (int step = {BLOCK_SIZE // 2}; step > 0; step >>= 1) {{",
        f"  if (threadIdx.x < step && threadIdx.x + step < blockDim.x) {{ {halves} }}",
        "  __syncthreads();",
        "}",
    ]
    text += [f"if (threadIdx.x == 0) p{i}[blockIdx.x] = shared{i}[0];" for i in range(count)]
    return "\n".join(text)


def summing(parameters: str, statements: Sequence[str], summed: Sequence[str]) -> str:
    """What a reduction reads before its kernel: the type of several sums, how two are added, and
    the function that gives the elements.
    """
    count = len(summed)
    return "\n".join(
        [
            f"struct Sums {{ double of[{count}];",
            "  __device__ Sums(double start = 0)"
            f" {{ for (int k = 0; k < {count}; ++k) of[k] = start; }} }};",
            "__device__ Sums operator+(Sums a, const Sums& b)"
            f" {{ for (int k = 0; k < {count}; ++k) a.of[k] += b.of[k]; return a; }}",
            f"__device__ Sums summed({parameters}) {{",
            *statements,
            "Sums found;",
            *[f"found.of[{k}] = {each};" for k, each in enumerate(summed)],
            "return found;",
            "}",
        ]
    )
