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
    np.add: "{0} + {1}",
    np.subtract: "{0} - {1}",
    np.multiply: "{0} * {1}",
    np.divide: "{0} / {1}",
    np.power: "pow({0}, {1})",
    np.hypot: "hypot({0}, {1})",
    np.arctan2: "atan2({0}, {1})",
    np.copysign: "copysign({0}, {1})",
    np.fmod: "fmod({0}, {1})",
    np.fmax: "fmax({0}, {1})",
    np.fmin: "fmin({0}, {1})",
    # nan is larger and smaller than anything.
    np.maximum: "({0} >= {1} || {0} != {0}) ? {0} : {1}",
    np.minimum: "({0} <= {1} || {0} != {0}) ? {0} : {1}",
    np.negative: "-{0}",
    np.positive: "{0}",
    np.absolute: "fabs({0})",
    np.square: "{0} * {0}",
    np.reciprocal: "1 / {0}",
    np.sign: "{0} != {0} ? {0} : ({0} > 0) - ({0} < 0)",
    np.sqrt: "sqrt({0})",
    np.cbrt: "cbrt({0})",
    np.exp: "exp({0})",
    np.exp2: "exp2({0})",
    np.expm1: "expm1({0})",
    np.log: "log({0})",
    np.log2: "log2({0})",
    np.log10: "log10({0})",
    np.log1p: "log1p({0})",
    np.sin: "sin({0})",
    np.cos: "cos({0})",
    np.tan: "tan({0})",
    np.arcsin: "asin({0})",
    np.arccos: "acos({0})",
    np.arctan: "atan({0})",
    np.sinh: "sinh({0})",
    np.cosh: "cosh({0})",
    np.tanh: "tanh({0})",
    np.arcsinh: "asinh({0})",
    np.arccosh: "acosh({0})",
    np.arctanh: "atanh({0})",
    np.floor: "floor({0})",
    np.ceil: "ceil({0})",
    np.trunc: "trunc({0})",
    np.rint: "rint({0})",
    np.equal: "{0} == {1}",
    np.not_equal: "{0} != {1}",
    np.less: "{0} < {1}",
    np.less_equal: "{0} <= {1}",
    np.greater: "{0} > {1}",
    np.greater_equal: "{0} >= {1}",
    np.logical_and: "{0} && {1}",
    np.logical_or: "{0} || {1}",
    np.logical_xor: "!{0} != !{1}",
    np.logical_not: "!{0}",
    np.isnan: "{0} != {0}",
    np.isinf: "isinf({0})",
    np.isfinite: "isfinite({0})",
    np.signbit: "signbit({0})",
    cast_tile: "{0}",
    copy_tile: "{0}",
    choose_tile: "{0} ? {1} : {2}",
}
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
        given = tuple(int if kind is bool else kind for kind in kinds)
        return list(kernel.resolve_dtypes((*given, None))[:-1])
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
