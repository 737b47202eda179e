"""`why`: explains why a tensor has a gradient, requires one or is a leaf, or why not.

Gradients that `torch.autograd.grad()` returned have no graph; one that was there may have been
taken away by a call of `zero_grad()`, a write, an assignment.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.backend import is_uninitialized, to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.graph import Graph, GraphNode
from gradcli.autograd.node import Node
from gradcli.autograd.recording.recorder import Arrival, Listener, Step
from gradcli.autograd.tensor import AccumulateGrad, Tensor, gradient_edge
from gradcli.language.provenance import targets_of
from gradcli.language.tree import syntax as tree
from gradcli.library.torch.nn.traversal import module_paths
from gradcli.library.torch.optim.optimizer import Optimizer
from gradcli.questions.why.detachments import (
    SAMPLE,
    Detachment,
    Why,
    beside,
    detachment_of,
    drawn_at,
    is_constant,
    outside_functions,
    sample_detachment,
    step_detachment,
)
from gradcli.questions.why.edits import (
    added,
    appended,
    calls_of,
    in_place,
    instead,
    renamed,
    under_another_name,
    without_inputs,
)
from gradcli.questions.why.training import (
    buffer,
    clearing_misses,
    copied,
    decayed,
    frozen,
    made_anew,
    never_called,
    not_training,
    parametrized,
    resting,
    skipped_hooks,
    unmoved,
)
from gradcli.questions.why.zeros import EVERYWHERE, faded, is_finite, zeros_of
from gradcli.recorded.patterns import holds, returns_of
from gradcli.recorded.recorded_run import Recorded, graph_of, path_to
from gradcli.recorded.result import NO_SHAPE, STRUCTURAL_ZERO, ZERO
from gradcli.recorded.walk import hook_calls
from gradcli.trace.ir import Effect

if TYPE_CHECKING:
    from gradcli.autograd.recording.recorder import Recorder
    from gradcli.autograd.recording.trace_recorder import BackwardPass
    from gradcli.errors import Span
    from gradcli.language.provenance import Evaluation
    from gradcli.recorded.recorded_run import Flow


# --- gradients that were returned or taken away ---------------------------------------------------


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


def written(run: Recorded, tensor: Tensor) -> Span | None:
    """The last write to the memory of a tensor: `clip_grad_norm_()` makes one to a gradient's."""
    for write in reversed(run.recorder.writes):
        if write.tensor is tensor or write.tensor.base is tensor:
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
    for statement, value in reversed(run.provenance.assignments):
        targets = statement.targets if isinstance(statement, tree.Assign) else []
        sets = any(isinstance(each, tree.Attribute) and each.name == "grad" for each in targets)
        if sets and tensor.grad is not None and value.value is tensor.grad:
            return statement.span
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


# --- the question ---------------------------------------------------------------------------------


ATTRIBUTES = ("grad", "requires_grad", "is_leaf", "trains")
"""What can be asked of a tensor; `trains` of a parameter."""


def why(run: Recorded, name: str, tensor: Tensor, attribute: str) -> Why:
    """The answer for `NAME.grad`, `NAME.requires_grad`, `NAME.is_leaf` or `NAME.trains`."""
    if attribute == "trains":
        answer = not_training(run, name, tensor)
        return _if_it_ended(
            run, answer or _trains(run, tensor, _Gradients(run, name, tensor, trains=True).answer())
        )
    if attribute == "grad":
        return _if_it_ended(run, _Gradients(run, name, tensor).answer())
    if attribute == "requires_grad":
        return _requires_grad(run, name, tensor)
    return _is_leaf(run, name, tensor)


def of_part(
    run: Recorded, tensor: Tensor, answer: Why, part: str, pick: Callable[[Tensor], Any]
) -> Why:
    """The answer for a part of the gradient of a tensor, which `pick` gives; where it is 0 and the
    whole is not, with what the uses of the tensor pass on there.
    """
    whole = answer.value
    answer.question += part
    if type(whole) is not Tensor:
        return answer
    answer.value = pick(whole)

    def is_zero(gradient: Tensor) -> bool:
        picked = pick(gradient)
        return type(picked) is Tensor and not np.any(to_host(forced(picked.array)))

    if not run.has_numbers or not is_zero(whole) or not np.any(to_host(forced(whole.array))):
        return answer
    answer.reason += "; this part of it is 0"
    target = gradient_edge(tensor)[0]
    shares = [
        (step.node, is_zero(Tensor(np.asarray(to_host(forced(gradient))))))
        for step in run.recorder.events or ()
        if isinstance(step, Step)
        for node, gradient in zip(step.node.next_nodes, step.fitted, strict=True)
        if node is target and gradient is not None
    ]
    if shares and not run.provenance.unheard:
        passes = all(nothing for _, nothing in shares)
        answer.reason += (
            ": no use of it brings anything there"
            if passes
            else ": what its uses bring there adds up to 0"
        )
        text = "nothing of it arrives there from here" if passes else "this brings a share there"
        spans = dict.fromkeys(node.place for node, nothing in shares if nothing is passes)
        answer.detachments = [Detachment(span, text) for span in [*spans][:_PASSES]]
    return answer


_TO_COME = ("no backward", "no gradient at step", "no optimizer", "no step", "unused")
"""Answers that the rest of a program might have made others."""


def _if_it_ended(run: Recorded, answer: Why) -> Why:
    """An answer, or that the program ended in an error before what it waits for."""
    error = run.error
    if error is None or answer.kind not in _TO_COME or error.stage == "differentiating":
        return answer
    reason = f"the program ended in error {error.code} before anything else came of it"
    return Why(
        answer.question, answer.value, "failed", reason, [Detachment(error.span, error.message)]
    )


_CLEARING = re.compile(r"zero_grad|\.grad\b")

_BLAME = "and `gradcli blame` finds where that began"


def _trains(run: Recorded, tensor: Tensor, gradient: Why) -> Why:
    """What the gradient of a parameter that no optimizer leaves out says of its training."""
    question = gradient.question.removesuffix(".grad") + ".trains"
    passes = gradient.value is not None
    if run.has_numbers:
        passes = passes and bool(gradient.value.array.any())
    reason, places = gradient.reason, gradient.detachments
    updates = run.recorder.updates.get(id(tensor))
    used = gradient.kind == "cleared" and (
        (updates is not None and updates.had_gradient)
        or was_used(run, places[0].place if places else None)
    )
    if gradient.kind == "cleared" and (tensor.version or not used):
        passes = used
        reason = "a gradient arrived and was used, and was cleared afterwards"
        if not passes:
            reason = "each gradient that arrives is cleared before a step() can use it"
        clears = [e for e in places if e.place is not None and _CLEARING.search(e.place.text)]
        help = None if passes else "clear it behind step(), or ahead of backward()"
        places = [
            Detachment(each.place, each.text, help if each in clears else None) for each in places
        ]
    elif gradient.kind == "returned" and (moves := _moves_by_returned(run, tensor)):
        passes, places = True, moves
        reason = "the program changes it itself, by gradients that are returned to it"
    elif not passes and gradient.kind in (ZERO, STRUCTURAL_ZERO):
        optimizer = decayed(run, tensor)
        passes = optimizer is not None
        reason = re.sub(r"^it is\b", "its gradient is", reason)
        if passes:
            moved = f"the weight decay of `{optimizer}` moves it, though its gradient is zero"
            reason = f"{moved}: {gradient.reason}"
    elif passes and run.has_numbers and (answer := unmoved(run, question, tensor)) is not None:
        return answer
    elif passes and not tensor.version:
        reason += "; so far nothing has changed its value"
    elif passes and (rests := resting(run, tensor)) is not None:
        reason += f"; by now {rests}"
    if passes and run.has_numbers and _BLAME not in reason and not is_finite(tensor.array):
        reason += f"; what it holds is not finite, {_BLAME}"
    return Why(question, passes, gradient.kind, reason, places, gradient.path)


def _moves_by_returned(run: Recorded, tensor: Tensor) -> list[Detachment]:
    """The last write to a tensor, where what was written is computed from gradients that `grad()`
    or a transform of `torch.func` returned.
    """
    returned = [id(each) for _, gradients in _calls_of_grad(run) for each in gradients]
    for step in run.recorder.transforms:
        returned += map(id, step.results) if any(each is tensor for each in step.by) else ()
    place = written(run, tensor)
    if place is None or id(tensor) not in run.flow.computed_from(returned):
        return []
    return [Detachment(place, "this changes it")]


# --- requires_grad and is_leaf ------------------------------------------------------------------


def _requires_grad(run: Recorded, name: str, tensor: Tensor) -> Why:
    question = f"{name}.requires_grad"
    place = run.creation(tensor)
    if tensor.requires_grad and tensor.is_leaf:
        text = "the leaf is made here" if place is not None else "it is a bound input"
        detachments = [] if place is None else [Detachment(place, text)]
        loose = tensor.meta is not None and tensor.meta.loose
        reason = "is a view of a tensor that does" if loose else "is a leaf that was asked to"
        return Why(question, True, "leaf", f"{name} {reason}", detachments)
    if tensor.requires_grad:
        path = path_to(Graph(tensor), None)
        leaf = path[-1].variable or "a leaf"
        return Why(
            question, True, "carried", f"it is computed from {leaf}, which requires grad", (), path
        )
    return without_grad(run, question, name, tensor)


_MOST_NAMES = 4
"""Leaves that are named as those from which no way leads on."""


def without_grad(run: Recorded, question: str, name: str, tensor: Tensor) -> Why:
    """The answer for a tensor that does not require grad."""
    held = buffer(name, tensor, question.rpartition(".")[2])
    if held is not None:
        return held
    if tensor.meta is not None and tensor.meta.is_parameter:
        answer = frozen(run, name, tensor)
        return Why(question, False, answer.kind, answer.reason, answer.detachments)
    flow = run.flow
    place = run.creation(tensor)
    ingredients = flow.ingredients([id(tensor)])
    leaves = [
        id(each) for each in flow.require_grad() if id(each) in ingredients and each is not tensor
    ]
    cuts = flow.detachments(leaves, [id(tensor)])
    detachments = [detachment_of(each, flow.values, run.program) for each in cuts]
    if cuts and all(is_constant(each) for each in cuts):
        reason = f"{name} is made of a derivative that is constant, and has no graph"
        if flow.derivative_of(tensor) is not None:
            reason = f"{name} is a derivative, which torch.func returned, and is constant"
        return Why(question, False, "linear", reason, detachments)
    if detachments:
        named = [(leaf, leaf.name) for leaf in flow.tensors() if id(leaf) in leaves]
        every = {called for _, called in named if called}
        names = sorted({called for leaf, called in named if called and leaf.is_leaf} or every)
        if len(names) > _MOST_NAMES:
            names[_MOST_NAMES - 1 :] = [f"{len(names) - _MOST_NAMES + 1} more"]
        source = f" from {' and '.join(names)}" if names else ""
        reason = f"every way to {name}{source} leaves the graph"
        return Why(question, False, "cut", reason, detachments)
    constant = constant_gradient(run, {id(tensor), *ingredients})
    if constant is not None:
        reason = f"{name} is made of a gradient that depends on nothing, and has no graph"
        return Why(question, False, "linear", reason, [constant])
    if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        tries: tuple[str, ...] = ()
        if place is not None:
            tries = instead(place, f"({place.text}).float().requires_grad_()")
        help = "write `2.` for `2`, or call `.float()`, and ask for a gradient"
        detachment = Detachment(place, f"this makes {tensor.dtype}", help, (), tries, True)
        return Why(question, False, "dtype", f"{tensor.dtype} carries no gradient", [detachment])
    made = [f for f in flow.back.get(id(tensor), ()) if f.call or f.transform]
    if made:
        return _of_constants(run, question, name, tensor, made[0].place)
    reason = f"{name} is a leaf that was never asked to"
    differentiated = derivatives_by(run, tensor)
    text = "nobody asked for a gradient here"
    if differentiated:
        text = "made here, without `requires_grad=True`"
    detachment = Detachment(place, text, _ask([name]), (), _asking(run, [name]))
    return Why(question, False, "constant", reason, [detachment, *differentiated])


def _of_constants(
    run: Recorded, question: str, name: str, tensor: Tensor, place: Span | None
) -> Why:
    """The answer for a tensor that is computed, at a place, and from nothing that requires grad."""
    flow = run.flow
    ingredients = flow.ingredients([id(tensor)])
    first = [each for each in flow.tensors() if id(each) in ingredients and flow.is_first(each)]
    inputs = sorted({each.name for each in first if each.name})
    shown = ", ".join(inputs)
    text = f"computed from {shown}" if inputs else "computed here, of numbers alone"
    reason = "nothing that it is computed from requires grad" + (f": {shown}" if shown else "")
    derivative = flow.derivative_of(tensor)
    if derivative is not None:
        place = derivative.span
        reason = f"{name} is a derivative, which torch.func returned, and {reason}"
        text = (
            "what torch.func returns has a history only where something that goes in requires grad"
        )
    detachment = Detachment(place, text, _ask(inputs), (), _asking(run, inputs))
    parameter = next((e for e in first if e.meta is not None and e.meta.is_parameter), None)
    if parameter is not None:
        freezing = frozen(run, parameter.name or "a parameter", parameter).detachments
        reason += "; the parameters among it are frozen"
        return Why(question, False, "frozen", reason, freezing or [detachment])
    return Why(question, False, "constant", reason, [detachment])


def derivatives_by(run: Recorded, tensor: Tensor) -> list[Detachment]:
    """Where transforms of `torch.func` differentiate by a tensor, each place once."""
    spans = [each.span for each in run.recorder.transforms if any(by is tensor for by in each.by)]
    name = f"`{tensor.name}`" if tensor.name else "it"
    text = f"torch.func differentiates by {name} here, and returns the derivative"
    return [Detachment(span, text) for span in list(dict.fromkeys(spans))[:_PASSES]]


def _ask(names: Sequence[str]) -> str | None:
    if not names:
        return None
    return f"make `{names[0]}` with `requires_grad=True`, or call `{names[0]}.requires_grad_()`"


def _asking(run: Recorded, names: Sequence[str]) -> tuple[str, ...]:
    """The program that asks for the gradient of a name once it is there."""
    for name in names[:1]:
        statement = run.provenance.first_assignment(name)
        place = None if statement is None else statement.span
        return added(run.program, place, f"{name}.requires_grad_()")
    return ()


def _is_leaf(run: Recorded, name: str, tensor: Tensor) -> Why:
    question = f"{name}.is_leaf"
    place = run.creation(tensor)
    if not tensor.is_leaf:
        node = tensor.grad_fn
        assert node is not None
        detachment = Detachment(node.place or place, f"{node.node_name} made it")
        return Why(
            question,
            False,
            "recorded",
            "a recorded operation made it",
            [detachment],
            path_to(Graph(tensor), None),
        )
    if tensor.requires_grad:
        detachments = [] if place is None else [Detachment(place, "made here")]
        return Why(
            question, True, "leaf", f"{name} requires grad, and no operation made it", detachments
        )
    answer = without_grad(run, question, name, tensor)
    reason = "a tensor that does not require grad is a leaf: " + answer.reason
    return Why(question, True, answer.kind, reason, answer.detachments)


# --- grad ---------------------------------------------------------------------------------------


_NAME_OF_CALL = re.compile(r"(?s)^[\w.]*\.(?=\w+\()|\(.*")

_MEANS = ("MeanBackward0", "MseLossBackward0")

_LONGEST = 40
"""So long is a source text that stands for an output without a name."""

_PASSES = 3
"""Passes that are shown where several were added up."""


def _added(before: Sequence[Any], has_numbers: bool = True) -> int:
    """How many gradients are in a sum, given what was there before each arrived."""
    cleared = [
        n
        for n, old in enumerate(before)
        if old is None or (has_numbers and not np.asarray(old).any())
    ]
    return len(before) - (cleared[-1] if cleared else 0)


def _all_parts(evaluation: Evaluation) -> Iterator[Evaluation]:
    """The evaluations inside one, and those of lists among them."""
    for part in evaluation.parts:
        yield part
        yield from part.parts


class Uses(Listener):
    """Hears which leaves iterations read that are not recorded, and where gradients arrive.

    Attributes:
        leaves: those leaves, by identity.
        behind: for each leaf that a gradient reached there, how many events were recorded ahead of
            the last one that was heard.

    Args:
        recorder: what the other iterations are recorded by.
    """

    __slots__ = ("_recorder", "behind", "leaves")

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self.leaves: dict[int, Tensor] = {}
        self.behind: dict[int, int] = {}

    def operation(self, op: Any, operands: dict[str, Any], output: Any) -> None:
        """A call of an op."""
        for each in operands.values():
            for part in each if type(each) in (list, tuple) else (each,):
                if type(part) is Tensor and part.requires_grad and part.grad_fn is None:
                    self.leaves[id(part)] = part

    def leaf(self, node: Any, old: Any, incoming: Any, new: Any) -> None:
        """A gradient that reached a leaf."""
        self.leaves[id(node.variable)] = node.variable
        self.behind[id(node.variable)] = len(self._recorder.events or ())


def _gives_number(step: Flow) -> bool:
    """Whether a step makes a number of Python's."""
    return step.evaluation is not None and type(step.evaluation.value) in (bool, int, float)


class _Gradients:
    """The answer for `NAME.grad`."""

    def __init__(self, run: Recorded, name: str, tensor: Tensor, *, trains: bool = False) -> None:
        self.run = run
        self.name = name
        self.tensor = tensor
        self.question = f"{name}.grad"
        self.passes = [each for each in run.recorder.passes if each.accumulate]
        self.events = run.recorder.events or []
        self.output = run.output_name or "the output"
        if trains and tensor.grad is not None:
            self._leave_out_what_is_behind_the_step()

    def _leave_out_what_is_behind_the_step(self) -> None:
        """Leave out the passes behind the last step that is to move the tensor, as that of another
        model which reads it has, where one ahead of it brought the tensor something.
        """
        roots = {root for each in self._ahead_of_step(self.passes) for root, _ in each.roots}
        last = max(self._bringing & {self._last_passes.get(each, 0) for each in roots}, default=0)
        if last and last < max(self._bringing):
            behind = {root for root, number in self._last_passes.items() if number > last}
            self.passes = [
                each for each in self.passes if not any(root in behind for root, _ in each.roots)
            ]
            self.events = [each for each in self.events if each.during <= last]
            del self._bringing, self._last_passes

    def answer(self) -> Why:
        tensor = self.tensor
        if tensor.grad is not None:
            return self._carried()
        if is_uninitialized(tensor.array):
            return self._none("uninitialized", f"{self.name}: {NO_SHAPE}")
        if not tensor.requires_grad:
            returned = self._returned_by_transforms()
            if returned is not None:
                return returned
            answer = without_grad(self.run, self.question, self.name, tensor)
            if returned_by_grad(self.run, self.tensor):
                reason = f"{self.name} is a gradient itself, which grad() returned"
                return self._none(answer.kind, reason, answer.detachments)
            reason = f"{self.name} does not require grad: {answer.reason}"
            reason = answer.reason if answer.kind in ("buffer", "frozen") else reason
            return self._none(answer.kind, reason, answer.detachments)
        if tensor.grad_fn is not None and not tensor.retains_grad:
            return self._not_a_leaf(tensor.grad_fn)
        return (
            self._cleared() or self._no_pass() or self._replaced() or self._not_reached(self.passes)
        )

    def _none(self, kind: str, reason: str, detachments: Sequence[Detachment] = ()) -> Why:
        return Why(self.question, None, kind, reason, detachments)

    # --- there is one ---------------------------------------------------------------------------

    def _carried(self) -> Why:
        tensor, name = self.tensor, self.name
        assert tensor.grad is not None
        node = self._node()
        graph, path = self._path(node)
        arrivals = [e.old for e in self.events if isinstance(e, Arrival) and e.node is node]
        output = self._output_name(graph)
        if graph is None:
            place = self._assignment_to_grad()
            if place is None:
                reason = "it came with the tensor, as a copy or a conversion: no pass brought it"
                return Why(self.question, tensor.grad, "set", reason)
            set_here = Detachment(place, "this sets it")
            reason = "the program set .grad itself"
            return Why(self.question, tensor.grad, "set", reason, [set_here])
        hooked: list[Detachment] = []
        if self.run.has_numbers:
            hooked = self._hooked(graph, node)
            answer = self._zero(graph, node, output, hooked, path)
            if answer is not None:
                return answer
        reason = f"the gradient flows from {output} to {name}{self._names()}"
        if self.run.has_numbers and not is_finite(tensor.grad.array):
            reason += f"; it is not finite, {_BLAME}"
        if not tensor.requires_grad:
            reason += f"; later passes bring it nothing, since {name} is frozen by now"
        root = None if graph.root is None else graph.root.node
        places = [*hooked, *(self._changed(node) if self.run.has_numbers else ())]
        faint = faded(self.run, graph, node, tensor.grad.array) if self.run.has_numbers else None
        if faint is not None:
            places.insert(0, faint)
        places += [
            Detachment(each.place, f"beside it: {each.text}", None, each.labels)
            for each in (beside(self.run, tensor, root) if root is not None else [])[:_PASSES]
        ]
        places += self._kept_alive() + skipped_hooks(self.run)
        if not tensor.requires_grad:
            places = [*frozen(self.run, name, tensor).detachments, *places]
        count = _added(arrivals, self.run.has_numbers)
        if count > 1:
            all_heard = self._all_heard(node, count)
            passes = (
                f"{count} backward passes" if all_heard else "the backward passes of many rounds"
            )
            reason += f"; {passes} were added up"
            places = [*self._passes(node, count, all_heard), *places]
        elif arrivals and self._is_left_over(arrivals[0]):
            reason += "; it was added to what earlier passes had left"
            added = Detachment(self.passes[-1].span, "this adds to what `.grad` held")
            clearing_misses(self.run, name, tensor, added)
            places = [added, *places]
        return Why(self.question, tensor.grad, "carried", reason, places, path)

    def _node(self) -> Node | None:
        """The node that gradients arrive at; of a leaf that is frozen by now, arrived at."""
        node = gradient_edge(self.tensor)[0]
        if node is not None:
            return node
        arrivals = (e.node for e in reversed(self.events) if isinstance(e, Arrival))
        return next((each for each in arrivals if each.variable is self.tensor), None)

    def _is_left_over(self, before: Any) -> bool:
        """Whether what a gradient was before the pass is of a pass ahead of what was recorded."""
        span = self.passes[-1].span if self.passes else None
        if before is None or span is None or span.source.origins is None:
            return False
        return not self.run.has_numbers or bool(np.asarray(forced(before)).any())

    def _zero(
        self,
        graph: Graph,
        node: Node | None,
        output: str,
        hooked: list[Detachment],
        path: list[GraphNode],
    ) -> Why | None:
        """The answer for a gradient that is 0, or small; None where it is neither."""
        gradient, name = self.tensor.grad, self.name
        assert gradient is not None
        if hooked and not gradient.array.any():
            reason = f"a hook changes the gradient on its way from {output} to {name}"
            return Why(self.question, gradient, "hooked", reason, hooked, path)
        zero = None if hooked else zeros_of(self.run, graph, node, gradient.array)
        if zero is not None:
            kind = STRUCTURAL_ZERO if zero[0] == EVERYWHERE else ZERO
            return Why(self.question, gradient, kind, *zero, path)
        if gradient.array.any() or hooked:
            return None
        arrivals = [e for e in self.events if isinstance(e, Arrival) and e.node is node]
        if not arrivals or np.any(to_host(forced(arrivals[-1].new))):
            reason = f"a gradient flows from {output} to {name}, and was set to 0 afterwards"
            call = clearing_call(self.run, self.tensor)
            if call is not None and is_before(self.run, call, self.passes[-1].span):
                call = None
            place = self._assignment_to_grad() if call is None else call.node.span
            place = place or written(self.run, gradient)
            cleared = Detachment(place, "this sets it to 0")
            return Why(self.question, gradient, "cleared", reason, [cleared], path)
        count = _added([each.old for each in arrivals])
        if any(np.any(to_host(forced(each.incoming))) for each in arrivals[-count:]):
            all_heard = self._all_heard(node, count)
            reason = f"{count} backward passes were added up, and what they brought adds up to 0"
            places = self._passes(node, count, all_heard)
            return Why(self.question, gradient, ZERO, reason, places, path)
        reason = f"what arrives at {name} is 0; which operation made it so is not known"
        return Why(self.question, gradient, ZERO, reason, (), path)

    def _kept_alive(self) -> list[Detachment]:
        """That the gradient holds the graph that made it."""
        gradient = self.tensor.grad
        if gradient is None or gradient.grad_fn is None or not self.passes:
            return []
        text = (
            "with create_graph=True the gradient keeps the graph alive that made it, and the graph"
            " the tensor: grad() returns it without that, `.grad = None` ends it"
        )
        return [Detachment(self.passes[-1].span, text)]

    def _names(self) -> str:
        """That several modules hold a parameter, where they do."""
        names = {
            f"{path}.{each}"
            for path, module in module_paths().values()
            for each, parameter in getattr(module, "_parameters", {}).items()
            if parameter is self.tensor
        }
        if len(names) < 2:
            return ""
        return f"; {' and '.join(sorted(names))} are one tensor, and each use adds its share"

    def _hooked(self, graph: Graph, node: Node | None) -> list[Detachment]:
        """The hooks that changed a gradient on its way to the tensor."""
        below: dict[Node, bool] = {}
        for each in reversed(graph.nodes):
            followed = [edge.node.node for edge in each.edges if edge.node is not None]
            below[each.node] = each.node is node or any(below.get(n, False) for n in followed)
        among = {each for each, leads in below.items() if leads}
        variables = {each.node: each.variable for each in graph.nodes}
        return [
            Detachment(call.span, f"a hook of `{owner}` changes the gradient that passes on")
            for call, owner in hook_calls(self.run.program, variables, self.events, among)
        ]

    def _changed(self, node: Node | None) -> list[Detachment]:
        """What changed the gradient after the pass that brought it."""
        last = [e.new for e in self.events if isinstance(e, Arrival) and e.node is node][-1:]
        assert self.tensor.grad is not None
        gradient = np.asarray(forced(self.tensor.grad.array))
        if not last or np.array_equal(np.asarray(forced(last[0])), gradient, equal_nan=True):
            return []
        for evaluation in reversed(self.run.provenance.evaluations):
            called = evaluation.node
            if isinstance(called, tree.Call) and isinstance(called.function, tree.Attribute):
                function = called.function.span.text
                writes = ".grad." in function or ".grad.data." in function
                if called.function.name.startswith("clip_grad") or (
                    writes and function.endswith("_")
                ):
                    return [Detachment(called.span, "this changes it after the backward pass")]
        return []

    def _all_heard(self, node: Node | None, count: int) -> bool:
        """Whether the last gradients that were recorded are all that are in the sum."""
        if not self.run.provenance.unheard:
            return True
        behind = self.run.provenance.listener.behind.get(id(self.tensor), 0)
        arrived = [e for e in self.events if isinstance(e, Arrival) and e.node is node]
        if not any(each is arrived[-1] for each in self.events[behind:]):
            return False
        arrived = arrived[-count:]
        return all(
            after.old is not None and np.array_equal(before.new, after.old, equal_nan=True)
            for before, after in pairwise(arrived)
        )

    def _passes(self, node: Node | None, count: int, all_heard: bool) -> list[Detachment]:
        """The passes that were added up, each place once."""
        spans = [
            each.span
            for each in self.passes
            if any(
                node and graph.find(node) is not None and self._came(graph)
                for graph in (graph_of(root) for root, _ in each.roots)
            )
        ][-count:]
        detachments = []
        gathers = self._gathers(count)
        shares = " and ".join(self._mean_sizes(node, count)) if gathers else ""
        for span, times in Counter(each for each in spans if each is not None).items():
            every = f"each of {times} rounds" if all_heard else "each round"
            often = f", in {every}" if times > 1 else ""
            detachments.append(Detachment(span, f"this adds to it{often}"))
        if shares and detachments:
            detachments[-1].text += (
                f"; each takes a mean of its own, of {shares} elements: these add up to the"
                " gradient of one mean of all if each is weighed by its share of the elements"
            )
        if detachments and not (gathers and self._is_divided()):
            clearing_misses(self.run, self.name, self.tensor, detachments[-1])
            if gathers and all_heard and not shares and self._steps():
                parts = f"where these are {count} parts of one batch, divide each loss by {count}"
                detachments[-1].help = f"{detachments[-1].help}; {parts}"
        return detachments[-_PASSES:]

    def _gathers(self, count: int) -> bool:
        """Whether the passes that were added up had no step() between them."""
        return self._steps() < count - 1

    def _steps(self) -> int:
        """How many calls of a step() ran."""
        calls = [e.node for e in self.run.provenance.evaluations if isinstance(e.node, tree.Call)]
        return sum(each.function.span.text.endswith(".step") for each in calls)

    def _is_divided(self) -> bool:
        """Whether the last pass begins with a division, as of one of several micro-batches."""
        return any(root.node_name == "DivBackward0" for root, _ in self.passes[-1].roots)

    def _mean_sizes(self, node: Node | None, count: int) -> list[str]:
        """The sizes of the means that the last passes begin with, where they differ."""
        sizes = []
        for each in self.passes[-count:]:
            for graph in (graph_of(root) for root, _ in each.roots):
                if node is None or graph.find(node) is None:
                    continue
                means = [n for n in graph.nodes if n.name in _MEANS and n.edges[0].node]
                if len(means) == 1:
                    source = means[0].edges[0].node
                    assert source is not None
                    shape = source.node.metadata[means[0].edges[0].output_nr][0]
                    sizes.append(int(np.prod(shape)))
        return list(map(str, sizes)) if len(set(sizes)) > 1 else []

    def _path(self, node: Node | None) -> tuple[Graph | None, list[GraphNode]]:
        for each in reversed(self.passes):
            for root, _ in each.roots:
                graph = graph_of(root)
                goal = None if node is None else graph.find(node)
                if goal is not None and self._came(graph):
                    return graph, path_to(graph, goal)
        return None, []

    def _came(self, graph: Graph) -> bool:
        """Whether the last pass from a graph's root brought the tensor anything, as one that failed
        may not.
        """
        root = None if graph.root is None else graph.root.node
        return self._last_passes.get(root, 0) in self._bringing

    @cached_property
    def _last_passes(self) -> dict[Node | None, int]:
        """The last pass in which each node ran."""
        return {each.node: each.during for each in self.events}

    @cached_property
    def _bringing(self) -> set[int]:
        """The passes that brought the tensor a gradient."""
        node = self._node()
        return {e.during for e in self.events if isinstance(e, Arrival) and e.node is node}

    def _output_name(self, graph: Graph | None) -> str:
        root = None if graph is None else graph.root
        if root is None:
            return self.output
        text = "" if root.place is None else " ".join(root.place.text.split())
        short = f"`{text}`" if text and len(text) <= _LONGEST else "the output"
        return root.variable or short

    # --- there is none --------------------------------------------------------------------------

    def _not_a_leaf(self, node: Node) -> Why:
        name = self.name
        answer = parametrized(name, "grad")
        if answer is not None:
            return answer
        place = node.place
        earlier = self._leaf_of_this_name(node)
        if earlier is not None:
            bound = self.run.rebound.get(name, name)
            statement = self.run.provenance.last_assignment(bound)
            at = place if statement is None else statement.span
            value = "None" if earlier.grad is None else "a gradient"
            tries = in_place(statement, name)
            help = f"change the leaf itself: `with torch.no_grad(): {name} -= …`"
            if bound != name:
                tries = ()  # names of a recording are its own
            elif not tries:
                tries = under_another_name(self.run.program, statement, name)
                help = f"give the result another name: `{name}_new = …`"
            text = f"from here on `{name}` is a new tensor, made by {node.node_name}"
            detachment = Detachment(at, text, help, (), tries)
            reason = f"`{name}` is no longer the leaf of that name, which has {value} in its .grad"
            return self._none("rebound", reason, [detachment])
        help = f"call `{name}.retain_grad()` before the backward pass"
        inner = [each for each in node.next_nodes if isinstance(each, AccumulateGrad)]
        if inner and not any(each.variable.name for each in inner):
            help = (
                "the leaf has no name: leave `requires_grad=True` out of it, and end with"
                f" `.requires_grad_()`, so that `{name}` is the leaf; or {help}"
            )
        assigned = self.run.provenance.first_assignment(name)
        at = None if assigned is None else assigned.span
        tries = added(self.run.program, at, f"{name}.retain_grad()")
        detachment = Detachment(place, f"{node.node_name} makes `{name}` here", help, (), tries)
        reason = f"{name} is no leaf: gradients pass through it and are not kept"
        return self._none("non-leaf", reason, [detachment])

    def _leaf_of_this_name(self, node: Node) -> Tensor | None:
        for each in graph_of(node).nodes:
            if each.leaf is not None and each.leaf.name == self.name:
                return each.leaf
        return None

    def _cleared(self) -> Why | None:
        """A gradient that arrived and was taken away again."""
        node = gradient_edge(self.tensor)[0]
        if not any(isinstance(e, Arrival) and e.node is node for e in self.events):
            return None
        call = clearing_call(self.run, self.tensor)
        place = self._assignment_to_grad() if call is None else call.node.span
        clears = assigned_value(self.run, place) if call is None else call
        error, last = self.run.error, self.passes[-1].span
        has_failed = error is not None and error.span is not None and error.span is last
        # A hook may clear it before the pass that brings it has ended.
        roots = [graph_of(root) for root, _ in self.passes[-1].roots]
        was_ahead = clears is not None and is_before(self.run, clears, last)
        if has_failed or (was_ahead and not any(self._came(each) for each in roots)):
            return self._missed_since(place)
        help = "read it before it is cleared"
        detachment = Detachment(place, "this forgets it", help, (), instead(place, "pass"))
        return self._none("cleared", "a gradient arrived, and was cleared afterwards", [detachment])

    def _missed_since(self, cleared: Span | None) -> Why:
        """What keeps the last pass from the tensor, which an earlier one reached."""
        answer = self._not_reached(self.passes[-1:])
        reason = f"{answer.reason}; what an earlier pass had brought was cleared before"
        places = [*answer.detachments, Detachment(cleared, "this forgets what came before")]
        return self._none(answer.kind, reason, places)

    def _assignment_to_grad(self) -> Span | None:
        return assignment_to_grad(self.run, self.question, self.tensor)

    def _no_pass(self) -> Why | None:
        """No backward pass that writes gradients."""
        if self.passes:
            return None
        returned = self._returned_by_transforms()
        if returned is not None:
            return returned
        error = self.run.error
        transforms = {each.span for each in self.run.recorder.transforms}
        own = [each for each in self.run.recorder.passes if each.span not in transforms]
        if own and (error is None or error.code != "E402"):
            tries = self._backward_for_grad()
            span = own[-1].span
            called = "grad" if span is None else _NAME_OF_CALL.sub("", span.text)
            text = f"{called}() returns the gradients and leaves every .grad alone"
            help = "use what it returns, or call `backward()`" if tries else None
            text = text if tries else f"{text}: use what it returns"
            detachment = Detachment(span, text, help, (), tries)
            return self._none("returned", "no backward pass wrote to .grad", [detachment])
        output = self.run.output
        if output is not None and not output.requires_grad and output is not self.tensor:
            return self._cut([id(output)], self.output)
        if output is None or output is self.tensor:
            left = self._left_torch()
            if left is not None:
                return left
        unrecorded = self._unrecorded() if self.run.output_name is None else []
        if unrecorded:
            reason = f"nothing that is computed from {self.name} has a history"
            return self._none("cut", reason, unrecorded)
        place, help = None, None
        if self.run.output_name is not None:
            statement = self.run.provenance.last_assignment(self.run.output_name)
            place = None if statement is None else statement.span
            summed = ".sum()" if output is not None and output.array.size != 1 else ""
            help = f"call `{self.run.output_name}{summed}.backward()`"
        name = self.run.output_name
        tries = ()
        if name is not None:
            # Behind the output, so that a step() finds the gradients; else at the end.
            tries = added(self.run.program, place, f"{name}.sum().backward()")
            tries = (*tries, *appended(self.run.program, f"{name}.sum().backward()"))
        text = "the last tensor that is computed; nothing differentiates it"
        if name is None:
            text = "the program ends with no tensor that has a name and a history"
        detachment = Detachment(place, text, help, (), tries)
        return self._none("no backward", "backward() was never called", [detachment])

    def _returned_by_transforms(self) -> Why | None:
        """That transforms of `torch.func` differentiate by the tensor, which write to no .grad."""
        places = derivatives_by(self.run, self.tensor)
        if not places:
            return None
        reason = f"torch.func returns derivatives by {self.name}, and leaves every .grad alone"
        return self._none("returned", reason, places)

    def _unrecorded(self) -> list[Detachment]:
        """Where the tensor is read with gradients off, if it is read nowhere else."""
        flow = self.run.flow
        steps = [
            each
            for each in flow.onward.get(id(self.tensor), ())
            if each.call is not None and each.call.op.node_name
        ]
        if any(each.call is not None and each.call.grad_enabled for each in steps):
            return []
        return [detachment_of(each, flow.values, self.run.program) for each in steps[-1:]]

    def _backward_for_grad(self) -> tuple[str, ...]:
        """The program with a `backward()` in front of its last `grad()`."""
        place = self.run.recorder.passes[-1].span
        call = next((e for e in calls_of(self.run.program, "grad") if e.span is place), None)
        if call is None or not call.arguments:
            return ()
        output = call.arguments[0].value.span.text
        backward = f"({output}).sum().backward(retain_graph=True)"
        return added(self.run.program, place, backward, first=True)

    def _left_torch(self) -> Why | None:
        """What ends the gradient where the last value is no tensor."""
        for statement, evaluation in self.run.provenance.assignments[-1:]:
            if type(evaluation.value) is not Tensor:
                names = targets_of(statement) or ["the last value"]
                answer = self._cut([self.run.flow.key(evaluation)], names[0])
                return answer if answer.kind == "cut" else None
        return None

    def _replaced(self) -> Why | None:
        """The name stands for another tensor than the one that was used."""
        name = self.name
        for each in self.passes:
            for root, _ in each.roots:
                for node in graph_of(root).nodes:
                    leaf = node.leaf
                    if leaf is None or leaf is self.tensor or leaf.name != name:
                        continue
                    if id(self.tensor) in self.run.flow.ingredients([id(leaf)]):
                        continue  # it was made of this one, in a function with a name alike
                    statement = self.run.provenance.last_assignment(name)
                    detachment = Detachment(
                        None if statement is None else statement.span,
                        f"from here on `{name}` is another tensor",
                        "give the new tensor a name of its own",
                        (),
                        renamed(statement, name),
                    )
                    reason = f"the backward pass reached an earlier tensor called `{name}`"
                    return self._none("rebound", reason, [detachment])
        return None

    def _not_reached(self, passes: Sequence[BackwardPass]) -> Why:
        flow = self.run.flow
        roots = [root for each in passes for root in each.roots]
        graphs = [graph_of(root) for root, _ in roots]
        output = self._output_name(graphs[-1] if graphs else None)
        node = gradient_edge(self.tensor)[0]
        for each in reversed(passes):
            for graph in (graph_of(root) for root, _ in each.roots):
                if node is not None and graph.find(node) is not None:
                    return self._stopped(each, self._output_name(graph))
        own = [root for each in self._ahead_of_step(passes) for root in each.roots]
        goals = flow.outputs_of(own)
        if own and flow.detachments([id(self.tensor)], goals):
            return self._cut(goals, self._output_name(graph_of(own[-1][0])))
        return self._cut(flow.outputs_of(roots), output)

    def _ahead_of_step(self, passes: Sequence[BackwardPass]) -> list[BackwardPass]:
        """Those of some passes that stand ahead of the last step that is to move the tensor, which
        may be one of several models that train in turn.
        """
        is_ahead = False
        for each in reversed(self.run.provenance.evaluations):
            called = each.node.function.span.text if isinstance(each.node, tree.Call) else ""
            if called.endswith(".step"):
                owners = [e.value for e in _within(each) if isinstance(e.value, Optimizer)]
                is_ahead = is_ahead or any(_holds(owner, self.tensor) for owner in owners)
            elif is_ahead and called.endswith("backward"):
                return [one for one in passes if one.span is each.node.span]
        return []

    def _cut(self, goals: Collection[int], output: str) -> Why:
        """What ends every path from the tensor to the output, or where it goes instead."""
        run, tensor, name = self.run, self.tensor, self.name
        flow = run.flow
        cuts = flow.detachments([id(tensor)], goals)
        detachments = [
            detachment_of(f, flow.values, run.program)
            for f in drawn_at(run, cuts, goals) or outside_functions(run, cuts) or cuts
        ]
        if detachments:
            ways = "the only way" if len(detachments) == 1 else "every way"
            reason = f"{ways} from {name} to {output} leaves the graph"
            return self._none("cut", reason, detachments)
        answer = self._linear(goals) or self._stepped(output)
        if answer is not None:
            return answer
        used = [each for each in flow.onward.get(id(tensor), ()) if not self._optimizes(each)]
        reached = flow.computed_from([id(tensor)])
        steps = [each for key in reached for each in flow.onward.get(key, ())]
        drawn = [each.place for each in steps if each.place and SAMPLE in each.place.text]
        drawn = drawn or self._sampled(reached)
        if drawn:
            reason = f"the only way from {name} to {output} leaves the graph"
            return self._none("cut", reason, [sample_detachment(drawn[0])])
        stored = next(filter(None, map(self._stored, steps)), None)
        if stored is not None:
            reason = f"the only way from {name} to {output} leaves the graph"
            return self._none("cut", reason, [stored])
        numbers = [each for each in used if _gives_number(each) and self._optimizes(each, True)]
        if numbers:
            text = f"an optimizer gets a number made of `{name}`, and its steps have no history"
            reason = f"the only way from {name} to {output} leaves the graph"
            return self._none("cut", reason, [Detachment(numbers[-1].place, text)])
        left = self._numbers_read(reached)
        if left:
            reason = f"no operation that was recorded leads from {name} to {output}"
            return self._none("unused", reason, left)
        if used:
            kept = self._used(used, output)
            return self._none("unused", f"{output} is not computed from {name}", kept)
        detachment = None
        if tensor.meta and tensor.meta.is_parameter:
            detachment = copied(run, tensor, name) or never_called(run, name)
        place = run.creation(tensor)
        if place is not None and place.source.origins is not None and not place.origin:
            # A recording has no line that made it.
            detachment = detachment or Detachment(None, "no operation that was recorded reads it")
        detachment = detachment or Detachment(place, "made here, and read nowhere")
        places = [detachment, *made_anew(run)]
        return self._none("unused", f"nothing is computed from {name}", places)

    def _used(self, used: Sequence[Flow], output: str) -> list[Detachment]:
        """Where the tensor is used for something else than the output."""
        places = [
            Detachment(
                step.place,
                f"a number outside the graph is made of `{self.name}` here"
                if _gives_number(step)
                else f"`{self.name}` is used here, and {output} is not computed from it",
            )
            for step in used
        ]
        by_place = {(e.place.start if e.place else None): e for e in reversed(places)}
        return sorted(by_place.values(), key=places.index)[:_PASSES]

    def _numbers_read(self, reached: Collection[int]) -> list[Detachment]:
        """Where a recording read numbers of some tensors, without what was made of them."""
        recorder, read = self.run.recorder, []
        tensors = dict(zip(recorder.values, recorder.tensors, strict=True))
        for each in recorder.trace.instructions:
            if each.span is None or each.span.source.origins is None:
                continue
            if any(id(tensors.get(e)) in reached for e in each.effects.get(Effect.READS, ())):
                read.append(each.span)
        text = "this makes {}, and what the script made of that is not recorded"
        places = [Detachment(each, text.format("a number")) for each in dict.fromkeys(read)]
        arrays = [
            step.place
            for key in reached
            for step in self.run.flow.onward.get(key, ())
            if step.place is not None and step.place.source.origins is not None
            if step.place.text.endswith(".numpy()")
        ]
        array = text.format("an array of NumPy's")
        places += [Detachment(each, array) for each in dict.fromkeys(arrays)]
        return places[:_PASSES]

    def _stored(self, step: Flow) -> Detachment | None:
        """That what a step makes is assigned to `.data`, if it is."""
        for statement, _ in self.run.provenance.assignments:
            for target in statement.targets if isinstance(statement, tree.Assign) else ():
                is_data = isinstance(target, tree.Attribute) and target.name == "data"
                if is_data and step.place is not None and holds(statement.span, step.place):
                    owner = target.value.span.text  # type: ignore[attr-defined]
                    text = f"`.data` takes the numbers alone: `{owner}` stays the leaf that it was"
                    help = f"compute with the tensor itself: `{owner} = …`"
                    tries = instead(target.span, owner)
                    return Detachment(statement.span, text, help, (), tries)
        return None

    def _optimizes(self, step: Flow, number: bool = False) -> bool:
        """Whether a step gives an optimizer its parameters, which computes nothing, or a number."""
        place = step.place if _gives_number(step) is number else None
        return place is not None and any(
            isinstance(evaluation.value, Optimizer) and holds(statement.span, place)
            for statement, evaluation in self.run.provenance.assignments
        )

    def _sampled(self, reached: Collection[int]) -> list[Span]:
        """The draws from distributions that are made of some values."""
        made = set()
        for each in self.run.provenance.evaluations:
            kind = getattr(type(each.value), "language_name", "")
            if not isinstance(each.node, tree.Call) or "distributions" not in kind:
                continue
            if any(self.run.flow.key(part) in reached for part in _all_parts(each)):
                made.add(id(each.value))
        return [
            each.node.span
            for each in self.run.provenance.evaluations
            if isinstance(each.node, tree.Call)
            and each.node.function.span.text.endswith(".sample")
            and any(id(part.value) in made for part in _all_parts(each))
        ]

    def _linear(self, goals: Collection[int]) -> Why | None:
        """A gradient that is differentiated again, and does not depend on the tensor."""
        for each in self.run.provenance.evaluations:
            node = each.node
            if not isinstance(node, tree.Call) or not node.function.span.text.endswith("grad"):
                continue
            if "create_graph" not in node.span.text or len(node.arguments) < 2:
                continue
            inputs = node.arguments[1].span
            if not any(
                part.value is self.tensor and holds(inputs, part.node.span)
                for part in _all_parts(each)
            ):
                continue
            value = each.value if isinstance(each.value, (list, tuple)) else [each.value]
            if not self.run.flow.computed_from(map(id, value)).intersection(goals):
                continue
            text = (
                f"the gradient that this returns does not depend on `{self.name}`: what is"
                " differentiated is linear in it, piece by piece at least, and the second"
                " derivative is 0"
            )
            reason = f"no second derivative leads to {self.name}"
            return self._none("linear", reason, [Detachment(node.span, text)])
        return None

    def _stepped(self, output: str) -> Why | None:
        """The step of an optimizer between the tensor and the output: it moved a parameter along
        a gradient that depends on the tensor.
        """
        run = self.run
        reached = run.flow.computed_from([id(self.tensor)])
        sets = [
            statement.span
            for statement, value in run.provenance.assignments
            if isinstance(statement, tree.Assign)
            and any(isinstance(t, tree.Attribute) and t.name == "grad" for t in statement.targets)
            and id(value.value) in reached
        ]
        sets += [each.span for each in self._moving() if each.span is not None]
        steps = [e.span for e in calls_of(run.program, ".step")]
        if not sets or not steps:
            return None
        later = [span for span in steps if span.start > sets[-1].start]
        place = (later or steps)[0]
        reason = f"the only way from {self.name} to {output} leaves the graph"
        return self._none("cut", reason, [step_detachment(place)])

    def _moving(self) -> list[BackwardPass]:
        """The passes before the last that reached the tensor, and also a leaf that was changed
        and that the last one reached.
        """
        node = gradient_edge(self.tensor)[0]
        graphs = [[graph_of(root) for root, _ in each.roots] for each in self.passes]
        moved = {
            each.leaf
            for graph in (graphs[-1] if graphs else ())
            for each in graph.nodes
            if each.leaf is not None and each.leaf.version
        }
        return [
            began
            for began, passed in zip(self.passes[:-1], graphs, strict=False)
            for graph in passed
            if node is not None and graph.find(node) is not None
            if any(each.leaf in moved for each in graph.nodes if each.leaf is not None)
        ]

    def _stopped(self, ended: BackwardPass, output: str) -> Why:
        """A node between them returned None, the pass failed, or it left the tensor out."""
        error = self.run.error
        if error is not None and error.span is not None and error.span is ended.span:
            reason = f"the backward pass ended in error {error.code} before it reached {self.name}"
            return self._none("failed", reason, [Detachment(error.span, error.message)])
        detachments, node = [], gradient_edge(self.tensor)[0]
        assert node is not None
        for event in self.events:
            if not isinstance(event, Step):
                continue
            for number, following in enumerate(event.node.next_nodes):
                leads = following is not None and graph_of(following).find(node) is not None
                if leads and event.fitted[number] is None:
                    detachments.append(
                        Detachment(
                            event.node.place,
                            f"{event.node.node_name} returned None for input {number}",
                            None,
                            returns_of(self.run.program, event.node.node_name),
                        )
                    )
        if detachments:
            reason = f"a node between {output} and {self.name} returned no gradient"
            return self._none("undefined", reason, [*detachments, *unrecorded_gradients(self.run)])
        detachment = Detachment(
            ended.span,
            f"this pass writes to the tensors in `inputs=`, and not to {self.name}",
            f"add `{self.name}` to `inputs`, or leave `inputs` out",
            (),
            without_inputs(ended.span),
        )
        return self._none("left out", f"the backward pass left {self.name} out", [detachment])
