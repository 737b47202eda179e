"""Says why a step of a run carries no gradient, with its source text and a fix."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.arrays import dtypes
from gradcli.autograd.custom_function import FunctionCall
from gradcli.autograd.graph import GraphNode
from gradcli.autograd.tensor import Tensor
from gradcli.errors import Label, Span
from gradcli.language.tree import syntax as tree
from gradcli.ops.binding.catalogue import modules
from gradcli.questions.why.edits import (
    added,
    calls_of,
    edited,
    in_torch,
    instead,
    smooth,
    with_argument,
    without_attribute,
    without_call,
    without_numpy,
)
from gradcli.record import Record
from gradcli.recorded.patterns import around, holds

if TYPE_CHECKING:
    from gradcli.autograd.node import Node
    from gradcli.autograd.recording.trace_recorder import TransformStep
    from gradcli.recorded.recorded_run import Flow, Recorded
    from gradcli.running.rerun import Executed, Rerun


_MODES = ("no_grad", "inference_mode", "set_grad_enabled", "checkpoint(")

_NUMBERS = ("item", "tolist")

_AGAIN = "pass `create_graph=True` to differentiate it again"

_OF_NUMBERS = ("cmath", "math", "np", "numpy")
"""Modules whose functions know no gradients."""


class Detachment(Record):
    """A place where a gradient ends.

    Attributes:
        place: the source text, None where the run has none.
        help: what to do about it.
        labels: further places that belong to it.
        tries: the program with what `help` says, in each way that it may be meant.
        alters: whether that makes the program compute something else.
    """

    place: Span | None
    text: str
    help: str | None = None
    labels: tuple[Label, ...] = ()
    tries: tuple[str, ...] = ()
    alters: bool = False


def detachment_of(
    flow: Flow, values: dict[int, Any], program: Sequence[tree.Statement]
) -> Detachment:
    """What ends the gradient at a step that carries none."""
    if flow.call is not None:
        return _operation_detachment(flow, values, program)
    if flow.transform is not None:
        return _transform_detachment(flow.transform, program)
    if flow.evaluation is not None:
        return _language_detachment(flow, values, program)
    if flow.copy is not None:
        if flow.place is not None and SAMPLE in flow.place.text:
            return sample_detachment(flow.place)
        return Detachment(flow.place, "this takes the values alone, without their history")
    return Detachment(None, "a value without history is written in place")


def is_constant(flow: Flow) -> bool:
    """Whether a step leads to a derivative that depends on nothing, though all is recorded."""
    transform = flow.transform
    return transform is not None and bool(transform.by) and transform.grad_enabled


def _transform_detachment(step: TransformStep, program: Sequence[tree.Statement]) -> Detachment:
    """What ends the gradient on its way into or out of a transform of `torch.func`."""
    if not step.grad_enabled:
        return _no_grad_detachment(step, program)
    if not step.by:
        return Detachment(step.span, "torch.func returns this without its history")
    names = " and ".join(f"`{each.name}`" for each in step.by if each.name)
    by = f" in {names}" if names else ""
    text = (
        f"the derivative that this returns is constant: what is differentiated is linear{by},"
        " piece by piece at least"
    )
    return Detachment(step.span, text)


def beside(run: Recorded, tensor: Tensor, root: Node) -> list[Detachment]:
    """Where a part of what a node stands for is computed from a tensor outside the graph: by
    `detach()` and its like, not by ops without a derivative.
    """
    flow = run.flow
    goals = flow.outputs_of([(root, 0)])
    cuts = flow.detachments([id(tensor)], goals)
    draws = drawn_at(run, cuts, goals)
    if draws:
        return [detachment_of(each, flow.values, run.program) for each in draws]
    found = [
        detachment_of(each, flow.values, run.program)
        for each in outside_functions(run, cuts)
        if each.call is None or _is_unrecorded(run, each)
    ]
    for each in found:
        if each.help == _AGAIN:
            each.text += f": {_AGAIN}"
    return found


def outside_functions(run: Recorded, cuts: Sequence[Flow]) -> list[Flow]:
    """Those of some steps that are not in `forward` of a custom function, whose call stands for
    them.
    """
    applied = {
        (each.span.source.name, each.span.start)
        for each in run.recorder.trace.instructions
        if isinstance(each.op, FunctionCall) and each.span is not None
    }
    return [
        each
        for each in cuts
        if each.call is None
        or not any(
            (span.source.name, span.start) in applied
            for _, span in each.call.stack
            if span is not None
        )
    ]


def drawn_at(run: Recorded, cuts: Sequence[Flow], goals: Collection[int]) -> list[Flow]:
    """The draws of a recording that all of some cuts, which sample() makes ahead, lead to."""
    flow = run.flow
    ahead = flow.ingredients(goals) if cuts else set()
    draws: dict[int, Flow] = {}
    for cut in cuts:
        steps = [
            step
            for key in (flow.computed_from([cut.target]) & ahead) | {cut.source}
            for step in flow.onward.get(key, ())
            if step.evaluation is not None and step.target in ahead
            if is_draw(step.evaluation.node)
        ]
        if not steps:
            return []
        draws.update({step.target: step for step in steps})
    return list(draws.values())


def places_beside(
    rerun: Rerun, fresh: Executed, names: Container[str]
) -> Iterator[tuple[Span, str]]:
    """The places of the same of a run that was recorded with its values, for leaves with these
    names; with what is said of each.
    """
    root = None if fresh.output is None else fresh.output.grad_fn
    if root is None:
        return
    recorded = fresh.run.recorded(rerun.statements, fresh.value, False)
    for name, leaf in fresh.leaves.items():
        for each in beside(recorded, leaf, root) if name in names else ():
            if each.place is not None:
                yield each.place, each.text


def _is_unrecorded(run: Recorded, flow: Flow) -> bool:
    """Whether an op that has a derivative ran where nothing is recorded, or before anything that
    went in required grad; not for a write.
    """
    call = flow.call
    if call is None or not call.op.node_name or (call.grad_enabled and call.node is not None):
        return False
    return all(each.result is not call.output for each in run.recorder.writes)


def _operation_detachment(
    flow: Flow, values: dict[int, Any], program: Sequence[tree.Statement]
) -> Detachment:
    call = flow.call
    assert call is not None
    op, place = call.op, call.span
    source = values.get(flow.source)
    called = op.name.partition(".")[0].strip("_") or "the operation"
    if not op.node_name:
        text, help = _without_derivative(op.name, called, values.get(flow.target))
        dims = source.array.ndim if type(source) is Tensor else 1
        tries = smooth(program, place, dims) if help == _SMOOTH else _floating(place)
        if help == _SMOOTH and not tries and op.name.startswith(("eq", "ne")):
            help = None  # what is equal has no relative that is smooth
        return Detachment(place, text, help, (), tries, True)
    if type(source) is not Tensor:
        return Detachment(
            place,
            "what goes in here is a number of Python's, which has no history",
            None,
        )
    if flow.operand not in (*op.inputs, *op.lists):
        return Detachment(
            place,
            f"{called}() takes `{flow.operand}` as it is: no gradient flows to it",
            None,
        )
    if not call.grad_enabled:
        return _no_grad_detachment(call, program)
    if source.meta is not None and source.meta.loose and source.grad_fn is None:
        return Detachment(
            place,
            "what goes in is a view that was made where nothing was recorded",
            "take the view where gradients are on, after its base requires grad",
            (),
            _recorded_view(program, source.name),
        )
    marked = _marked(op, values.get(flow.target), place, program)
    if marked is not None:
        return marked
    if call.node is None or not _had_edge(flow):
        cut = _cut_in_place(program, source, place)
        if cut is not None:
            return cut
        return Detachment(
            place,
            "when this ran, what goes in did not require grad yet",
            "call `requires_grad_()` before the first use",
            (),
            added(program, place, f"{source.name}.requires_grad_()", first=True)
            if source.name
            else (),
        )
    target = values.get(flow.target)
    if type(target) is Tensor and not target.dtype.is_floating_point:
        return Detachment(place, f"{called}() gives positions too, which carry no gradient")
    return Detachment(place, f"this output of {called}() carries no gradient")


def _marked(
    op: Any, output: Any, place: Span | None, program: Sequence[tree.Statement]
) -> Detachment | None:
    """The answer for an output that a custom function marks as one without a gradient."""
    if not isinstance(op, FunctionCall) or all(e is not output for e in op.node.non_differentiable):
        return None
    marks = [e.span for e in calls_of(program, ".mark_non_differentiable")]
    labels = tuple(Label(span, "this marks it") for span in marks)
    text = f"`{op.name}` gives this output as one that carries no gradient"
    return Detachment(place, text, None, labels)


def _cut_in_place(
    program: Sequence[tree.Statement], source: Tensor, place: Span | None
) -> Detachment | None:
    """The last call of `detach_()` ahead of a place on the tensor that is read there."""
    calls = [
        each.span
        for each in calls_of(program, ".detach_")
        if place is not None and each.span.end <= place.start
        if (owner := each.function.span.text.removesuffix(".detach_")) == source.name
        or (source.name is None and re.search(rf"\b{re.escape(owner)}\b", place.text))
    ]
    if not calls:
        return None
    text = "`.detach_()` cuts it off from the graph that made it"
    return Detachment(calls[-1], text, "leave it out", (), instead(calls[-1], "pass"))


def _recorded_view(program: Sequence[tree.Statement], name: str | None) -> tuple[str, ...]:
    """The program that records where it assigns a view to a name."""
    for each in tree.nodes_of(list(program)):
        if isinstance(each, tree.Assign) and each.targets[0].span.text == name:
            block = switched_off(program, each.span)
            return instead(block, "torch.enable_grad()")
    return ()


def _had_edge(flow: Flow) -> bool:
    call = flow.call
    assert call is not None
    assert call.node is not None
    inputs = call.op.inputs
    if flow.operand not in inputs:
        return True
    return call.node.next_nodes[inputs.index(flow.operand)] is not None


def _no_grad_detachment(call: Any, program: Sequence[tree.Statement]) -> Detachment:
    places = [call.span, *(place for _, place in call.stack)]
    for caller in places:
        if caller is not None and _CHECKPOINT.search(caller.text):
            tries = with_argument(caller, "use_reentrant=False")
            return Detachment(caller, _CHECKPOINTED, _LET_IN, (), tries)
    mode = "no_grad()"
    labels: tuple[Label, ...] = ()
    for place in places:
        block = None if place is None else switched_off(program, place)
        if block is not None:
            mode = block.text.removeprefix("torch.")
            labels = (Label(block, "gradients are off from here"),)
            break
    switch = None if labels else _switch(program, places)
    if switch is not None:
        mode = switch.text.removeprefix("torch.")
        label = Label(switch, "gradients are off from here")
        help = "call `torch.set_grad_enabled(True)` before it"
        tries = instead(switch, switch.text.replace("False", "True"))
        return Detachment(call.span, _UNRECORDED.format(mode), help, (label,), tries)
    if labels:
        block = labels[0].span
        if block.text.startswith("checkpoint("):
            calls = [each.span for each in calls_of(program, "checkpoint")]
            tries = edited(block, [(e.start, e.end, "torch.enable_grad()") for e in calls])
            return Detachment(call.span, _CHECKPOINTED, _LET_IN, (), tries)
        is_decorator = block.source.text[: block.start].endswith("@")
        help = f"leave `@{block.text}` out" if is_decorator else "move it out of the block"
        if block.source.origins is not None:  # a block, a decorator or a call: all look alike
            help = f"move it out of what is under {mode}"
        tries = instead(block, "torch.enable_grad()")
        return Detachment(call.span, _UNRECORDED.format(mode), help, labels, tries)
    if call.span is not None and call.span.text.endswith(".step()"):
        return step_detachment(call.span)
    return Detachment(call.span, _UNRECORDED.format(mode))


_CHECKPOINT = re.compile(r"\bcheckpoint(_sequential)?\(")

_CHECKPOINTED = "a checkpoint with re-entry records nothing where none of its inputs requires grad"

_LET_IN = "say `use_reentrant=False`, or let an input require grad"

_UNRECORDED = "this runs under {}, and nothing is recorded"


def step_detachment(place: Span) -> Detachment:
    """That the step of an optimizer ends the gradient."""
    return Detachment(
        place,
        "the step of an optimizer runs under no_grad(): the new values are numbers without history",
        "compute them as an expression, `w = w - lr * g`, with create_graph=True for g",
    )


SAMPLE = ".sample("


def sample_detachment(place: Span) -> Detachment:
    """That a distribution draws outside the graph."""
    text = "sample() draws outside the graph; `log_prob()` of what was drawn has a gradient"
    help = "`rsample()` lets the gradient through"
    return Detachment(
        place, text, help, (), instead(place, place.text.replace(SAMPLE, ".rsample("))
    )


def _switch(program: Sequence[tree.Statement], places: Sequence[Span | None]) -> Span | None:
    """The last call of `set_grad_enabled` by itself that stands ahead of one of some places."""
    span = None
    for node in tree.nodes_of(list(program)):
        if not isinstance(node, tree.Call) or not node.function.span.text.endswith(
            "set_grad_enabled"
        ):
            continue
        if any(place is not None and node.span.end <= place.start for place in places):
            span = node.span
    return span


_SMOOTH = "a smooth relative has a gradient: softmax for argmax, sigmoid for a comparison"

_PICKS = ("argmax", "argmin", "argsort", "bucketize", "multinomial", "nonzero", "searchsorted")


def _without_derivative(name: str, called: str, output: Any) -> tuple[str, str | None]:
    dtype = output.dtype if type(output) is Tensor else "its result"
    if name.startswith("_to_copy"):
        return (
            f"this makes it {dtype}, and integers and booleans carry no gradient",
            "keep it floating",
        )
    if type(output) is Tensor and output.dtype is dtypes.boolean:
        return "a comparison gives booleans, which carry no gradient", _SMOOTH
    if called in _PICKS:
        return f"{called}() gives positions, which carry no gradient", _SMOOTH
    return f"{called}() has no derivative: its result carries no gradient", None


def _language_detachment(
    flow: Flow, values: dict[int, Any], program: Sequence[tree.Statement]
) -> Detachment:
    evaluation = flow.evaluation
    assert evaluation is not None
    node = evaluation.node
    place, name, function = node.span, "", ""
    if isinstance(node, tree.Call):
        if isinstance(node.function, tree.Attribute):
            name = node.function.name
        function = node.function.span.text
    elif isinstance(node, tree.Attribute):
        name = node.name
    if name in ("detach", "data", "numpy"):
        trip = _numpy_trip(program, place)
        if trip is not None:
            return trip
    if name in ("detach", "data"):
        shown = "`.detach()`" if name == "detach" else "`.data`"
        return Detachment(
            place,
            f"{shown} gives the values outside the graph",
            f"leave {shown} out here",
            (),
            without_attribute(node),
        )
    if name in _NUMBERS or function in ("float", "int", "bool", "round"):
        shown = f"`.{name}()`" if name else f"`{function}()`"
        return Detachment(
            place,
            f"{shown} makes a number of Python's, which has no history",
            "compute on with the tensor itself",
            (),
            (
                *(without_attribute(node) if name else without_call(node)),
                *_enclosing_copy(program, place),
            ),
        )
    if isinstance(node, tree.Call) and _maker(node):
        return _unrecorded_result(node, program)
    return _call_detachment(node, function) or Detachment(
        place,
        f"`{node.span.text}` gives a tensor without history"
        if type(values.get(flow.target)) is Tensor
        else "here it is a value of Python's, which has no history",
    )


def _maker(node: tree.Expression, keywords: Container[str] = ("by", "drawn_by")) -> str:
    """The function whose result a line of a recording reads, "" where it does not say."""
    if not isinstance(node, tree.Call) or node.function.span.text != "recorded":
        return ""
    named = [each.value.span.text for each in node.arguments if each.name in keywords]
    return named[0].strip("'") if named else ""


def is_draw(node: tree.Expression) -> bool:
    """Whether a line of a recording reads what was drawn from a distribution of its operands."""
    return bool(_maker(node, ("drawn_by",)))


def _unrecorded_result(node: tree.Call, program: Sequence[tree.Statement]) -> Detachment:
    """The answer for what PyTorch computed, in a recording, without a gradient."""
    place, called = node.span, _maker(node)
    if is_draw(node):
        text = (
            f"{called}() draws here, and what is drawn has no history, as of `sample()`;"
            " `rsample()`, where the distribution has it, lets the gradient through, and"
            " `log_prob()` of what was drawn has one"
        )
        return Detachment(place, text)
    if switched_off(program, place) is not None:
        return Detachment(place, _UNRECORDED.format("no_grad()"))
    text = f"`{called}` gave this as a result that carries no gradient"
    return Detachment(place, f"{text}, as what `ctx.mark_non_differentiable()` is given")


_RETURNED = {"grad": "gradient", "hessian": "Hessian", "jacobian": "Jacobian"}


def _call_detachment(node: tree.Expression, function: str) -> Detachment | None:
    """What ends the gradient at a call of a function that copies or takes numbers."""
    place = node.span
    package, _, last = function.rpartition(".")
    if package in _OF_NUMBERS:
        help = f"`torch.{last}()` computes it in the graph" if last in modules["torch"] else None
        text = f"`{function}()` takes the number out of the tensor, without its history"
        return Detachment(place, text, help, (), in_torch(node))
    if last in ("tensor", "as_tensor", "FloatTensor", "Tensor", "new_tensor"):
        text = f"`{function}()` copies numbers: the copy has no history"
        help = "join tensors with `torch.stack()`, or use the tensor itself"
        return Detachment(place, text, help, (), without_call(node))
    if last == "grad" or package.endswith("autograd.functional"):
        text = f"`{function}()` gives the {_RETURNED.get(last, 'derivative')} without its history"
        return Detachment(place, text, _AGAIN, (), with_argument(place, "create_graph=True"))
    if last == "Parameter":
        return Detachment(place, "a Parameter is a new leaf, without the history of its value")
    return None


def _numpy_trip(program: Sequence[tree.Statement], place: Span) -> Detachment | None:
    """The answer for what goes on as an array of NumPy's."""
    chain = around(program, place)
    calls = [each for each in chain if isinstance(each, tree.Call)]
    taken = [each.span for each in calls if each.function.span.text.endswith(".numpy")]
    if not taken:
        return None
    names = [each.function.span.text for each in calls]
    packages = [each.partition(".") for each in names]
    functions = [last for package, _, last in packages if package in _OF_NUMBERS]
    known = [f"`torch.{each}`" for each in functions if each in modules["torch"]]
    same = f": {' and '.join(known)} for NumPy's" if known else ""
    return Detachment(
        taken[0],
        "from here on it is an array of NumPy's, which knows no gradients",
        f"compute it in torch{same}, and leave `.detach().numpy()` out",
        (),
        without_numpy(place),
    )


def _floating(place: Span | None) -> tuple[str, ...]:
    """The program without a cast to integers."""
    text = (
        ""
        if place is None
        else re.sub(
            r"\.((long|int|short|byte|char|bool)\(\)|to\(torch\.(u?int\d+|long|bool)\))$",
            "",
            place.text,
        )
    )
    return instead(place, text) if place is not None and text != place.text else ()


def _enclosing_copy(program: Sequence[tree.Statement], place: Span) -> tuple[str, ...]:
    """The program without the `torch.tensor()` around a list of a tensor's numbers."""
    for each in around(program, place):
        if isinstance(each, tree.Call) and each.function.span.text == "torch.tensor":
            copied = each.arguments[0].value
            if isinstance(copied, tree.Call) and isinstance(copied.function, tree.Attribute):
                return instead(each.span, copied.function.value.span.text)
    return ()


# --- where in the program -----------------------------------------------------------------------


def switched_off(program: Iterable[tree.Statement], place: Span) -> Span | None:
    """The innermost `with torch.no_grad()`, or the decorator, that a place is under."""
    span = None
    for node in tree.nodes_of(list(program)):
        if not holds(node.span, place):
            continue
        contexts: list[tree.Syntax] = []
        if isinstance(node, tree.With):
            contexts = [context for context, _ in node.items]
        elif isinstance(node, tree.Def):
            contexts = list(node.decorators)
        for context in contexts:
            if any(mode in context.span.text for mode in _MODES):
                span = context.span
    return span


# --- the answer -----------------------------------------------------------------------------------


class LeftOut(str):
    """What stands for a value whose numbers are not known."""

    def __repr__(self) -> str:
        return str(self)


class Why(Record):
    """The answer to a question.

    Attributes:
        question: such as `x.grad`.
        kind: a word for the reason, for machines: `carried`, `cut`, `unused`, …
        detachments: the operations that show it: where a gradient ends, above all.
        path: the nodes that carry the gradient, from the output to the tensor.
        stepped: whether there are optimizers: where one trains more, the output is another one.
    """

    question: str
    value: Any
    kind: str
    reason: str
    detachments: Sequence[Detachment] = ()
    path: Sequence[GraphNode] = ()
    stepped: bool = False
