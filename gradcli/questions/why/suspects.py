"""What can make a gradient wrong: a backward() of the program's own, a hook, a write through
`.data`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradcli.autograd.custom_function import FunctionNode
from gradcli.autograd.graph import GraphNode
from gradcli.autograd.recording.recorder import Event
from gradcli.errors import Span
from gradcli.language.tree import syntax as tree
from gradcli.record import Record
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
    program: Sequence[tree.Statement], nodes: Sequence[GraphNode], events: Sequence[Event]
) -> list[Suspect]:
    """What may have made the gradients of a pass wrong, each place once."""
    candidates = [*_functions(program, nodes), *_hooks(program, nodes, events), *_writes(program)]
    return list({each.place.start: each for each in candidates}.values())


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
