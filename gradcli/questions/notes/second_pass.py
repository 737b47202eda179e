"""What to do about a second pass through a freed graph: it depends on what kept the graph alive."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.language.tree import syntax as tree
from gradcli.recorded.patterns import holds
from gradcli.running.arguments.name_uses import ASSIGNED, READ, all_name_uses

if TYPE_CHECKING:
    from gradcli.errors import GradcliError, Span

Loop = tree.For | tree.While


def advise_on_second_pass(
    error: GradcliError, statements: Sequence[tree.Statement], values: Mapping[str, Any]
) -> None:
    """Let E403 advise what its cause asks for: `detach()` for what a loop carries on, another place
    for what is computed before it, `retain_graph=True` for two passes one after the other.
    """
    saved = next(
        (label.span for label in error.labels if label.text.endswith("saved values here")), None
    )
    freed = next((label.span for label in error.labels if label.text == "freed here"), None)
    needed = next((label.span for label in error.labels if label.text == "needed here"), None)
    if (
        freed is not None
        and needed is not None
        and _differentiates_a_gradient(statements, freed, needed)
    ):
        error.help = (
            "what grad() returned is differentiated here: pass it create_graph=True, which keeps"
            " the graph too"
        )
        return
    # Entries of a session all begin at 0.
    again = freed is not None and needed is not None and freed.source is needed.source
    if freed is None or needed is None or not again or freed.start != needed.start:
        error.help = (
            "pass retain_graph=True to the first backward(), or add the losses up and call"
            " backward() once"
        )
        return
    loop = _innermost_loop(statements, [needed, *_calls(error)])
    if loop is None:
        error.help = "the graph of an earlier call is part of this one: detach() what it hands on"
        return
    if saved is None or holds(loop.span, saved) or not _stands_in(statements, saved):
        error.help = _carried(loop, values)
        return
    name = _assigned_at(statements, saved)
    shown = f"`{name}`" if name else "it"
    error.help = (
        f"{shown} is computed once, before the loop, and the first backward() freed its graph:"
        " compute it inside the loop, or detach() it if it needs no gradient"
    )


def advise_on_step(error: GradcliError, statements: Sequence[tree.Statement]) -> None:
    """Let E404 of a step in a loop say what is computed before the loop, with parameters that the
    step changes.
    """
    places = {label.text.partition(" ")[0]: label.span for label in error.labels}
    stepped = places.get("modified")
    saved = next(
        (e.span for e in error.labels if e.text.endswith(" here") and " saved " in e.text), None
    )
    if saved is None or stepped is None or not stepped.text.endswith("step()"):
        return
    loop = _innermost_loop(statements, [stepped])
    if loop is None or holds(loop.span, saved) or not _stands_in(statements, saved):
        return
    name = _assigned_at(statements, saved)
    shown = f"`{name}`" if name else "it"
    error.help = (
        f"{shown} is computed once, before the loop, with parameters that `{stepped.text}` changes:"
        " compute it inside the loop"
    )


def _differentiates_a_gradient(
    statements: Sequence[tree.Statement], freed: Span, needed: Span
) -> bool:
    """Whether the pass that freed the graph was a `grad()` whose result went into the output."""
    call = next(
        (
            node
            for node in tree.nodes_of(list(statements))
            if isinstance(node, tree.Call) and node.span.start == freed.start
        ),
        None,
    )
    if call is None or call.function.span.text.rpartition(".")[2] != "grad":
        return False
    names = {name for name in [_assigned_at(statements, freed)] if name is not None}
    for node in tree.nodes_of(list(statements)):
        if isinstance(node, (tree.Assign, tree.AugmentedAssign)) and node.span.start > freed.start:
            read = {use.name for use in all_name_uses([node]) if use.how != ASSIGNED}
            targets = node.targets if isinstance(node, tree.Assign) else [node.target]
            names |= {each.span.text for each in targets if read & names}
    return re.match(r"\w*", needed.text)[0] in names  # type: ignore[index]


def _carried(loop: Loop, values: Mapping[str, Any]) -> str:
    names = [name for name in _loop_carried(loop) if _has_history(values.get(name))]
    if not names:
        return (
            "the graph of an earlier round is part of this one: detach() what one round hands to"
            " the next"
        )
    name = names[0]
    added = any(
        isinstance(node, tree.AugmentedAssign) and node.target.span.text == name
        for node in tree.nodes_of(list(loop.body))
    )
    if added:
        return f"`{name}` keeps the graph of every round: add a number to it, `….item()`"
    return (
        f"`{name}` carries the graph of the former round into this one: begin a round with"
        f" `{name} = {name}.detach()`"
    )


def _has_history(value: Any) -> bool:
    each = value if isinstance(value, (tuple, list)) else (value,)
    return any(type(tensor) is Tensor and tensor.grad_fn is not None for tensor in each)


def _loop_carried(loop: Loop) -> list[str]:
    """The names that a loop's body reads before it gives them a value."""
    first: dict[str, str] = {}
    written = {
        node.target.span.text
        for node in tree.nodes_of(list(loop.body))
        if isinstance(node, tree.AugmentedAssign)
    }
    for use in all_name_uses(loop.body):
        first.setdefault(use.name, use.how)
        if use.how == ASSIGNED:
            written.add(use.name)
    return [name for name, how in first.items() if how == READ and name in written]


def _calls(error: GradcliError) -> list[Span]:
    """Where the functions were called that the error left."""
    return [place for _, place in error.stack if place is not None]


def _innermost_loop(statements: Sequence[tree.Statement], places: Sequence[Span]) -> Loop | None:
    innermost = None
    for place in places:
        for node in tree.nodes_of(list(statements)):
            if isinstance(node, (tree.For, tree.While)) and holds(node.span, place):
                innermost = node
        if innermost is not None:
            break
    return innermost


def _stands_in(statements: Sequence[tree.Statement], place: Span) -> bool:
    """Whether a place is outside all functions: it runs where it stands."""
    return not any(
        isinstance(node, (tree.Def, tree.Lambda)) and holds(node.span, place)
        for node in tree.nodes_of(list(statements))
    )


def _assigned_at(statements: Sequence[tree.Statement], place: Span) -> str | None:
    """The name that gets the value of an expression."""
    for node in tree.nodes_of(list(statements)):
        if isinstance(node, tree.Assign) and holds(node.span, place):
            return node.targets[0].span.text
    return None
