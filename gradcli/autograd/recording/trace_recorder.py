"""The recorder that keeps a trace: every op, write, draw, read of a value and backward step of a
run as an instruction on tensors.

The trace is in SSA form: a tensor is a value, and a write to it makes another value. A tensor that
no recorded instruction made is an alias, where it shows the memory of a known value, or else an
input.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.backend import shape_of, to_host
from gradcli.arrays.fusion.lazy import LAZY, forced
from gradcli.arrays.layout.meta import MetaArray
from gradcli.autograd.batched import of_all_examples, unbatched
from gradcli.autograd.engine import accumulate as accumulation
from gradcli.autograd.node import FREED, Node
from gradcli.autograd.recording.recorder import Recorder
from gradcli.autograd.tensor import AccumulateGrad, Tensor
from gradcli.record import Record
from gradcli.state import active
from gradcli.trace.ir import (
    ALIAS,
    Effect,
    Effects,
    Inline,
    Instruction,
    Kernel,
    Operand,
    Trace,
    Value,
    values_in,
)

if TYPE_CHECKING:
    from gradcli.errors import Span

# --- instructions ---------------------------------------------------------------------------------


WRITE = Inline("{1}", "write")
"""A write of a result into a tensor, whose former value is the first input where it is known."""

_RUN_BACKWARD = Inline("backward({0})", "backward")


class Recorded(Instruction):
    """An instruction of the program that runs: it has the program's place and calls."""

    __slots__ = ()

    def __init__(
        self,
        op: Any,
        inputs: Sequence[Operand],
        outputs: Sequence[Value | None] = (),
        effects: Effects | None = None,
        params: dict[str, Any] | None = None,
    ) -> None:
        place, stack = active.state.place, tuple(active.state.stack)
        super().__init__(
            op, inputs, outputs, params=params, span=place, stack=stack, effects=effects
        )


class Call(Recorded):
    """An instruction that calls an op or a custom function.

    Attributes:
        output: the tensor that came out, or the tuple of them.
    """

    __slots__ = ("arguments", "grad_enabled", "node", "output")

    def __init__(
        self,
        op: Any,
        arguments: dict[str, Any],
        output: Any,
        node: Node | None,
        operands: dict[str, Operand],
        outputs: Sequence[Value | None],
        effects: Effects,
    ) -> None:
        named = {*getattr(op, "tensors", op.inputs), *op.lists}
        params = {name: value for name, value in operands.items() if name not in named}
        inputs = [value for name, value in operands.items() if name in named]
        super().__init__(op, inputs, outputs, effects, params)
        self.arguments = arguments
        self.output = output
        self.node = node
        self.grad_enabled = active.state.grad_enabled

    @property
    def operands(self) -> dict[str, Operand]:
        """Its operands and arguments by parameter, tensors as values."""
        values = iter(self.inputs)
        return {n: self.params[n] if n in self.params else next(values) for n in self.arguments}


class Write(Recorded):
    """An instruction that makes a result the new value of a tensor.

    Attributes:
        result: the tensor that was written, None for an array or a number.
        replaces: whether the tensor shows the memory of the other one from then on.
    """

    __slots__ = ("replaces", "result", "tensor")

    def __init__(
        self,
        tensor: Tensor,
        result: Tensor | None,
        inputs: Sequence[Operand],
        after: Value,
        *,
        replaces: bool,
    ) -> None:
        about = inputs[0] if len(inputs) > 1 else after
        assert isinstance(about, Value)
        super().__init__(WRITE, inputs, [after], {Effect.WRITES: (about,)})
        self.tensor = tensor
        self.result = result
        self.replaces = replaces


class BackwardPass(Recorded):
    """The beginning of a backward pass; its outputs are the gradients that it begins with.

    Attributes:
        accumulate: whether it writes to `.grad`, which `torch.autograd.grad` does not.
    """

    __slots__ = ("accumulate", "roots")

    def __init__(
        self,
        roots: list[tuple[Node, int]],
        accumulate: bool,
        inputs: Sequence[Operand],
        outputs: Sequence[Value],
    ) -> None:
        super().__init__(_RUN_BACKWARD, inputs, outputs)
        self.roots = roots
        self.accumulate = accumulate


class TransformStep(Record):
    """A step of values into a transform of `torch.func`, or out of it.

    Attributes:
        sources, results: the tensors that go in, and those that come of them.
        by: of derivatives, the tensors outside all transforms that they are by; else empty.
        span, stack: where the program calls the transform.
        grad_enabled: whether operations are recorded around it.
    """

    sources: Sequence[Tensor]
    results: Sequence[Tensor]
    by: Sequence[Tensor]
    span: Span | None
    stack: tuple[Any, ...]
    grad_enabled: bool


class Updates:
    """What the steps of optimizers did to one parameter.

    Attributes:
        count: how many there were, until it was known that it trains.
        first: what it held ahead of the first.
        had_gradient: whether one of them found a gradient other than 0.
        had_rate: whether one of them had a learning rate other than 0, or none at all.
        changes: whether one of them changed it.
        returns: whether it held `first` ahead of each.
    """

    __slots__ = ("changes", "count", "first", "had_gradient", "had_rate", "returns")

    def __init__(self, first: Any) -> None:
        self.count = 0
        self.first = first
        self.had_gradient = self.had_rate = self.changes = False
        self.returns = True


def source_of(value: Value, ends: Container[int] = ()) -> Value:
    """The value that aliases and writes lead back to, or the first on the way whose number is among
    those of `ends`.
    """
    while value.number not in ends and value.maker and value.maker.op in (ALIAS, WRITE):
        before = value.maker.inputs[-1]
        if not isinstance(before, Value):
            break  # an array or a number was written
        value = before
    return value


def is_same(left: Any, right: Any) -> bool:
    """Whether two arrays hold the same, where NaN is NaN."""
    return np.array_equal(left, right, equal_nan=left.dtype.kind in "fc")


# --- recording ------------------------------------------------------------------------------------


_LARGE = 1 << 16
"""Bytes beyond which the memory of an array may be shared: statistics that ops write are less."""

_ITEM = Inline("{0}.item()", "item")
_PRINT = Inline("print({0})", "print")
_DRAW = Inline("{0}.draw()", "draw")
UPDATE = Inline("{0}", "update")
_ARRIVE = Inline("{0}.grad = {1}", "accumulate_grad")
_HOOK = Inline("{0}", "hooks")
_RETURN = Inline("{0}", "grad")

Edge = tuple[Node, int]
"""A node and the number of one of its outputs."""


class TraceRecorder(Recorder):
    """Keeps a trace of a run.

    Attributes:
        tensors: for each value its tensor, None for a gradient that is an array.
        call_of: the call that made each node.
        arrays: whether each value keeps a copy of its elements, as they were when it was made.
        resumed_at: how many values there were when the iterations that are not recorded had run.
        updates: what optimizers did to each parameter, by its `id`.
        transforms: what went into transforms of `torch.func` and came out, in order.
    """

    def __init__(self, *, events: bool = True, keeps: bool = False, arrays: bool = False) -> None:
        super().__init__(events=events, keeps=keeps)
        self.arrays = arrays
        self.trace = Trace()
        self.resumed_at = 0
        self.values: list[Value] = []
        self.tensors: list[Tensor | None] = []
        self.call_of: dict[Node, Call] = {}
        # The tables are keyed by `id`, which another object gets once this one is freed.
        self._alive: list[Any] = []
        # The value of each tensor and the version of its memory; a new version is a new value.
        self._by_tensor: dict[int, tuple[Value, int]] = {}
        self._by_array: dict[int, tuple[Value, int]] = {}
        self._by_edge: dict[Edge, Value] = {}
        # The value after the last write to an array: `w.data.sub_(…)` leaves the version of `w`.
        self._rewritten: dict[int, Value] = {}
        # The gradients of the last backward pass that are arrays, keyed by `id` too.
        self._of_pass: dict[int, tuple[Value, Any]] = {}
        # Gradients that have not arrived yet, by node and output number.
        self._arriving: dict[Edge, list[tuple[Value, Any]]] = {}
        self.updates: dict[int, Updates] = {}
        self.transforms: list[TransformStep] = []
        # The tensors that each level differentiates by, and the one outside that each stands for.
        self._variables: dict[Any, list[Tensor]] = {}
        self._outside: dict[int, Tensor] = {}
        self._before: Any = None
        self._since_step = 0
        self._is_nested = self._is_recorded = False

    @property
    def calls(self) -> list[Call]:
        """The calls of ops and custom functions, in order."""
        return [each for each in self.trace.instructions if isinstance(each, Call)]

    @property
    def writes(self) -> list[Write]:
        """What was written in place, in order."""
        return [each for each in self.trace.instructions if isinstance(each, Write)]

    @property
    def passes(self) -> list[BackwardPass]:
        """The backward passes, in order."""
        return [each for each in self.trace.instructions if isinstance(each, BackwardPass)]

    # --- values -----------------------------------------------------------------------------------

    def find(self, tensor: Tensor) -> Value:
        """The value that a tensor holds; a new one where no instruction made it: an alias, a value
        written by something other than an op, such as an optimizer, or an input.
        """
        version = _version(tensor)
        earlier = self._by_tensor.get(id(tensor))
        latest = self._rewritten.get(id(tensor.array))
        if earlier is not None and latest is not None and latest.number > earlier[0].number:
            value = self._value(tensor)
            self._add(ALIAS, [latest], [value])
            return value
        if earlier is not None and earlier[1] == version:
            return earlier[0]
        same = self._by_array.get(id(tensor.array))
        known = same[0] if same is not None and same[1] == version else None
        if known is None and earlier is None:
            edge = _edge_of(tensor)
            known = self._scalar(tensor) if edge is None else self._by_edge.get(edge)
        value = self._value(tensor)
        if known is not None:
            self._add(ALIAS, [known], [value])
            return value
        if earlier is not None and self._is_unchanged(earlier[0], value):
            self._add(
                ALIAS, [earlier[0]], [value]
            )  # `squeeze_` counts as a write, and writes nothing
            return value
        if earlier is not None:
            update = Instruction(
                UPDATE, [earlier[0]], [value], effects={Effect.WRITES: earlier[:1]}
            )
            self.trace.add(update)
            return value
        (self.trace.inputs if tensor.requires_grad else self.trace.constants).append(value)
        return value

    def known(self, tensor: Tensor) -> Value | None:
        """The value that a tensor was last found to hold, None where no instruction met it."""
        held = self._by_tensor.get(id(tensor))
        return None if held is None else held[0]

    def _scalar(self, tensor: Tensor) -> Value | None:
        """The value of a scalar that became an array as it was aliased, None for anything else."""
        array = tensor.array
        if type(array) is not np.ndarray or array.ndim:
            return None
        pairs = zip(reversed(self.values), reversed(self.tensors), strict=True)
        return next((v for v, of in pairs if of is not None and of.array is array), None)

    def stand_in(self, value: Value) -> Tensor:
        """A tensor that holds a value as it was, whatever its own tensor holds by now."""
        tensor = Tensor(np.array(value.array)[()])
        self._by_tensor[id(tensor)] = value, _version(tensor)
        self._alive += [tensor, tensor.array]
        return tensor

    def _is_unchanged(self, before: Value, after: Value) -> bool:
        """Whether a tensor whose version went up holds the same numbers."""
        return (
            self.arrays and before.array is not None and np.array_equal(before.array, after.array)
        )

    def _value(self, tensor: Tensor) -> Value:
        """A new value for what a tensor holds now."""
        # Examples side by side have no elements of their own: those of all of them stand for them.
        array = self._elements(unbatched(tensor.array))
        value = self._number(tensor.array, tensor, array)
        version = _version(tensor)
        self._by_tensor[id(tensor)] = self._by_array[id(tensor.array)] = value, version
        edge = _edge_of(tensor)
        if edge is not None:
            self._by_edge[edge] = value
        return value

    def _elements(self, array: Any) -> Any:
        """A copy of what an array holds, if values keep one and it has elements."""
        if not self.arrays or isinstance(array, MetaArray):
            return None
        array = to_host(array)
        if self.shares and array.nbytes > _LARGE:
            return array
        return np.array(array)[()]

    def _known(self, gradient: Any) -> Value | None:
        """The value whose memory a gradient shows, None where it is new."""
        array = gradient.array if type(gradient) is Tensor else gradient
        known = self._by_array.get(id(array))
        return None if known is None else known[0]

    def _gradient(self, gradient: Any) -> Value:
        """The value of a gradient: that of the tensor, or a new one for an array."""
        return self.find(gradient) if type(gradient) is Tensor else self._new_gradient(gradient)

    def _new_gradient(self, gradient: Any) -> Value:
        """A new value for a gradient."""
        if type(gradient) is Tensor:
            return self._value(gradient)
        value = self._number(gradient, None, self._elements(gradient))
        self._by_array[id(gradient)] = value, 0
        self._of_pass[id(gradient)] = value, gradient
        return value

    def _forget_gradients(self) -> None:
        """Release the arrays of the last pass, except those that a tensor holds."""
        for key, (value, _) in self._of_pass.items():
            if self._by_array[key][0] is value:
                del self._by_array[key]
        self._of_pass.clear()
        self._arriving.clear()

    def _number(self, array: Any, tensor: Tensor | None, kept: Any) -> Value:
        shape = shape_of(array)
        on_host = isinstance(array, (np.ndarray, np.generic))
        device = "cpu" if on_host or tensor is None else str(tensor.device)
        value = self.trace.value(shape, array.dtype, device=device, array=kept)
        self.values.append(value)
        self.tensors.append(tensor)
        if tensor is not None:
            self._alive += [tensor, array]
        return value

    def _read(self, operand: Any, around: tuple[int, ...] = ()) -> Operand:
        """An operand with values for its tensors; `...` for a list inside itself."""
        if type(operand) is Tensor:
            return self.find(operand)
        if type(operand) is not list and type(operand) is not tuple:
            return operand
        if id(operand) in around:
            return ...
        around = (*around, id(operand))
        parts = [self._read(each, around) for each in operand]
        return tuple(parts) if type(operand) is tuple else parts

    def _add(self, *parts: Any, **more: Any) -> None:
        self.trace.add(Recorded(*parts, **more))

    def named(self) -> Trace:
        """The trace, with the program's names for its values."""
        # A result has the name of the tensor that it was written to.
        results = {each.inputs[-1] for each in self.writes if each.result is not None}
        for value, tensor in zip(self.values, self.tensors, strict=True):
            if tensor is not None and value not in results:
                node = tensor.grad_fn
                value.name = tensor.name or (None if node is None else node.assigned)
        return self.trace

    # --- events -----------------------------------------------------------------------------------

    def operation(self, op: Any, operands: dict[str, Any], output: Any) -> None:
        """A call of an op; `output` is the tuple of them where it has several."""
        super().operation(op, operands, output)
        values = {name: self._read(value) for name, value in operands.items()}
        results = output if type(output) is tuple else (output,)  # a custom one returns anything
        outputs = [self._value(each) if type(each) is Tensor else None for each in results]
        first = output[0] if type(output) is tuple and output else output
        node = first.grad_fn if type(first) is Tensor else None
        effects: Effects = {}
        recorded = self.trace.instructions
        if recorded and recorded[-1].op is _DRAW and recorded[-1].span is active.state.place:
            effects = recorded.pop().effects  # the draw was for this call
        call = Call(op, operands, output, node, values, outputs, effects)
        self.trace.add(call)
        if node is not None:
            self.call_of[node] = call

    def write(self, tensor: Tensor, new: Any, counted: bool = True) -> None:
        """The result of an op, an array or a number was written over a tensor's value."""
        self._add_write(tensor, new, replaces=False)

    def replaced(self, tensor: Tensor, new: Tensor) -> None:
        """A tensor shows the memory of another: its version stays, and what it holds does not."""
        self._add_write(tensor, new, replaces=True)

    def _add_write(self, tensor: Tensor, new: Any, *, replaces: bool) -> None:
        known = self._by_tensor.get(id(tensor))
        written = self.find(new) if type(new) is Tensor else self._known(new)
        after = self._rewritten[id(tensor.array)] = self._value(tensor)
        before = after if known is None else known[0]
        inputs = [new if written is None else written]
        result = new if type(new) is Tensor else None
        inputs = inputs if known is None else [before, *inputs]
        self.trace.add(Write(tensor, result, inputs, after, replaces=replaces))

    def updating(
        self, parameter: Tensor, gradient: Any, group: dict[str, Any], before: Any = None
    ) -> None:
        """An optimizer is about to change a parameter, or has changed what it was `before`."""
        if isinstance(parameter.array, MetaArray):
            return
        update = self.updates.get(id(parameter))
        if update is not None and update.changes and not update.returns:
            return  # it trains, whatever the later steps do
        self._before = np.array(to_host(forced(parameter.array))) if before is None else before
        if update is None:
            self._alive.append(parameter)
            update = self.updates[id(parameter)] = Updates(self._before)
        update.count += 1
        update.returns = update.returns and is_same(self._before, update.first)
        update.had_gradient = update.had_gradient or bool(np.any(to_host(gradient)))
        update.had_rate = update.had_rate or bool(group.get("lr", True))

    def updated(self, parameter: Tensor) -> None:
        """An optimizer has changed a parameter."""
        update = self.updates.get(id(parameter))
        if update is not None and not update.changes:
            update.changes = not is_same(self._before, to_host(forced(parameter.array)))

    def computed(self, function: Any, operands: tuple[Any, ...], result: Any) -> None:
        """An array that a function other than an op returned."""
        known = [self._known(each) for each in operands]
        read = [each if v is None else v for each, v in zip(operands, known, strict=True)]
        drawn = self.trace.instructions[-1:]
        effects = self.trace.instructions.pop().effects if drawn and drawn[0].op is _DRAW else {}
        self._add(function, read, [self._new_gradient(result)], effects)

    def read_value(self, check: Any, operands: tuple[Any, ...]) -> None:
        """A read of values outside the ops: a check that passed, or, where that is None, the number
        that was taken out of an array.
        """
        known = [self._by_array.get(id(each)) for each in operands]
        read = [each if v is None else v[0] for each, v in zip(operands, known, strict=True)]
        values = tuple(values_in(read))
        if check is None:
            self._add(_ITEM, read, effects={Effect.READS: values})
        else:
            self._add(check, read, effects={Effect.CHECKS: values})

    def drawn(self, generator: Any) -> None:
        """Random numbers are drawn."""
        last = self.trace.instructions[-1:]
        if not last or last[0].op is not _DRAW or last[0].span is not active.state.place:
            self._add(_DRAW, [str(generator.device)], effects={Effect.RANDOM: ()})

    def shown(self, values: tuple[Any, ...]) -> None:
        """Values that the program prints."""
        read = self._read(values)
        self._add(_PRINT, read, effects={Effect.SHOWS: tuple(values_in(read))})

    def entered_level(self, level: Any, tensor: Tensor, inside: Tensor) -> None:
        """A transform differentiates by a tensor, and what stands for it inside."""
        tensor, inside = of_all_examples(tensor), of_all_examples(inside)
        self._variables.setdefault(level, []).append(inside)
        self._outside[id(inside)] = self._outside.get(id(tensor), tensor)
        self._add_transform(level, [tensor], [inside])

    def left_level(self, level: Any, tensor: Tensor, returned: Tensor) -> None:
        """A tensor leaves a transform without its history."""
        self._add_transform(level, [tensor], [returned])

    def derived(self, level: Any, outputs: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """A transform returns derivatives of outputs."""
        variables = self._variables.get(level, [])
        by = [self._outside[id(each)] for each in variables]
        self._add_transform(level, [*variables, *outputs], results, by)

    def _add_transform(
        self,
        level: Any,
        sources: Sequence[Tensor],
        results: Sequence[Tensor],
        by: Sequence[Tensor] = (),
    ) -> None:
        given, made = (list(map(of_all_examples, each)) for each in (sources, results))
        place, stack = active.state.place, tuple(active.state.stack)
        self.transforms.append(TransformStep(given, made, by, place, stack, level.connected))

    def begin_backward(self, keep_graph: bool) -> bool:
        """A backward pass begins; returns whether it is to keep what the nodes saved."""
        self._is_nested = active.state.backward_pass is not None
        return super().begin_backward(keep_graph)

    def backward(self, roots: Sequence[tuple[Node, int, Any]], accumulate: bool) -> None:
        """A backward pass begins at the roots: node, output number and gradient of each."""
        if not self._is_nested:
            self._forget_gradients()
        seeds, inputs = [], []
        for node, output_nr, gradient in roots:
            edge = self._edge(node, output_nr)
            if edge is not None:
                inputs.append(edge)
            seed = self._known(gradient)
            if seed is None:
                seed = self._new_gradient(gradient)
                seeds.append(seed)
            else:
                inputs.append(seed)  # a seed of the program's
            self._arriving.setdefault((node, output_nr), []).append((seed, gradient))
        self._is_recorded = any(type(gradient) is Tensor for _, _, gradient in roots)
        nodes = [(node, output_nr) for node, output_nr, _ in roots]
        self.trace.add(BackwardPass(nodes, accumulate, inputs, seeds))
        self._since_step = len(self.trace.instructions)

    def _edge(self, node: Node, output_nr: int) -> Value | None:
        """The value of a node's output, None where no instruction made it."""
        if isinstance(node, AccumulateGrad):
            return self.find(node.variable)
        return self._by_edge.get((node, output_nr))

    def step(self, node: Node, grads: Any, gradients: Any, fitted: Any) -> None:
        """A node that ran."""
        super().step(node, grads, gradients, fitted)
        arrived = grads if isinstance(grads, list) else [grads]
        if all(each is None for each in arrived):
            return
        self._is_recorded = any(type(each) is Tensor for each in arrived)
        if self._is_recorded:
            self._mark_ops(node)
            passed = [None if each is None else self._gradient(each) for each in fitted]
        else:
            passed = self._fit(self._add_step(node, arrived, gradients), gradients, fitted)
        self._since_step = len(self.trace.instructions)
        for number, value in enumerate(passed):
            following = node.next_nodes[number]
            if value is not None and following is not None:
                edge = following, node.input_nrs[number]
                self._arriving.setdefault(edge, []).append((value, fitted[number]))

    def _mark_ops(self, node: Node) -> bool:
        """Attribute the ops since the last step to this node; returns whether there are any."""
        inside = self.trace.instructions[self._since_step :]
        for instruction in inside:
            instruction.stack = (*instruction.stack, (node.node_name, node.place))
        return bool(inside)

    def _add_step(self, node: Node, arrived: list[Any], gradients: Any) -> list[Value | None]:
        """Add the step of a node that ran on arrays; returns the values of its gradients. Those of
        a custom function may be known already, from the ops that made them.
        """
        inputs = [
            None if gradient is None else self._arrived(node, number, gradient)
            for number, gradient in enumerate(arrived)
        ]
        by_ops = not hasattr(type(node), "op") and self._mark_ops(node)
        values: list[Value | None] = []
        outputs: list[Value | None] = []
        for gradient, to in zip(gradients, node.next_nodes, strict=True):
            unwanted = gradient is None or to is None
            known = self._known(gradient) if by_ops and not unwanted else None
            outputs.append(None if unwanted or known is not None else self._new_gradient(gradient))
            values.append(outputs[-1] if known is None else known)
        if not by_ops or any(value is not None for value in outputs):
            saved = {name: value for name, value in self._saved(node).items() if value is not None}
            self._add(type(node), inputs, outputs, params=saved)
        return values

    def _fit(
        self, values: Sequence[Value | None], gradients: Any, fitted: Any
    ) -> list[Value | None]:
        """Add the sums of gradients to the sizes of their inputs; returns what is passed on."""
        passed = list(values)
        for number, (gradient, fit) in enumerate(zip(gradients, fitted, strict=True)):
            value = values[number]
            if value is not None and fit is not gradient:
                passed[number] = self._gradient(fit)
                shape = tuple(fit.shape)
                self._add(
                    Kernel("sum_to_size", accumulation.sum_to), [value, shape], [passed[number]]
                )
        return passed

    def _arrived(self, node: Node, output_nr: int, gradient: Any) -> Value:
        """The value of a gradient that arrived at a node."""
        waiting = self._arriving.pop((node, output_nr), [])
        if not waiting:
            return self._gradient(gradient)
        value, array = waiting[-1]
        if array is gradient or type(array) in LAZY:
            return value
        changed = self._known(gradient)
        if changed is None:
            changed = self._new_gradient(gradient)
            self._add(_HOOK, [value], [changed])
        return changed

    def _saved(self, node: Node) -> dict[str, Value | None]:
        """The known values among those that a node saved, by name."""
        saved: dict[str, Value | None] = {}
        for slot in type(node).__slots__:
            if slot.startswith("saved_"):
                value = getattr(node, slot, FREED)
                array = value.array if type(value) is Tensor else value
                known = self._by_array.get(id(array))
                saved[slot.removeprefix("saved_")] = None if known is None else known[0]
        return saved

    def accumulation(self, node: Node, old: Any, incoming: Any, total: Any) -> None:
        """A gradient that was added to another one waiting at its node."""
        super().accumulation(node, old, incoming, total)
        for edge, waiting in self._arriving.items():
            if edge[0] is node and len(waiting) > 1:
                value = self._gradient(total)
                if type(total) is not Tensor:
                    both = [each for each, _ in waiting[:2]]
                    self._add(Kernel("add", accumulation.add_arrays), both, [value])
                waiting[:2] = [(value, total)]
                self._since_step = len(self.trace.instructions)
                return

    def leaf(self, node: AccumulateGrad, old: Any, incoming: Any, new: Any) -> None:
        """A gradient that was added to a leaf's `.grad`."""
        super().leaf(node, old, incoming, new)
        variable = node.variable
        leaf, value = self.find(variable), self._arrived(node, 0, incoming)
        outputs: list[Value] = []
        inputs = [leaf, value]
        gradient = variable.grad
        if gradient is not None:
            if self._is_recorded:
                inputs = [leaf, self.find(gradient)]  # ops made it
            else:
                before = self._by_tensor.get(id(gradient))
                inputs += () if before is None else before[:1]
                outputs = [self._value(gradient)]
        self._add(_ARRIVE, inputs, outputs, {Effect.GRAD: (leaf,)})
        self._since_step = len(self.trace.instructions)

    def returned(self, gradient: Any, tensor: Tensor) -> None:
        """A gradient that a backward pass returns, an array, and the tensor that has a copy."""
        known = self._known(gradient)
        if known is not None:
            self._add(_RETURN, [known], [self._value(tensor)])


def _edge_of(tensor: Tensor) -> Edge | None:
    """The node and output number that a tensor's gradient flows to; recording makes no node."""
    if tensor.grad_fn is not None:
        return tensor.grad_fn, tensor.output_nr
    meta = tensor.meta
    node = None if meta is None or meta.accumulator is None else meta.accumulator()
    return None if node is None else (node, 0)


def _version(tensor: Tensor) -> int:
    return 0 if tensor.storage is None else tensor.storage.counted
