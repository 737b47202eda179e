"""The output of a program as a function of its leaves: the recorded calls that lead from these to
it are made again with other values, and nothing else of the program runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.recording.trace_recorder import Call, TraceRecorder, source_of
from gradcli.autograd.tensor import Tensor
from gradcli.ops.definition.op import Op
from gradcli.record import Record
from gradcli.running.rerun import Executed
from gradcli.session import Session
from gradcli.state import active
from gradcli.trace.ir import Effect, Operand, Value, values_in

_DECIDES = (Effect.READS, Effect.CHECKS)
"""What an instruction does by which the program may take another path for other values."""


class _Step(Record):
    """A call that is made again.

    Attributes:
        sources: the leaves that it depends on, by name.
        ends: the numbers of values that no later step reads.
    """

    call: Call
    sources: frozenset[str]
    ends: Sequence[int] = ()


class Recomputed:
    """The output of a recorded run for other values of its leaves.

    Args:
        steps: the calls that lead from the leaves to the output, in order.
        leaves: the names of the leaves, by the numbers of their values.
        output: the value of the output.
    """

    def __init__(
        self, session: Session, steps: Sequence[_Step], leaves: Mapping[int, str], output: Value
    ) -> None:
        self._session = session
        self._steps = steps
        self._leaves = leaves
        self._output = output
        self._constants: dict[int, Tensor] = {}
        self._chosen: dict[frozenset[str], list[_Step]] = {}

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """The array of the output, with other arrays for some of the leaves."""
        names = frozenset(values)
        steps = self._chosen.get(names)
        if steps is None:
            chosen = [each for each in self._steps if not names.isdisjoint(each.sources)]
            steps = self._chosen[names] = _with_ends(chosen, self._output)
        known: dict[int, Tensor] = {}
        for number, name in self._leaves.items():
            if name in values:
                known[number] = Tensor(np.asarray(values[name])[()])
        with self._session.running():
            state = active.state
            before = state.recorder, state.grad_enabled
            state.recorder, state.grad_enabled = None, False
            try:
                for step in steps:
                    self._make(step, known)
                return np.asarray(to_host(forced(self._read(self._output, known).array)))
            finally:
                state.recorder, state.grad_enabled = before

    def _make(self, step: _Step, known: dict[int, Tensor]) -> None:
        """Make a call again, and let go what is not read any more."""
        operands = [self._read(each, known) for each in step.call.operands.values()]
        made = step.call.op.apply(*operands)
        outputs = made if type(made) is tuple else (made,)
        for value, output in zip(step.call.outputs, outputs, strict=True):
            if value is not None:
                known[value.number] = output
        for number in step.ends:
            known.pop(number, None)

    def _read(self, operand: Operand, known: Mapping[int, Tensor]) -> Any:
        """An operand with its tensors: those that were computed again, or of the recorded run."""
        if isinstance(operand, Value):
            value = source_of(operand)
            again = known.get(value.number)
            if again is not None:
                return again
            constant = self._constants.get(value.number)
            if constant is None:
                constant = self._constants[value.number] = Tensor(np.asarray(value.array)[()])
            return constant
        if type(operand) is list:
            return [self._read(each, known) for each in operand]
        return tuple(self._read(e, known) for e in operand) if type(operand) is tuple else operand


def _with_ends(steps: Sequence[_Step], output: Value) -> list[_Step]:
    """Steps that say which values no later one reads."""
    last = {
        source_of(value).number: number
        for number, step in enumerate(steps)
        for value in values_in(step.call.operands.values())
    }
    last.pop(output.number, None)
    ends: dict[int, list[int]] = {}
    for value, number in last.items():
        ends.setdefault(number, []).append(value)
    return [_Step(step.call, step.sources, ends.get(n, ())) for n, step in enumerate(steps)]


def recomputed(executed: Executed) -> Recomputed | None:
    """The output of a run that was recorded with its values; None where other values may lead the
    program along another path, or a call cannot be made again by itself.
    """
    recorder = executed.run.session.recorder
    assert isinstance(recorder, TraceRecorder)
    assert executed.output is not None
    known = recorder.known(executed.output)
    if known is None:
        return None
    output = source_of(known)
    names = {id(leaf): name for name, leaf in executed.leaves.items()}
    tensors = zip(recorder.values, recorder.tensors, strict=True)
    all_leaves = {v.number: names[id(t)] for v, t in tensors if t is not None and id(t) in names}
    calls, leaves = _leading_to(output, all_leaves)
    if output.number in leaves or len(set(leaves.values())) < len(leaves):
        return None  # a leaf itself; or one that was written to between two of its uses
    depends: dict[int, frozenset[str]] = {n: frozenset((name,)) for n, name in leaves.items()}
    steps = []
    instructions = recorder.trace.instructions
    end = max((n for n, each in enumerate(instructions) if id(each) in calls), default=-1)
    for instruction in instructions[: end + 1]:
        read = (depends.get(source_of(each).number, _NONE) for each in instruction.reads)
        sources = _NONE.union(*read)
        if not sources:
            continue
        if any(each in instruction.effects for each in _DECIDES):
            return None
        for value in instruction.results:
            if value.number not in leaves:
                depends[value.number] = sources
        if id(instruction) in calls:
            assert isinstance(instruction, Call)
            if not _is_whole(instruction):
                return None
            steps.append(_Step(instruction, sources))
    return Recomputed(executed.run.session, steps, leaves, output)


_NONE: frozenset[str] = frozenset()


def _leading_to(output: Value, leaves: Mapping[int, str]) -> tuple[dict[int, Call], dict[int, str]]:
    """The calls that lead to a value, by their `id`, and the values of leaves that they read."""
    calls: dict[int, Call] = {}
    used: dict[int, str] = {}
    stack, seen = [output], {output.number}
    while stack:
        value = stack.pop()
        if value.number in leaves:
            used[value.number] = leaves[value.number]
        elif isinstance(value.maker, Call):
            calls[id(value.maker)] = value.maker
            for each in map(source_of, value.maker.reads):
                if each.number not in seen:
                    seen.add(each.number)
                    stack.append(each)
    return calls, used


def _is_whole(call: Call) -> bool:
    """Whether a call can be made again from its operands: of an entry that draws nothing, and whose
    operands are known whole.
    """
    op = call.op
    if not isinstance(op, Op) or Effect.RANDOM in call.effects:
        return False
    is_in_order = tuple(call.arguments) == op.parameters[: len(call.arguments)]
    return is_in_order and all(
        each.array is not None or each.maker is not None for each in call.reads
    )
