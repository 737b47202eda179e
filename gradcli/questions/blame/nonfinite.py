"""Finds the operations that make the first non-finite numbers, while a program runs.

An infinity that a program writes itself (a mask of `-inf`) is no fault; a NaN always is one. A
result that is computed from a non-finite number is a consequence, and not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from operator import lt
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.backend import has_values, to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.batched import unbatched
from gradcli.autograd.graph import Graph
from gradcli.autograd.recording.recorder import Listener
from gradcli.autograd.tensor import Tensor
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import target_names
from gradcli.record import Record
from gradcli.state import active
from gradcli.trace.ir import SideExit

if TYPE_CHECKING:
    from gradcli.autograd.node import Node
    from gradcli.errors import Span
    from gradcli.language.long_loops import Round

FORWARD = "forward"
BACKWARD = "backward"
DATA = "data"
SEED = "seed"

MET = "the sum of gradients"
"""What a number is called that two finite gradients of one tensor add up to."""


class Operand(Record):
    """An operand of the operation at the element in question.

    Attributes:
        value: its number there, None where no single element belongs to it.
    """

    parameter: str
    name: str
    value: Any
    low: Any
    high: Any


class FirstNonFinite:
    """A NaN or infinity that was computed from finite numbers.

    Attributes:
        phase: `forward`, `backward`, `data` or `seed`; `data` for what entered: a tensor that no
            operation made, or a number.
        stepped: whether it is a leaf that was finite when it was first read.
        at_step: whether its place is the step of an optimizer that made it so.
        count, rows: of what entered and is told, how many numbers of the tensor are not finite, and
            in how many of its rows.
        use: of what entered, where it was first computed with, in the tensor that was read there:
            what comes before picks and copies, as a batch is made of records.
        module: the path and the class of the module in whose call it happened.
        stack: the functions that were running, outermost first.
        rounds: the iterations of loops that were running, outermost first: the loop, the number of
            the iteration, and what the loop goes through, in words.
        output: the tensor that holds it; in the backward pass the one whose gradient it is.
        of_rule: whether an operation gave it that computes a gradient, in a pass that is recorded.
    """

    def __init__(
        self,
        phase: str,
        op: Any,
        called: str,
        place: Span | None,
        array: Any,
        operands: list[Operand],
        output: Any = None,
        incoming: Any = None,
        node: Node | None = None,
        element: tuple[int, ...] | None = None,
    ) -> None:
        self.phase = phase
        self.op = op
        self.called = called
        self.place = place
        self.element = first_bad(array) if element is None else element
        self.value = array[self.element]
        self.operands = operands
        self.output = output
        self.incoming = incoming
        self.node = node
        self.dtype = array.dtype
        self.module: tuple[str, str] | None = None
        self.stack: Sequence[tuple[str, Span | None]] = ()
        self.rounds: Sequence[tuple[Span, int, str]] = ()
        self.stepped = self.at_step = self.of_rule = False
        self.count, self.rows = 1, 0
        self.use: FirstNonFinite | None = None
        # Masks of infinities enter again and again, and nobody asks how many they hold.
        self._entered = array if phase == DATA else None

    def take_count(self) -> None:
        """Count the numbers that are not finite, of what entered."""
        if self._entered is not None:
            bad = ~np.isfinite(_plain(self._entered))
            self.count = int(bad.sum())
            self.rows = int(bad.reshape(len(bad), -1).any(1).sum()) if bad.ndim > 1 else 0
            self._entered = None


class Watch(Listener):
    """Listens for the first NaN and infinities.

    Attributes:
        arrived: the leaves whose gradient is not finite.
        rounds: the iterations of the program's loops that are running.
        diverged: leaves that were finite, and are not since a step wrote to them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.nonfinites: list[FirstNonFinite] = []
        self.rounds: Sequence[Round] = ()
        self.arrived: list[Tensor] = []
        self.diverged: list[Tensor] = []
        # Tensors by identity, kept so that the numbers stay theirs.
        self._known: dict[int, Tensor] = {}
        self._healthy: dict[int, Tensor] = {}
        # Tensors that hold infinities which entered, and what entered.
        self._entries: dict[int, tuple[Tensor, FirstNonFinite]] = {}
        # What the ops of a node's rule gave, where a pass records them.
        self._of_rule: list[FirstNonFinite] = []
        # What tensors are not finite by, or were computed from.
        self._origins: dict[int, tuple[Tensor, FirstNonFinite]] = {}

    def entry_of(self, tensor: Tensor) -> FirstNonFinite | None:
        """What entered as infinity, and reached a tensor; None where nothing did."""
        entry = self._entries.get(id(tensor))
        return None if entry is None else entry[1]

    def origin_of(self, tensor: Tensor) -> FirstNonFinite | None:
        """What a result is not finite by: the first number that reached it as one, or in a result
        that was finite again, such as `1 / inf`. A mask's -inf does not reach what a softmax or an
        exponential makes of it.
        """
        origin = self._origins.get(id(tensor))
        return None if origin is None else origin[1]

    def _spoils(self, tensor: Tensor, first: FirstNonFinite) -> None:
        self._origins[id(tensor)] = tensor, first

    def _found(self, first: FirstNonFinite) -> None:
        """Keep what was found."""
        if all(each is not first for each in self.nonfinites):
            self._located(first)
            first.take_count()
            self.nonfinites.append(first)

    def _located(self, first: FirstNonFinite) -> None:
        """Note where the program stands."""
        if first.rounds or first.stack:
            return
        state = active.state
        call = state.calls[-1] if state.calls else None
        if first.node is not None:
            call = self.recorder.modules.get(first.node)
        if call is not None:
            kind = type(call.module).__name__
            first.module = Graph.module_paths().get(id(call.module), (kind, None))[0], kind
        first.stack = tuple(state.stack)
        first.rounds = [
            (each.loop.span, each.number, _goes_through(each))
            for each in self.rounds
            if each.number
        ]

    def operation(self, op: Any, operands: dict[str, Any], output: Any) -> None:
        """A call of an op: check that its outputs are finite."""
        super().operation(op, operands, output)
        outputs = output if type(output) is tuple else (output,)
        first = outputs[0] if outputs else None
        if type(first) is not Tensor:
            return
        tensors = [each for each in _flat(operands) if type(each) is Tensor]
        for tensor in tensors:
            self._meet(tensor)
        spoilt = [each for each in tensors if id(each) in self._origins]
        origins = [self._origins[id(each)][1] for each in spoilt]
        origin = min(origins, key=self.nonfinites.index, default=None)
        if origin is not None and origin.phase == DATA and not (origin.use or _moves(op)):
            origin.use = self._use(op, operands, spoilt[origins.index(origin)])
        for output in outputs:
            if not is_finite(output.array):
                judged = self._judge(op, operands, tensors, output)
                cause = origin or judged
                if cause is not None:
                    self._spoils(output, cause)
            elif origin is not None and not _hides(op, spoilt):
                self._spoils(output, origin)

    def write(self, tensor: Tensor, result: Any, *details: Any) -> None:
        """A write in place: what is written is held by the tensor now, and by its base."""
        super().write(tensor, result, *details)
        for each in (tensor, tensor.base) if type(result) is Tensor else ():
            if each is None:
                continue
            if id(result) in self._known:
                self._known[id(each)] = each
            if id(result) in self._origins:
                self._spoils(each, self._origins[id(result)][1])

    def updated(self, parameter: Tensor) -> None:
        """A step that changed a parameter, which nothing may read any more."""
        super().updated(parameter)
        if id(parameter) in self._healthy:
            self._meet(parameter, at_step=True)

    def _meet(self, tensor: Tensor, *, at_step: bool = False) -> None:
        """A tensor that an operation reads: data, unless an operation made it."""
        if id(tensor) in self._known or id(tensor) in self._entries or tensor.grad_fn is not None:
            return
        if is_finite(tensor.array):
            if tensor.requires_grad:
                self._healthy[id(tensor)] = tensor
            return
        stepped = id(tensor) in self._healthy
        if stepped:
            self.diverged.append(tensor)
        if stepped and self.nonfinites:
            self._known[id(tensor)] = tensor
            return
        has_nan = _has_nan(tensor.array)
        if has_nan:
            self._known[id(tensor)] = tensor
            if self.nonfinites:  # a gradient, or a copy of what was computed
                return
        entry = self._entry(tensor, tensor.name or "the data", _held(tensor.array))
        entry.stepped, entry.at_step = stepped, at_step
        if has_nan or at_step:
            self._found(entry)
            self._spoils(tensor, entry)
        else:
            self._entries[id(tensor)] = tensor, entry

    def _entry(self, holder: Tensor | None, called: str, array: Any) -> FirstNonFinite:
        """What enters here."""
        entry = FirstNonFinite(DATA, None, called, active.state.place, array, [], holder)
        self._located(entry)
        return entry

    def _use(self, op: Any, operands: dict[str, Any], tensor: Tensor) -> FirstNonFinite:
        """Where what entered is computed with, in an operand."""
        parameter = next((n for n, each in operands.items() if each is tensor), "operand")
        called = tensor.name or f"{parameter} of {op.name.partition('.')[0].strip('_')}"
        use = self._entry(tensor, called, _held(tensor.array))
        use.take_count()
        return use

    def _entered(self, arguments: dict[str, Any], tensors: list[Tensor]) -> FirstNonFinite | None:
        """What entered as infinity and reaches an operand, numbers too."""
        for tensor in tensors:
            entry = self.entry_of(tensor)
            if entry is not None:
                return entry
        for each in _flat(arguments):
            if isinstance(each, (float, np.floating)) and not np.isfinite(each):
                return self._entry(None, "a number", np.array(each, float))
        return None

    def _judge(
        self, op: Any, arguments: dict[str, Any], tensors: list[Tensor], out: Tensor
    ) -> FirstNonFinite | None:
        """What is found where a result is not finite; None where an operand brought it."""
        if any(id(tensor) in self._known for tensor in tensors):
            self._known[id(out)] = out
            return None
        array = _held(out.array)
        entry = self._entered(arguments, tensors)
        own = None
        if entry is not None and entry.output is not None:
            own = _overflowed(op, tensors, array)
        if entry is not None and own is None:
            if not _has_nan(array):
                self._entries[id(out)] = out, entry
                return None
            if not _masks(op, entry):
                self._known[id(out)] = out
                self._found(entry)
                return entry
        self._known[id(out)] = out
        element = first_bad(array, nan=entry is not None) if own is None else own
        place = active.state.place
        operands = operands_of(op, arguments, element, array)
        first = FirstNonFinite(FORWARD, op, op.name, place, array, operands, out, element=element)
        first.of_rule = active.state.backward_pass is not None
        if first.of_rule:
            self._of_rule.append(first)
        self._found(first)
        return first

    def step(self, node: Node, grads: Any, gradients: Any, fitted: Any) -> None:
        """A node that ran: see whether what it passed on is finite."""
        super().step(node, grads, gradients, fitted)
        of_rule, self._of_rule = self._of_rule, []
        arrived = [_array(g) for g in (grads if isinstance(grads, list) else [grads])]
        if not all(is_finite(each) for each in arrived if each is not None):
            if not any(nonfinite.phase == BACKWARD for nonfinite in self.nonfinites):
                self._seeded(node, arrived)
            return
        for number, (gradient, cast) in enumerate(zip(gradients, fitted, strict=True)):
            array = _array(gradient)
            if array is None or node.next_nodes[number] is None:
                continue
            # A gradient may be finite, and too large for the dtype of the input.
            array = _array(cast) if is_finite(array) else array
            if array is None or is_finite(array):
                continue
            call = self.recorder.call_of.get(node)
            op, arguments = (None, {}) if call is None else (call.op, call.arguments)
            array = _held(array)
            entry = self._entered(arguments, [e for e in _flat(arguments) if type(e) is Tensor])
            if entry is not None and not _masks(op, entry):
                self._found(entry)
                continue
            element = first_bad(array)
            incoming = arrived[0] if len(arrived) == 1 else None
            output = None if call is None else call.output
            of = output.array if type(output) is Tensor else array
            operands = [] if op is None else operands_of(op, arguments, element, of)
            operand = None
            if op is not None and number < len(op.inputs):
                operand = arguments.get(op.inputs[number])
            found = FirstNonFinite(
                BACKWARD,
                op,
                node.node_name,
                node.place,
                array,
                operands,
                operand if type(operand) is Tensor else None,
                None if incoming is None else at(incoming, element, array.shape),
                node,
            )
            if of_rule:
                # Results are known to be spoilt by what its op gave.
                first = of_rule.pop(0)
                vars(first).update(vars(found))
                self._located(first)
            else:
                self._found(found)

    def accumulation(self, node: Node, old: Any, incoming: Any, total: Any) -> None:
        """A gradient that was added to another one waiting at its node."""
        super().accumulation(node, old, incoming, total)
        self._summed(node, old, incoming, total)

    def _summed(self, node: Node, *gradients: Any) -> None:
        """Two gradients and their sum: see whether that alone is not finite."""
        old, incoming, total = map(_array, gradients)
        if is_finite(total) or not (is_finite(old) and is_finite(incoming)):
            return
        total = _held(total)
        element = first_bad(total)
        operands = [
            Operand(name, name, at(each, element, total.shape), None, None)
            for name, each in (("one gradient", old), ("another", incoming))
        ]
        leaf = getattr(node, "variable", None)
        call = self.recorder.call_of.get(node)
        output = leaf if call is None else call.output
        self._found(
            FirstNonFinite(
                BACKWARD,
                None,
                MET,
                node.place,
                total,
                operands,
                output if type(output) is Tensor else None,
                node=node,
                element=element,
            )
        )

    def _seeded(self, node: Node, arrived: list[Any]) -> None:
        """A gradient that was not finite before any node ran: the seed."""
        if any(nonfinite.phase == SEED for nonfinite in self.nonfinites):
            return
        for array in arrived:
            if array is not None and not is_finite(array):
                self._found(
                    FirstNonFinite(SEED, None, "the seed", node.place, _held(array), [], node=node)
                )

    def leaf(self, node: Any, old: Any, incoming: Any, new: Any) -> None:
        """A gradient that reached a leaf."""
        super().leaf(node, old, incoming, new)
        if not is_finite(_array(new)):
            self.arrived.append(node.variable)
            if old is not None:
                self._summed(node, old, incoming, new)


class Sentry(Watch):
    """Hears where the first NaN or infinity is that is a fault, and keeps little of it.

    Attributes:
        is_suspicious: whether there is one, or may be.
        behind: the line of the first node that made one in the backward pass of a finite gradient,
            and the gradients of the results of lines, of its own among them, each with its line.

    Args:
        found: called with each number of the forward pass and its line, while the program is there.
        choosing: the lines of the program that choose among values: gradients of their results are
            kept.
        near: so many lines behind that of a node are such lines looked for.
    """

    def __init__(
        self,
        found: Callable[[FirstNonFinite, int], None],
        choosing: Container[int] = (),
        near: int = 0,
    ) -> None:
        super().__init__()
        self.is_suspicious = False
        self.behind: tuple[int, dict[int, Any]] | None = None
        self._tell, self._choosing, self._near = found, choosing, near
        self._line = 0
        self._is_over = False  # whether gradients have been met that are not finite
        # What reached the last node of each line that was made there, which is the first to run.
        self._reached: dict[int, Any] = {}

    def _found(self, first: FirstNonFinite) -> None:
        self.is_suspicious = True
        if all(each is not first for each in self.nonfinites):
            first.take_count()
            self.nonfinites.append(first)
            if first.phase in (FORWARD, DATA) and first.place is not None:
                self._tell(first, first.place.line)

    def step(self, node: Node, grads: Any, gradients: Any, fitted: Any) -> None:
        """A node that ran."""
        Listener.step(self, node, grads, gradients, fitted)
        arrived = grads if isinstance(grads, list) else [grads]
        line = 0 if node.place is None else node.place.line
        if line != self._line:
            self._line = line
            for each in [*self._reached]:
                if each not in self._choosing or each > line + self._near:
                    del self._reached[each]
            self._reached.setdefault(line, _array(arrived[0]) if len(arrived) == 1 else None)
        if self._is_over:
            return
        came = all(each is None or is_finite(_array(each)) for each in arrived)
        if came and all(each is None or is_finite(_array(each)) for each in fitted):
            return
        self.is_suspicious = self._is_over = True
        if came:
            reached = {n: each for n, each in self._reached.items() if each is not None}
            self.behind = line, {n: np.array(_held(each)) for n, each in reached.items()}

    def accumulation(self, node: Node, old: Any, incoming: Any, total: Any) -> None:
        """A gradient that was added to another one waiting at its node."""
        Listener.accumulation(self, node, old, incoming, total)

    def leaf(self, node: Any, old: Any, incoming: Any, new: Any) -> None:
        """A gradient that reached a leaf."""
        Listener.leaf(self, node, old, incoming, new)
        self.is_suspicious = self.is_suspicious or not is_finite(_array(new))


class Sentinel(Listener):
    """Hears whether any result or gradient is not finite, and says so of the first of each."""

    __slots__ = ("_tell", "_told")

    def __init__(self, tell: Callable[[], None]) -> None:
        super().__init__()
        self._tell = tell
        self._told: set[str] = set()

    def _check(self, phase: str, arrays: Iterable[Any]) -> None:
        if phase not in self._told and not all(is_finite(e) for e in arrays if e is not None):
            self._told.add(phase)
            self._tell()

    def check(self, *arrays: Any) -> None:
        """Raise `SideExit` where an array that a compiled iteration computed has a number that is
        not finite, unless both were told of.
        """
        if len(self._told) < 2 and not _are_finite(arrays):
            raise SideExit("a number is not finite", None)

    def operation(self, op: Any, operands: dict[str, Any], output: Any) -> None:
        """A call of an op."""
        outputs = output if type(output) is tuple else (output,)
        self._check(FORWARD, (each.array for each in outputs if type(each) is Tensor))

    def step(self, node: Node, grads: Any, gradients: Any, fitted: Any) -> None:
        """A node that ran."""
        self._check(BACKWARD, map(_array, fitted))

    def leaf(self, node: Any, old: Any, incoming: Any, new: Any) -> None:
        """A gradient that reached a leaf."""
        self._check(BACKWARD, (_array(new),))


def _masks(op: Any, entry: FirstNonFinite) -> bool:
    """Whether an operation takes what entered as a mask: a softmax makes 0 of -inf, a product the
    mask itself, and NaN where the other factor is 0.
    """
    value, name = entry.value, str(getattr(op, "name", ""))
    return bool(value < 0) and (name in _OF_MASKS or (name == "mul" and entry.output is None))


def _moves(op: Any) -> bool:
    """Whether an operation picks, orders or copies numbers, and computes none."""
    name = str(getattr(op, "name", "")).partition(".")[0].strip("_")
    return bool(getattr(op, "view", False)) or name in _MOVING


_MOVING = (
    "cat", "clone", "copy", "fill", "flip", "gather", "index", "index_put", "index_select",
    "masked_fill", "masked_select", "repeat", "roll", "scatter", "stack", "take", "to_copy",
    "where",
)  # fmt: skip
"""Operations that are no views, and whose results hold numbers of their operands."""

_OF_MASKS = ("log_softmax", "logsumexp", "softmax")


_HIDING = (
    *_OF_MASKS,
    "amax", "amin", "clamp", "fmax", "fmin", "hardtanh", "max", "maximum", "min", "minimum",
    "nan_to_num", "relu", "topk",
)  # fmt: skip
"""Operations whose result is finite where they leave out what is not."""


def _hides(op: Any, spoilt: Sequence[Tensor]) -> bool:
    """Whether a finite result has nothing of what its operands hold that is not finite: it was left
    out, or is -inf, of which an exponential makes 0.
    """
    if _moves(op) or str(getattr(op, "name", "")).strip("_") in _HIDING:
        return True
    arrays = [_plain(_held(each.array)) for each in spoilt]
    return all(np.isfinite(each[~np.isneginf(each)]).all() for each in arrays)


def _overflowed(op: Any, tensors: list[Tensor], array: Any) -> tuple[int, ...] | None:
    """The element of a pointwise result that is not finite though all operands are there."""
    if not getattr(op, "pointwise", False):
        return None
    bad = ~np.isfinite(_plain(array))
    for tensor in tensors:
        bad = bad & np.isfinite(_plain(_held(tensor.array)))
    return first_true(bad) if bad.shape == array.shape and bad.any() else None


def _goes_through(each: Round) -> str:
    """`epoch = 2, x is float32[4, 2]`."""
    names = list(target_names(each.loop.target)) if isinstance(each.loop, tree.For) else []
    values = [(name, each.variables[name]) for name in names if name in each.variables]
    return ", ".join(f"{name} {_shown(value)}" for name, value in values)


def _shown(value: Any) -> str:
    if type(value) is Tensor:
        return f"is {value.dtype.name}{list(value.array.shape)}"
    if isinstance(value, (list, tuple)):
        return f"is {', '.join(_shown(each).removeprefix('is ') for each in value[:4])}"
    return (
        f"= {value!r}" if isinstance(value, (bool, int, float, str)) else "is a value of Python's"
    )


# --- arrays -------------------------------------------------------------------------------------


def _held(array: Any) -> Any:
    """An array with its numbers computed, in the host's memory; of an example of vmap's those of
    all examples.
    """
    return to_host(forced(unbatched(array)))


def is_finite(array: Any) -> bool:
    """Whether all numbers of an array are finite; there may be none."""
    if not has_values(array):
        return True
    array = _held(array)
    if array.dtype.kind not in "fcV":
        return True
    return bool(np.isfinite(_plain(array)).all())


def _are_finite(arrays: Iterable[Any]) -> bool:
    """Whether all numbers of arrays in the host's memory are finite."""
    for array in arrays:
        size = array.size
        if size > _SMALL:
            if not np.isfinite(array).all():
                return False
        elif np.vdot(array, _ZEROS[array.dtype.char][:size]) != 0:
            return False
    return True


_SMALL = 1 << 14
"""Elements up to which a product with zeros, NaN for what is not finite, is the fastest test."""

_ZEROS = {char: np.zeros(_SMALL, char) for char in "fdFD"}


def _has_nan(array: Any) -> bool:
    return bool(np.isnan(_plain(_held(array))).any())


def _plain(array: Any) -> Any:
    """An array that NumPy's tests take: bfloat16 as float32."""
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def first_bad(array: Any, nan: bool = False) -> tuple[int, ...]:
    """The index of the first number that is not finite; with `nan` of the first NaN."""
    plain = np.asarray(to_host(_plain(array)))
    return first_true(np.isnan(plain) if nan else ~np.isfinite(plain))


def first_true(bad: Any) -> tuple[int, ...]:
    """The index of the first element that is true."""
    return tuple(int(n) for n in np.unravel_index(int(np.argmax(bad)), bad.shape))


def at(array: Any, element: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """The number that belongs to an element of a larger shape; None where none does."""
    array = _held(array)
    if array.ndim > len(shape):
        return None
    tail = shape[len(shape) - array.ndim :]
    if any(have not in (1, want) for have, want in zip(array.shape, tail, strict=True)):
        return None
    index = element[len(element) - array.ndim :] if array.ndim else ()
    picked = tuple(0 if n == 1 else i for i, n in zip(index, array.shape, strict=True))
    return array[picked]


def operands_of(
    op: Any, arguments: dict[str, Any], element: tuple[int, ...], result: Any
) -> list[Operand]:
    """The operands of an operation at an element of its result; no single numbers where the element
    is made of more, as the sum of a row of products is.
    """
    operands = []
    shape = tuple(result.shape)
    is_there = len(element) == len(shape) and all(map(lt, element, shape))
    is_there = is_there and (
        getattr(op, "pointwise", True) or _makes_alone(op, arguments, element, result)
    )
    for name, value in arguments.items():
        if type(value) is Tensor:
            array = _held(value.array)
            if array.size:
                there = at(array, element, shape) if is_there else None
                low, high = (
                    (array.min(), array.max()) if array.dtype.kind in "fiu" else (None, None)
                )
                operands.append(Operand(name, value.name or name, there, low, high))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            operands.append(Operand(name, name, value, value, value))
    return operands


def _makes_alone(op: Any, arguments: dict[str, Any], element: tuple[int, ...], result: Any) -> bool:
    """Whether an op makes an element of its result of the operands' numbers there alone."""
    single: list[Any] = []
    for value in arguments.values():
        there = at(value.array, element, result.shape) if type(value) is Tensor else value
        if there is None and value is not None:
            return False
        single.append(
            np.reshape(there, (1,) * value.array.ndim) if type(value) is Tensor else there
        )
    try:
        made = op.forward(*single)
        made = None if isinstance(made, (tuple, list)) else _held(made)
    except Exception:  # whatever it does with so few numbers
        return False
    wanted = _plain(_held(result))[element]
    return (
        made is not None
        and made.size == 1
        and bool(np.isclose(_plain(made).item(), wanted, equal_nan=True))
    )


def _array(gradient: Any) -> Any:
    return gradient.array if type(gradient) is Tensor else gradient


def _flat(arguments: dict[str, Any]) -> list[Any]:
    tensors: list[Any] = []
    for value in arguments.values():
        tensors += value if isinstance(value, (list, tuple)) else [value]
    return tensors
