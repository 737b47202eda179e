"""Says why a gradient is zero: no slope, an operand that is zero, contributions that cancel, an
empty selection, saturation, units that are dead.

The reason is computed. A node passes on a sum over the elements of its output, each times the
gradient that arrives there. Where the sum is zero, the node runs again on that gradient with random
weights: what comes out is zero too if every contribution is, and not where they cancel.

Where a zero was set, or a module's state, is a line of the program, which is looked for too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.engine import accumulate
from gradcli.autograd.graph import Graph, GraphNode
from gradcli.autograd.node import Node
from gradcli.autograd.recording.recorder import Arrival, Step
from gradcli.autograd.recording.trace_recorder import Write
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, Label, Span
from gradcli.language.provenance import Evaluation
from gradcli.language.tree import syntax as tree
from gradcli.ops.definition.op import Op, parameters_of
from gradcli.questions.why.detachments import Detachment
from gradcli.questions.why.edits import drawn, leaky, straight_through
from gradcli.record import Record
from gradcli.recorded.ledger import last_pass
from gradcli.recorded.patterns import holds, returns_of
from gradcli.recorded.recorded_run import Recorded
from gradcli.recorded.result import flat
from gradcli.state import active
from gradcli.trace.ir import Value

if TYPE_CHECKING:
    from gradcli.autograd.recording.trace_recorder import Call
    from gradcli.errors import Span


# --- the line that set a state --------------------------------------------------------------------


_VIEW_OPS = (
    "t",
    "transpose",
    "view",
    "reshape",
    "expand",
    "permute",
    "unsqueeze",
    "squeeze",
    "alias",
)
"""Ops whose result shows the numbers of what goes in."""


def origin_of_zero(run: Recorded, value: Any, call: Call | None = None) -> Span | None:
    """The line that gave a value what it is: the write to it, or where it was made.

    Args:
        call: the call that reads it; a plain number is known by its place alone.
    """
    if type(value) is Tensor:
        tensor = viewed(run, value)
        return _write_of_zero(run, tensor, call) or run.creation(tensor)
    if isinstance(value, (bool, int, float)):
        return None if call is None or call.span is None else _assigned(run, value, call.span)
    for evaluation in run.provenance.evaluations:
        if evaluation.value is value:
            return evaluation.node.span
    return None


def _write_of_zero(run: Recorded, tensor: Tensor, call: Call | None) -> Span | None:
    """The write to a tensor, ahead of a call, since which it is zero; the last one where the
    numbers were not kept.
    """
    place, is_zero = None, False
    for each in run.recorder.trace.instructions:
        if each is call:
            break
        if isinstance(each, Write) and _shows(each.tensor, tensor):
            after = each.outputs[0]
            array = None if after is None else after.array
            place = place if is_zero else each.span
            is_zero = array is not None and not np.any(array)
    return place


def _shows(written: Tensor, tensor: Tensor) -> bool:
    """Whether what was written is a tensor, or shows its memory, as `w.data` and `w[0]` do."""
    if written is tensor or written.array is tensor.array:
        return True
    arrays = [forced(each.array) for each in (written, tensor)]
    return all(isinstance(e, np.ndarray) for e in arrays) and np.may_share_memory(*arrays)


def operands_as_they_were(run: Recorded, call: Call) -> dict[str, Any]:
    """The operands of a call by parameter, tensors with the numbers that they held then."""
    return {
        name: run.recorder.stand_in(value)
        if isinstance(value, Value) and value.array is not None
        else call.arguments[name]
        for name, value in call.operands.items()
    }


def viewed(run: Recorded, tensor: Tensor) -> Tensor:
    """The tensor whose numbers a chain of views shows."""
    seen = {id(tensor)}
    while True:
        steps = run.flow.back.get(id(tensor), ())
        sources = [
            run.flow.values.get(each.source)
            for each in steps
            if each.call is not None and str(each.call.op.name).partition(".")[0] in _VIEW_OPS
        ]
        source = next((each for each in sources if type(each) is Tensor), None)
        if source is None or id(source) in seen:
            return tensor
        seen.add(id(source))
        tensor = source


def _assigned(run: Recorded, value: Any, used: Span) -> Span | None:
    """The assignment of the number that an expression at a place reads."""
    for evaluation in reversed(run.provenance.evaluations):
        if evaluation.node.span is not used:
            continue
        for read in _reads(evaluation):
            for statement, assigned in run.provenance.assignments:
                if assigned is read and type(read.value) is type(value) and read.value == value:
                    return statement.span
    return None


def _reads(evaluation: Evaluation) -> Iterator[Evaluation]:
    """The evaluations whose values the operands of an expression have."""
    for part in evaluation.parts:
        yield part
        yield from part.parts


# --- zeros ----------------------------------------------------------------------------------------


CANCELS = "its contributions add up to 0"
EMPTY = "nothing is selected"
EVERYWHERE = "it is zero whatever the values are"
FOR_THESE = "it is zero for these values"

_MOST = 3
"""Places that are shown."""

_ROUNDING = 64
"""A sum of so many roundings of what was summed is taken for zero."""

_SMALL = 1e-4
"""A gradient above this is not looked at: it is not what rounding leaves of a cancellation."""


class Zero(Record):
    """A place where a gradient becomes zero.

    Attributes:
        kind: the reason in words, one of those above; "" where none arrived.
    """

    kind: str
    at: Detachment


_NOTHING = Zero("", Detachment(None, ""))


def zeros_of(
    run: Recorded, graph: Graph, target: Node | None, gradient: Any
) -> tuple[str, list[Detachment]] | None:
    """Why no gradient reaches a leaf, and the places where it becomes zero; None where one does,
    or where the reason is not certain.
    """
    goal = None if target is None else graph.find(target)
    array = _host(gradient)
    if goal is None or graph.root is None or not is_small(gradient):
        return None
    walk = _Walk(run, graph, goal)
    zeros = walk.zeros()
    if not zeros:
        return None
    kinds = {each.kind for each in zeros}
    reason = kinds.pop() if len(kinds) == 1 else FOR_THESE
    steps = walk.step_functions()
    if steps and reason != EVERYWHERE:
        reason, zeros = EVERYWHERE, [*steps, *zeros]
    if array.any():
        reason = f"it is 0 up to rounding: {CANCELS}"
    return reason, [each.at for each in zeros[:_MOST]]


def is_small(gradient: Any) -> bool:
    """Whether a gradient may be what rounding leaves of a cancellation; NaN is not."""
    array = _host(gradient)
    if not array.size or array.dtype.kind not in "fc":
        return False
    return bool(float(np.abs(array).max()) <= _SMALL)


_FAINT = 1e-15
"""A gradient below this has all but vanished."""

_DROP = 1e-6
"""So much of a gradient a node passes on, at most, that is named for it."""

_SATURATING = ("Sigmoid", "Tanh", "Softmax", "LogSoftmax")


def faded(run: Recorded, graph: Graph, target: Node | None, gradient: Any) -> Detachment | None:
    """The node that lets least of a gradient through, where it has all but vanished."""
    goal = None if target is None else graph.find(target)
    largest = _largest(gradient)
    if goal is None or graph.root is None or not 0 < largest < _FAINT:
        return None
    walk = _Walk(run, graph, goal)
    drops = []
    for node in walk.leads:
        step = walk.steps.get(node.node)
        came = max((_largest(g) for g in step.grads if g is not None), default=0.0) if step else 0.0
        for edge, passed in zip(node.edges, step.fitted if step else (), strict=False):
            if edge.node in walk.leads and passed is not None and came:
                drops.append((_largest(passed) / came, came, _largest(passed), node))
    least, came, left, node = min(drops, key=lambda each: each[0], default=(1.0, 0.0, 0.0, goal))
    if least > _DROP:
        return None
    called = node.name.partition("Backward")[0]
    why = f": {called.lower()} is all but saturated" if called in _SATURATING else ""
    return Detachment(node.place, f"the gradient shrinks here from {came:.3g} to {left:.3g}{why}")


def _largest(gradient: Any) -> float:
    array = _host(gradient)
    return float(np.abs(array).max()) if array.size and array.dtype.kind in "fc" else 0.0


Share = tuple[GraphNode, int, Any]
"""The user of a value, the number of that output of its node, and the gradient that it brings."""


class _Walk:
    """Follows what a pass carried from the root of a graph to one of its leaves."""

    def __init__(self, run: Recorded, graph: Graph, goal: GraphNode) -> None:
        self.run = run
        self.graph = graph
        self.goal = goal
        events = last_pass(graph, run.recorder.events or ())
        self.steps: Mapping[Node, Step] = {e.node: e for e in events if isinstance(e, Step)}
        self.arrived: dict[Node, Any] = {
            e.node: _host(e.incoming) for e in events if isinstance(e, Arrival)
        }
        self.leads = self._leading()

    def _leading(self) -> set[GraphNode]:
        """The nodes from which edges lead to the goal."""
        users: dict[GraphNode, list[GraphNode]] = {}
        for node in self.graph.nodes:
            for edge in node.edges:
                if edge.node is not None:
                    users.setdefault(edge.node, []).append(node)
        leading, waiting = {self.goal}, [self.goal]
        while waiting:
            for node in users.get(waiting.pop(), ()):
                if node not in leading:
                    leading.add(node)
                    waiting.append(node)
        return leading

    def zeros(self) -> list[Zero]:
        """Where the gradient becomes zero, in the order of the program; nothing if it does not."""
        assert self.graph.root is not None
        alive, zeros = {self.graph.root}, []
        edges: list[tuple[GraphNode, Zero]] = []
        brought: dict[GraphNode, list[Share]] = {}
        # A node runs after all that use it: larger sequence numbers first.
        for node in sorted(self.leads, key=_order):
            shares = brought.get(node, [])
            if node not in alive and not shares:
                continue
            if node not in alive:
                cancelled = self._cancelled(node, shares)
                if cancelled is not None:
                    zeros.append(cancelled)
                    continue
                if node is self.goal:
                    return []
                alive.add(node)
            step = self.steps.get(node.node)
            if step is None:
                if node is self.goal:  # the root itself
                    return []
                continue
            for number, edge in enumerate(node.edges):
                if edge.node is None or edge.node not in self.leads:
                    continue
                zero = self._zero(node, step, number)
                if zero is None:
                    shares = brought.setdefault(edge.node, [])
                    shares.append((node, edge.output_nr, _host(step.fitted[number])))
                elif zero.kind:
                    edges.append((edge.node, zero))
        # Where something else arrives as well, what ends it stands further on.
        zeros += [zero for target, zero in edges if target not in brought]
        zeros.sort(key=_position)
        return zeros

    def step_functions(self) -> list[Zero]:
        """The nodes with slope 0 everywhere, if every way to the goal leads through one."""
        assert self.graph.root is not None
        waiting, met, steps = [self.graph.root], {self.graph.root}, []
        while waiting:
            node = waiting.pop()
            if node is self.goal:
                return []
            for number, edge in enumerate(node.edges):
                if edge.node is None or edge.node not in self.leads or edge.node in met:
                    continue
                if flat(node, number):
                    at = Detachment(node.place, *_step_function(self.run, node))
                    steps.append(Zero(EVERYWHERE, at))
                else:
                    met.add(edge.node)
                    waiting.append(edge.node)
        return sorted(steps, key=_position)

    def _cancelled(self, node: GraphNode, shares: Sequence[Share]) -> Zero | None:
        """That what several users of a value bring adds up to zero, for each output of its node."""
        outputs: dict[int, list[Share]] = {}
        for each in shares:
            outputs.setdefault(each[1], []).append(each)
        zeros = [self._adding_up(node, number, part) for number, part in outputs.items()]
        return zeros[0] if zeros and all(zeros) else None

    def _adding_up(self, node: GraphNode, number: int, shares: Sequence[Share]) -> Zero | None:
        """The same for one output of a node."""
        if len(shares) < 2:
            return None
        step = self.steps.get(node.node)
        arrived = self.arrived.get(node.node) if step is None else step.grads[number]
        total = None if arrived is None else _host(arrived)
        if total is None or any(share.shape != total.shape for _, _, share in shares):
            return None
        scale = sum(np.abs(share) for _, _, share in shares)
        if not (np.abs(total) <= _rounding(total.dtype) * scale).all():
            return None
        called = f"`{node.variable}`" if node.variable else "one value"
        most = int(np.argmax(scale))
        terms = _sum_text([share.ravel()[most] for _, _, share in shares])
        first, *others = [user for user, _, _ in shares]
        text = f"{len(shares)} uses of {called} bring gradients that add up to 0: {terms}"
        labels = tuple(
            Label(each.place, "and here")
            for each in others[:_MOST]
            if each.place is not None and each.place is not first.place
        )
        return Zero(CANCELS, Detachment(first.place, text, None, labels))

    def _zero(self, node: GraphNode, step: Step, number: int) -> Zero | None:
        """Why a node passes nothing on to an input, None where it does; without a text where
        nothing arrived.
        """
        came = [None if g is None else _host(g) for g in step.grads]
        passed = step.fitted[number]
        array = None if passed is None else _host(passed)
        if not any(g is not None and g.any() for g in came):
            return _NOTHING
        if array is not None and not array.size:
            return Zero(EMPTY, Detachment(node.place, *_empty(node)))
        if flat(node, number):
            return Zero(EVERYWHERE, Detachment(node.place, *_step_function(self.run, node)))
        if array is not None and float(np.abs(array).max()) > _SMALL:
            return None
        parts = self._parts(node, came, number, array)
        if parts is None:
            return None if array is not None and array.any() else self._unknown(node)
        # What an op behind this one rounded is as large for all elements.
        room = 0.0 if array is None else _rounding(array.dtype) * np.max(parts, initial=0.0)
        if array is not None and not (np.abs(array) <= room).all():
            return None
        if np.any(parts):
            text, help = _cancelling(node, self._user(node))
            return Zero(CANCELS, Detachment(node.place, text, help))
        lost = self._underflow(node, came, number, array)
        if lost is not None:
            return lost
        call = self.run.recorder.call_of.get(node.node)
        return self._without_slope(node, call, number)

    def _underflow(
        self, node: GraphNode, came: Sequence[Any], number: int, passed: Any
    ) -> Zero | None:
        """That what a node passes on is too small for its dtype, if a larger gradient in the place
        of the one that arrived would bring something.
        """
        largest = max(_largest(g) for g in came if g is not None)
        if passed is None or not 0 < largest < 1:
            return None
        raised = [None if g is None else (g / g.dtype.type(largest))[()] for g in came]
        parts = self._parts(node, raised, number, passed)
        if parts is None or not np.any(parts):
            return None
        least = float(np.finfo(passed.dtype).smallest_subnormal)
        text = (
            f"the product of the gradient that arrives, at most {largest:.3g}, and the slope"
            f" underflows: it is below {least:.2g}, the least number of {passed.dtype}"
        )
        return Zero(FOR_THESE, Detachment(node.place, text))

    def _user(self, node: GraphNode) -> GraphNode | None:
        """What takes the result of a node, past views of it, where that is one other node."""
        users = [user for user in self.leads if any(edge.node is node for edge in user.edges)]
        user = users[0] if len(users) == 1 else None
        if user is not None and user.name.startswith(_VIEWS):
            return self._user(user)
        return user

    def _unknown(self, node: GraphNode) -> Zero:
        labels = returns_of(self.run.program, node.name)
        if node.name == "BackwardHookFunctionBackward":
            text = "a backward hook of this module makes the gradient 0"
            return Zero(FOR_THESE, Detachment(node.place, text))
        return Zero(
            FOR_THESE, Detachment(node.place, f"{node.name} passes nothing on", None, labels)
        )

    def _parts(self, node: GraphNode, came: Sequence[Any], number: int, passed: Any) -> Any:
        """How large the contributions to a gradient are; None where the node cannot run again."""
        generator = np.random.default_rng(0)
        size: Any = 0.0
        for _ in range(2):
            weighted = [
                None if g is None else (g * generator.normal(size=g.shape)).astype(g.dtype)[()]
                for g in came
            ]
            incoming = _passed(node.node, weighted, number)
            if incoming is None:
                incoming = _passed(self._again(node), weighted, number)
            if incoming is None:
                return None
            array = _host(incoming)
            if passed is not None and array.shape != passed.shape:
                array = _host(accumulate.sum_to(incoming, passed.shape))
            size = size + np.abs(array)
        return size

    def _again(self, node: GraphNode) -> Node | None:
        """The node that its call makes of what the operands were: they may hold other numbers by
        now, as those of a parameter that a step has moved.
        """
        call = self.run.recorder.call_of.get(node.node)
        if call is None or not isinstance(call.op, Op):
            return None
        operands = {}
        for name, operand in operands_as_they_were(self.run, call).items():
            operands[name] = operand
            if type(operand) is Tensor and operand.dtype.is_floating_point:
                operands[name] = Tensor(operand.array, True)
        recorder, active.state.recorder = active.state.recorder, None
        try:
            result = call.op.apply(*operands.values())
        except (GradcliError, TypeError, ValueError):
            return None
        finally:
            active.state.recorder = recorder
        first = result[0] if isinstance(result, tuple) else result
        original: Node | None = first.grad_fn
        return original

    def _without_slope(self, node: GraphNode, call: Call | None, number: int) -> Zero:
        """A node each of whose contributions is zero."""
        stem = node.name.rstrip("0123456789")
        module = self.run.recorder.modules.get(node.node)
        dropped = None if module is None else _dropped(module.module)
        if dropped is not None:
            place = origin_of_zero(self.run, module.module)  # type: ignore[union-attr]
            labels = () if place is None else (Label(place, "it is made here"),)
            return Zero(FOR_THESE, Detachment(node.place, dropped, None, labels))
        if stem in _PRODUCTS:
            return Zero(FOR_THESE, self._zero_operand(node, call, number))
        stem = _with_one_bound(stem, call)
        told = _of_one(node, call) or _NO_SLOPE.get(stem)
        if told is None:
            told = self._other(node, call, number), None
        if stem == "ClampBackward" and any(e.name.startswith(_OF_TWO) for e in self.leads):
            return Zero(FOR_THESE, Detachment(node.place, told[0]))  # as PPO bounds a ratio
        tries = straight_through(self.run.program, node.place) if stem == "ClampBackward" else ()
        tries = tries or leaky(node.place, module)
        made = self._zeroed(call) if stem == "ReluBackward" else ()
        return Zero(FOR_THESE, Detachment(node.place, *told, made, tries, bool(tries)))

    def _zeroed(self, call: Call | None) -> tuple[Label, ...]:
        """The line that makes what goes into a call 0, by a factor that is 0."""
        operand = None if call is None else call.arguments.get("self")
        if call is None or not _is_zero(operands_as_they_were(self.run, call).get("self")):
            return ()
        for step in self.run.flow.back.get(id(operand), ()):
            maker = step.call
            stem = "" if maker is None or maker.node is None else maker.node.node_name
            if maker is None or stem.rstrip("0123456789") not in _PRODUCTS:
                continue
            for factor in self._zero_factors(maker, stem, None):
                place = origin_of_zero(self.run, factor, maker)
                return () if place is None else (Label(place, "this makes what goes in 0"),)
        return ()

    def _zero_factors(self, call: Call, name: str, but: str | None) -> list[Any]:
        """The factors of a product that were zero, except one.

        Args:
            name: what its node is called.
        """
        were = operands_as_they_were(self.run, call)
        factors = _FACTORS.get(name.rstrip("0123456789"), tuple(were))
        return [
            call.arguments[each]
            for each, value in were.items()
            if each != but and each in factors and _is_zero(value)
        ]

    def _other(self, node: GraphNode, call: Call | None, number: int) -> str:
        """What is certain of a node whose contributions are 0, whatever its op."""
        op = None if call is None else call.op
        rules = getattr(op, "rules", {})
        rule = rules.get(op.inputs[number]) if op is not None and number < len(op.inputs) else None
        if node.name == "CopySlices" or (rule is not None and _moves(rule)):
            return "a gradient arrives only at elements that do not come of it"
        called = node.name.partition("Backward")[0]
        if call is None or not getattr(op, "pointwise", False):
            return f"each contribution of {called} to it is 0 at these values"
        value = operands_as_they_were(self.run, call).get(call.op.inputs[number])
        numbers = np.unique(_host(value)) if type(value) is Tensor else np.zeros(2)
        at = f"at {numbers[0]:g}" if numbers.size == 1 else "at these values"
        return f"the slope of {called.lower()} {at} is 0"

    def _zero_operand(self, node: GraphNode, call: Call | None, number: int) -> Detachment:
        """A product whose other factor is zero, with the line that made it so."""
        name = None if call is None or number >= len(call.op.inputs) else call.op.inputs[number]
        zero = [] if call is None else self._zero_factors(call, node.name, name)
        if not zero:
            text = f"{node.name} multiplies the gradient by what is 0 wherever it arrives"
            return Detachment(node.place, text)
        place = origin_of_zero(self.run, zero[0], call)
        called = _called(self.run, zero[0], node.place)
        if node.place is not None and called == _OTHER and "dropout(" in node.place.text:
            return Detachment(node.place, "dropout() set all of it to 0")
        text = f"{node.name} multiplies the gradient by {called}, and that is 0"
        labels = () if place is None else (Label(place, "this makes it 0"),)
        return Detachment(node.place, text, None, labels)


def _passed(node: Node | None, grads: Sequence[Any], number: int) -> Any:
    """What a node passes on to an input; None where it cannot run."""
    if node is None:
        return None
    try:
        return node.run(grads if len(grads) > 1 else grads[0], True)[number]
    except (GradcliError, TypeError, ValueError, IndexError, AttributeError):
        return None


def _called(run: Recorded, value: Any, place: Span | None) -> str:
    """The name of a factor of what stands at a place."""
    if type(value) is not Tensor:
        names = [
            each.node.span.text
            for each in run.provenance.evaluations
            if isinstance(each.node, tree.Name) and type(each.value) is type(value)
            if each.value == value and place is not None and holds(place, each.node.span)
        ]
        return f"`{names[0]}`" if len(set(names)) == 1 else "the number"
    return value.name or viewed(run, value).name or _OTHER


_OTHER = "the other operand"


def _position(zero: Zero) -> tuple[int, int]:
    place = zero.at.place
    return (0, 0) if place is None else (place.line, place.start)


def _order(node: GraphNode) -> tuple[bool, int]:
    """Where a node stands in a pass: leaves come last."""
    return node.leaf is not None, -node.node.sequence_nr


def _host(array: Any) -> Any:
    array = array.array if type(array) is Tensor else array
    values = np.asarray(to_host(forced(array)))
    return values.astype(np.float32) if values.dtype.kind == "V" else values


def is_finite(array: Any) -> bool:
    """Whether all numbers of an array are finite."""
    return bool(np.isfinite(_host(array)).all())


def _rounding(dtype: Any) -> float:
    return _ROUNDING * float(np.finfo(dtype).eps) if dtype.kind in "fc" else 0.0


def _is_zero(value: Any) -> bool:
    if type(value) is Tensor:
        return not _host(value.array).any()
    return isinstance(value, (bool, int, float)) and value == 0


def _sum_text(terms: Sequence[Any]) -> str:
    """A sum as it is written: `1 - 0.5 - 0.5`."""
    shown = [f"{float(np.real(each)):.4g}" for each in terms[:4]]
    text = " + ".join(shown).replace("+ -", "- ")
    return text + (" + …" if len(terms) > len(shown) else "")


# --- in words -------------------------------------------------------------------------------------


def _empty(node: GraphNode) -> tuple[str, str | None]:
    called = node.name.partition("Backward")[0].lower()
    return f"{called} is taken of no elements: what goes in is empty", None


def _step_function(run: Recorded, node: GraphNode) -> tuple[Any, ...]:
    called = node.name.partition("Backward")[0].lower()
    if called == "copy":
        return ("this writes over all of it: what it held before has no gradient", None)
    if called == "normal":
        text = "torch.normal() draws outside the graph: its slopes are 0 by definition"
        help = "draw noise alone: `mu + sigma * torch.randn_like(mu)`"
        return text, help, (), drawn(run.program, node.place), True
    help = f"straight-through: `x + (x.{called}() - x).detach()` keeps the slope 1"
    return (
        f"{node.name} has slope 0 everywhere",
        help,
        (),
        straight_through(run.program, node.place),
        True,
    )


# fmt: off
_PRODUCTS = frozenset((
    "AddmmBackward", "BmmBackward", "ConvolutionBackward", "DotBackward", "MmBackward",
    "MulBackward", "MvBackward",
))
# fmt: on
"""Nodes that multiply the gradient of one operand by the other."""

_FACTORS: Mapping[str, tuple[str, ...]] = {
    "AddmmBackward": ("mat1", "mat2"),
    "ConvolutionBackward": ("input", "weight", "self"),
}
"""The operands that are multiplied, where there are others."""

_NORMALISED = (
    "the contributions of its elements cancel: normalised numbers have mean 0 and variance 1"
    " whatever goes in, and a shift or a scale of it changes nothing"
)

_INVARIANT: Mapping[str, str] = {
    "SoftmaxBackward": "the contributions of its elements cancel: the numbers of a softmax add up"
    " to 1 whatever goes in, and a shift of it changes nothing",
    "LogSoftmaxBackward": "the contributions of its elements cancel: the probabilities whose"
    " logarithms these are add up to 1 whatever goes in, and a shift of it changes nothing",
    "NativeLayerNormBackward": _NORMALISED,
    "NativeBatchNormBackward": _NORMALISED,
    "NativeGroupNormBackward": _NORMALISED,
}
"""What of an op is the same whatever goes in, so that its gradient cancels."""


_SHIFTED: Mapping[str, str] = {
    "SoftmaxBackward": "softmax is the same whatever is added to all numbers that it goes over",
    "LogSoftmaxBackward": "log_softmax is the same whatever is added to all numbers that it goes"
    " over",
    "NativeBatchNormBackward": "a batch norm takes the mean of the batch away, and with it what is"
    " added to every row",
    "NativeLayerNormBackward": "a layer norm takes the mean away, and with it what is added to all"
    " numbers of a row",
}
"""Why what is added to the operand of these has no effect."""

_OF_TWO = ("Minimum", "Maximum")
"""Nodes that choose: a clamp ahead of one is meant to end the gradient."""

_VIEWS = ("View", "Unsqueeze", "Squeeze", "Reshape", "Alias", "Expand")


def _cancelling(node: GraphNode, user: GraphNode | None) -> tuple[str, str | None]:
    """Why the contributions to an operand of a node add up to 0, whose result one other takes."""
    told = _INVARIANT.get(node.name.rstrip("0123456789"))
    shifted = None if user is None else _SHIFTED.get(user.name.rstrip("0123456789"))
    if told is not None:
        return told, None
    if shifted is not None and node.name.startswith(("Add", "Sub")):
        return shifted, None
    return (
        f"{node.name} adds up the contributions of its elements, and they cancel: the sum is 0,"
        " not the slopes",
        None,
    )


_AT_TARGET = ("input and target are equal: the loss is 0, the least there is", None)

_NO_SLOPE: Mapping[str, tuple[str, str | None]] = {
    "ReluBackward": (
        "ReluBackward0 has slope 0 at these values: what goes in is not above 0 where the gradient"
        " arrives, the units are dead",
        "`leaky_relu` has a slope below 0 too",
    ),
    "NllLossBackward": (
        "no target at which a gradient arrives counts: it is ignore_index, or its weight is 0",
        None,
    ),
    "ProdBackward": ("more than one factor is 0, so that every product of all others is 0", None),
    "HuberLossBackward": _AT_TARGET,
    "MseLossBackward": _AT_TARGET,
    "SmoothL1LossBackward": _AT_TARGET,
    "StdBackward": ("all numbers are equal: their deviation is 0, the least there is", None),
    "VarBackward": ("all numbers are equal: their variance is 0, the least there is", None),
    "LinalgVectorNormBackward": ("all numbers are 0: so is the norm, the least there is", None),
    "ThresholdBackward": ("no element is above the threshold, and below it the slope is 0", None),
    "HardtanhBackward": ("what goes in is outside the bounds, where the slope is 0", None),
    "ClampBackward": (
        "what goes in is outside the bounds, where the slope is 0",
        "`x + (x.clamp(…) - x).detach()` keeps the slope 1",
    ),
    "ClampMinBackward": ("what goes in is below the bound, where the slope is 0", None),
    "ClampMaxBackward": ("what goes in is above the bound, where the slope is 0", None),
    "SigmoidBackward": ("the sigmoid is saturated: it is 0 or 1 to the last digit", None),
    "TanhBackward": ("tanh is saturated: it is 1 or -1 to the last digit", None),
    "SoftmaxBackward": ("the softmax is saturated: one number is 1, and all others are 0", None),
    "LogSoftmaxBackward": ("the softmax is saturated: one number is 1, all others are 0", None),
    "EmbeddingBackward": (
        "only rows that were looked up get a gradient, and that of padding_idx none",
        None,
    ),
    "MaskedFillBackward": ("the mask replaces every element where a gradient arrives", None),
    "WhereBackward": ("the other branch is taken where a gradient arrives", None),
    "MaxBackward": ("the maximum is elsewhere", None),
    "MinBackward": ("the minimum is elsewhere", None),
    "MaximumBackward": ("the other operand is larger where a gradient arrives", None),
    "MinimumBackward": ("the other operand is smaller where a gradient arrives", None),
}


def _moves(rule: Any) -> bool:
    """Whether a rule reads nothing but the gradient, sizes and settings: no numbers."""
    return not any(
        each in ("self", "input", "other", "result", "weight") for each in parameters_of(rule)
    )


def _with_one_bound(stem: str, call: Call | None) -> str:
    """The stem of a clamp that has one bound alone, as a hinge has: slope 1 is no remedy there."""
    if call is None or stem != "ClampBackward":
        return stem
    least, most = (call.arguments.get(each) for each in ("min", "max"))
    return "ClampMinBackward" if most is None else "ClampMaxBackward" if least is None else stem


def _of_one(node: GraphNode, call: Call | None) -> tuple[str, None] | None:
    """What a softmax or a layer norm over a single number does."""
    dims = None if call is None else getattr(call.arguments.get("statistics"), "dims", None)
    shape = node.node.metadata[0][0]
    is_norm = node.name.startswith("NativeLayerNorm")
    if is_norm and dims is not None and all(shape[each] == 1 for each in dims):
        told = "the layer norm is taken over one number alone, and is its bias whatever that is"
        return told, None
    dim = None if call is None else call.arguments.get("dim")
    if not node.name.startswith(("Softmax", "LogSoftmax")) or not isinstance(dim, int):
        return None
    if not shape or shape[dim] != 1:
        return None
    return "the softmax is taken over one number alone, and is 1 whatever that is", None


def _dropped(module: Any) -> str | None:
    """What a dropout that leaves nothing does."""
    kind = type(module).__name__
    if "Dropout" in kind and getattr(module, "_values", {}).get("p") == 1:
        return f"{kind} with p=1 sets everything to 0"
    return None
