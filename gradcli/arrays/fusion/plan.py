"""Fused plans: a pass over lazy arrays runs all their ops on one tile of memory, then on the next.

A plan has one domain, the shape over which its ops run, and may have many outputs: several
gradients that share work come out of one pass, sums with it. Tiles are rows of the domain, small
enough for their intermediate values to stay in the cache; threads take them in turn, as NumPy's
loops release the interpreter's lock. Results do not depend on which thread takes which tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.fusion.lazy import LAZY, LONG, Constant, Sum
from gradcli.arrays.fusion.tile_kernels import copy_tile
from gradcli.arrays.threads import in_threads, tile_rows

Reference = tuple[str, Any]
"""Where an operand is: `("value", number)`, `("input", number)`, or `("number", itself)`."""


class FusedPlan:
    """One pass over a domain.

    Args:
        order: the arrays that are computed, operands first.
        outputs: those whose values are wanted.
        domain: the shape that the ops run over.

    Attributes:
        memory: where to write an output, by its `id`; others are given memory of their own.
    """

    def __init__(
        self, order: Sequence[Any], outputs: Sequence[Any], domain: tuple[int, ...]
    ) -> None:
        self.outputs = list({id(each): each for each in outputs}.values())
        self.sums = [each for each in self.outputs if type(each) is Sum]
        self.inputs: list[Any] = []
        self.memory: dict[int, Any] = {}
        self.domain = domain
        self._number(order)
        self._flatten()
        self._assign_registers()

    # --- planning -------------------------------------------------------------------------------

    def _number(self, order: Sequence[Any]) -> None:
        """Give every value a number, the same one to what is computed the same way twice."""
        self.kernels: list[tuple[Any, tuple[Reference, ...], Any]] = []
        self.references: dict[int, Reference] = {}
        known: dict[Any, int] = {}
        wanted = {id(each) for each in self.outputs}
        for array in order:
            if type(array) is Sum:
                continue
            operands = tuple(map(self._reference, array.operands))
            if array.kernel is copy_tile and id(array) not in wanted:
                self.references[id(array)] = operands[0]  # it is never written to
                continue
            if array.kernel is np.multiply and id(array) not in wanted:
                same = [each for each in operands if each[0] != "number" or each[1] != 1]
                if len(same) == 1 and self._dtype(same[0]) == array.dtype:
                    self.references[id(array)] = same[0]
                    continue
            # The text differs for 0.0 and -0.0; a copy that is an output is never shared.
            key = (array.kernel, *[(kind, repr(what), type(what)) for kind, what in operands])
            if array.kernel is copy_tile:
                key = (*key, id(array))
            number = known.get(key)
            if number is None:
                number = known[key] = len(self.kernels)
                self.kernels.append((array.kernel, operands, array.dtype))
            self.references[id(array)] = ("value", number)
        self.summed = [self._reference(each.operands[0]) for each in self.sums]

    def _reference(self, operand: Any) -> Reference:
        """Where a kernel finds an operand: a value by its number, an input by its own, or a number
        as it is.
        """
        if type(operand) not in LAZY:
            return ("number", operand)
        if type(operand) is Constant:
            return ("number", operand.number)
        if id(operand) in self.references:
            return self.references[id(operand)]
        if not operand.shape:
            return ("number", operand.value[()])
        self.references[id(operand)] = reference = ("input", len(self.inputs))
        self.inputs.append(operand.value)
        return reference

    def _dtype(self, reference: Reference) -> Any:
        kind, what = reference
        if kind == "number":
            return None
        return self.kernels[what][2] if kind == "value" else self.inputs[what].dtype

    def _flatten(self) -> None:
        """Join all dimensions to one where all inputs are contiguous in the same order."""
        if not self.domain:
            self.domain = (1,)
        whole = all(set(each.axes) == set(range(len(self.domain))) for each in self.sums)
        if len(self.domain) != 1 and whole:
            rows = self.inputs
            if all(a.shape == self.domain and a.flags.c_contiguous for a in rows):
                self.inputs = [a.reshape(-1) for a in rows]
                self.domain = (prod(self.domain),)
        self.flat = len(self.domain) == 1
        self.rows = tile_rows(self.domain)
        dimensions = len(self.domain)
        self.sliced = [
            a.ndim == dimensions and a.shape[0] == self.domain[0] and self.domain[0] != 1
            for a in self.inputs
        ]

    def _assign_registers(self) -> None:
        """Reuse the memory of values after their last use."""
        last: dict[int, int] = {}
        for position, (_, references, _) in enumerate(self.kernels):
            for kind, number in references:
                if kind == "value":
                    last[number] = position
        kept = {self.references[id(each)][1] for each in self.outputs if type(each) is not Sum}
        for kind, number in self.summed:
            if kind == "value":
                last[number] = len(self.kernels)
        self.written: dict[int, int] = {}
        self.registers: list[Any] = []
        self.register_of: list[int] = []
        free: dict[Any, list[int]] = {}
        for position, (kernel, references, dtype) in enumerate(self.kernels):
            dying = {
                number
                for kind, number in references
                if kind == "value" and last.get(number) == position and number not in kept
            }
            in_place = isinstance(kernel, np.ufunc)
            if in_place:
                self._release(dying, free)
            if position in kept:
                self.register_of.append(-1)
            else:
                vacant = free.get(dtype)
                if vacant:
                    self.register_of.append(vacant.pop())
                else:
                    self.register_of.append(len(self.registers))
                    self.registers.append(dtype)
            if not in_place:
                self._release(dying, free)

    def _release(self, numbers: set[int], free: dict[Any, list[int]]) -> None:
        for number in numbers:
            free.setdefault(self.kernels[number][2], []).append(self.register_of[number])

    # --- running --------------------------------------------------------------------------------

    def run(self) -> None:
        """Compute the outputs and give them their values."""
        full: dict[int, Any] = {}
        for each in self.outputs:
            if type(each) is not Sum:
                number = self.references[id(each)][1]
                if id(each) in self.memory:
                    full[number] = self.memory[id(each)].reshape(self.domain)
                elif number not in full:
                    full[number] = np.empty(self.domain, each.dtype)
        length = self.domain[0] if self.domain else 1
        blocks = -(-length // self.rows) if length else 0
        partial: list[list[Any]] = [[None] * blocks for _ in self.sums]
        turns = count()

        def work() -> None:
            registers = [np.empty((self.rows, *self.domain[1:]), dtype) for dtype in self.registers]
            with np.errstate(all="ignore"):
                while (block := next(turns)) < blocks:
                    self._run_tile(block, length, registers, full, partial)

        in_threads(work, blocks)
        for each, sums in zip(self.sums, partial, strict=True):
            each.value = _total(each, sums)
        self.hand_out(full)
        for each in self.outputs:
            each.operands = ()  # frees the memory that it was computed from

    def hand_out(self, values: dict[int, Any]) -> None:
        """Give the outputs that are no sums their values, by number: each memory of its own, also
        where two are computed alike.
        """
        handed_out: set[int] = set()
        for each in self.outputs:
            if type(each) is not Sum:
                number = self.references[id(each)][1]
                value = values[number].reshape(each.shape)
                if number in handed_out:
                    value = value.copy()
                handed_out.add(number)
                each.value = value if each.shape else value[()]

    def _run_tile(
        self,
        block: int,
        length: int,
        registers: list[Any],
        full: dict[int, Any],
        partial: list[list[Any]],
    ) -> None:
        start = block * self.rows
        stop = min(start + self.rows, length)
        size = stop - start
        if size != self.rows:
            registers = [register[:size] for register in registers]
        inputs = [
            array[start:stop] if sliced else array
            for array, sliced in zip(self.inputs, self.sliced, strict=True)
        ]
        values: list[Any] = []
        for number, (kernel, references, _) in enumerate(self.kernels):
            register = self.register_of[number]
            out = full[number][start:stop] if register < 0 else registers[register]
            operands = [
                values[what] if kind == "value" else inputs[what] if kind == "input" else what
                for kind, what in references
            ]
            kernel(*operands, out=out)
            values.append(out)
        for number, (each, (kind, what)) in enumerate(zip(self.sums, self.summed, strict=True)):
            value = values[what] if kind == "value" else inputs[what] if kind == "input" else what
            value = np.broadcast_to(value, (size, *self.domain[1:]))
            axes = (0,) if self.flat else each.axes
            # NumPy adds rows one after the other, which loses digits where they are many.
            wide = np.float64 if size > LONG and not self.flat and 0 in axes else None
            partial[number][block] = np.add.reduce(value, axis=axes, keepdims=True, dtype=wide)


def _total(array: Sum, partial: list[Any]) -> Any:
    """A sum from the sums of its tiles."""
    if 0 in array.axes:
        total = np.add.reduce(np.stack(partial), axis=0, dtype=np.float64).astype(array.dtype)
    else:
        total = np.concatenate(partial)
    return total.reshape(array.shape)[()]
