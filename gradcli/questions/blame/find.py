"""`blame`: finds the first NaN or infinity that reaches the output or a gradient.

The run around the number says of its cause: the matrix that has equal eigenvalues, the small
constant that half precision rounds to 0, what grows from round to round.

A `Finding` is what `blame` reports: a cause, as one word and a sentence, the `where` that hides it,
and a fix that was run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.dtypes import of_numpy
from gradcli.arrays.fusion.lazy import forced
from gradcli.arrays.scalars import finfo
from gradcli.autograd.recording.recorder import Step
from gradcli.autograd.tensor import Tensor
from gradcli.errors import Label, Span
from gradcli.language.tree import syntax as tree
from gradcli.ops.definition.doc import NO_HAZARD, Hazard
from gradcli.questions.blame.nonfinite import (
    BACKWARD,
    DATA,
    FORWARD,
    MET,
    SEED,
    FirstNonFinite,
    Watch,
    is_finite,
)
from gradcli.record import Record
from gradcli.recorded.patterns import around, call_of, returns_of
from gradcli.recorded.recorded_run import Recorded
from gradcli.show.style import counted

if TYPE_CHECKING:
    from gradcli.autograd.node import Node
    from gradcli.recorded.result import Result


# --- what is reported -----------------------------------------------------------------------------


# --- causes ---------------------------------------------------------------------------------------


def cause_of(nonfinite: FirstNonFinite) -> tuple[str, str]:
    """The cause of a first NaN or infinity: a word for machines, and a sentence."""
    if nonfinite.phase == DATA:
        return _entered(nonfinite)
    if nonfinite.phase == SEED:
        return "from the seed", f"the backward pass starts from {number_text(nonfinite.value)}"
    return _backward(nonfinite) if nonfinite.phase == BACKWARD else _forward(nonfinite)


def _entered(nonfinite: FirstNonFinite) -> tuple[str, str]:
    called, value = nonfinite.called, number_text(nonfinite.value)
    tensor = nonfinite.output
    if nonfinite.stepped:
        text = f"{called} was finite, and a step made it {value}"
        if np.isnan(nonfinite.value):
            return "undefined in a step", f"{text}, of a gradient that is finite"
        return "overflow in a step" if nonfinite.at_step else "overflow", text
    if tensor is None:
        return "from a constant", f"{value} goes in here"
    if tensor.requires_grad and tensor.meta is not None and tensor.meta.is_parameter:
        return "from a parameter", f"{called} holds {value}"
    return "from the data", held_text(called, value, nonfinite.count, nonfinite.rows)


def held_text(called: str, value: str, count: int, rows: int) -> str:
    """What data hold, of which so many numbers are not finite."""
    text = f"{called} holds {value}"
    if count > 1:
        text += f", and {count:,} numbers that are not finite"
        text += f", in {counted(rows, 'row')}" if rows else ""
    return text


def name_of(nonfinite: FirstNonFinite) -> str:
    """The name of the operation that gave a first NaN or infinity."""
    name = nonfinite.called if nonfinite.op is None else nonfinite.op.name
    return str(name).partition(".")[0].strip("_")


# --- forward ------------------------------------------------------------------------------------


def _forward(nonfinite: FirstNonFinite) -> tuple[str, str]:
    name, hazard = name_of(nonfinite), _hazard_of(nonfinite)
    cause = hazard.of_value(_values(nonfinite))
    if cause is not None:
        return cause
    if not _all_finite(nonfinite):
        return hazard.infinities or ("undefined", f"{name} of an infinity has no value")
    if np.isnan(nonfinite.value):
        return (
            ("0/0", hazard.nothing)
            if hazard.nothing
            else ("undefined", f"{name} is not defined there")
        )
    if hazard.singular:
        return "singular", hazard.singular
    return "overflow", f"the result of {name} is beyond {_largest(nonfinite)}"


def _largest(nonfinite: FirstNonFinite) -> str:
    """The largest number of the dtype that overflowed, in words."""
    largest = finfo(of_numpy(nonfinite.dtype)).max
    return f"{number_text(largest)}, the largest {nonfinite.dtype}"


# --- backward -----------------------------------------------------------------------------------


def _backward(nonfinite: FirstNonFinite) -> tuple[str, str]:
    name, hazard = name_of(nonfinite), _hazard_of(nonfinite)
    if nonfinite.called == MET:
        named = getattr(nonfinite.output, "name", None)
        at = f"`{named}`" if named else "this result"
        return "overflow", f"the gradients of {at} add up beyond {_largest(nonfinite)}"
    if nonfinite.op is not None and not hasattr(nonfinite.op, "hazard"):
        value = number_text(nonfinite.value)
        return "undefined", f"backward() of {name} returned {value} for a finite gradient"
    singular = _singular(nonfinite)
    nothing = nonfinite.incoming is not None and nonfinite.incoming == 0
    if singular:
        if nothing:
            return "0*inf", f"the gradient that arrives is 0, and {singular}: 0 · inf is NaN"
        if np.isnan(nonfinite.value) and hazard.undefined:
            return "0/0", f"{singular}: its formula divides 0 by 0"
        return "infinite slope", singular
    if nothing and np.isnan(nonfinite.value) and (hazard.steep or not _all_finite(nonfinite)):
        text = f"the gradient that arrives is 0, and {name} overflowed: 0 · inf is NaN"
        return "0*inf", text
    if np.isinf(nonfinite.value):
        if nonfinite.place is not None and re.match(r"\w+\.scale\(", nonfinite.place.text):
            factor = number_text(_values(nonfinite).get("other", np.nan))
            text = f"the GradScaler multiplies the gradient by {factor}, which {nonfinite.dtype}"
            return "scale too large", f"{text} does not hold"
        return "overflow", f"the gradient of {name} is beyond the largest {nonfinite.dtype}"
    wrong = hazard.of_value(_values(nonfinite))
    if wrong is not None and nothing:
        return wrong[0], f"{wrong[1]}, and has no slope there: 0 · NaN is NaN"
    return "undefined", f"the gradient of {name} has no value there"


def _singular(nonfinite: FirstNonFinite) -> str:
    """Why the slope is not finite at the operands, "" if it is."""
    hazard, first = _hazard_of(nonfinite), nonfinite.operands[:1]
    if first and first[0].value is None and first[0].low == first[0].high == 0:
        return hazard.zeros
    return hazard.of_slope(_values(nonfinite))


# --- the operands ---------------------------------------------------------------------------------


def _hazard_of(nonfinite: FirstNonFinite) -> Hazard:
    """Where the op is not finite; a custom function does not say."""
    hazard: Hazard = getattr(nonfinite.op, "hazard", NO_HAZARD)
    return hazard


def _values(nonfinite: FirstNonFinite) -> dict[str, Any]:
    """The operands' numbers at the element, by parameter."""
    return {operand.parameter: operand.value for operand in nonfinite.operands}


def _all_finite(nonfinite: FirstNonFinite) -> bool:
    return all(np.isfinite(each) for each in _values(nonfinite).values() if each is not None)


def number_text(value: Any) -> str:
    """A number in few digits, which no other number than an integer rounds to one."""
    number = float(value)
    text = f"{number:.6g}"
    is_near = float(text) != number and float(text).is_integer() and abs(number) < _NEAR
    return f"{number:.9g}" if is_near else text


_NEAR = 1e6
"""Below this a number of single precision is told from the next integer in nine digits."""


# --- findings -------------------------------------------------------------------------------------


class Rewrite:
    """A change of a program's text.

    Attributes:
        dtype: the dtype that the program is run in, None for its own.
        guards: whether it keeps arguments away from a point where the value is infinite, which is
            right only where the program goes on to take nothing times that value.
        chooses: whether it may choose a value of the output where that has none, as for 0/0; a
            number divided by 0 has none that is right.
    """

    def __init__(self, span: Span, text: str, reason: str, dtype: str | None = None) -> None:
        self.span = span
        self.text = text
        self.reason = reason
        self.dtype = dtype
        self.guards = False
        self.chooses = True
        self.also: list[Rewrite] = []

    def program(self) -> str:
        """The whole text with the change."""
        text = self.span.source.text
        for each in sorted([self, *self.also], key=lambda change: -change.span.start):
            text = text[: each.span.start] + each.text + text[each.span.end :]
        return text

    def lines(self) -> list[tuple[int, str]]:
        """The changed lines, with their numbers."""
        changes = sorted([self, *self.also], key=lambda change: change.span.start)
        text = self.program()
        shift = 0
        changed: dict[int, str] = {}
        for each in changes:
            at = each.span.start + shift
            shift += len(each.text) - (each.span.end - each.span.start)
            start = text.rfind("\n", 0, at) + 1
            end = text.find("\n", at + len(each.text))
            changed[each.span.line] = text[start : len(text) if end < 0 else end]
        return sorted(changed.items())


class Fix(Record):
    """A rewrite that was run.

    Attributes:
        agree: how many numbers agree with those that were finite before, or are in double
            precision.
        chosen: how many have no other run to compare with: there the rewrite chooses.
        points: where both programs were run, and are alike in value and gradients as far as the
            former is finite; in words.
        choices: these numbers, with what it takes, in words.
        chooses: whether mathematics has no value there; otherwise float64 does not hold it.
    """

    rewrite: Rewrite
    agree: int
    chosen: int
    points: Sequence[str]
    choices: Sequence[str] = ()
    chooses: bool = False


class Mask(Record):
    """A `where` that hides what is not finite from the value, and not from the gradient."""

    place: Span


class Blamed:
    """A NaN or infinity that reaches the output or a gradient.

    Attributes:
        spoilt: what is not finite because of it: `x.grad`, `y`.
        diverges: the leaves whose steps made it grow until it overflowed.
        computed: whether the zero that it stumbles over was computed, and may be one by rounding.
        grows: how much what a recurrence hands on grows from round to round, in words, "" where it
            does not overflow by that.
        returned: where the `backward()` of a custom function returned it.
        made: where the tensor was made that holds it, of one that entered so.
        too_large: whether it was run in float64, and is not finite there either.
        in_part: whether no more of the program was run for it than leads to the operation.
        untried: why nothing was run that may cure it, "" where it was.
    """

    def __init__(self, nonfinite: FirstNonFinite, mask: Mask | None, spoilt: Sequence[str]) -> None:
        self.nonfinite = nonfinite
        self.cause, self.text = cause_of(nonfinite)
        self.mask = mask
        self.spoilt = spoilt
        self.diverges: Sequence[Tensor] = ()
        self.fix: Fix | None = None
        self.untried = ""
        self.in_part = False
        self.computed = False
        self.grows = ""
        self.made: Span | None = None
        self.returned: tuple[Label, ...] = ()
        self.too_large = False


class Blame(Record):
    """What was found.

    Attributes:
        others: those after it, and those that reach neither output nor gradient.
        failed: whether the program ended in an error, and has neither.
    """

    first: Blamed | None
    others: Sequence[Blamed]
    failed: bool = False


# --- finding it -----------------------------------------------------------------------------------


# --- contexts -------------------------------------------------------------------------------------


_FEWEST = 6
"""So many results of one operation, each larger than the one before it, are growth."""

_FEWEST_ROUNDS = 3
"""The same for the rounds of a training that diverges."""

_DIVERGED = 1e8
"""By how much what diverges is larger in the end, though not in each round."""

_GROWTH = 1.2
"""By how much each of them is larger at least."""

_CLOSE = 1e-5
"""Eigenvalues are equal whose distance is this part of the largest."""


def explain_by_context(run: Recorded, blamed: Blamed) -> None:
    """Let a number that is not finite say what the run around it shows of its cause."""
    nonfinite = blamed.nonfinite
    cause = (
        _determinant(run, nonfinite)
        or _equal_eigenvalues(run, nonfinite)
        or _nothing_to_add(run, nonfinite)
    )
    if cause is not None:
        blamed.cause, blamed.text = cause
    lost = _lost(run, nonfinite)
    if lost is not None:
        blamed.text += f"; {lost} in {nonfinite.dtype}"
    blamed.computed = _is_computed(run, nonfinite)
    if blamed.cause != "overflow" or (blamed.diverges and nonfinite.stepped):
        return
    grown = _sizes(run, nonfinite)
    if _is_trained(run, [node for node, _ in grown[-_FEWEST_ROUNDS:]]):
        # A formula may overflow in a later round by itself.
        sizes = [size for _, size in grown]
        grows = _ratio(sizes, _FEWEST_ROUNDS) or 0 < sizes[0] < sizes[-1] / _DIVERGED
        blamed.diverges = (blamed.diverges or _changed(run, nonfinite)) if grows else ()
    else:
        blamed.diverges = ()
        ratio = _ratio([size for _, size in grown], _FEWEST)
        backward = "the gradient grows " if nonfinite.phase == BACKWARD else ""
        blamed.grows = f"{backward}{ratio}-fold" if ratio else _growth_before(run, nonfinite)


def _is_computed(run: Recorded, nonfinite: FirstNonFinite) -> bool:
    """Whether an operand that holds a zero is the result of an operation."""
    call = next((e for e in run.recorder.calls if e.output is nonfinite.output), None)
    operands = [] if call is None else call.arguments.values()
    computed = [e for e in operands if type(e) is Tensor and e.grad_fn is not None]
    return any(not np.asarray(to_host(forced(each.array))).all() for each in computed)


def _determinant(run: Recorded, nonfinite: FirstNonFinite) -> tuple[str, str] | None:
    """What a `logdet` without a value is taken of."""
    chain = [] if nonfinite.place is None else around(run.program, nonfinite.place)
    if not chain or call_of(chain[0], "logdet") is None or nonfinite.phase == BACKWARD:
        return None
    called = next((e for e in run.recorder.calls if e.span is nonfinite.place), None)
    matrices = [] if called is None else _matrices(called.arguments.values())
    if not matrices:
        return None
    signs = np.linalg.slogdet(matrices[0].astype(float))[0]
    nonfinite.phase, nonfinite.called, nonfinite.op = FORWARD, "logdet", None
    nonfinite.operands = []
    if (signs < 0).any():
        least = number_text(np.min(np.linalg.det(matrices[0].astype(float))))
        text = f"the determinant is negative, {least}, and has no logarithm"
        return "log of a negative", text
    return "log of zero", "the matrix is singular: its determinant is 0, and the logarithm -inf"


def _equal_eigenvalues(run: Recorded, nonfinite: FirstNonFinite) -> tuple[str, str] | None:
    """The eigenvalues or singular values that are equal, where a decomposition has no slope."""
    name = name_of(nonfinite)
    if nonfinite.phase != BACKWARD or name not in ("linalg_eigh", "linalg_svd"):
        return None
    call = None if nonfinite.node is None else run.recorder.call_of.get(nonfinite.node)
    matrices = [] if call is None else _matrices(call.arguments.values())
    if not matrices:
        return None
    array = matrices[0].astype(float)
    kind, vectors, values = "eigenvalues", "eigenvectors", np.linalg.svd(array)[1]
    if name == "linalg_eigh":
        values = np.linalg.eigvalsh(array)
    else:
        kind, vectors = "singular values", "singular vectors"
    values = np.sort(values, axis=-1).reshape(-1, values.shape[-1])
    gaps = np.diff(values, axis=-1)
    if not gaps.size or gaps.min() > _CLOSE * max(float(np.abs(values).max()), 1e-30):
        return None
    row, column = np.unravel_index(int(gaps.argmin()), gaps.shape)
    pair = [number_text(each) for each in values[row, column : column + 2]]
    return f"equal {kind}", (
        f"the {kind} {pair[0]} and {pair[1]} are equal: which {vectors} belong to them is open,"
        " and those have no derivative"
    )


def _matrices(values: Any) -> list[Any]:
    arrays = [np.asarray(to_host(forced(e.array))) for e in values if type(e) is Tensor]
    return [e for e in arrays if e.ndim >= 2 and e.dtype.kind == "f" and np.isfinite(e).all()]


def _nothing_to_add(run: Recorded, nonfinite: FirstNonFinite) -> tuple[str, str] | None:
    """A logsumexp of nothing but -inf, whose slopes divide 0 by 0."""
    call = None if nonfinite.node is None else run.recorder.call_of.get(nonfinite.node)
    if call is None or name_of(nonfinite) != "logsumexp" or type(call.output) is not Tensor:
        return None
    if not np.isneginf(np.asarray(to_host(forced(call.output.array)))).any():
        return None
    text = "all that logsumexp adds up there is exp(-inf) = 0: its slopes divide 0 by 0"
    return "nothing but -inf", text


def _lost(run: Recorded, nonfinite: FirstNonFinite) -> str | None:
    """What half precision makes of a small constant in the expression: `1e-8 is 0`, `1 - 1e-6 is
    1`.
    """
    if nonfinite.dtype.char != "e" or nonfinite.place is None:
        return None
    for whole in around(run.program, nonfinite.place)[:1]:
        for each in tree.nodes_of(whole):
            value = each.value if isinstance(each, tree.Constant) else None
            if isinstance(value, float) and value and not np.float16(value):
                return f"{each.span.text} is 0"
            if isinstance(each, tree.Binary) and len(each.rest) == 1:
                first, (operator, second) = each.first, each.rest[0]
                a, b = (getattr(side, "value", None) for side in (first, second))
                if operator == "-" and a == 1 and isinstance(b, float) and np.float16(1 - b) == 1:
                    return f"{each.span.text} is 1"
    return None


def _sizes(run: Recorded, nonfinite: FirstNonFinite) -> list[tuple[Node | None, float]]:
    """The largest number of each round at the place where one overflows, up to that one, with the
    node that stands for it.
    """
    sizes: list[tuple[Node | None, float]] = []
    if nonfinite.phase != BACKWARD or nonfinite.node is None:
        return _sizes_of_rounds(run, nonfinite.op, nonfinite.place, nonfinite.output)[:-1]
    name = nonfinite.node.node_name
    for event in run.recorder.events or ():
        if isinstance(event, Step) and event.node.node_name == name:
            if _is_there(event.node.place, nonfinite.place):
                sizes.append((event.node, _size(event.grads)))
            if event.node is nonfinite.node:
                break
    return sizes


def _is_trained(run: Recorded, nodes: Sequence[Node | None]) -> bool:
    """Whether a backward pass ran between each two of some nodes: they are of rounds of a training,
    and not of what goes round within one.
    """
    ends = [root.sequence_nr for each in run.recorder.passes for root, _ in each.roots]
    numbers = [each.sequence_nr for each in nodes if each is not None]
    return 1 < len(numbers) == len(nodes) and all(
        any(before <= end < after for end in ends) for before, after in pairwise(numbers)
    )


def _changed(run: Recorded, nonfinite: FirstNonFinite) -> list[Tensor]:
    """The leaves that a number is computed of, and that were written to."""
    ahead = run.flow.ingredients([id(nonfinite.output)])
    leaves = [e for e in run.flow.tensors() if id(e) in ahead and e.requires_grad and e.is_leaf]
    return [each for each in leaves if each.version]


def _sizes_of_rounds(
    run: Recorded, op: Any, place: Span | None, output: Any
) -> list[tuple[Node | None, float]]:
    """The largest elements that an op gave at a place in each round, up to an output of it."""
    sizes: list[tuple[Node | None, float]] = []
    for call in run.recorder.calls:
        if call.op is op and _is_there(call.span, place):
            sizes.append((call.node, _size([call.output])))
            if call.output is output:
                break
    return sizes


def _growth_before(run: Recorded, nonfinite: FirstNonFinite) -> str:
    """How the operand of an op behind a loop grew in that, "" where it did not."""
    made_by = {id(call.output): call for call in run.recorder.calls}
    failed = made_by.get(id(nonfinite.output))
    for operand in () if failed is None else failed.arguments.values():
        maker = made_by.get(id(operand))
        if maker is not None:
            sizes = _sizes_of_rounds(run, maker.op, maker.span, maker.output)
            ratio = _ratio([size for _, size in sizes], _FEWEST)
            if ratio:
                return f"{ratio}-fold"
    return ""


def _ratio(sizes: Sequence[float], fewest: int) -> str:
    """By how much the last sizes grow from one to the next, "" where one does not."""
    last = [each for each in sizes if np.isfinite(each)][-fewest:]
    ratios = [b / a if a else 0.0 for a, b in pairwise(last)]
    if len(last) < fewest or min(ratios) < _GROWTH:
        return ""
    return f"{np.exp(np.mean(np.log(ratios))):.2g}"


def _is_there(place: Span | None, wanted: Span | None) -> bool:
    """Whether two places are one: those of a recording, where each round has lines of its own, by
    the user's line and what is read there.
    """
    if place is None or wanted is None or place is wanted:
        return place is wanted
    return bool(wanted.origin) and place.origin == wanted.origin and _shares(place, wanted)


def _shares(place: Span, wanted: Span) -> bool:
    """Whether two lines of a recording read the same parameters, as the rounds of one cell do."""
    paths = [set(_PATH.findall(each.text)) for each in (place, wanted)]
    return paths[0] == paths[1]


_PATH = re.compile(r"\b\w+(?:\[\d+\])*(?:\.\w+(?:\[\d+\])*)+")


def _size(values: Sequence[Any]) -> float:
    arrays = [np.asarray(to_host(forced(getattr(e, "array", e)))) for e in values if e is not None]
    sizes = [float(np.abs(e).max()) for e in arrays if e.size and e.dtype.kind == "f"]
    return max(sizes, default=0.0)


# --- finding --------------------------------------------------------------------------------------


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
    spoilt = spoilt or [leaf.name or "a leaf" for leaf in watch.diverged]
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
    for each in nonfinites if rounds is not None else ():
        # One of the two may stand in a loop inside the round of the other.
        pairs = zip(each.rounds, rounds or (), strict=False)
        if all((a.start, n) == (b.start, m) for (a, n, _), (b, m, _) in pairs):
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
