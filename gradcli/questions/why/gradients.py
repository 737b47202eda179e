"""Finds what became of gradients: those that `torch.autograd.grad()` returned, which have no graph,
and what took one away again: a call of `zero_grad()`, a write, an assignment.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.language.tree import syntax as tree
from gradcli.library.torch.optim.optimizer import Optimizer
from gradcli.questions.why.detachments import Detachment
from gradcli.recorded.patterns import holds
from gradcli.recorded.recorded_run import Recorded

if TYPE_CHECKING:
    from gradcli.errors import Span
    from gradcli.language.provenance import Evaluation


def _calls_of_grad(run: Recorded) -> Iterator[tuple[Evaluation, list[Tensor]]]:
    """The calls of `grad()` that ran, each with the gradients that it returned."""
    for each in run.provenance.evaluations:
        if isinstance(each.node, tree.Call) and each.node.function.span.text.endswith(".grad"):
            value = each.value if isinstance(each.value, (tuple, list)) else [each.value]
            yield each, [part for part in value if type(part) is Tensor]


def returned_by_grad(run: Recorded, tensor: Tensor) -> bool:
    """Whether a call of `grad()` returned a tensor."""
    return any(part is tensor for _, returned in _calls_of_grad(run) for part in returned)


def constant_gradient(run: Recorded, among: Collection[int]) -> Detachment | None:
    """The call of `grad()`, with create_graph=True, that returned one of some tensors, by identity,
    and that without a graph: what it differentiates is linear.
    """
    for call, returned in _calls_of_grad(run):
        node = call.node
        if "create_graph" not in node.span.text or not isinstance(node, tree.Call):
            continue
        if not any(id(each) in among and not each.requires_grad for each in returned):
            continue
        by = f" in `{node.arguments[1].span.text}`" if len(node.arguments) > 1 else ""
        text = (
            f"what is differentiated is linear{by}: its gradient is constant, and the second"
            " derivative 0"
        )
        return Detachment(node.span, text)
    return None


def unrecorded_gradients(run: Recorded) -> list[Detachment]:
    """The calls of `grad()` in the `backward()` of a custom function, which runs with gradients
    off.
    """
    within = [
        each.span
        for each in tree.nodes_of(list(run.program))
        if isinstance(each, tree.Def) and each.name == "backward"
    ]
    text = (
        "backward() of a Function runs with gradients off, and what it computes has no graph: put"
        " what is differentiated here under `with torch.enable_grad():`"
    )
    spans = [
        call.node.span
        for call, _ in _calls_of_grad(run)
        if not call.grad_enabled and any(holds(outer, call.node.span) for outer in within)
    ]
    return [Detachment(span, text) for span in spans[:1]]


# --- taken away again -----------------------------------------------------------------------------


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
