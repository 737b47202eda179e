"""The trace of an iteration while it is recorded, and the numbers in it that vary from one
iteration to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.dtypes import DType
from gradcli.arrays.fusion.lazy import write_barrier
from gradcli.arrays.layout.sizes import Device, Size
from gradcli.arrays.storage import Storage
from gradcli.autograd.batched import BatchedArray
from gradcli.autograd.tensor import Tensor, TensorMeta, meta_of, storage_of
from gradcli.language.objects.iteration import VIEWS
from gradcli.loops.guards import Guard, is_same_value
from gradcli.loops.kinds import STATE_VIEWS
from gradcli.ops.codegen.node_class import Key
from gradcli.record import Record
from gradcli.state import active
from gradcli.trace.builder import TraceBuilder
from gradcli.trace.ir import (
    OTHER_KIND,
    Effect,
    Effects,
    GraphBreak,
    Inline,
    Instruction,
    Kernel,
    Operand,
    SideExit,
    Value,
    kind_of,
    placeholder,
    values_in,
)

if TYPE_CHECKING:
    from gradcli.errors import Span

NUMBERS = (int, float, bool)

SETTINGS = (*NUMBERS, str, complex, type(None), type(...), DType, Device, Size, range)
"""What calls with tensors may be given beside them: it stays what it is."""

CHANGED = "a number or a text that varies reaches what takes it for constant"
"""Why an iteration is left, or recording ends."""


ALL_VIEWS = VIEWS | STATE_VIEWS
"""The views of dicts, and of states of modules."""


class Symbol(Record):
    """A number, a string or an index that varies from one iteration to the next."""

    now: Any
    value: Value


class Clock:
    """Reads clocks for an iteration; one that runs again, to be compared, reads the same.

    Args:
        again: the readings that are read once more, first to last.
    """

    def __init__(self, again: Sequence[Any] = ()) -> None:
        self._again = [*again][::-1]
        self._kept: list[Any] | None = None

    def keeping(self, readings: list[Any], run: Callable[[], Any]) -> Any:
        """What something gives that runs; what it reads is kept."""
        self._kept = readings
        try:
            return run()
        finally:
            self._kept = None

    def read(self, clock: Callable[[], Any]) -> Any:
        """What a clock says now."""
        reading = self._again.pop() if self._again else clock()
        if self._kept is not None:
            self._kept.append(reading)
        return reading


def parts_in(value: Any) -> Sequence[Any]:
    """The parts of a list, a tuple, a slice or a view of a dict; none of anything else."""
    kind = type(value)
    if kind in ALL_VIEWS:
        return list(value)
    if kind is slice:
        return value.start, value.stop, value.step
    return value if kind in (list, tuple) else ()


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """A list, a tuple or a slice with each of its parts changed."""
    parts = [change(each) for each in parts_in(value)]
    return slice(*parts) if type(value) is slice else type(value)(parts)


def concrete(value: Any) -> Any:
    """A value of the recorded iteration, without the symbols in tuples and slices."""
    if type(value) is Symbol:
        return value.now
    return changed(value, concrete) if is_symbolic(value) else value


def is_symbolic(value: Any) -> bool:
    """Whether there are symbols in a value, in tuples and slices too."""
    kind = type(value)
    return kind is Symbol or (kind is not list and any(map(is_symbolic, parts_in(value))))


def holds_tensor(value: Any, *others: type) -> bool:
    """Whether there are tensors, or others of some types, in a value, in lists, tuples and slices
    too.
    """
    kinds = (Tensor, *others)
    return type(value) in kinds or any(holds_tensor(each, *others) for each in parts_in(value))


COUNT_WRITES = Inline(
    "{0}.version += {1}",
    "count_writes",
    flat=lambda tape, storage, count: tape.steps.append(("count", storage, "version", count)),
)
"""The version of a storage goes up."""

_ANNOUNCE = Inline(
    "if {0}.pending_readers: {1}({2})",
    "write_barrier",
    flat=lambda tape, state, barrier, target: tape.relies_on("idle", state, "pending_readers"),
)
"""Lets plans keep the values that are about to be overwritten."""


class IterationBuilder(TraceBuilder):
    """Records an iteration.

    Attributes:
        side_exits: how many checks may send an iteration back to the interpreter.
        guard: what the iteration relies on, the tensors from outside that stay what they are.
        updated: those that it writes to.
        objects: how the tensors are read that every iteration loads anew.
        escapes: what stands for a tensor of the iteration where the program sees it.
        fixed_keys: the indices by masks that are the same in every iteration, by their ids.
        older: the tensors with a graph of an earlier iteration that it was given: it may detach
            them, which leaves their arrays, and look at their shapes.
    """

    def __init__(self, guard: Guard) -> None:
        super().__init__(guard.state.lazy_from)
        self.guard = guard
        self.updated: list[Tensor] = []
        self._symbols: dict[int, Symbol] = {}
        self._numbers: dict[Value, Any] = {}
        self._reads = 0
        self.side_exits = 0
        self.escapes: dict[Tensor, Value] = {}
        self.objects: dict[Tensor, tuple[Inline, Sequence[Operand]]] = {}
        self.older: set[Tensor] = set()
        self.fixed_keys: dict[int, Key] = {}
        self._parts: dict[int, tuple[Any, Any]] = {}
        # Tensors of one element, whose array changes its type when they are first aliased.
        self._scalars: dict[Tensor, Value] = {}

    @property
    def count(self) -> int:
        """How many instructions there are."""
        return len(self.trace.instructions)

    # --- tensors --------------------------------------------------------------------------------

    def remember(self, tensor: Tensor) -> None:
        """A tensor that an op made."""
        if isinstance(tensor.array, np.generic) and self.knows(tensor.array):
            self._scalars[tensor] = self.value_of(tensor.array)

    def has(self, tensor: Tensor) -> bool:
        """Whether the array of a tensor is known: of a batched one, that of all examples."""
        if type(tensor.array) is BatchedArray:
            return self.has(tensor.array.value)
        if tensor in self.older:
            return False
        array = tensor.array
        if self.knows(array):
            return True
        scalar = next(
            (each for number, each in self._scalars.items() if number.array is array), None
        )
        if scalar is None:
            return False
        self.call(AS_ARRAY, [scalar], result=array)
        return True

    def of(self, tensor: Tensor) -> Value:
        """The value of a tensor's array: of a batched one, that of all examples."""
        if type(tensor.array) is BatchedArray:
            return self.of(tensor.array.value)
        if tensor in self.older:
            raise of_older_graph()
        self.has(tensor)
        return self.value_of(tensor.array)

    # --- tensors from outside -------------------------------------------------------------------

    def tensor(self, tensor: Tensor) -> Value:
        """The value of a tensor that was there before, or of one that the iteration made."""
        if self.is_of_iteration(tensor):
            return self.of(tensor)
        if tensor.grad_fn is not None:
            raise of_older_graph()
        self.guard.watch(tensor)
        return self.constant(tensor.array)

    def is_mask(self, tensor: Tensor) -> bool:
        """Whether a tensor is a mask from outside, which is relied on."""
        is_bool = tensor.array.dtype.kind == "b" and tensor.array.ndim > 0
        return is_bool and self.has(tensor) and self.is_constant(self.of(tensor))

    def is_of_iteration(self, tensor: Tensor) -> bool:
        """Whether the iteration made a tensor."""
        return self.has(tensor) and not self.is_constant(self.of(tensor))

    def storage(self, tensor: Tensor) -> Storage:
        """The storage of a tensor that is written to."""
        storage = tensor.storage
        if type(storage) is not Storage or storage.lazy_conjugation is not None:
            raise GraphBreak("a write to a view of conjugates")
        self.guard.storages[tensor] = storage
        return storage

    def announce_write(self, target: Value) -> None:
        """Record what goes before a write."""
        self.effect(_ANNOUNCE, [self.guard.state, write_barrier, target], state=())

    def count_writes(self, storage: Storage, count: int) -> None:
        """Record that the version of a storage goes up."""
        if count:
            self.effect(COUNT_WRITES, [storage, count], state=())

    # --- symbols --------------------------------------------------------------------------------

    def known(self, value: Any) -> Any:
        """The symbol of a float or an index, which its identity tells; any other value as it is."""
        return self._symbols.get(id(value), value) if type(value) in (float, Key) else value

    def operand(self, value: Any) -> Any:
        """The value of a number that varies, as an operand; any other value as it is."""
        known = self.known(value)
        return known.value if type(known) is Symbol else value

    def know_parts(self, values: Any, parts: Any) -> None:
        """A list or dict that the iteration made has symbols among its parts."""
        self._parts[id(values)] = values, parts

    def parts_of(self, values: Any) -> Any:
        """The parts of an unchanged list or dict with its symbols; any other value as it is."""
        known = self._parts.get(id(values))
        if known is None:
            return values
        former, parts = known
        of_dict = type(parts) is dict
        now = [concrete(each) for each in (parts.values() if of_dict else parts)]
        held = list(former.values()) if of_dict else former
        if of_dict and list(former) != list(parts):
            held = []
        if len(held) != len(now) or not all(map(is_same_value, now, held)):
            raise GraphBreak("a list or dict with numbers that vary changes")
        return parts

    def make(self, op: Inline, operands: Sequence[Operand]) -> Value:
        """Record that a list or dict is made."""
        value = self.trace.value(None, "object")
        self._add(op, operands, (value,))
        return value

    def input(self, op: Inline, operands: Sequence[Operand], now: Any) -> Symbol:
        """Record how the iteration reads a number that it begins with."""
        value = self.trace.value(None, type(now).__name__)
        self._add_load(op, operands, value)
        return self._symbol(now, value)

    def compute(
        self,
        op: Any,
        operands: Sequence[Operand],
        now: Any,
        fixed: bool = False,
        effects: Effects | None = None,
    ) -> Symbol:
        """Record how a number is computed; where its type is not `fixed` by those of its operands,
        it is checked.
        """
        value = self.trace.value(None, type(now).__name__)
        self._add(op, operands, (value,), effects=effects)
        if not fixed:
            self._check_type(value, now)
        return self._symbol(now, value)

    def expect(self, symbol: Symbol) -> Any:
        """Record a check that a number, a string or an index is what it is now; returns that."""
        operands = [symbol.value, symbol.now, is_same_value]
        plain = type(symbol.now) in (int, bool, str)
        self.exit_unless("{0} == {1}" if plain else "{2}({0}, {1})", operands, CHANGED)
        return symbol.now

    def exit_unless(self, condition: str, operands: Sequence[Operand], reason: str) -> None:
        """Record a check of a condition, with a side exit."""
        leaves = Inline(f"if not ({condition}): raise {{{len(operands)}}}", "exit_unless")
        self.check(leaves, [*operands, SideExit(reason, self.span)])
        self.side_exits += 1

    def behind(self, op: Any, operands: Sequence[Operand], now: Any) -> Symbol:
        """Record a number that is read where it stands, after the effects so far."""
        fixed = type(now) is float  # what a schedule computes of a float stays one
        return self.compute(op, operands, now, fixed, {Effect.STATE: ()})

    def _check_type(self, value: Value, now: Any) -> None:
        self.exit_unless("type({0}) is {1}", [value, type(now)], "a number is of another type")

    def _symbol(self, now: Any, value: Value) -> Symbol:
        if type(now) is float:
            now = now * 1.0  # an object of its own, whose identity tells it apart
        symbol = Symbol(now, value)
        self._numbers[value] = now
        if type(now) in (float, Key):
            self._symbols[id(now)] = symbol
        return symbol

    def symbols_in(self, value: Any, local: Mapping[int, Any]) -> list[Symbol]:
        """The symbols in a value, and in the lists, dicts, sets and objects in it that are the
        iteration's own.
        """
        symbols, seen, waiting = [], set(), [value]
        while waiting:
            value = self.known(waiting.pop())
            kind = type(value)
            if kind is Symbol:
                symbols.append(value)
            elif kind is slice or kind is tuple or kind in ALL_VIEWS:
                waiting += parts_in(value)
            elif id(value) in local and id(value) not in seen:
                seen.add(id(value))
                if isinstance(value, (list, set, frozenset)):
                    waiting += self.parts_of(value)
                else:
                    is_dict = isinstance(value, dict)
                    held = self.parts_of(value) if is_dict else getattr(value, "__dict__", {})
                    waiting += (*held, *held.values())
        return symbols

    # --- instructions ---------------------------------------------------------------------------

    def read(self, op: Inline, operands: Sequence[Operand]) -> Value:
        """Record how the iteration reads an object that it begins with."""
        value = self.trace.value(None, "object")
        self._add_load(op, operands, value)
        return value

    def object(self, op: Inline, operands: Sequence[Operand]) -> Value:
        """Record how an object is read that the iteration was given, behind what that needs."""
        value = self.trace.value(None, "object")
        needed = set(values_in(operands))
        places = [n for n, each in enumerate(self.trace.instructions) if needed & set(each.results)]
        instruction = self._instruction(op, operands, (value,))
        self.trace.instructions.insert(max([self._reads - 1, *places]) + 1, instruction)
        return value

    def _add_load(self, op: Inline, operands: Sequence[Operand], value: Value) -> None:
        instruction = self._instruction(op, operands, (value,))
        self.trace.instructions.insert(self._reads, instruction)
        self._reads += 1

    def call(
        self,
        function: Callable[..., Any] | Kernel,
        operands: Sequence[Operand],
        reads_lazy: bool = False,
        result: Any = None,
    ) -> Any:
        if any(value in self._numbers for value in values_in(operands)):
            reads_lazy = False  # the ufuncs would have the number that it is now
            if result is None:
                called = function.function if isinstance(function, Kernel) else function
                result = called(*[self._now(operand) for operand in operands])
        return super().call(function, operands, reads_lazy, result)

    def _now(self, operand: Operand) -> Any:
        if isinstance(operand, Value):
            return self._numbers.get(operand, operand.array)
        return [self._now(each) for each in operand] if type(operand) is list else operand

    def draw(self, function: Any, operands: Sequence[Operand], result: Any) -> Value:
        """Record a call that draws random numbers, which stays where it is."""
        value = self.stand_for(result, self.trace.value_of(result))
        self._add(function, operands, (value,), effects={Effect.RANDOM: ()})
        return value

    def take_last(self, value: Value) -> Instruction | None:
        """Take away the last instruction if it is a ufunc of two operands that made the value."""
        instructions = self.trace.instructions
        last = instructions[-1] if instructions else None
        if last is None or last.results != [value] or not isinstance(value.array, np.ndarray):
            return None
        is_binary = isinstance(last.op, np.ufunc) and len(last.inputs) == 2
        return instructions.pop() if is_binary else None

    def forget(self, array: Any) -> None:
        """No value stands any longer for an array."""
        self._values.pop(id(array), None)

    def aliases(self, array: Any) -> list[Any]:
        """The other arrays of the iteration that share memory with one."""
        return [
            each
            for each in self._kept
            if each is not array
            and id(each) in self._values
            and isinstance(each, np.ndarray)
            and np.may_share_memory(each, array)
        ]

    # --- values as operands ---------------------------------------------------------------------

    def varies(self, value: Any) -> bool:
        """Whether a value may vary from one iteration to the next."""
        value = self.known(value)
        kind = type(value)
        if kind is Symbol:
            return True
        if kind is Tensor:
            return not self.has(value) or not self.is_constant(self.of(value))
        parts = value.values() if kind is dict else parts_in(value)
        return id(value) in self._parts or any(map(self.varies, parts))

    def written(self, value: Any, operands: list[Operand]) -> str:
        """The text of a value for an `Inline`, whose operands grow; tensors in it are made anew."""
        value = self.known(value)
        kind = type(value)
        if kind is Tensor and value not in self.guard.tensors:
            check_whole(value)
            if value in self.objects:
                return placeholder(operands, self.object(*self.objects[value]))
            return placeholder(operands, self.escaped(value))
        if kind in ALL_VIEWS and self.varies(value):
            raise GraphBreak("a view of a dict of numbers that vary is used as a whole")
        if kind in (list, tuple) and self.varies(value):
            several = self.parts_of(value)
            parts = "".join([f"{self.written(each, operands)}, " for each in several])
            return f"[{parts}]" if kind is list else f"({parts})"
        if kind is dict and self.varies(value):
            items = [
                f"{placeholder(operands, key)}: {self.written(each, operands)}, "
                for key, each in self.parts_of(value).items()
            ]
            return "{{" + "".join(items) + "}}"
        if kind is slice and self.varies(value):
            ends = [self.written(each, operands) for each in parts_in(value)]
            return f"{placeholder(operands, slice)}({', '.join(ends)})"
        if kind is Tensor:
            # As an operand, its array tells what has to stand ahead of a write to it.
            operands.append(self.of(value))
        return placeholder(operands, value.value if kind is Symbol else value)

    def written_call(
        self,
        operands: list[Operand],
        function: Any,
        arguments: Iterable[Any],
        keywords: Mapping[str, Any] | None = None,
    ) -> str:
        """The text of a call of a function with such values."""
        texts = [self.written(each, operands) for each in arguments]
        named = (keywords or {}).items()
        texts += [f"{name}={self.written(each, operands)}" for name, each in named]
        return f"{placeholder(operands, function)}({', '.join(texts)})"

    def escaped(self, tensor: Tensor) -> Value:
        """The tensor that stands for one that the iteration made, where the program sees it: one
        object, in however many places.
        """
        stand_in = self.escapes.get(tensor)
        if stand_in is None:
            array, base = self.of(tensor), self._base_of(tensor)
            stand_in = self.escapes[tensor] = self.trace.value(None, "tensor")
            effects = {Effect.ESCAPES: (array,)}
            self._add(_LIKE, [tensor_like, array, tensor, base], (stand_in,), effects=effects)
        return stand_in

    def _base_of(self, tensor: Tensor) -> Any:
        """The base of a view: a tensor from outside or an input, or the array of one that the
        iteration made; None where it is no view.
        """
        base = tensor.base
        if base is None:
            return self.shares_memory_with(tensor)
        input = self.input_for(base)
        if input is not None:
            return input
        return self.escaped(base) if base not in self.guard.tensors and self.has(base) else base

    def shares_memory_with(self, tensor: Tensor) -> Any:
        """The tensor from outside, or the input, that shares its storage with a tensor without
        being its base, as after `detach()`; None where there is none.
        """
        storage = tensor.storage
        if storage is None:
            return None
        for each in self.objects:
            if each.storage is storage:
                return self.object(*self.objects[each])
        return next((each for each in self.guard.tensors if each.storage is storage), None)

    def input_for(self, tensor: Tensor) -> Value | None:
        """The very tensor that stands for one that the iteration was given, or for the base of one;
        None for all others.
        """
        if tensor in self.objects:
            return self.object(*self.objects[tensor])
        for each in self.objects:
            if each.base is tensor:
                view = self.object(*self.objects[each])
                return self.object(Inline("{0}.base", raises=False), [view])
        return None

    def placed(self, value: Any, operands: list[Operand]) -> Any:
        """A value for `OnTensors`, with slots where it varies; their operands are added."""
        value = self.known(value)
        kind = type(value)
        if kind is Symbol or kind is Tensor:
            check_whole(value)
            operands.append(value.value if kind is Symbol else self.of(value))
            return Slot(len(operands) - 1, kind is Tensor)
        if kind in (list, tuple, slice):
            return changed(self.parts_of(value), lambda each: self.placed(each, operands))
        if isinstance(value, SETTINGS):
            return value
        from gradcli.arrays.random.generator import Generator  # lazy: start-up: few loops draw

        if not isinstance(value, Generator):
            raise GraphBreak(f"an op is given {kind.__name__}, whose parts may vary")
        return value


def of_older_graph() -> GraphBreak:
    """What ends recording where a tensor takes part with a graph that is not the iteration's."""
    return GraphBreak(
        "a tensor from an earlier iteration, or from before the loop, has a graph",
        "detach() what one iteration hands to the next",
    )


def check_whole(value: Any) -> None:
    """Raise GraphBreak for a batched tensor: code for arrays knows no examples."""
    if type(value) is Tensor and type(value.array) is BatchedArray:
        raise GraphBreak("a function of each example is given a number that varies")


def tensor_like(array: Any, former: Tensor, base: Any = None) -> Tensor:
    """A tensor with a history like a former one's.

    Args:
        base: the tensor that it is a view of, or whose storage it has; or the array of one that is
            made for it to be a view of.
    """
    tensor = Tensor(array, former.requires_grad)
    tensor.grad_fn, tensor.output_nr = former.grad_fn, former.output_nr
    meta, storage = former.meta, former.storage
    if meta is not None and (meta.name is not None or base is not None):
        meta_of(tensor).name = meta.name
    if meta is not None and meta.base is not None and base is not None:
        whole = base if type(base) is Tensor else tensor_like(base, meta.base)
        on_memory_of(tensor, whole, meta, storage)
    elif type(base) is Tensor:
        tensor.storage, tensor.array = storage_of(base), np.asarray(array)
    elif storage is not None and storage.version:
        storage_of(tensor).version = storage.version
    return tensor


def on_memory_of(tensor: Tensor, base: Tensor, former: TensorMeta, storage: Storage | None) -> None:
    """Make a tensor a view of `base`, as a former tensor was a view with this storage."""
    meta = meta_of(tensor)
    meta.base, meta.creation, meta.loose = base, former.creation, former.loose
    tensor.storage, tensor.array = storage_of(base), np.asarray(tensor.array)
    if storage is not None:
        meta.attr_version = tensor.storage.version - (storage.version - former.attr_version)


class Slot(Record):
    """Where an operand goes in the arguments of a function: as a tensor, or as it is."""

    number: int
    is_tensor: bool

    @staticmethod
    def filled(value: Any, operands: Sequence[Any]) -> Any:
        """A value with the operands in its slots."""
        kind = type(value)
        if kind is Slot:
            operand = operands[value.number]
            return Tensor(operand) if value.is_tensor else operand
        if kind in (list, tuple, slice):
            return changed(value, lambda each: Slot.filled(each, operands))
        return value


_LIKE = Inline("{0}({1}, {2}, {3})", "tensor_like", raises=False)

AS_ARRAY = Kernel("asarray", np.asarray, raises=False)


class OfKind:
    """A function of arrays whose results have to be as many, of the dtypes and shapes, as they were
    in the recording.
    """

    def __init__(self, function: Callable[..., Any], example: Any, span: Span | None) -> None:
        self.__name__ = str(getattr(function, "__name__", "call"))
        self.unchecked = function
        self.kinds = _kinds_in(example)
        self.exit = SideExit(OTHER_KIND, span)

    def __call__(self, *operands: Any) -> Any:
        active.state.place = self.exit.span or active.state.place  # it may warn
        result = self.unchecked(*operands)
        if _kinds_in(result) != self.kinds:
            raise self.exit
        return result


def _kinds_in(result: Any) -> list[Any]:
    parts = result if type(result) in (tuple, list) else (result,)
    return [None if each is None else (each.dtype, each.shape) for each in parts]


class OnTensors:
    """A function of tensors as a function of arrays.

    Attributes:
        arguments, keywords: the arguments, with slots in place of the operands.
        based: which results are views whose bases are returned behind all results.
        is_quiet: whether it drew no random numbers when it was recorded.
        kinds: dtype, shape and layout of the results, and whether they are leaves that require
            gradients: the same in every iteration.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        keywords: dict[str, Any],
        example: Any,
        based: Sequence[int],
        span: Span | None,
    ) -> None:
        self.__name__ = str(getattr(function, "__name__", "call"))
        self.function = function
        self.based = based
        self.is_quiet = False
        self.is_several = type(example) is not Tensor or bool(based)
        self.arguments = arguments
        self.keywords = keywords
        self.kinds = self._kinds(with_bases(example, self.based))
        self.exit = SideExit(OTHER_KIND, span)

    @staticmethod
    def _kinds(tensors: Sequence[Tensor]) -> list[Any]:
        return [(kind_of(each.array), each.version, each.requires_grad) for each in tensors]

    def array_of(self, *operands: Any) -> Any:
        """The array of the one tensor that it gives, of whatever kind; None for several."""
        result = self._result(operands)
        return result.array if type(result) is Tensor and not self.is_several else None

    def _result(self, operands: Sequence[Any]) -> Any:
        arguments = [Slot.filled(each, operands) for each in self.arguments]
        keywords = {name: Slot.filled(each, operands) for name, each in self.keywords.items()}
        return self.function(*arguments, **keywords)

    def __call__(self, *operands: Any) -> Any:
        active.state.place = self.exit.span or active.state.place  # it may warn
        before = _standing() if self.is_quiet else None
        result = self._result(operands)
        tensors = with_bases(result, self.based)
        arrays = tuple([each.array for each in tensors])
        in_graph = any(each.grad_fn is not None for each in tensors)
        passed_on = any(array is each for array in arrays for each in operands)
        if in_graph or passed_on or self._kinds(tensors) != self.kinds:
            raise self.exit
        if before is not None and _standing() != before:
            _restore(before)
            raise self.exit
        return arrays if self.is_several else arrays[0]


def _standing() -> dict[str, Any]:
    return {name: each.snapshot() for name, each in active.state.generators.items()}


def _restore(standing: dict[str, Any]) -> None:
    generators = active.state.generators
    for name in [*generators]:
        if name in standing:
            generators[name].restore(standing[name])
        else:  # which was made since
            del generators[name]


def with_bases(result: Any, based: Sequence[int]) -> list[Tensor]:
    """A tensor, or those of a tuple or list, and the bases of some."""
    tensors = tensors_in(result)
    bases = [tensors[number].base for number in based]
    pairs = zip(based, bases, strict=True)  # no base leads to an array of another kind: to an exit
    return [*tensors, *[tensors[n] if base is None else base for n, base in pairs]]


def tensors_in(result: Any) -> tuple[Tensor, ...]:
    """A tensor, or those of a tuple or list."""
    return (result,) if type(result) is Tensor else tuple(result)
