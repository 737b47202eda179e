"""Passes over a trace of arrays: each makes another trace that gives the same bits.

None reorders floating-point arithmetic or effects, and none drops, delays or hoists what may raise.

    raising_first      what may raise goes ahead of all effects that outlive the run
    without_dead       what nothing needs is left out
    without_copies     a copy that nobody writes to is its original
    invariants_out     what is the same in every run is computed once, in the prologue
    outputs_late       what only the outputs need is computed when they are asked for
    memory_reused      results take the memory of operands that were read for the last time

No pass fuses ufuncs into tiles. Where results reuse their operands' memory, tiles gain nothing on
arrays of 60,000 elements and a tenth on 500,000. Larger arrays are lazy: the interpreter fuses
their ops, and compiled code exits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from gradcli.arrays.flat.planned import span_of
from gradcli.trace.builder import is_copy, is_ufunc
from gradcli.trace.ir import Effect, Inline, Instruction, Kernel, Trace, Value, replaced

_LARGE = 1 << 12
"""Bytes from which on memory is freed after its last use."""

FREE = Inline("{0} = None", "free", raises=False)
"""Frees the memory of a value."""


def optimized(trace: Trace, passes: Sequence[Callable[[Trace], Trace]] | None = None) -> Trace:
    """A trace after some passes, or all, in their order."""
    return reduce(lambda result, each: each(result), passes or PASSES, trace)


# --- what may raise -------------------------------------------------------------------------------

_COMMITS = frozenset({Effect.WRITES, Effect.GRAD, Effect.STATE, Effect.SHOWS})
"""The effects that outlive a run which is left in its middle; drawn random numbers go back."""


def commits(instruction: Instruction) -> bool:
    """Whether it has an effect that remains where a side exit follows."""
    return not _COMMITS.isdisjoint(instruction.effects)


def may_raise(instruction: Instruction) -> bool:
    """Whether it may raise in another run, whose inputs have the kinds of the recorded one."""
    if Effect.CHECKS in instruction.effects:
        return True
    if commits(instruction):
        return False
    op = instruction.op
    return op.raises if isinstance(op, (Inline, Kernel)) else not (is_ufunc(op) or is_copy(op))


def raising_first(trace: Trace) -> Trace:
    """Move what may raise, with what it needs, ahead of the first effect that outlives the run, so
    that a run which is left in its middle has left nothing. What cannot be moved stays: see
    `raising_behind_effects`.
    """
    every = trace.instructions
    first = next((number for number, each in enumerate(every) if commits(each)), len(every))
    behind = every[first:]
    moved: set[Instruction] = set()
    for number, each in enumerate(behind):
        if may_raise(each) and each not in moved:
            moved |= _needed_by(each, behind[:number], moved) or set()
    ahead = [each for each in behind if each in moved]
    rest = [each for each in behind if each not in moved]
    return trace.copy(instructions=[*every[:first], *ahead, *rest])


def _needed_by(
    raising: Instruction, earlier: Sequence[Instruction], moved: set[Instruction]
) -> set[Instruction] | None:
    """What has to move with an instruction, among those between the first effect and itself; None
    where an effect is among them, or changes what they read, or a clock would be read behind what
    is computed after it. Draws keep their order.
    """
    if commits(raising):
        return None
    together = {raising}
    needed = set(raising.reads)
    draws = Effect.RANDOM in raising.effects
    for each in reversed(earlier):
        if each in moved:
            continue
        is_draw = Effect.RANDOM in each.effects
        if (draws and is_draw) or not needed.isdisjoint(each.results):
            if commits(each):
                return None
            together.add(each)
            needed.update(each.reads)
            draws = draws or is_draw
    clock = next((n for n, each in enumerate(earlier) if Effect.CLOCK in each.effects), None)
    if clock is not None:
        passing = [raising, *together.intersection(earlier[clock:])]
        if any(arrays_of(each.results) for each in passing):
            return None
    read = arrays_of(needed)
    writes = [value for each in earlier for value in each.effects.get(Effect.WRITES, ())]
    return None if _overlap(read, arrays_of(writes)) else together


def raising_behind_effects(trace: Trace) -> Instruction | None:
    """The first instruction that may raise behind an effect that outlives the run, or with one."""
    has_committed = False
    for each in trace.instructions:
        has_committed = has_committed or commits(each)
        if has_committed and may_raise(each):
            return each
    return None


# --- what is needed -------------------------------------------------------------------------------


def without_dead(trace: Trace) -> Trace:
    """Remove the instructions that neither an output nor an effect needs, unless they may raise."""
    needed = {*trace.outputs, *_read(trace.epilogue)}
    body = []
    for instruction in reversed(trace.instructions):
        if (
            instruction.effects
            or not needed.isdisjoint(instruction.results)
            or may_raise(instruction)
        ):
            body.append(instruction)
            needed.update(instruction.reads)
    return trace.copy(instructions=body[::-1])


def without_copies(trace: Trace) -> Trace:
    """Replace a copy by its original, where neither is written to, an input or an output."""
    effects = [value for each in trace.instructions if each.effects for value in each.reads]
    moving = arrays_of([*effects, *trace.inputs, *trace.outputs])
    by: dict[Value, Value] = {}
    body = []
    for instruction in trace.instructions:
        instruction = _with_replaced(instruction, by)
        source = _copied(instruction, moving)
        if source is None:
            body.append(instruction)
        else:
            by[instruction.results[0]] = source
    return trace.copy(
        instructions=body, epilogue=[_with_replaced(each, by) for each in trace.epilogue]
    )


def _copied(instruction: Instruction, moving: Sequence[Any]) -> Value | None:
    """The value that an instruction copies, if layouts agree and neither is written to."""
    if not is_copy(instruction.op) or instruction.effects or len(instruction.inputs) != 1:
        return None
    (source,), (copy,) = instruction.inputs, instruction.results
    if not isinstance(source, Value) or type(source.array) is not type(copy.array):
        return None
    if source.array.dtype is not copy.array.dtype or source.array.strides != copy.array.strides:
        return None
    return None if _overlap([source.array, copy.array], moving) else source


def _with_replaced(instruction: Instruction, by: dict[Value, Value]) -> Instruction:
    if by.keys().isdisjoint(instruction.reads):
        return instruction
    return instruction.copy(inputs=tuple([replaced(each, by) for each in instruction.inputs]))


# --- when it is computed --------------------------------------------------------------------------


def invariants_out(trace: Trace) -> Trace:
    """Move loop-invariant instructions to the prologue: those that read only values that no run
    changes. What an effect reads is not moved: the effect may write to it or keep it.
    """
    effects = [value for each in trace.instructions if each.effects for value in each.reads]
    moving = [*written(trace), *arrays_of(effects)]
    lasting = trace.lasting
    prologue, body = list(trace.prologue), []
    for instruction in trace.instructions:
        read, results = list(instruction.reads), instruction.results
        if (
            results
            and not instruction.effects
            and not isinstance(instruction.op, Inline)
            and not may_raise(instruction)
            and lasting.issuperset(read)
            and not _overlap(arrays_of([*results, *read]), moving)
        ):
            prologue.append(instruction)
            lasting.update(results)
        else:
            body.append(instruction)
    return trace.copy(prologue=prologue, instructions=body)


def outputs_late(trace: Trace) -> Trace:
    """Move to the epilogue what only the outputs need, if nothing changes it or can raise."""
    changed = written(trace)
    dtypes = {array.dtype for array in changed}
    # An input may lie in memory that the trace writes to.
    inputs = [array for array in arrays_of(trace.inputs) if array.dtype in dtypes]
    moving = [*changed, *inputs]
    needed: set[Value] = set()
    shown = {*trace.outputs, *_read(trace.epilogue)}
    early, late = [], []
    for instruction in reversed(trace.instructions):
        read = list(instruction.reads)
        if (
            instruction.effects
            or isinstance(instruction.op, Inline)
            or not needed.isdisjoint(instruction.results)
            or may_raise(instruction)
            or _overlap(arrays_of(read), moving)
            or shown.isdisjoint(instruction.results)
        ):
            early.append(instruction)
            needed.update(read)
        else:
            late.append(instruction)
            shown.update(read)
    return trace.copy(instructions=early[::-1], epilogue=[*late[::-1], *trace.epilogue])


# --- where it lies --------------------------------------------------------------------------------


def memory_reused(trace: Trace) -> Trace:
    """Reuse the memory of operands at their last use for ufuncs, and free large arrays then."""
    lasting = trace.lasting
    last: dict[Value, int] = {}
    for number, instruction in enumerate(trace.instructions):
        last.update(dict.fromkeys(instruction.reads, number))
    last.update(dict.fromkeys(kept_values(trace), len(trace.instructions)))
    # The memory of constants and inputs is not reused; views of them may outlive the run, as do
    # the tensors that escape.
    escaped = trace.effects.get(Effect.ESCAPES, ())
    alive = _Alive(last, arrays_of([*trace.constants, *trace.inputs, *escaped]))
    lent = {*trace.inputs, *escaped}
    body = []
    for number, instruction in enumerate(trace.instructions):
        dying = [
            value
            for value in dict.fromkeys(instruction.reads)
            if value not in lasting
            and last[value] == number
            and value.array is not None
            and value.array.nbytes >= _LARGE
        ]
        for value in dying:
            alive.end(value)
        if _takes_memory(instruction):
            for value in dying:
                if (
                    value not in lent
                    and _is_laid_out_like(value.array, instruction.results[0].array)
                    and not alive.any_meets(value.array)
                ):
                    instruction = instruction.copy(params={"out": value})
                    break
        body.append(instruction)
        body += [Instruction(FREE, [value]) for value in dying]
    return trace.copy(instructions=body)


def _takes_memory(instruction: Instruction) -> bool:
    return is_ufunc(instruction.op) and not instruction.effects and not instruction.params


def _is_laid_out_like(old: Any, new: Any) -> bool:
    return bool(old.shape == new.shape and old.strides == new.strides and old.dtype is new.dtype)


class _Alive:
    """The memory of values that are still read, and of arrays that outlive the run: the bytes of
    all of them are looked at in one call, as a trace may have thousands.
    """

    def __init__(self, values: Iterable[Value], fixed: Iterable[Any]) -> None:
        known = [value for value in values if isinstance(value.array, np.ndarray)]
        self.places = {value: place for place, value in enumerate(known)}
        spans = [span_of(array) for array in (*arrays_of(known), *fixed)]
        self.lows, self.highs = np.array(spans, np.intp).reshape(-1, 2).T.copy()

    def end(self, value: Value) -> None:
        """A value is not read any more."""
        self.highs[self.places[value]] = 0

    def any_meets(self, array: Any) -> bool:
        """Whether any of them lies where an array does."""
        low, high = span_of(array)
        return bool(((self.lows < high) & (self.highs > low)).any())


# --- what several passes ask ----------------------------------------------------------------------


def kept_values(trace: Trace) -> list[Value]:
    """The values of a run that the epilogue and the outputs need."""
    late = {value for each in trace.epilogue for value in each.results}
    gone = late | trace.lasting
    return [v for v in dict.fromkeys([*_read(trace.epilogue), *trace.outputs]) if v not in gone]


def written(trace: Trace) -> list[Any]:
    """The arrays that a trace writes to."""
    return arrays_of(trace.effects.get(Effect.WRITES, ()))


def arrays_of(values: Iterable[Value]) -> list[Any]:
    """The arrays of values in the recorded run, for those that have one."""
    return [value.array for value in values if value.array is not None]


def _read(instructions: Iterable[Instruction]) -> list[Value]:
    return [value for instruction in instructions for value in instruction.reads]


def _overlap(arrays: Sequence[Any], others: Sequence[Any]) -> bool:
    return any(np.may_share_memory(one, other) for one in arrays for other in others)


PASSES = (raising_first, without_dead, without_copies, invariants_out, outputs_late, memory_reused)
"""All passes, in the order in which they run."""

SEPARATE_PASSES = (raising_first, without_dead, without_copies, memory_reused)
"""Those of a trace each of whose runs begins and ends by itself."""
