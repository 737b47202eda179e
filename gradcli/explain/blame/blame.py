"""`blame`: the first NaN or infinity of a run that spoils what comes out, and its cure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gradcli.explain.blame.causes import kind_of
from gradcli.explain.blame.nonfinite import BACKWARD, DATA, SEED, Birth, Watch, is_finite
from gradcli.explain.recorded_run import Recorded

if TYPE_CHECKING:
    from gradcli.autograd.tensor import Tensor
    from gradcli.errors import Span
    from gradcli.explain.blame.verification import Cure


class Mask:
    """A `where` that hides a number that is not finite from the value, and not from the gradient.

    Attributes:
        place: its source text.
    """

    __slots__ = ("place",)

    def __init__(self, place: Span) -> None:
        self.place = place


class Blamed:
    """A birth that spoils what comes out.

    Attributes:
        birth: where it happened.
        kind: a word for machines.
        text: a sentence.
        mask: the `where` that hides it in the forward pass, None without one.
        spoilt: what is not finite because of it: `x.grad`, `y`.
        cure: a change of the program that keeps it finite, None where none was found.
    """

    __slots__ = ("birth", "cure", "kind", "mask", "spoilt", "text")

    def __init__(self, birth: Birth, mask: Mask | None, spoilt: Sequence[str]) -> None:
        self.birth = birth
        self.kind, self.text = kind_of(birth)
        self.mask = mask
        self.spoilt = spoilt
        self.cure: Cure | None = None


class Blame:
    """What was found.

    Attributes:
        first: what is to blame, None where all that comes out is finite.
        others: the births after it, and those that spoil nothing.
    """

    __slots__ = ("first", "others")

    def __init__(self, first: Blamed | None, others: Sequence[Blamed]) -> None:
        self.first = first
        self.others = others


def blame(run: Recorded, watch: Watch, gradients: Iterable[tuple[str | None, Tensor]]) -> Blame:
    """The first birth that spoils the output or a gradient.

    Args:
        run: the run.
        watch: what listened to it.
        gradients: the inputs whose gradients are wanted, with their names.
    """
    flow = run.flow
    output = run.output
    bad_grads = [
        f"{name or 'a leaf'}.grad"
        for name, tensor in gradients
        if tensor.grad is not None and not is_finite(tensor.grad.array)
    ]
    for leaf in watch.arrived:
        called = f"{leaf.name or 'a leaf'}.grad"
        if called not in bad_grads:
            bad_grads.append(called)
    spoilt = list(bad_grads)
    bad_output = output is not None and not is_finite(output.array)
    if bad_output:
        spoilt.insert(0, run.output_name or "the output")
    returned = any(not each.accumulate for each in run.recorder.passes)
    if not spoilt and returned and any(b.phase in (BACKWARD, SEED) for b in watch.births):
        spoilt = bad_grads = ["a gradient that grad() returned"]
    if not spoilt:
        return Blame(None, [Blamed(each, None, ()) for each in watch.births])
    ahead = set() if output is None else flow.ingredients([id(output)])
    chosen = None
    for birth in watch.births:
        reaches = birth.output is not None and id(birth.output) in ahead
        if birth.phase == BACKWARD or birth.phase == SEED:
            if not bad_output and bad_grads:
                chosen = birth
        elif birth.phase == DATA:
            chosen = birth if reaches or bad_output else None
        elif bad_output and reaches:
            chosen = birth
        if chosen is not None:
            break
    if chosen is None:
        chosen = watch.births[0] if watch.births else None
    if chosen is None:
        return Blame(None, [])
    others = [Blamed(each, _mask(run, each), ()) for each in watch.births if each is not chosen]
    return Blame(Blamed(chosen, _mask(run, chosen), spoilt), others)


def _mask(run: Recorded, birth: Birth) -> Mask | None:
    """The `where` that a number passes on its way to the output."""
    if birth.phase in (DATA, SEED) or birth.place is None:
        return None
    if birth.incoming is not None and birth.incoming != 0:
        return None
    if birth.phase == BACKWARD:
        call = None if birth.node is None else run.recorder.made.get(birth.node)
        made = [] if call is None else [call.output]
    else:
        made = [birth.output]
    waiting = [id(each) for each in made]
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
