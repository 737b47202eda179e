"""Fused plans on a GPU: one generated kernel for all operations of a plan.

The kernel reads every input once, keeps the values in between in registers and writes the outputs;
sums over everything come out of the same pass. Sums over the same axes share a reduction, which
reads what the kernel wrote and computes the other elements as it reads. Compiled kernels are kept
by their text, which holds no number of a program and no size.

Every operation rounds as on its own: multiplications and additions are not contracted.
Its CUDA source has NumPy's ufuncs as expressions, and a plan's operations as statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.fusion.lazy import LAZY, Constant, Sum
from gradcli.arrays.fusion.plan import FusedPlan, Reference
from gradcli.arrays.fusion.tile_kernels import cast_tile, choose_tile, copy_tile
from gradcli.arrays.gpu import creation
from gradcli.arrays.gpu.array import GPUArray
from gradcli.arrays.gpu.runtime import cupy

# --- CUDA source --------------------------------------------------------------------------------


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


# --- plans --------------------------------------------------------------------------------------


_OPTIONS = ("--fmad=false",)

_kernels: dict[tuple[str, ...], Any] = {}
"""The compiled kernels by their text."""


class GPUPlan(FusedPlan):
    """One pass over a domain, as one kernel."""

    def _reference(self, operand: Any) -> Reference:
        number = operand
        if type(operand) is Constant:
            number = operand.number
        elif type(operand) in LAZY and not operand.shape and operand.value is not None:
            number = operand.value
        if type(number) is not GPUArray:
            return super()._reference(operand)
        # A number on the GPU is read there, like any other input.
        reference = self.references.get(id(operand))
        if reference is None:
            reference = self.references[id(operand)] = ("input", len(self.inputs))
            self.inputs.append(number)
        return reference

    def _flatten(self) -> None:
        """CuPy joins dimensions itself."""

    def _assign_registers(self) -> None:
        """The compiler assigns registers."""

    def run(self) -> None:
        """Compute the outputs and give them their values."""
        try:
            source = _Source(self)
        except Unwritten:
            self._run_separately()
        else:
            self._run_fused(source)
        for each in self.outputs:
            each.operands = ()  # frees the memory that it was computed from

    def _numbered(self) -> dict[int, Any]:
        """The outputs that are no sums, by the number of their value; each number once."""
        by_number: dict[int, Any] = {}
        for each in self.outputs:
            if type(each) is not Sum:
                by_number.setdefault(self.references[id(each)][1], each)
        return by_number

    def _run_fused(self, source: _Source) -> None:
        arrays = [each.values for each in self.inputs]
        written = {number: creation.empty(self.domain, dtype) for number, dtype in source.written}
        whole = [
            creation.empty(-(-prod(self.domain) // BLOCK_SIZE), np.float64) for _ in source.whole
        ]
        if written or whole:
            results = [each.values for each in (*written.values(), *whole)]
            if not written and all(each.shape != self.domain for each in arrays):
                arrays[0] = cupy().broadcast_to(arrays[0], self.domain)
            kernel = source.elementwise()
            kernel(*arrays, *source.numbers, *results, block_size=BLOCK_SIZE)
        for position, partial in zip(source.whole, whole, strict=True):
            each = self.sums[position]
            total = np.add.reduce(partial, axis=None)
            each.value = total.astype(each.dtype).reshape(each.shape)
        for axes, positions in source.along_axes.items():
            self._reduce(source, axes, positions, written)
        self.hand_out(written)

    def _reduce(
        self, source: _Source, axes: tuple[int, ...], positions: list[int], written: dict[int, Any]
    ) -> None:
        """The sums over some axes, in one pass that reads what is written already."""
        kernel, inputs = source.reduction(positions)
        read = [(written if kind == "value" else self.inputs)[k].values for kind, k in inputs]
        if all(array.shape != self.domain for array in read):
            read[0] = cupy().broadcast_to(read[0], self.domain)
        totals = kernel(*read, *source.numbers, axis=axes)
        for position, total in zip(
            positions, totals if len(positions) > 1 else (totals,), strict=True
        ):
            each = self.sums[position]
            each.value = GPUArray(total).reshape(each.shape)

    def _run_separately(self) -> None:
        """Compute the operations one after another, each by CuPy's own kernel."""
        values: list[Any] = []

        def read(reference: Reference) -> Any:
            kind, what = reference
            return (
                values[what] if kind == "value" else self.inputs[what] if kind == "input" else what
            )

        for kernel, references, dtype in self.kernels:
            operands = [read(each) for each in references]
            if kernel is choose_tile:
                value = np.where(*operands)
            elif kernel is copy_tile:
                value = operands[0].copy()
            else:
                value = operands[0] if kernel is cast_tile else kernel(*operands)
            values.append(value.astype(dtype, copy=False))
        for each, reference in zip(self.sums, self.summed, strict=True):
            shown: Any = np.broadcast_to(creation.asarray(read(reference)), self.domain)
            each.value = np.add.reduce(shown, axis=each.axes, dtype=np.float64)
            each.value = each.value.astype(each.dtype).reshape(each.shape)
        for number, each in self._numbered().items():
            if values[number].shape != each.shape:
                values[number] = np.broadcast_to(values[number], each.shape).copy()
        self.hand_out(dict(enumerate(values)))


class _Source:
    """The text of a plan's kernels.

    Attributes:
        numbers: the numbers that the kernels are called with, behind the inputs.
        written: number and dtype of each value that is an output.
        whole: the positions of the plan's sums over all axes.
        along_axes: the positions of the sums over some axes, by the axes.

    Raises Unwritten, when it is made, for operations and dtypes without a kernel.
    """

    def __init__(self, plan: GPUPlan) -> None:
        if not plan.inputs:
            raise Unwritten
        self.plan = plan
        self.numbers: list[Any] = []
        self._inputs = [f"{self._type(a.dtype)} i{k}" for k, a in enumerate(plan.inputs)]
        self._scalars: list[str] = []
        self._names: dict[tuple[Any, str], str] = {}
        self._statements = [
            self._statement(number, *each) for number, each in enumerate(plan.kernels)
        ]
        self._summed = [self._read(each, total.dtype) for each, total in
                        zip(plan.summed, plan.sums, strict=True)]  # fmt: skip
        self.written = [
            (number, self._checked(each.dtype)) for number, each in plan._numbered().items()
        ]
        axes = set(range(len(plan.domain)))
        everywhere = [set(each.axes) == axes for each in plan.sums]
        self.whole = [k for k, all_of_it in enumerate(everywhere) if all_of_it]
        self.along_axes: dict[tuple[int, ...], list[int]] = {}
        for k, all_of_it in enumerate(everywhere):
            if not all_of_it:
                self.along_axes.setdefault(tuple(sorted(plan.sums[k].axes)), []).append(k)

    # --- kernels --------------------------------------------------------------------------------

    def elementwise(self) -> Any:
        """The kernel that writes the outputs, and the partial sums of each block."""
        outputs = [f"{self._type(dtype)} o{number}" for number, dtype in self.written]
        outputs += [f"raw float64 p{k}" for k in range(len(self.whole))]
        body = [*self._statements, *[f"o{number} = v{number};" for number, _ in self.written]]
        body += [f"sum{k} += {self._summed[number]};" for k, number in enumerate(self.whole)]
        before = begin_sums(len(self.whole)) if self.whole else ""
        behind = end_sums(len(self.whole)) if self.whole else ""
        parameters = [*self._inputs, *self._scalars]
        text = (", ".join(parameters), ", ".join(outputs), "\n".join(body), before, behind)
        kernel = _kernels.get(text)
        if kernel is None:
            kernel = _kernels[text] = cupy().ElementwiseKernel(
                *text[:3],
                "gradcli_chain",
                no_return=True,
                loop_prep=before,
                after_loop=behind,
                options=_OPTIONS,
            )
        return kernel

    def reduction(self, positions: Sequence[int]) -> tuple[Any, list[Reference]]:
        """The kernel of sums over the same axes, and what it reads, written values among it."""
        statements, inputs = self._needed([self.plan.summed[k] for k in positions])
        operands = [
            self._inputs[k] if kind == "input" else f"{self._type(self.plan.kernels[k][2])} v{k}"
            for kind, k in inputs
        ] + self._scalars
        parameters = ", ".join(
            f"{C_TYPES[np.dtype(dtype)]} {name}" for dtype, name in map(str.split, operands)
        )
        names = ", ".join(each.split()[1] for each in operands)
        preamble = summing(parameters, statements, [self._summed[k] for k in positions])
        results = ", ".join(
            f"{self._type(self.plan.sums[k].dtype)} total{n}" for n, k in enumerate(positions)
        )
        text = (", ".join(operands), results, preamble)
        kernel = _kernels.get(text)
        if kernel is None:
            kernel = _kernels[text] = cupy().ReductionKernel(
                text[0],
                results,
                f"summed({names})",
                "a + b",
                ", ".join(f"total{n} = a.of[{n}]" for n in range(len(positions))),
                "0",
                "gradcli_sum",
                reduce_type="Sums",
                preamble=preamble,
                options=_OPTIONS,
            )
        return kernel, inputs

    def _needed(self, wanted: Sequence[Reference]) -> tuple[list[str], list[Reference]]:
        """The statements that compute some values, and the inputs and written values that these
        read.
        """
        written = {number for number, _ in self.written}
        computed: set[int] = set()
        read: set[Reference] = set()
        stack = list(wanted)
        while stack:
            kind, what = reference = stack.pop()
            if kind == "input" or (kind == "value" and what in written):
                read.add(reference)
            elif kind == "value" and what not in computed:
                computed.add(what)
                stack += self.plan.kernels[what][1]
        return [self._statements[k] for k in sorted(computed)], sorted(read) or [("input", 0)]

    # --- text -----------------------------------------------------------------------------------

    def _statement(
        self, number: int, kernel: Any, references: Sequence[Reference], dtype: Any
    ) -> str:
        types = operand_types(kernel, [self._kind(each) for each in references], dtype)
        operands = [
            self._read(each, wanted) for each, wanted in zip(references, types, strict=True)
        ]
        return statement(f"v{number}", kernel, operands, types, dtype)

    def _kind(self, reference: Reference) -> Any:
        kind, what = reference
        if kind == "number":
            return type(what) if type(what) in (bool, int, float) else what.dtype
        return self.plan._dtype(reference)

    def _read(self, reference: Reference, dtype: Any) -> str:
        """The name of an operand; a number becomes an argument of the kernel, of a dtype."""
        kind, what = reference
        if kind != "number":
            return f"{kind[0]}{what}"
        key = (self._type(dtype), repr(what))
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = f"s{len(self.numbers)}"
            self._scalars.append(f"{key[0]} {name}")
            self.numbers.append(dtype.type(what))
        return name

    def _type(self, dtype: Any) -> str:
        """CuPy's name of a dtype."""
        return str(self._checked(dtype).name)

    def _checked(self, dtype: Any) -> Any:
        if dtype not in C_TYPES:
            raise Unwritten
        return dtype
