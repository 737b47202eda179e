"""`blame`: finds the first NaN or infinity that reaches the output or a gradient."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gradcli.autograd.tensor import Tensor
from gradcli.questions.blame.contexts import explain_by_context
from gradcli.questions.blame.finding import Blame, Blamed, Mask
from gradcli.questions.blame.nonfinite import (
    BACKWARD,
    DATA,
    MET,
    SEED,
    FirstNonFinite,
    Watch,
    is_finite,
)
from gradcli.recorded.patterns import returns_of
from gradcli.recorded.recorded_run import Recorded

if TYPE_CHECKING:
    from gradcli.recorded.result import Result


def spoilt_of(result: Result) -> list[str]:
    """The output and the gradients of a result that are not finite, by name."""
    spoilt = _bad_gradients((each.name, each.tensor) for each in result.gradients)
    if not is_finite(result.output.array):
        spoilt.insert(0, result.name or "the output")
    return spoilt


def _bad_gradients(gradients: Iterable[tuple[str | None, Tensor]]) -> list[str]:
    return [
        f"{name or 'a leaf'}.grad"
        for name, tensor in gradients
        if tensor.grad is not None and not is_finite(tensor.grad.array)
    ]


def blame(run: Recorded, watch: Watch, gradients: Iterable[tuple[str | None, Tensor]]) -> Blame:
    """The first NaN or infinity that reaches the output or a gradient of the named inputs."""
    flow = run.flow
    output = run.output
    bad_grads = _bad_gradients(gradients)
    for leaf in watch.arrived:
        called = f"{leaf.name or 'a leaf'}.grad"
        if called not in bad_grads:
            bad_grads.append(called)
    spoilt = list(bad_grads)
    bad_output = output is not None and not is_finite(output.array)
    if bad_output:
        spoilt.insert(0, run.output_name or "the output")
    returned = any(not each.accumulate for each in run.recorder.passes)
    if not spoilt and returned and any(b.phase in (BACKWARD, SEED) for b in watch.nonfinites):
        spoilt = bad_grads = ["a gradient that grad() returned"]
    if not spoilt:
        return Blame(None, [Blamed(each, None, ()) for each in watch.nonfinites])
    ahead = set() if output is None else flow.ingredients([id(output)])
    diverged = [leaf for leaf in watch.diverged if id(leaf) in ahead]
    chosen = _of_the_step(watch.nonfinites) if diverged else None
    if chosen is None and bad_output and output is not None:
        chosen = watch.origin_of(output)
    for nonfinite in watch.nonfinites if chosen is None else ():
        reaches = nonfinite.output is not None and id(nonfinite.output) in ahead
        if nonfinite.phase == BACKWARD or nonfinite.phase == SEED:
            if not bad_output and bad_grads:
                chosen = _behind(run, watch, nonfinite) or nonfinite
        elif nonfinite.phase == DATA:
            chosen = nonfinite if reaches or bad_output else None
        elif bad_output and reaches:
            chosen = nonfinite
        if chosen is not None:
            break
    if chosen is None and bad_output and output is not None:
        chosen = watch.entry_of(output)
    if chosen is None:
        chosen = watch.nonfinites[0] if watch.nonfinites else None
    if chosen is None:
        return Blame(None, [])
    others = [Blamed(each, _mask(run, each), ()) for each in watch.nonfinites if each is not chosen]
    first = Blamed(chosen, _mask(run, chosen), spoilt)
    later = any(number > 1 for _, number, _ in chosen.rounds)
    grew = first.cause == "overflow" and (later or chosen.stepped)
    first.diverges = diverged if grew else ()
    if chosen.phase == DATA and chosen.output is not None and not chosen.stepped:
        first.made = run.creation(chosen.output)
    if chosen.phase == BACKWARD and chosen.node is not None:
        first.returned = returns_of(run.program, chosen.node.node_name)
    explain_by_context(run, first)
    return Blame(first, others)


def _behind(run: Recorded, watch: Watch, later: FirstNonFinite) -> FirstNonFinite | None:
    """The first NaN or infinity of the forward pass among what the operands of a node are computed
    from, whose gradient is not finite because they are not.
    """
    call = None if later.node is None else run.recorder.call_of.get(later.node)
    if call is None or type(call.output) is not Tensor:
        return None
    flow = run.flow
    operands = [step.source for step in flow.back.get(id(call.output), ())]
    spoilt = [
        key
        for key in operands
        if type(value := flow.values.get(key)) is Tensor and not is_finite(value.array)
    ]
    sources = {*spoilt, *flow.ingredients(spoilt)}
    return next(
        (
            each
            for each in watch.nonfinites
            if each.phase not in (BACKWARD, SEED) and id(each.output) in sources
        ),
        None,
    )


def _of_the_step(nonfinites: Sequence[FirstNonFinite]) -> FirstNonFinite | None:
    """The first one in the round whose backward pass gave the step that spoilt a leaf."""
    if nonfinites and nonfinites[0].phase == DATA and not nonfinites[0].stepped:
        return nonfinites[0]
    rounds = next((each.rounds for each in nonfinites if each.phase == BACKWARD), None)
    numbers = None if rounds is None else [number for _, number, _ in rounds]
    for each in nonfinites:
        if [number for _, number, _ in each.rounds] == numbers:
            return each
    return None


def _mask(run: Recorded, nonfinite: FirstNonFinite) -> Mask | None:
    """The first `where` between a number and the output."""
    if nonfinite.phase == SEED or nonfinite.place is None or nonfinite.called == MET:
        return None
    if nonfinite.phase == DATA and nonfinite.value != nonfinite.value:
        return None
    if nonfinite.incoming is not None and nonfinite.incoming != 0:
        return None
    if nonfinite.phase == BACKWARD:
        call = None if nonfinite.node is None else run.recorder.call_of.get(nonfinite.node)
        outputs = [] if call is None else [call.output]
    else:
        outputs = [nonfinite.output]
    waiting = [id(each) for each in outputs]
    seen = set(waiting)
    for key in waiting:
        for step in run.flow.onward.get(key, ()):
            call = step.call
            if call is None:
                continue
            if call.op.name in ("where", "masked_fill") and call.span is not None:
                return Mask(call.span)
            if step.target not in seen:
                seen.add(step.target)
                waiting.append(step.target)
    return None
