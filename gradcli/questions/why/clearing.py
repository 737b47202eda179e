"""Finds what took a gradient away again: a call of `zero_grad()`, a write, an assignment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.language.tree import syntax as tree
from gradcli.library.torch.optim.optimizer import Optimizer
from gradcli.recorded.recorded_run import Recorded

if TYPE_CHECKING:
    from gradcli.errors import Span
    from gradcli.language.provenance import Evaluation

_CLEARS = (".zero_grad", ".grad.zero_", ".grad.data.zero_")


def clearing_call(run: Recorded, tensor: Tensor) -> Evaluation | None:
    """The last call that cleared the gradient of a tensor, or may have."""
    for evaluation in reversed(run.provenance.evaluations):
        node = evaluation.node
        called = node.function.span.text if isinstance(node, tree.Call) else ""
        if not called.endswith(_CLEARS):
            continue
        whole = called.removesuffix(".zero_grad")
        owner = called.partition(".grad.")[0] if whole == called else whole
        known = [e.value for e in _within(evaluation) if e.node.span.text == owner]
        if any(_holds(each, tensor) for each in known) or (whole != called and not known):
            return evaluation
    return None


def written(run: Recorded, gradient: Tensor) -> Span | None:
    """The last write to the memory of a gradient, as `clip_grad_norm_()` makes one."""
    for write in reversed(run.recorder.writes):
        if write.tensor is gradient or write.tensor.base is gradient:
            return write.span
    return None


def _holds(value: Any, tensor: Tensor) -> bool:
    """Whether a tensor, an optimizer or a module is or has a tensor."""
    if isinstance(value, Optimizer):
        return any(each is tensor for group in value.param_groups for each in group["params"])
    parameters = getattr(value, "parameters", None)
    return value is tensor or (parameters is not None and any(e is tensor for e in parameters()))


def is_before(run: Recorded, first: Evaluation, place: Span | None) -> bool:
    """Whether an evaluation ended before the last one at a place."""
    # A constant that is assigned is no evaluation, and the name that it is assigned to is one.
    ends = (first, *first.parts)
    for evaluation in reversed(run.provenance.evaluations):
        if any(evaluation is each for each in ends):
            return False
        if evaluation.node.span is place:
            return True
    return False


_STEPS = re.compile(r"(?:\.step|\brecorded_step)\b")


def was_used(run: Recorded, place: Span | None) -> bool:
    """Whether a `step()` ran while the gradients of a backward pass were there, of a tensor whose
    gradient was cleared at a place.
    """
    if place is None:
        return True
    has_gradient, steps = False, 0
    for evaluation in run.provenance.evaluations:
        node = evaluation.node
        called = node.function.span.text if isinstance(node, tree.Call) else ""
        if place.start <= node.span.start and node.span.end <= place.end:
            has_gradient = False
        elif called.endswith("backward"):
            has_gradient = True
        elif _STEPS.search(called):
            # A closure that is given to step() runs the pass inside it.
            given = [each.value for each in evaluation.parts[1:]]
            if has_gradient or any(not isinstance(each, (Optimizer, str)) for each in given):
                return True
            steps += 1
    if steps:
        return False
    # The steps behind the last pass of a recording may have been left out.
    for statement in run.program:
        text = statement.span.text
        if statement.span.start <= place.start < statement.span.end:
            has_gradient = False
        elif ".backward(" in text:
            has_gradient = True
        elif _STEPS.search(text):
            if has_gradient:
                return True
            steps += 1
    return not steps


def _within(evaluation: Evaluation) -> Iterator[Evaluation]:
    """The evaluations inside one, at any depth, each once: what one round made is a part of all
    that came of it.
    """
    waiting, met = [*reversed(evaluation.parts)], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) not in met:
            met.add(id(part))
            yield part
            waiting += reversed(part.parts)


def assignment_to_grad(run: Recorded, question: str, tensor: Tensor) -> Span | None:
    """The last assignment to a `.grad` in the text that may be a tensor's; one to what was asked
    of comes first.
    """
    own = re.sub(r"\.(\d+)", r"[\1]", question)
    assigned = [
        (target.span.text != own, statement.span)
        for statement in tree.nodes_of(list(reversed(run.program)))
        if isinstance(statement, tree.Assign)
        for target in statement.targets
        if isinstance(target, tree.Attribute) and target.name == "grad"
        if run.values.get(target.value.span.text, tensor) is tensor
    ]
    assigned.sort(key=lambda each: each[0])
    return assigned[0][1] if assigned else None


def assigned_value(run: Recorded, place: Span | None) -> Evaluation | None:
    """What the last assignment at a place assigned."""
    return next((v for s, v in reversed(run.provenance.assignments) if s.span is place), None)
