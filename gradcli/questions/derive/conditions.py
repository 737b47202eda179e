"""What the formulas of a run hold for: the branches that it took, the iterations of its loops, the
elements that it picked by values, the masks that it drew, the values that stand as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.autograd.recording.trace_recorder import TraceRecorder, source_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import Source
from gradcli.language.parser.parser import parse_program
from gradcli.language.provenance import Evaluation, Provenance
from gradcli.language.tree import syntax as tree
from gradcli.questions.derive.program import Derivation
from gradcli.recorded.recorded_run import Dataflow, ignores_values
from gradcli.recorded.symbols.tree import Name, Operation
from gradcli.show.style import one_line
from gradcli.trace.ir import Effect

_TEST, _LOOP, _PICK, _COUNT, _CHOICE = "test", "loop", "pick", "count", "choice"

_CHOOSING = ("max", "min", "sorted")
"""Functions of Python that choose among their arguments."""

_DEEPEST = 100
"""How many values lie between one and what it is computed from, at most."""


def conditions_of(
    derived: Derivation,
    program: str,
    recorder: TraceRecorder,
    provenance: Provenance,
    inputs: Sequence[Tensor],
    output: Tensor,
    divides: bool,
) -> list[str]:
    """What the formulas hold for, in the words of the program; what they divide by too if they do
    so where they are shown, as the gradient that a Hessian is of is not.
    """
    flow, given = Dataflow(recorder, provenance), {id(each) for each in inputs}
    varying = _varying(flow, provenance, given, _outdated(flow, recorder, inputs))
    before = _before(output, provenance)
    conditions = [*_decisions(parse_program(Source("program", program)), before, varying)]
    needed = flow.ingredients([id(output)]) - given
    conditions += _draws(derived, program, recorder, provenance, varying, needed)
    conditions += _standing(derived, provenance, varying)
    if divides:
        conditions += _nonzero(derived, recorder, varying)
    return list(dict.fromkeys(conditions))


def _outdated(flow: Dataflow, recorder: TraceRecorder, inputs: Sequence[Tensor]) -> set[int]:
    """The tensors made before the inputs that the program changed got their last values."""
    held = [source_of(value) for value in map(recorder.known, inputs) if value is not None]
    updates = [value.number for value in held if value.maker is not None]
    if not updates:
        return set()
    made = {id(each): recorder.known(each) for each in flow.tensors()}
    given = {id(each) for each in inputs}
    last = min(updates)
    return {
        key
        for key, value in made.items()
        if value is not None and value.number < last and key not in given
    }


def _varying(
    flow: Dataflow, provenance: Provenance, given: set[int], outdated: set[int]
) -> set[int]:
    """What is computed from the inputs, by the gradients of earlier passes too."""
    gradients = {
        id(each.value): id(each.parts[0].value)
        for each in provenance.evaluations
        if isinstance(each.node, tree.Attribute)
        and each.node.name == "grad"
        and type(each.value) is Tensor
        and each.parts
    }
    varying: set[int] = set()
    begins = given
    while begins - varying:
        varying |= flow.computed_from(begins, without=outdated)
        begins = {key for key, owner in gradients.items() if owner in varying} - outdated
    return varying


def _before(output: Tensor, provenance: Provenance) -> Sequence[Evaluation]:
    """What was evaluated before an output was there; all where it was written to afterwards."""
    if output.version:
        return provenance.evaluations
    ends = (n for n, each in enumerate(provenance.evaluations) if each.value is output)
    return provenance.evaluations[: next(ends, None)]


def _decisions(
    statements: Sequence[tree.Statement], evaluations: Sequence[Evaluation], varying: set[int]
) -> Iterator[str]:
    """What the program decided by values that the inputs change."""
    deciding = {_place(node): kind for node, kind in _deciding(statements)}
    seen: dict[_Place, list[Any]] = {}
    for each in evaluations:
        place = _place(each.node)
        if place in deciding and _varies(each, varying, 0):
            chosen = _chosen(each) if deciding[place] == _CHOICE else _plain(each.value)
            seen.setdefault(place, []).append(chosen)
    for place, values in seen.items():
        text = one_line(place[0][place[1] : place[2]])
        kind = deciding[place]
        if kind == _LOOP:
            rounds = sum(map(bool, values))
            yield f"with {rounds} round{'s' * (rounds != 1)} of the loop `while {text}`"
        elif kind == _TEST:
            truths = {bool(value) for value in values}
            if len(truths) == 1:
                yield f"for {text}" if truths == {True} else f"where {text} is false"
            else:
                yield f"where {text} is {', '.join(str(bool(value)) for value in values)} in turn"
        elif kind == _CHOICE:
            yield f"where {text} is {', '.join(dict.fromkeys(values))}"
        elif all(type(value) is int for value in values):
            yield f"for {text} = {', '.join(map(str, dict.fromkeys(values)))}"


def _chosen(evaluation: Evaluation) -> str:
    """What a function of Python chose, in the words of the program."""
    value, source = evaluation.value, evaluation.node.span.source
    if isinstance(value, list):
        return "in the order that it has at these inputs"
    if type(value) in (int, float):
        return str(value)
    arguments = [each for each in evaluation.parts if each.node.span.source is source]
    texts = [one_line(each.node.span.text) for each in arguments if each.value is value]
    return texts[0] if texts else "the element that it is at these inputs"


_Place = tuple[str, int, int]
"""Where an expression stands: the text, and its part; the same in each parse of it."""


def _place(node: tree.Expression) -> _Place:
    return node.span.source.text, node.span.start, node.span.end


def _deciding(statements: Sequence[tree.Statement]) -> Iterator[tuple[tree.Expression, str]]:
    """The expressions that decide what a program computes."""
    for node in tree.nodes_of(list(statements)):
        if isinstance(node, tree.If):
            yield from ((test, _TEST) for test, _ in node.branches)
        elif isinstance(node, tree.While):
            yield node.test, _LOOP
        elif isinstance(node, tree.Conditional):
            yield node.test, _TEST
        elif isinstance(node, tree.ComprehensionFor):
            yield from ((test, _TEST) for test in node.conditions)
        elif isinstance(node, tree.Subscript):
            yield node.index, _PICK
        elif isinstance(node, tree.Call) and node.function.span.text == "range":
            yield from ((each.value, _COUNT) for each in node.arguments)
        elif isinstance(node, tree.Call) and node.function.span.text in _CHOOSING:
            yield node, _CHOICE


def _varies(evaluation: Evaluation, varying: set[int], depth: int) -> bool:
    """Whether a value is computed from what the inputs change."""
    if type(evaluation.value) is Tensor:
        return id(evaluation.value) in varying
    if type(evaluation.value) is float and id(evaluation.value) in varying:
        return True
    if depth > _DEEPEST or ignores_values(evaluation.node):
        return False
    return any(_varies(part, varying, depth + 1) for part in evaluation.parts)


def _plain(value: Any) -> Any:
    """A tensor of one element as the number in it."""
    return value.array.item() if type(value) is Tensor and value.array.size == 1 else value


def _draws(
    derived: Derivation,
    program: str,
    recorder: TraceRecorder,
    provenance: Provenance,
    varying: set[int],
    needed: set[int],
) -> Iterator[str]:
    """The expressions that drew numbers which stand in the formulas, or made masks of them."""
    draws = [each.span for each in recorder.trace.instructions if Effect.RANDOM in each.effects]
    spans = {(span.source.text, span.start, span.end) for span in draws if span is not None}
    inputs = [derived.inputs[name] for name in derived.described]
    for each in provenance.evaluations:
        value = each.value
        is_own = each.node.span.source.text == program  # and no value of an argument
        if type(value) is not Tensor or id(value) not in needed or not is_own:
            continue
        is_input = value.name or any(np.array_equal(value.array, each) for each in inputs)
        if _place(each.node) in spans and (id(value) in varying or not is_input):
            yield f"with what `{one_line(each.node.span.text)}` drew"


def _standing(derived: Derivation, provenance: Provenance, varying: set[int]) -> Iterator[str]:
    """The expressions whose values follow from the inputs by what is no operation of the graph, as
    the sign of an earlier gradient does, and stand in the formulas as they are.
    """
    tensors = {id(tensor) for tensor, _ in derived.standing if tensor is not None}
    indices = [array for tensor, array in derived.standing if tensor is None]
    for each in provenance.evaluations:
        value = each.value
        if type(value) is not Tensor or id(value) not in varying:
            continue
        picked = _positions(value.array)
        met = [array for array in indices if any(np.array_equal(array, one) for one in picked)]
        if id(value) in tensors or met:
            tensors.discard(id(value))
            indices = [array for array in indices if all(array is not one for one in met)]
            span = each.node.span
            yield f"where `{one_line(span.text)}` (line {span.line}) is what it is at these inputs"


def _positions(index: Any) -> Sequence[Any]:
    """The arrays of positions that an index takes: those of a mask are where it is true."""
    if index.dtype.kind == "b":
        return np.nonzero(index) if index.ndim else ()
    return (index,) if index.dtype.kind == "i" else ()


_PRODUCTS = ("prod", "cumprod")


def _nonzero(derived: Derivation, recorder: TraceRecorder, varying: set[int]) -> Iterator[str]:
    """The operands of products that the formulas divide by."""
    arrays = {**derived.inputs, **{line.name: line.array for line in derived.shown}}
    parts = (part for line in derived.shown for part in line.formula.walk())
    quotients = [each for each in parts if isinstance(each, Operation) and each.operator == "/"]
    divisors = [part for each in quotients for part in each.parts[-1].walk()]
    names = {part.name for part in divisors if isinstance(part, Name)}
    for call in recorder.calls:
        operand = call.arguments.get("self")
        if call.op.name.partition(".")[0] in _PRODUCTS and id(operand) in varying:
            numbers = np.asarray(None if operand is None else operand.array)
            held: list[str] = [each for each in names if each in arrays]
            alike = [each for each in held if np.array_equal(arrays[each], numbers)]
            name = alike[0] if alike else None
            if quotients and numbers.all():
                text = one_line(call.span.text) if call.span is not None else call.op.name
                yield f"where {name} ≠ 0" if name else f"where no factor of `{text}` is 0"
