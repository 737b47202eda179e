"""Finds what `torch.autograd.grad()` returned: gradients without a graph, for whatever reason."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from gradcli.autograd.tensor import Tensor
from gradcli.language.tree import syntax as tree
from gradcli.questions.why.detachments import Detachment
from gradcli.recorded.patterns import holds
from gradcli.recorded.recorded_run import Recorded

if TYPE_CHECKING:
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
