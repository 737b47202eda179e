"""What can make a gradient wrong: a backward() of the program's own, a hook, a write through
`.data`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.custom_function import FunctionNode
from gradcli.autograd.graph import GraphNode
from gradcli.autograd.node import Node
from gradcli.autograd.recording.recorder import Event, Recorder
from gradcli.autograd.recording.trace_recorder import Call, TraceRecorder, Write
from gradcli.autograd.tensor import Tensor
from gradcli.errors import Span
from gradcli.language.tree import syntax as tree
from gradcli.record import Record
from gradcli.recorded.patterns import holds
from gradcli.recorded.walk import hook_calls


class Suspect(Record):
    """A place of the program that may make a gradient wrong.

    Attributes:
        returned: what backward() of a custom function returns there, where it does so in one place.
        incoming: the name of the gradient that it is given.
        function: the custom function that has it.
    """

    place: Span
    text: str
    help: str | None = None
    returned: tree.Expression | None = None
    incoming: str = ""
    function: tree.Class | None = None


def suspects(
    program: Sequence[tree.Statement],
    nodes: Sequence[GraphNode],
    events: Sequence[Event],
    recorder: Recorder | None = None,
) -> list[Suspect]:
    """What may have made the gradients of a pass wrong, each place once.

    Args:
        recorder: what heard the run, if it knows of writes: one ahead of all that reads what is
            written changes nothing that the graph has.
    """
    writes = list(_writes(program))
    if writes and isinstance(recorder, TraceRecorder):
        heard, late = _late_writes(recorder, {each.node for each in nodes})
        known = [each for each in writes if not _any_in(each.place, heard)]
        writes = [e for e in writes if e in known or _any_in(e.place, late)]
    candidates = [*_functions(program, nodes), *_hooks(program, nodes, events), *writes]
    return list({each.place.start: each for each in candidates}.values())


def _late_writes(recorder: TraceRecorder, nodes: Container[Node]) -> tuple[list[Span], list[Span]]:
    """The places of all writes, and of those to what a node of a graph read or gave before."""
    used: list[Tensor] = []
    heard: list[Span] = []
    late: list[Span] = []
    for each in recorder.trace.instructions:
        if isinstance(each, Call):
            if each.node is not None and each.node in nodes:
                values = [*each.arguments.values(), each.output]
                used += [value for value in values if type(value) is Tensor]
        elif isinstance(each, Write) and each.span is not None:
            heard.append(each.span)
            if any(_shares_memory(each.tensor, tensor) for tensor in used):
                late.append(each.span)
    return heard, late


def _shares_memory(one: Tensor, other: Tensor) -> bool:
    arrays = (to_host(forced(one.array)), to_host(forced(other.array)))
    return one is other or bool(np.may_share_memory(*arrays))


def _any_in(place: Span, spans: Sequence[Span]) -> bool:
    return any(holds(place, each) or holds(each, place) for each in spans)


def without_second(program: Sequence[tree.Statement], nodes: Sequence[GraphNode]) -> list[Suspect]:
    """The custom functions of a graph, whose backward() may have no derivative of its own."""
    help = "it has one where backward() computes with tensors of its graph, saved ones among them"
    return [
        Suspect(
            each.place,
            f"the second derivative is that of {each.text.partition(' ')[0]}'s backward()",
            help,
        )
        for each in _functions(program, nodes)
    ]


def _functions(program: Sequence[tree.Statement], nodes: Sequence[GraphNode]) -> Iterator[Suspect]:
    """What `backward` of custom functions returns."""
    used = {each.name for each in nodes if isinstance(each.node, FunctionNode)}
    for each in tree.nodes_of(list(program)):
        if not isinstance(each, tree.Class) or f"{each.name}Backward" not in used:
            continue
        for method in each.body:
            if isinstance(method, tree.Def) and method.name == "backward":
                returns = [n for n in tree.nodes_of(method.body) if isinstance(n, tree.Return)]
                place = returns[-1].span if returns else method.span
                text = f"`{each.name}` has a backward() of its own, and this is what it returns"
                help = "compare it with the derivative of forward()"
                value = returns[-1].value if len(returns) == 1 else None
                names = [parameter.name for parameter in method.parameters.parameters]
                incoming = names[1] if len(names) == 2 else ""
                yield Suspect(place, text, help, value if incoming else None, incoming, each)


def _hooks(
    program: Sequence[tree.Statement], nodes: Sequence[GraphNode], events: Sequence[Event]
) -> Iterator[Suspect]:
    """The registrations of hooks that changed a gradient."""
    variables = {each.node: each.variable for each in nodes}
    for call, owner in hook_calls(program, variables, events, variables):
        text = f"a hook of `{owner}` changes the gradient that passes on"
        yield Suspect(call.span, text, "what a hook returns takes the gradient's place")


def _writes(program: Sequence[tree.Statement]) -> Iterator[Suspect]:
    """Writes through `.data`, which no version counts."""
    for each in tree.nodes_of(list(program)):
        written: list[tree.Expression] = []
        if isinstance(each, tree.Call) and isinstance(each.function, tree.Attribute):
            name = each.function.name
            written = [each.function.value] if name[-1:] == "_" != name[-2:-1] else []
        elif isinstance(each, tree.AugmentedAssign):
            written = [each.target]
        elif isinstance(each, tree.Assign):
            written = list(each.targets)
        for target in written:
            inner = target.value if isinstance(target, tree.Subscript) else target
            if isinstance(inner, tree.Attribute) and inner.name == "data":
                owner = inner.value.span.text
                text = (
                    f"a write through `.data`: what the graph saved of `{owner}` before is changed"
                )
                help = f"compute with a value of its own, or write to `{owner}` under no_grad()"
                yield Suspect(each.span, text, f"{help}, which is noticed")
