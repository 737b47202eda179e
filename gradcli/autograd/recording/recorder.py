"""Recording: what a run did, kept as data for traces and explanations; and what is kept of the
backward passes in iterations that are not recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary, WeakSet

from gradcli.arrays.storage import own
from gradcli.autograd.engine.backward import backward
from gradcli.autograd.graph import Graph, ModuleCall
from gradcli.autograd.node import freed
from gradcli.autograd.tensor import AccumulateGrad, Tensor, meta_of
from gradcli.record import Record
from gradcli.state import active

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.autograd.node import Node
    from gradcli.errors import Span


# --- listeners ------------------------------------------------------------------------------------


def _passed_on(event: str) -> Any:
    """A method that hands an event to the listener or recorder behind, if there is one."""

    def method(self: Listener, *details: Any) -> None:
        if self.former is not None:
            getattr(self.former, event)(*details)

    return method


class Listener:
    """Receives every op and every backward step while it is installed.

    Attributes:
        former: the recorder, or the other listener, that it stands in front of.
        in_ops: whether it is to hear the ops of a pass that returns gradients, which then runs on
            tensors.
        check: what compiled iterations, of which it hears nothing, are to call with the arrays that
            they compute; raises `SideExit` to have one interpreted.
    """

    __slots__ = ("former",)

    in_ops: ClassVar[bool] = False
    check: Callable[..., None] | None = None

    def __init__(self) -> None:
        self.former: Any = None

    @property
    def recorder(self) -> Any:
        """The recorder behind all listeners, None where there is none."""
        return None if self.former is None else self.former.recorder

    def install(self) -> None:
        """Put it in front of the recorder."""
        state = active.state
        self.former, state.recorder = state.recorder, self

    def remove(self) -> None:
        """Take it out of the chain of listeners, if it is there."""
        state = active.state
        if state.recorder is self:
            state.recorder = self.former
            return
        current = state.recorder
        while isinstance(current, Listener):
            if current.former is self:
                current.former = self.former
                return
            current = current.former

    # --- events, each passed on ---------------------------------------------------------------

    differentiated: Any = _passed_on("differentiated")
    """`backward()` is called on tensors, and whether it has come to its end."""

    operation: Any = _passed_on("operation")
    """A call of an op: the op, its operands by parameter, its output or the tuple of them."""

    write: Any = _passed_on("write")
    """A tensor, and what was written over its value: the result of an op, an array or a number."""

    replaced: Any = _passed_on("replaced")
    """A tensor that shows the memory of another from now on, and that other: `w.data = v`."""

    computed: Any = _passed_on("computed")
    """A function other than an op, its operands, and the array that it returned."""

    read_value: Any = _passed_on("read_value")
    """A read of values outside the ops: a check that passed, or None for a number that was taken
    out of an array; and the operands.
    """

    drawn: Any = _passed_on("drawn")
    """The generator that random numbers are about to be drawn from."""

    created: Any = _passed_on("created")
    """A function that made the array of a new tensor, its operands, and that array."""

    shown: Any = _passed_on("shown")
    """The values that the program prints."""

    backward: Any = _passed_on("backward")
    """A backward pass begins: its roots (node, output number, gradient), whether it accumulates."""

    step: Any = _passed_on("step")
    """A node that ran: its incoming gradient(s), its rules' results, the gradients passed on."""

    evaluated: Any = _passed_on("evaluated")
    """A node that ran, before its hooks: its incoming gradient(s), its rules' results."""

    fit: Any = _passed_on("fit")
    """A gradient, and what it is summed and cast to for the node that it goes to."""

    handed: Any = _passed_on("handed")
    """A gradient, and the tensor that the program is given with a copy of it."""

    arriving: Any = _passed_on("arriving")
    """The node of a leaf whose `.grad` is about to be added to, and the gradient."""

    accumulation: Any = _passed_on("accumulation")
    """A node where gradients met: the one that waited, the incoming one, their sum."""

    leaf: Any = _passed_on("leaf")
    """The node of a leaf whose `.grad` was added to: the old gradient, the incoming, the new."""

    returned: Any = _passed_on("returned")
    """A gradient that a backward pass returns, an array, and the tensor that has a copy."""

    entered: Any = _passed_on("entered")
    """The call of a module that begins."""

    left: Any = _passed_on("left")
    """The call of a module that ended, also by an error."""

    prepared: Any = _passed_on("prepared")
    """The seconds that it took to make what the first call of an op needs."""

    updating: Any = _passed_on("updating")
    """An optimizer is about to change a parameter: the parameter, its gradient and the group."""

    updated: Any = _passed_on("updated")
    """An optimizer has changed a parameter."""

    entered_level: Any = _passed_on("entered_level")
    """A transform differentiates by a tensor: its level, the tensor, what stands for it inside."""

    left_level: Any = _passed_on("left_level")
    """A tensor leaves a transform without its history: the level, the tensor, what is returned."""

    derived: Any = _passed_on("derived")
    """A transform returns derivatives: its level, what it differentiated, the derivatives."""

    applied: Any = _passed_on("applied")
    """A transform has called its function: its level, the call, its inputs and the output."""

    wrapped: Any = _passed_on("wrapped")
    """A number that a node saved, as the tensor that a recorded pass computes with."""

    def begin_backward(self, keep_graph: bool) -> bool:
        """A backward pass begins; returns whether it is to keep what the nodes saved."""
        return keep_graph if self.former is None else bool(self.former.begin_backward(keep_graph))


# --- recorders ------------------------------------------------------------------------------------


class Step(Record):
    """One node that a backward pass ran.

    Attributes:
        during: the number of the pass; one that runs inside another has that one's.
        grads: the gradient of each output, None where none arrived.
        gradients: the result of the rule of each input, None where no gradient is wanted or
            defined.
        fitted: the same after they were summed to the inputs' shapes and cast to their dtypes.
    """

    during: int
    node: Node
    grads: list[Any]
    gradients: list[Any]
    fitted: list[Any]


class Accumulation(Record):
    """Two gradients that met at a node before it ran: `old + incoming = new`, as arrays."""

    during: int
    node: Node
    old: Any
    incoming: Any
    new: Any


class Arrival(Record):
    """A gradient that reached a leaf: `old + incoming = new`; `old` is None for the first."""

    during: int
    node: AccumulateGrad
    old: Any
    incoming: Any
    new: Any


class Differentiated(Record):
    """A tensor that a program called `backward()` on.

    Attributes:
        count: how many tensors that call had, of which this is the last.
        function: the one whose statement that was, "" at the top level.
        ended: whether the pass came to its end, as one that fails does not.
    """

    tensor: Tensor
    count: int
    function: str
    place: Span | None
    ended: bool


Event = Step | Accumulation | Arrival


class Recorder(Listener):
    """Receives what runs.

    It always keeps what the picture of a graph needs: the nodes that a backward pass ran, and the
    operands that have no edge. That keeps hardly any memory alive that the graph does not.

    Attributes:
        events: every event of the backward passes, in order; None to keep none.
        ran: the nodes that a backward pass ran.
        outputs: what `backward()` was called on, the last tensor of each place, in order.
        constants: for a node, the operands that no gradient flows to, numbers and tensors, by the
            number of the edge.
        modules: the innermost call of a module in which a node was made.
        keeps: whether saved values outlive the backward pass that would free them, so that an
            explanation can read them. A second pass through such a node still raises E403.
        copied: what the events keep of an array; a copy, which later writes do not reach.
        shares: whether nothing writes to the memory of a large array, so that what keeps the
            elements of values keeps that.
        transformed: whether a transform of `torch.func` called a function.
        revived: whether the pass that an answer is about went through nodes that the program freed.
    """

    def __init__(self, *, events: bool = True, keeps: bool = False) -> None:
        super().__init__()
        self.keeps = keeps
        self.copied: Callable[[Any], Any] = own
        self.shares = False
        self.revived = False
        self.transformed = False
        self._freeing = False
        self._passes = 0
        # Where a pass would have freed each: a later one overwrites where the node ran.
        self._would_be_freed: WeakKeyDictionary[Node, Span | None] = WeakKeyDictionary()
        self.events: list[Event] | None = [] if events else None
        self.ran: WeakSet[Node] = WeakSet()
        self.outputs: dict[Span | None, Differentiated] = {}
        self.constants: WeakKeyDictionary[Node, dict[int, Any]] = WeakKeyDictionary()
        self.modules: MutableMapping[Node, ModuleCall] = {}

    @property
    def recorder(self) -> Recorder:
        """Itself: all listeners stand in front of it."""
        return self

    def operation(self, op: Any, operands: dict[str, Any], output: Any) -> None:
        """A call of an op; `output` is the tuple of them where it has several."""
        first = output[0] if type(output) is tuple and output else output
        node = first.grad_fn if type(first) is Tensor else None
        if node is None:
            return
        calls = active.state.calls
        if calls:
            if not self.modules:  # what few programs need takes as long as the rest of a recorder
                self.modules = WeakKeyDictionary()
            self.modules[node] = calls[-1]
        if None in node.next_nodes:
            tensors = operands[op.lists[0]] if op.lists else [operands[name] for name in op.inputs]
            self.constants[node] = {
                number: operand
                for number, operand in enumerate(tensors)
                if number < len(node.next_nodes) and node.next_nodes[number] is None
            }

    def differentiated(self, tensors: Sequence[Tensor], ended: bool) -> None:
        """`backward()` is called on tensors, or has come to its end; one inside another pass, as in
        `backward` of a custom function, is a step of that.
        """
        state = active.state
        if state.backward_pass is not None:
            return
        self.outputs.pop(state.place, None)
        if tensors and type(tensors[-1]) is Tensor:
            function = state.stack[-1][0] if state.stack else ""
            self.outputs[state.place] = Differentiated(
                tensors[-1], len(tensors), function, state.place, ended
            )

    def applied(self, *details: Any) -> None:
        """A transform has called its function."""
        self.transformed = True

    def begin_backward(self, keep_graph: bool) -> bool:
        """A backward pass begins; returns whether it is to keep what the nodes saved."""
        self._passes += active.state.backward_pass is None
        self._freeing = not keep_graph
        return keep_graph or self.keeps

    def revive(self, nodes: Iterable[Node]) -> None:
        """Let a pass run through nodes that a pass of the program freed, if they were kept."""
        freed = [each for each in nodes if each in self._would_be_freed]
        for each in freed:
            del self._would_be_freed[each]
        self.revived = bool(freed)

    def step(self, node: Node, grads: Any, gradients: Any, fitted: Any) -> None:
        """A node that ran: its incoming gradient(s), the results of its rules, and the gradients
        passed on.

        Raises E403 where the node would have been freed, had the recorder not kept it.
        """
        self.ran.add(node)
        if self.keeps:
            if node in self._would_be_freed:
                raise freed(node, self._would_be_freed[node])
            if self._freeing and saves(node):
                self._would_be_freed[node] = getattr(node, "ran_at", None)
        if self.events is not None:
            arrived = self._kept(grads if isinstance(grads, list) else [grads])
            results = self._kept(gradients)
            passed = [
                result if each is gradient else self._kept([each])[0]
                for each, gradient, result in zip(fitted, gradients, results, strict=True)
            ]
            self.events.append(Step(self._passes, node, arrived, results, passed))

    def accumulation(self, node: Node, old: Any, incoming: Any, total: Any) -> None:
        """A gradient that was added to another one waiting at its node."""
        if self.events is not None:
            self.events.append(
                Accumulation(self._passes, node, *self._kept([old, incoming, total]))
            )

    def leaf(self, node: AccumulateGrad, old: Any, incoming: Any, new: Any) -> None:
        """A gradient that was added to a leaf's `.grad`."""
        if self.events is not None:
            before, arrived = self._kept([old, incoming])
            after = arrived if old is None else self._kept([new])[0]
            # The next gradient is added in place.
            after = own(new) if after is new is not arrived else after
            self.events.append(Arrival(self._passes, node, before, arrived, after))

    def _kept(self, gradients: Any) -> list[Any]:
        """What the events keep of gradients."""
        arrays = [g.array if type(g) is Tensor else g for g in gradients]
        return [None if array is None else self.copied(array) for array in arrays]


class EndsRecorder(Recorder):
    """Keeps of the backward passes what they began with and what reached each leaf: of a large
    model all steps would be several times its size.
    """

    def step(self, node: Node, grads: Any, gradients: Any, fitted: Any) -> None:
        """A node that ran; its incoming gradients are kept where `backward()` was called on it."""
        events, self.events = self.events, None
        super().step(node, grads, gradients, fitted)
        self.events = events
        if any(each.tensor.grad_fn is node for each in self.outputs.values()):
            arrived = self._kept(grads if isinstance(grads, list) else [grads])
            self._add(Step(self._passes, node, arrived, [], []))

    def accumulation(self, node: Node, old: Any, incoming: Any, total: Any) -> None:
        """A gradient that was added to another one waiting at its node: no end of a pass."""

    def leaf(self, node: AccumulateGrad, old: Any, incoming: Any, new: Any) -> None:
        """A gradient that was added to a leaf's `.grad`, of which what arrived is kept."""
        self._add(Arrival(self._passes, node, None, self._kept([incoming])[0], None))

    def _add(self, event: Event) -> None:
        if self.events is not None:
            self.events.append(event)


def saves(node: Node) -> bool:
    """Whether a node holds values that a backward pass frees."""
    return any(slot.startswith("saved_") for slot in type(node).__slots__)


@contextmanager
def apart() -> Iterator[Recorder]:
    """Let what runs inside be told to a recorder of its own, which knows of no earlier pass."""
    state = active.state
    recorder, own_recorder = state.recorder, Recorder()
    state.recorder = own_recorder
    try:
        yield own_recorder
    finally:
        state.recorder = recorder


def rehearse(output: Tensor, seed: Tensor | None = None) -> list[Event]:
    """The events of a backward pass from an output: its steps, accumulations and arrivals.

    The graph is kept, and every `.grad` that the pass writes is put back, also when it fails.

    Args:
        output: where the pass starts; a scalar, unless there is a seed.
        seed: the gradient of the output, of its shape and dtype.
    """
    written: list[Any] = []
    for node in Graph(output).nodes:
        written.append(node.leaf)
        if node.node.extra is not None:
            written += [retained() for retained in node.node.extra.retained.values()]
    before = [(meta_of(each), each.grad) for each in written if each is not None]
    try:
        with apart() as recorder:
            for meta, gradient in before:
                meta.grad = None if gradient is None else Tensor(own(gradient.array))
            backward(output, seed, retain_graph=True)
        return recorder.events or []
    finally:
        for meta, gradient in before:
            meta.grad = gradient


# --- iterations that are not recorded -------------------------------------------------------------


class Alike(Record):
    """Iterations of which one was heard.

    Attributes:
        arrivals: how often a gradient reached each leaf in it.
        count: how many more there were.
    """

    arrivals: Counter[Tensor]
    count: int = 0


class Passes(Listener):
    """Hears where backward passes begin, and how often gradients reach leaves.

    A recorder knows of each place only the last pass that it heard. That is the program's last one
    only where none follows that is not recorded: what it has of such a place is taken away, until
    it hears another one.

    Args:
        where: what gives the iterations that are running.
    """

    __slots__ = ("_behind", "_where", "alike", "arrived", "places", "reads")

    def __init__(self, behind: Recorder, where: Callable[[], Any]) -> None:
        super().__init__()
        self._behind = behind
        self._where = where
        self.places: dict[Any, Any] = {}
        self.arrived: Counter[Tensor] = Counter()
        self.alike: list[Alike] = []
        self.reads = False

    def differentiated(self, tensors: Sequence[Tensor], ended: bool) -> None:
        """`backward()` is called on tensors, or has come to its end."""
        state = active.state
        if state.backward_pass is None:
            self.places[state.place] = self._where()
            self._behind.outputs.pop(state.place, None)

    def leaf(self, node: Any, old: Any, incoming: Any, new: Any) -> None:
        """A gradient that reached a leaf."""
        self.arrived[node.variable] += 1

    def read_value(self, check: Any, operands: tuple[Any, ...]) -> None:
        """A read of values outside the ops."""
        self.reads = True

    def begin(self) -> None:
        """Iterations begin that are not recorded: they may run any of the passes."""
        for place in self.places:
            self._behind.outputs.pop(place, None)

    def lost(self) -> list[Any]:
        """For each place whose last pass was not recorded, the iterations of one."""
        return [where for place, where in self.places.items() if place not in self._behind.outputs]

    def counts(self) -> Counter[Tensor]:
        """How often gradients reached each leaf."""
        total = Counter(self.arrived)
        for each in self.alike:
            for leaf, number in each.arrivals.items():
                total[leaf] += number * each.count
        return total
