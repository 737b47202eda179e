"""Error notes of a graph that is gone: where it was cut, as in `why`, for a tensor without a graph
or a gradient; what to do about a second pass through a freed one, by what kept it alive.

To find a cut the program is run once more, all of it recorded. That is done only for a program that
writes no files and that ran for a moment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, Label, Span
from gradcli.language.tree import syntax as tree
from gradcli.library.torch.nn.traversal import name_parameters
from gradcli.questions.why.find import why, without_grad
from gradcli.recorded.patterns import holds
from gradcli.running.arguments.name_uses import ASSIGNED, READ, all_name_uses
from gradcli.running.run import Run
from gradcli.show.diagnostics.human import location

if TYPE_CHECKING:
    from gradcli.errors import GradcliError, Span
    from gradcli.language.tree.syntax import Statement
    from gradcli.questions.why.detachments import Detachment, Why
    from gradcli.recorded.recorded_run import Recorded
    from gradcli.running.arguments.words import Argument

_LONGEST = 0.5
"""Seconds of processor time that a program may have taken."""

_MOST = 3
"""Cuts that are shown beside an error."""


def label_detachments(
    error: GradcliError,
    run: Run,
    statements: Sequence[Statement],
    arguments: Sequence[Argument],
) -> None:
    """Label where the graph was cut, for errors of a missing graph or gradient."""
    if error.span is None:
        return
    missing = _missing_gradient(error)
    if (error.code != "E402" and missing is None) or not _repeatable(run, statements):
        return
    recorded = _again(run, statements, arguments)
    if recorded is None:
        return
    with run.session.running():
        if missing is not None:
            tensor = recorded.values.get(missing)
            answer = why(recorded, missing, tensor, "grad") if type(tensor) is Tensor else None
        else:
            answer = _of_output(recorded, error) or _of_graph(
                recorded, _asked_for(recorded, error) or error.span
            )
    if answer is None:
        return
    error.notes = (*error.notes, answer.reason)
    if answer.detachments:
        outside = [
            each
            for each in answer.detachments
            if each.place is not None and not holds(error.span, each.place)
        ]
        known = answer.kind in ("cut", "linear")
        error.labels = (*error.labels, *_labels(answer.detachments if known else outside))
        first = answer.detachments[0]
        error.help = _mend(run, arguments, error, first) or (None if known else error.help)


def _asked_for(recorded: Recorded, error: GradcliError) -> Span | None:
    """The input of `grad()` that an error is about, None where it is about the output."""
    number = re.match(r"the input at index (\d+) does not require grad", error.message)
    for node in tree.nodes_of(list(recorded.program)) if number else ():
        if isinstance(node, tree.Call) and node.span is error.span and len(node.arguments) > 1:
            inputs = next((e.value for e in node.arguments if e.name == "inputs"), None)
            inputs = inputs or node.arguments[1].value
            if isinstance(inputs, (tree.List, tree.Tuple)):
                return inputs.elements[int(number[1])].span  # type: ignore[index]
            return inputs.span
    return None


def _mend(
    run: Run, arguments: Sequence[Argument], error: GradcliError, offered: Detachment, more: int = 1
) -> str | None:
    """The remedy with which the program runs, and what it needs then, where the graph is cut again;
    None where it does not run. A session's entries, each a text of its own, are not run again.
    """
    if offered.help is None or offered.place is None or error.span is None or not offered.tries:
        return None
    if offered.place.source is not error.span.source:
        return offered.help
    for text in offered.tries:
        again = Run(run.terminal, run.options, "graph")
        again.muted = True
        try:
            with again.limited():
                statements = again.session.parse(text, error.span.source.name)
                again.execute(statements, arguments)
        except GradcliError as second:
            mend = None
            if more and second.code == "E402" and second.span is not None:
                mend = _again(run, statements, arguments)
            if mend is None or second.span is None:
                continue
            with run.session.running():
                answer = _of_graph(mend, second.span)
            for cut in () if answer is None else answer.detachments[:1]:
                then = _mend(run, arguments, second, cut, more - 1)
                if then is not None and cut.place is not None:
                    return f"{offered.help}, and then in line {cut.place.line}: {then}"
            continue
        return offered.help
    return None


def _missing_gradient(error: GradcliError) -> str | None:
    """The variable whose `.grad` an operation found to be None."""
    if error.code == "E202":
        for label in error.labels:
            name, dot, attribute = label.span.text.partition(".")
            if dot and attribute == "grad" and name.isidentifier() and "is None" in label.text:
                return name
    return None


def _of_output(recorded: Recorded, error: GradcliError) -> Why | None:
    """Why the output has no graph, where an error names it."""
    named = re.match(r"(\w+) does not require grad, so", error.message)
    tensor = recorded.values.get(named[1]) if named else None
    if named is None or type(tensor) is not Tensor:
        return None
    return without_grad(recorded, "", named[1], tensor)


def _of_graph(recorded: Recorded, span: Span) -> Why | None:
    """Why the tensor at a span has no graph."""
    tensor = _tensor_at(recorded, span)
    return None if tensor is None else without_grad(recorded, "", tensor.name or "it", tensor)


def report_missing_gradients(
    run: Run, statements: Sequence[Statement], arguments: Sequence[Argument]
) -> None:
    """Say of the arguments that got no gradient where the graph was cut on the way from them."""
    if run.bindings is None or run.terminal.quiet:
        return
    missing = [
        name
        for name, tensor in run.bindings.inputs()
        if tensor.requires_grad and tensor.grad is None
    ]
    if not missing or not _repeatable(run, statements):
        return
    recorded = _again(run, statements, arguments, differentiated=True)
    if recorded is None:
        return
    for name in missing:
        tensor = recorded.inputs.get(name)
        if tensor is None:
            continue
        with run.session.running():
            answer = why(recorded, name, tensor, "grad")
        if answer.kind == "cut":
            spans = [
                f"\n  {location(each.place)}: {each.text}"
                for each in answer.detachments[:_MOST]
                if each.place
            ]
            run.terminal.note(f"{name}.grad is None: {answer.reason}{''.join(spans)}")


def _repeatable(run: Run, statements: Sequence[Statement]) -> bool:
    """Whether running a program again is cheap, and changes nothing."""
    if not statements or run.work > _LONGEST or run.reading:
        return False
    for node in tree.nodes_of(list(statements)):
        if isinstance(node, tree.Command):
            return False
        if isinstance(node, tree.Call):
            name = node.function
            called = name.name if isinstance(name, (tree.Name, tree.Attribute)) else ""
            if called.startswith("save"):
                return False
    return True


def _again(
    run: Run,
    statements: Sequence[Statement],
    arguments: Sequence[Argument],
    differentiated: bool = False,
) -> Recorded | None:
    """The same run recorded whole, up to where it fails."""
    again = Run(run.terminal, run.options, "values")
    again.muted = True
    value = None
    try:
        with again.limited():
            value = again.execute(list(statements), arguments)
    except GradcliError:
        differentiated = False
    try:
        recorded = again.recorded(statements, value, differentiated)
    except GradcliError:
        return None
    with again.session.running():
        name_parameters()  # while the run has its modules
    recorded.inputs = {} if again.bindings is None else dict(again.bindings.inputs())
    return recorded


def _tensor_at(recorded: Recorded, span: Span) -> Any:
    """The tensor without a graph that an expression at a span was about."""
    for evaluation in reversed(recorded.provenance.evaluations):
        value = evaluation.value
        if type(value) is Tensor and not value.requires_grad and holds(span, evaluation.node.span):
            return value
    return None


def _labels(detachments: Sequence[Detachment]) -> tuple[Label, ...]:
    return tuple(
        [Label(each.place, each.text) for each in detachments[:_MOST] if each.place is not None]
    )


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
    error.help = (
        f"{_shown_at(statements, saved)} is computed once, before the loop, and the first"
        " backward() freed its graph: compute it inside the loop, or detach() it if it needs no"
        " gradient"
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
    error.help = (
        f"{_shown_at(statements, saved)} is computed once, before the loop, with parameters that"
        f" `{stepped.text}` changes: compute it inside the loop"
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


def _shown_at(statements: Sequence[tree.Statement], place: Span) -> str:
    """The name that gets the value of an expression, as a message has it."""
    name = _assigned_at(statements, place)
    return f"`{name}`" if name else "it"


def _assigned_at(statements: Sequence[tree.Statement], place: Span) -> str | None:
    """The name that gets the value of an expression."""
    for node in tree.nodes_of(list(statements)):
        if isinstance(node, tree.Assign) and holds(node.span, place):
            return node.targets[0].span.text
    return None
