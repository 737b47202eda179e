"""Plans of lazy arrays on a GPU: one generated kernel for all operations of a plan.

The kernel reads every input once, keeps the values in between in registers and writes the outputs;
sums over everything come out of the same pass, sums over some axes out of a reduction that
computes its elements as it reads. Compiled kernels are kept by their text, which holds no number
of a program and no size.

Every operation rounds as on its own: multiplications and additions are not contracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.fusion.cuda_source import (
    BLOCK_SIZE,
    C_TYPES,
    Unwritten,
    begin_sums,
    end_sums,
    operand_types,
    statement,
)
from gradcli.arrays.fusion.lazy import LAZY, Constant, Sum
from gradcli.arrays.fusion.plan import FusedPlan, Reference
from gradcli.arrays.fusion.tile_kernels import cast_tile, choose_tile, copy_tile
from gradcli.arrays.gpu import creation
from gradcli.arrays.gpu.array import GPUArray
from gradcli.arrays.gpu.runtime import cupy

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
        """CuPy finds the dimensions that can be taken together."""

    def _assign_registers(self) -> None:
        """The compiler does."""

    def run(self) -> None:
        """Compute the outputs and give them their values."""
        try:
            source = _Source(self)
        except Unwritten:
            self._run_separately()
        else:
            self._run_fused(source)
        for each in self.outputs:
            each.operands = ()  # lets go of the memory that it was computed from

    def _numbered(self) -> dict[int, Any]:
        """The outputs that are no sums, by the number of their value; each number once."""
        found: dict[int, Any] = {}
        for each in self.outputs:
            if type(each) is not Sum:
                found.setdefault(self.references[id(each)][1], each)
        return found

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
        for position in source.along_axes:
            each = self.sums[position]
            read = list(arrays)
            if all(array.shape != self.domain for array in read):
                read[0] = cupy().broadcast_to(read[0], self.domain)
            found = source.reduction(position)(*read, *source.numbers, axis=each.axes)
            each.value = GPUArray(found).reshape(each.shape)
        self.hand_out(written)

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
            shown = np.broadcast_to(creation.asarray(read(reference)), self.domain)
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
        whole: which of the plan's sums run over all axes.
        along_axes: which run over some.

    Raises Unwritten, when it is made, where a plan has what kernels are not written for.
    """

    def __init__(self, plan: GPUPlan) -> None:
        self.plan = plan
        self.numbers: list[Any] = []
        self._parameters = [f"{self._type(a.dtype)} i{k}" for k, a in enumerate(plan.inputs)]
        self._names: dict[tuple[Any, str], str] = {}
        self._statements = [
            self._statement(number, *each) for number, each in enumerate(plan.kernels)
        ]
        self._summed = [self._read(each, sum_.dtype) for each, sum_ in
                        zip(plan.summed, plan.sums, strict=True)]  # fmt: skip
        self.written = [
            (number, self._checked(each.dtype)) for number, each in plan._numbered().items()
        ]
        axes = set(range(len(plan.domain)))
        everywhere = [set(each.axes) == axes for each in plan.sums]
        self.whole = [k for k, all_of_it in enumerate(everywhere) if all_of_it]
        self.along_axes = [k for k, all_of_it in enumerate(everywhere) if not all_of_it]

    # --- kernels --------------------------------------------------------------------------------

    def elementwise(self) -> Any:
        """The kernel that writes the outputs, and the partial sums of each block."""
        outputs = [f"{self._type(dtype)} o{number}" for number, dtype in self.written]
        outputs += [f"raw float64 p{k}" for k in range(len(self.whole))]
        body = [*self._statements, *[f"o{number} = v{number};" for number, _ in self.written]]
        body += [f"sum{k} += {self._summed[number]};" for k, number in enumerate(self.whole)]
        before = begin_sums(len(self.whole)) if self.whole else ""
        behind = end_sums(len(self.whole)) if self.whole else ""
        text = (", ".join(self._parameters), ", ".join(outputs), "\n".join(body), before, behind)
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

    def reduction(self, position: int) -> Any:
        """The kernel of one of the sums over some axes."""
        given = ", ".join(f"{C_TYPES[_dtype_named(each)]} {each.split()[1]}" for each in
                          self._parameters)  # fmt: skip
        names = ", ".join(each.split()[1] for each in self._parameters)
        function = "\n".join(
            [
                f"__device__ double summed({given}) {{",
                *self._statements,
                f"return {self._summed[position]};",
                "}",
            ]
        )
        result = f"{self._type(self.plan.sums[position].dtype)} total"
        text = (", ".join(self._parameters), result, function)
        kernel = _kernels.get(text)
        if kernel is None:
            kernel = _kernels[text] = cupy().ReductionKernel(
                text[0],
                result,
                f"summed({names})",
                "a + b",
                "total = a",
                "0",
                "gradcli_sum",
                reduce_type="double",
                preamble=function,
                options=_OPTIONS,
            )
        return kernel

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
            self._parameters.append(f"{key[0]} {name}")
            self.numbers.append(dtype.type(what))
        return name

    def _type(self, dtype: Any) -> str:
        """CuPy's name of a dtype."""
        return str(self._checked(dtype).name)

    def _checked(self, dtype: Any) -> Any:
        if dtype not in C_TYPES:
            raise Unwritten
        return dtype


def _dtype_named(parameter: str) -> Any:
    return np.dtype(parameter.split()[0])
