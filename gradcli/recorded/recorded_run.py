"""A run that was recorded whole, and the ways through its graphs; and its dataflow: which values
were computed from which, also outside the graph.

The backward graph has only the paths that carry gradients. The dataflow has all of them: through
operations outside the graph, Python's numbers, copies and writes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.autograd.graph import Graph, GraphNode
from gradcli.autograd.node import Node, reachable
from gradcli.autograd.recording.trace_recorder import TraceRecorder
from gradcli.autograd.tensor import AccumulateGrad, Tensor
from gradcli.language.tree import syntax as tree
from gradcli.record import Record
from gradcli.trace.ir import ALIAS

if TYPE_CHECKING:
    from gradcli.autograd.recording.trace_recorder import Call, TransformStep
    from gradcli.errors import GradcliError, Span
    from gradcli.language.provenance import Evaluation, Provenance
    from gradcli.trace.ir import Instruction


# --- the flow of data -----------------------------------------------------------------------------


# fmt: off
_WITHOUT_VALUES = frozenset((
    "device", "dim", "dtype", "element_size", "grad", "grad_fn", "is_complex",
    "is_floating_point", "is_leaf", "ndim", "nelement", "numel", "requires_grad", "retains_grad",
    "shape", "size", "stride", "type",
    "empty_like", "full_like", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like",
    "new_empty", "new_full", "new_ones", "new_zeros",
))
# fmt: on
"""Attributes and methods that do not depend on a tensor's values."""

_WITHOUT_VALUES_OF = ("id", "isinstance", "len", "print", "range", "type")
"""Functions that do the same."""


_DISPLAYS = (tree.Dict, tree.List, tree.Tuple)

_HOLDING = ("dict", "enumerate", "iter", "list", "reversed", "sorted", "tuple", "zip")
"""Functions whose results hold what they are given."""

_MOST = 1000
"""So many results of a call are looked at."""


class Flow(Record):
    """A step of a value into another one.

    Attributes:
        carries: whether a gradient flows back along it.
    """

    source: int
    target: int
    carries: bool
    call: Call | None = None
    operand: str = ""
    evaluation: Evaluation | None = None
    transform: TransformStep | None = None
    copy: Instruction | None = None

    @property
    def place(self) -> Span | None:
        """The source text of the step."""
        if self.call is not None:
            return self.call.span
        if self.transform is not None:
            return self.transform.span
        if self.copy is not None:
            return self.copy.span
        return None if self.evaluation is None else self.evaluation.node.span


class Dataflow:
    """All steps of a recorded run.

    Attributes:
        values: the values by their keys, which keeps them and so the keys apart.
    """

    def __init__(self, recorder: TraceRecorder, provenance: Provenance) -> None:
        self.onward: dict[int, list[Flow]] = {}
        self.back: dict[int, list[Flow]] = {}
        self.values: dict[int, Any] = {}
        self._produced: set[int] = set()
        self._transforms = {each.span for each in recorder.transforms if each.span is not None}
        for call in recorder.calls:
            self._call(call)
        for write in recorder.writes:
            tensor, result = write.tensor, write.result
            if result is None:
                continue
            self._add(Flow(id(result), id(tensor), result.requires_grad))
            if tensor.base is not None:
                self._add(Flow(id(tensor), id(tensor.base), result.requires_grad))
        for step in recorder.transforms:
            self._transform(step)
        for evaluation in provenance.evaluations:
            self._evaluation(evaluation)
        self._numbers_written(recorder, provenance)
        self._copies(recorder)

    def _copies(self, recorder: TraceRecorder) -> None:
        """The steps of tensors into others on their memory that nothing else tells of, as those
        that `torch.func.stack_module_state()` stacks.
        """
        tensors = {v.number: t for v, t in zip(recorder.values, recorder.tensors, strict=True)}
        for each in recorder.trace.instructions:
            if each.op is not ALIAS:
                continue
            source, target = (tensors.get(v.number) for v in (*each.reads, *each.results))
            if source is None or target is None or source is target or id(target) in self.back:
                continue
            self.values[id(source)], self.values[id(target)] = source, target
            has_history = target.grad_fn is not None
            self._add(Flow(id(source), id(target), has_history, copy=each))

    def _numbers_written(self, recorder: TraceRecorder, provenance: Provenance) -> None:
        """The steps of Python's numbers into the tensors whose elements they are assigned to."""
        written: dict[int, list[Tensor]] = {}
        for each in recorder.writes:
            if each.span is not None:
                written.setdefault(each.span.start, []).append(each.tensor)
        rounds = {start: iter(tensors) for start, tensors in written.items()}
        for statement, value in provenance.assignments:
            for target in statement.targets if isinstance(statement, tree.Assign) else ():
                start = target.span.start
                if not isinstance(target, tree.Subscript) or start not in rounds:
                    continue
                tensor = next(rounds[start], None)
                if tensor is not None and type(value.value) in (int, float):
                    self._add(Flow(self.key(value), id(tensor), False, evaluation=value))
                    if tensor.base is not None:
                        self._add(Flow(id(tensor), id(tensor.base), False, evaluation=value))

    def _add(self, flow: Flow) -> None:
        self.onward.setdefault(flow.source, []).append(flow)
        self.back.setdefault(flow.target, []).append(flow)

    def _call(self, call: Call) -> None:
        op, node = call.op, call.node
        outputs = call.output if type(call.output) is tuple else (call.output,)
        differentiable = getattr(op, "differentiable", None)
        for number, output in enumerate(outputs):
            self.values[id(output)] = output
            self._produced.add(id(output))
            has_edge = node is not None and (
                differentiable is None or op.outputs == ("*",) or number in differentiable
            )
            for name, value, edge in _operands(call):
                self.values[id(value)] = value
                carries = (
                    has_edge
                    and node is not None
                    and edge is not None
                    and edge < len(node.next_nodes)
                    and node.next_nodes[edge] is not None
                )
                self._add(Flow(id(value), id(output), carries, call, name))

    def _transform(self, step: TransformStep) -> None:
        """The steps of values into a transform of `torch.func`, and out of it."""
        pairs = [(each, result) for result in step.results for each in step.sources]
        for source, result in pairs:
            # What the examples of `vmap` hold together goes in as it is.
            if source is not result:
                self.values[id(source)], self.values[id(result)] = source, result
                self._produced.add(id(result))
                carries = source.requires_grad and result.requires_grad and step.grad_enabled
                self._add(Flow(id(source), id(result), carries, transform=step))

    def _evaluation(self, evaluation: Evaluation) -> None:
        key = self.key(evaluation)
        known = key in self._produced
        self._produced.add(key)
        if isinstance(evaluation.node, tree.Call) and isinstance(evaluation.value, (list, tuple)):
            self._results(key, evaluation)
        if isinstance(evaluation.node, tree.Comparison) or ignores_values(evaluation.node):
            return
        for part in evaluation.parts:
            # An operation tells of its tensors, and not of an index or of an integer.
            if known and not (isinstance(part.value, int) or _is_index(part, evaluation)):
                continue
            source = self.key(part)
            if source != key and not callable(part.value):
                self._add(Flow(source, key, _holds(evaluation, part), evaluation=evaluation))

    def _results(self, key: int, evaluation: Evaluation) -> None:
        """The tensors and numbers in what a call returned, where no operation made them."""
        for each in evaluation.value[:_MOST]:
            if type(each) is float:
                self.values[id(each)] = each
                self._add(Flow(key, id(each), False, evaluation=evaluation))
            elif type(each) is Tensor and id(each) not in self._produced and each.grad_fn is None:
                self.values[id(each)] = each
                self._produced.add(id(each))
                self._add(Flow(key, id(each), True, evaluation=evaluation))

    def key(self, evaluation: Evaluation) -> int:
        """What tells a value apart; shared small numbers and texts go by their evaluation."""
        value = evaluation.value
        held = evaluation if value is None or isinstance(value, (bool, int, str)) else value
        self.values[id(held)] = held
        return id(held)

    # --- reading --------------------------------------------------------------------------------

    def computed_from(
        self, keys: Iterable[int], *, carrying: bool = False, without: Container[int] = ()
    ) -> set[int]:
        """What some values went into, with themselves; `carrying` along gradients only, and not
        through the values `without`.
        """
        return _reached(keys, self.onward, carrying, lambda flow: flow.target, without)

    def ingredients(self, keys: Iterable[int]) -> set[int]:
        """The values that some values were computed from, themselves too."""
        return _reached(keys, self.back, False, lambda flow: flow.source)

    def detachments(self, sources: Iterable[int], goals: Iterable[int]) -> list[Flow]:
        """Where each path from some values to others stops carrying a gradient. What is written to
        the values themselves, as an average is, is no path.
        """
        begins = frozenset(sources)
        carried = self.computed_from(begins, carrying=True)
        ahead = _reached(goals, self.back, False, lambda flow: flow.source, begins)
        cut = []
        for key in carried & (ahead | begins):
            cut += [f for f in self.onward.get(key, ()) if not f.carries and f.target in ahead]
        return _in_order(cut)

    def tensors(self) -> Iterator[Tensor]:
        """Every tensor that was met."""
        return (value for value in self.values.values() if type(value) is Tensor)

    def is_first(self, tensor: Tensor) -> bool:
        """Whether a tensor was computed from no other one."""
        return not any(
            type(self.values.get(step.source)) is Tensor for step in self.back.get(id(tensor), ())
        )

    def require_grad(self) -> Iterator[Tensor]:
        """The tensors whose gradient flows to a leaf: not those that require grad only inside a
        transform of `torch.func`.
        """
        # A view that was made where nothing is recorded requires grad as its base does.
        ends = [
            (
                each,
                each.grad_fn
                if each.grad_fn is not None or each.base is None
                else each.base.grad_fn,
            )
            for each in self.tensors()
            if each.requires_grad
        ]
        above: dict[Node, list[Node]] = {}
        waiting: list[Node] = []
        for node in reachable([node for _, node in ends]):
            if isinstance(node, AccumulateGrad):
                waiting.append(node)
            for following in node.next_nodes:
                if following is not None:
                    above.setdefault(following, []).append(node)
        leading = set(waiting)
        while waiting:
            new = [each for each in above.get(waiting.pop(), ()) if each not in leading]
            leading.update(new)
            waiting += new
        return (each for each, node in ends if node is None or node in leading)

    def derivative_of(self, tensor: Tensor) -> TransformStep | None:
        """The step that a tensor is a derivative by, as a transform of `torch.func` returned it;
        None for any other tensor.
        """
        waiting, met = [id(tensor)], {id(tensor)}
        for key in waiting:
            steps = self.back.get(key, ())
            for step in steps:
                if step.transform is not None and step.transform.by:
                    return step.transform
            for step in steps:
                # The transform puts results together and in shape, at the place of its call.
                if step.place in self._transforms and step.source not in met:
                    met.add(step.source)
                    waiting.append(step.source)
        return None

    def outputs_of(self, roots: Iterable[tuple[Node, int]]) -> set[int]:
        """The tensors that nodes stand for in the graph."""
        wanted = {node for node, _ in roots}
        outputs = {id(node.variable) for node in wanted if isinstance(node, AccumulateGrad)}
        for flows in self.back.values():
            for flow in flows:
                if flow.call is not None and flow.call.node in wanted:
                    outputs.add(flow.target)
        return outputs | {id(tensor) for tensor in self.tensors() if tensor.grad_fn in wanted}


def _reached(
    keys: Iterable[int],
    steps: dict[int, list[Flow]],
    carrying: bool,
    end: Any,
    without: Container[int] = (),
) -> set[int]:
    seen = set(keys)
    stack = list(seen)
    while stack:
        for flow in steps.get(stack.pop(), ()):
            key = end(flow)
            if (flow.carries or not carrying) and key not in seen and key not in without:
                seen.add(key)
                stack.append(key)
    return seen


def _operands(call: Call) -> Iterator[tuple[str, Any, int | None]]:
    """The operands of an operation: parameter, value, and the number of the edge if it has one."""
    op = call.op
    for name, value in call.arguments.items():
        if type(value) is Tensor:
            yield name, value, op.inputs.index(name) if name in op.inputs else None
        elif isinstance(value, (list, tuple)):
            for number, each in enumerate(value):
                if type(each) is Tensor:
                    yield name, each, number if name in op.lists else None
        elif isinstance(value, float):
            yield name, value, None


def _holds(whole: Evaluation, part: Evaluation) -> bool:
    """Whether the value of an expression holds that of a part as it is, with its history."""
    node, value = whole.node, whole.value
    if isinstance(node, tree.Comprehension) and isinstance(value, (list, tuple)):
        return any(each is part.value for each in value[:_MOST])
    if isinstance(node, tree.Call):
        return node.function.span.text in _HOLDING and type(part.value) is not Tensor
    return isinstance(node, _DISPLAYS)


def _is_index(part: Evaluation, whole: Evaluation) -> bool:
    return isinstance(whole.node, tree.Subscript) and part.node is whole.node.index


def ignores_values(node: tree.Expression) -> bool:
    """Whether the value of an expression does not depend on its operand's values."""
    if isinstance(node, tree.Call):
        node = node.function
        if isinstance(node, tree.Name):
            return node.name in _WITHOUT_VALUES_OF or node.name.endswith("_like")
        if isinstance(node, tree.Attribute) and node.name == "grad":
            return False  # `torch.autograd.grad()`, and no attribute
    return isinstance(node, tree.Attribute) and node.name in _WITHOUT_VALUES


def _in_order(flows: list[Flow]) -> list[Flow]:
    """Steps in the order of the program's text, each span once."""
    seen = set()
    kept = []
    for flow in sorted(flows, key=_position):
        if _position(flow) not in seen or flow.place is None:
            seen.add(_position(flow))
            kept.append(flow)
    return kept


def _position(flow: Flow) -> tuple[int, int, int]:
    place = flow.place
    return (0, 0, 0) if place is None else (place.line, place.start, place.end)


# --- a run, and the ways through its graphs -------------------------------------------------------


class Recorded:
    """A run that was recorded whole.

    Attributes:
        recorder: the trace of its calls, writes and backward passes.
        provenance: what its expressions gave.
        output: the tensor whose gradient is meant, None where there is none.
        inputs: the tensors that arguments were bound to, by name.
        error: what the run ended with, None where it came to its end.
        has_numbers: whether its tensors hold numbers, and not shapes alone.
        rebound: of a recording, the names that the script gave to another tensor since, with that
            one's name.
    """

    def __init__(
        self,
        program: Sequence[tree.Statement],
        values: dict[str, Any],
        recorder: TraceRecorder,
        provenance: Provenance,
        output: Tensor | None,
        output_name: str | None,
    ) -> None:
        self.program = program
        self.values = values
        self.recorder = recorder
        self.provenance = provenance
        self.output = output
        self.output_name = output_name
        self.inputs: dict[str, Tensor] = {}
        self.error: GradcliError | None = None
        self.has_numbers = True
        self.rebound: dict[str, str] = {}
        self.flow = Dataflow(recorder, provenance)

    def creation(self, tensor: Tensor) -> Span | None:
        """Where a tensor came to be."""
        for evaluation in self.provenance.evaluations:
            if evaluation.value is tensor and not isinstance(evaluation.node, tree.Name):
                return evaluation.node.span
        return None


def graph_of(node: Node) -> Graph:
    """The graph below a node."""
    if isinstance(node, AccumulateGrad):
        return Graph(node.variable)
    tensor = Tensor(None, True)
    tensor.grad_fn = node
    return Graph(tensor)


def path_to(graph: Graph, goal: GraphNode | None) -> list[GraphNode]:
    """The shortest way from the root to a node, or to the nearest leaf."""
    if graph.root is None:
        return []
    came: dict[int, GraphNode | None] = {graph.root.id: None}
    waiting = [graph.root]
    for node in waiting:
        if node is goal or (goal is None and node.leaf is not None):
            path: list[GraphNode] = []
            at: GraphNode | None = node
            while at is not None:
                path.insert(0, at)
                at = came[at.id]
            return path
        for edge in node.edges:
            if edge.node is not None and edge.node.id not in came:
                came[edge.node.id] = node
                waiting.append(edge.node)
    return []
