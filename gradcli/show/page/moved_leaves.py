"""Whether a graph's output is all that other values of its leaves would change: what stands in the
way, as a slider of the page needs to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from gradcli.autograd.graph import Graph, GraphNode
from gradcli.autograd.recording.trace_recorder import UPDATE, Call, TraceRecorder, Write
from gradcli.autograd.tensor import Tensor
from gradcli.errors import Span
from gradcli.ops.definition.doc import READS
from gradcli.ops.indexing.basic import Key
from gradcli.record import Record
from gradcli.show.page.computing import CHOOSING, COMPARING
from gradcli.trace.ir import ALIAS, Effect, Instruction, Value, values_in


class Obstacle(Record):
    """Why other values of leaves could make more than the graph's operations make of them.

    Attributes:
        reason: a clause, for a person.
        place: where the program does it, None where nothing of the program's text is at fault.
    """

    reason: str
    place: Span | None = None


def obstacle(graph: Graph, recorder: TraceRecorder, leaves: Sequence[Tensor]) -> Obstacle | None:
    """The first thing that happens to the values of some leaves outside of the graph and before its
    end: a number leaves a tensor, which may decide anything, or something is computed of them that
    gradients do not know, and then enters the graph. None where there is no such thing.

    What does not come from the leaves, such as data and labels, is no obstacle: it stays as it is.
    """
    instructions = recorder.trace.instructions
    last = max((at for at, each in enumerate(instructions) if _is_within(each, graph)), default=-1)
    arrays = [leaf.array for leaf in leaves]
    ids = {id(leaf) for leaf in leaves}
    inside = {
        value
        for each in instructions[: last + 1]
        if _is_within(each, graph)
        for value in each.reads
        if id(recorder.tensors[value.number]) in ids
    }
    # What shows a leaf's memory and was there before the leaf was read, such as `x.detach()`.
    shown = Obstacle("the output depends on a value that has no gradient")
    outside = {
        value: shown
        for value in (*recorder.trace.inputs, *recorder.trace.constants)
        if _shows(recorder.tensors[value.number], leaves)
    }
    conditions: dict[Value, Obstacle] = {}
    for each in instructions[: last + 1]:
        if getattr(each.op, "of_shapes", False):
            continue
        within = _is_within(each, graph)
        reads = [*each.reads, *_positions(each, recorder)]
        source = next((outside[value] for value in reads if value in outside), None)
        compares = _compares(each, recorder)
        if source is None and not compares:
            values = _chosen_from(each) if within and _chooses(each) else reads
            source = next((conditions[value] for value in values if value in conditions), None)
        touched = source is not None or any(
            value in inside or value in conditions for value in reads
        )
        if not touched and not _reads_memory(each, arrays):
            continue
        if Effect.READS in each.effects or _sized_by_values(each):
            return Obstacle("a number is taken out of a tensor", each.span)
        if within and source is not None:
            return Obstacle(shown.reason, each.span) if source is shown else source
        # A leaf that shows what was met before it is itself all the same.
        own = inside.intersection(each.results) if each.op is ALIAS else ()
        carried = {*_carried_on(each, inside, recorder), *own}
        inside.update(carried)
        cut = Obstacle(shown.reason, each.span) if source in (None, shown) else source
        into = conditions if source is None and compares else outside
        into.update((value, cut) for value in each.results if value not in carried)
    return None


def _chooses(instruction: Instruction) -> TypeGuard[Call]:
    """Whether a condition chooses between operands, which the page can do anew."""
    return isinstance(instruction, Call) and instruction.op.name.partition(".")[0] in CHOOSING


def _chosen_from(instruction: Call) -> list[Value]:
    """What a choosing operation reads beside its condition."""
    operands = instruction.operands.items()
    return [*values_in([each for name, each in operands if name not in ("condition", "mask")])]


def _compares(instruction: Instruction, recorder: TraceRecorder) -> bool:
    """Whether an instruction makes a condition of what tensors hold still."""
    return (
        isinstance(instruction, Call)
        and instruction.op.name.partition(".")[0] in COMPARING
        and all(
            recorder.find(tensor) is instruction.operands[name]
            for name, tensor in instruction.arguments.items()
            if type(tensor) is Tensor
        )
    )


def _sized_by_values(instruction: Instruction) -> bool:
    """Whether values say how many elements an operation gives, as those of `unique` do; of those
    that are picked by positions, the positions say it.
    """
    keys = instruction.arguments.values() if isinstance(instruction, Call) else ()
    declared = getattr(instruction.op, "effects", ())
    return READS in declared and not any(type(key) is Key for key in keys)


def _positions(instruction: Instruction, recorder: TraceRecorder) -> list[Value]:
    """The values of the tensors that an instruction takes as positions of elements."""
    keys = instruction.arguments.values() if isinstance(instruction, Call) else ()
    return [recorder.find(each) for key in keys if type(key) is Key for each in key.sources]


def is_hooked(node: GraphNode) -> bool:
    """Whether a hook may change the gradients at a node."""
    leaf, extra = node.leaf, node.node.extra
    if leaf is not None and leaf.meta is not None and leaf.meta.hooks:
        return True
    return extra is not None and bool(extra.tensor_hooks or extra.prehooks or extra.hooks)


def _reads_memory(instruction: Instruction, arrays: Sequence[Any]) -> bool:
    """Whether one of these arrays is read before the trace knows it as a value."""
    memories = [each for each in instruction.inputs if isinstance(each, (np.ndarray, np.generic))]
    return any(one is other or _share(one, other) for one in memories for other in arrays)


def _shows(tensor: Tensor | None, leaves: Sequence[Tensor]) -> bool:
    """Whether a tensor has the memory of one of these leaves, or a part of it, and is another."""
    return tensor is not None and any(
        tensor is not leaf and _share(tensor.array, leaf.array) for leaf in leaves
    )


def _share(one: Any, other: Any) -> bool:
    both = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    return both and np.may_share_memory(one, other)


def _is_within(instruction: Instruction, graph: Graph) -> bool:
    """Whether an instruction is an operation of the graph."""
    node = instruction.node if isinstance(instruction, Call) else None
    return node is not None and graph.find(node) is not None


def _carried_on(
    instruction: Instruction, inside: set[Value], recorder: TraceRecorder
) -> set[Value]:
    """The results of an instruction that the graph knows how to compute: those of an operation that
    have gradients, and a value with a history given to another tensor with it.

    A write that counts and has no instruction of its own, such as one into a part of a tensor, has
    a node that the page looks at.
    """
    if isinstance(instruction, Call):
        results = instruction.results if instruction.node is not None else ()
        return {value for value in results if _requires_grad(value, recorder)}
    source = instruction.inputs[-1] if instruction.inputs else None
    if not isinstance(source, Value) or source not in inside:
        return set()
    if isinstance(instruction, Write):
        carries = instruction.tensor.requires_grad
    else:
        carries = instruction.op in (ALIAS, UPDATE) and all(
            _requires_grad(value, recorder) for value in instruction.results
        )
    return {*instruction.results} if carries else set()


def _requires_grad(value: Value, recorder: TraceRecorder) -> bool:
    tensor = recorder.tensors[value.number]
    return tensor is not None and tensor.requires_grad
