"""The recorder of an iteration: what ops, writes, checks and draws come to as instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import WeakMethod

import numpy as np

from gradcli.arrays.layout.strides import in_row_order, laid_out, strides_of, without_gaps
from gradcli.arrays.storage import own
from gradcli.autograd.batched import BatchedArray
from gradcli.autograd.recording.recorder import Listener
from gradcli.autograd.tensor import Tensor
from gradcli.errors import type_error
from gradcli.language.objects.operators import get_item
from gradcli.loops.gradients import Gradients
from gradcli.loops.kinds import context_class
from gradcli.loops.lower_backward import (
    ADD,
    CAST,
    CASTING,
    fitted,
    free,
    is_setting,
    write_rules,
)
from gradcli.loops.symbols import (
    AS_ARRAY,
    OfKind,
    OnTensors,
    Symbol,
    tensors_in,
    with_bases,
)
from gradcli.ops.codegen.node_class import Key
from gradcli.ops.codegen.promotion import EVERYDAY, number_and_array
from gradcli.ops.codegen.signature import signature_of
from gradcli.ops.definition.doc import BY_VALUES
from gradcli.ops.definition.op import Op
from gradcli.state import active
from gradcli.trace.ir import GraphBreak, Guard, Inline, Kernel, Kind, Value, same


class Recorder(Listener):
    """Listens to the ops, writes and passes of an iteration, and records them.

    Attributes:
        muted: whether the caller records what runs now.
        taken: the arrays whose only element was read as a number, while a caller collects them.
        escaped: the tensors that the iteration puts into lists which outlive it.
        changed_inputs: the inputs of the iteration that it writes to.
        borrowed: the tensors that it reads from lists, at positions that vary.
        awaits_pass: whether the next backward pass is recorded step by step as the engine runs it,
            with what its hooks do.
    """

    in_ops = True

    def __init__(self, gradients: Gradients, on_break: Callable[[GraphBreak], None]) -> None:
        super().__init__()
        self.builder = gradients.builder
        self.gradients = gradients
        # With all its arrays, a capture is to go when it has been compiled, not in a collection.
        self.on_break = WeakMethod(on_break)
        self.muted = False
        self.generators: list[Any] = []
        self.taken: list[Any] | None = None
        self.write_count = self.draw_count = 0
        self.escaped: list[Tensor] = []
        self.changed_inputs: list[Value] = []
        self.borrowed: set[Value] = set()
        self.awaits_pass = self._frees = False
        self._pass: Any = None
        self._has_drawn = False

    @contextmanager
    def mute(self) -> Iterator[None]:
        """Hear nothing: what runs is recorded by somebody else."""
        before, self.muted = self.muted, True
        try:
            yield
        finally:
            self.muted = before

    @contextmanager
    def taking(self) -> Iterator[list[Any]]:
        """Hear of the numbers that leave tensors only from which arrays."""
        before, self.taken = self.taken, []
        try:
            yield self.taken
        finally:
            self.taken = before

    # --- the events it records --------------------------------------------------------------------

    def operation(self, op: Any, operands: dict[str, Any], output: Any) -> None:
        super().operation(op, operands, output)
        self._record(self._operation, op, operands, output)

    def write(self, tensor: Tensor, new: Any, counted: bool = True) -> None:
        super().write(tensor, new, counted)
        self.write_count += 1
        self._record(self._write, tensor, new, counted)

    def computed(self, function: Any, operands: tuple[Any, ...], result: Any) -> None:
        super().computed(function, operands, result)
        self._record(self._computed, function, operands, result)

    def created(self, function: Any, operands: tuple[Any, ...], result: Any) -> None:
        super().created(function, operands, result)
        self.draw_count += self._has_drawn
        self._record(self._computed, function, operands, result)

    def read_value(self, check: Any, operands: tuple[Any, ...]) -> None:
        super().read_value(check, operands)
        if check is None and self.taken is not None:
            self.taken.append(operands[0])
        else:
            self._record(self._read_value, check, operands)

    def wrapped(self, tensor: Tensor) -> None:
        super().wrapped(tensor)
        self._record(self._know, tensor)

    def backward(self, roots: Any, accumulate: bool) -> None:
        super().backward(roots, accumulate)
        if self.awaits_pass:
            self.awaits_pass, self._pass = False, active.state.backward_pass
            self._record(self._begin_pass, roots)
        elif accumulate:
            self._record(self._refuse_pass)
        for _, _, seed in roots:
            if type(seed) is Tensor:
                self.wrapped(seed)

    def _record(self, record: Callable[..., None], *args: Any) -> None:
        if self.muted:
            return
        state = active.state
        self.builder.span, stack = state.place, tuple(state.stack)
        if stack != self.builder.stack:
            self.builder.stack = stack
        try:
            record(*args)
        except GraphBreak as graph_break:
            on_break = self.on_break()
            assert on_break is not None
            on_break(graph_break)

    # --- the events of a pass that is recorded as it runs -------------------------------------

    def begin_backward(self, keep_graph: bool) -> bool:
        """A backward pass begins; what its nodes saved is still read when they have run."""
        keeps = super().begin_backward(keep_graph)
        if not self.awaits_pass:
            return keeps
        self._frees = not keeps
        return True

    @property
    def _in_pass(self) -> bool:
        """Whether the engine is at a step of the pass itself, and not of one inside it."""
        return self._pass is not None and active.state.backward_pass is self._pass

    def evaluated(self, node: Any, grads: Any, gradients: Any) -> None:
        super().evaluated(node, grads, gradients)
        if self._in_pass:
            self._record(self._evaluated, node, grads, gradients)
            if self._frees:
                free(node)

    def fit(self, gradient: Any, passed: Any) -> None:
        super().fit(gradient, passed)
        if self._in_pass:
            self._record(self._fit, gradient, passed)

    def handed(self, gradient: Any, tensor: Tensor) -> None:
        super().handed(gradient, tensor)
        if self._in_pass:
            self._record(self._hand, gradient, tensor)

    def accumulation(self, node: Any, old: Any, incoming: Any, total: Any) -> None:
        super().accumulation(node, old, incoming, total)
        if self._in_pass:
            self._record(self._accumulate, old, incoming, total)

    def arriving(self, node: Any, gradient: Any) -> None:
        super().arriving(node, gradient)
        if self._in_pass:
            self._record(self._arrive, node.variable, gradient)

    def leaf(self, node: Any, old: Any, incoming: Any, new: Any) -> None:
        super().leaf(node, old, incoming, new)
        if self._in_pass:
            self._record(self.gradients.check, node.variable)

    def end_pass(self) -> None:
        """The pass has come to its end."""
        self.awaits_pass, self._pass = False, None

    def _begin_pass(self, roots: Any) -> None:
        for _, _, seed in roots:
            self.builder.constant(seed)

    def _evaluated(self, node: Any, grads: Any, gradients: Any) -> None:
        builder = self.builder
        if isinstance(node, context_class()):  # whose `backward` was heard
            for each in gradients:
                if each is not None:
                    builder.value_of(each)
            return
        arrived = grads if type(grads) is list else [grads]
        outputs = [None if each is None else builder.value_of(each) for each in arrived]
        if all(each is None for each in outputs):
            return
        for array, value in zip(gradients, write_rules(builder, node, outputs), strict=True):
            if array is not None:
                self._is_same(array, value)

    def _fit(self, gradient: Any, passed: Any) -> None:
        value = self.builder.value_of(gradient)
        self._is_same(passed, fitted(self.builder, value, passed.shape, passed.dtype))

    def _hand(self, gradient: Any, tensor: Tensor) -> None:
        value = self.builder.value_of(gradient)
        if tensor.array is not gradient:
            self.builder.call(_OWN, [value], result=tensor.array)
        self.builder.remember(tensor)

    def _accumulate(self, old: Any, incoming: Any, total: Any) -> None:
        operands = [self.builder.value_of(old), self.builder.value_of(incoming)]
        self._is_same(total, self.builder.call(ADD, operands))

    def _arrive(self, leaf: Tensor, gradient: Any) -> None:
        self.gradients.arrive(leaf, self.builder.value_of(gradient))

    def _is_same(self, array: Any, value: Value | None) -> None:
        """Let a value stand for an array that the engine computed."""
        if value is None or not same(value.array, array):
            raise GraphBreak("a gradient gave other bits when it was computed again", code="B02")
        if value.array is not array:
            self.builder.stand_for(array, value)

    def _refuse_pass(self) -> None:
        raise GraphBreak("a backward pass that something else than the program began")

    # --- ops ------------------------------------------------------------------------------------

    def _operation(self, op: Any, operands: dict[str, Any], output: Any) -> None:
        if not isinstance(op, Op):  # a custom function, whose forward was heard
            if not all(map(self.builder.has, tensors_in(output))):
                raise GraphBreak(f"forward() of `{op.name}` gives what was not recorded")
        else:
            try:
                self._on_arrays(op, operands, output)
            except GraphBreak:
                if any(each.requires_grad for each in tensors_in(output)):
                    raise
                self.on_tensors(op.apply, [operands[name] for name in op.parameters], {}, output)
        for each in tensors_in(output):
            self.builder.remember(each)

    def _on_arrays(self, op: Op, arguments: dict[str, Any], output: Any) -> None:
        """Record an op as a call of its forward function."""
        builder = self.builder
        operands = self._operands(op, arguments, output)
        if op.keeps and output.array is arguments["self"].array:
            raise GraphBreak("elements of a tensor are set by their positions")
        if op.view and self._is_constant(operands):
            for each in tensors_in(output):  # the same part of the same memory in every iteration
                builder.constant(each.array)
            return
        forward = _forward_of(op)
        several = type(output) is tuple
        known = tuple([each.array for each in output]) if several else output.array
        if forward.raises:  # values may decide how many come out, too
            forward = Kernel(op.name, OfKind(forward.function, known, builder.span))
        reads_lazy = op.reads_lazy and not forward.raises
        if type(known) is np.ndarray and known.shape == ():  # made of a number, in inference mode
            number = builder.call(forward, operands, reads_lazy, known[()])
            builder.call(AS_ARRAY, [number], result=known)
            return
        if all(map(_lies_in_rows, operands)):
            builder.call(forward, operands, reads_lazy, known)
            return
        # What comes out may have been laid out otherwise since.
        result = builder.call(forward, operands, reads_lazy)
        arrays: Any = zip(result, known, strict=True) if several else [(result, known)]
        for value, array in arrays:
            if value is not None and array.flags.c_contiguous:
                value = builder.call(_IN_ROWS, [value])  # `apply` lays most results out so
            elif value is not None and value.array.strides != array.strides:
                value = self._laid_out(value, array)
            if value is None or not same(value.array, array):
                raise GraphBreak("a call gave other bits when it was made again", code="B02")
            builder.stand_for(array, value)

    def _laid_out(self, value: Any, array: Any) -> Any:
        """A result with the strides that an array has; itself where those leave gaps."""
        strides = strides_of(array)
        if value.array.shape != array.shape or not without_gaps(array.shape, strides):
            return value
        return self.builder.call(_LAID_OUT, [value, strides])

    def on_tensors(
        self, function: Any, arguments: list[Any], keywords: dict[str, Any], output: Any
    ) -> None:
        """Record a call with tensors of which none is in a graph."""
        builder = self.builder
        operands: list[Any] = []
        placed = [builder.placed(each, operands) for each in arguments]
        named = {name: builder.placed(each, operands) for name, each in keywords.items()}
        tensors = [each for each in (*arguments, *keywords.values()) if type(each) is Tensor]
        outer = {*tensors, *[each.base for each in tensors]}
        outputs = enumerate(tensors_in(output))
        based = [n for n, each in outputs if each.base not in outer and self._is_unknown(each.base)]
        called = OnTensors(function, placed, named, output, based, builder.span)
        arrays = tuple([each.array for each in with_bases(output, based)])
        result = arrays if called.is_several else arrays[0]
        if self.drew():
            if called.is_several:
                raise GraphBreak("a call draws random numbers for several tensors")
            builder.draw(called, operands, result)
        else:
            called.is_quiet = any(value.array is None for value in operands)
            builder.call(called, operands, result=result)
        for each in tensors_in(output):
            builder.remember(each)

    def _is_unknown(self, base: Tensor | None) -> bool:
        """Whether the base of a view was made inside the call that returned the view."""
        return (
            base is not None
            and not self.builder.has(base)
            and base not in self.builder.guard.tensors
            and (base.grad_fn is None and not base.requires_grad)
        )

    def cut(self, tensor: Tensor, rows: slice, output: Tensor) -> None:
        """Record `tensor[start:stop]` with bounds that vary, of a tensor outside of all graphs."""
        bounds = [self._bound(each) for each in (rows.start, rows.stop)]
        if any(each is ... for each in bounds) or output.array.size == 0:
            self.on_tensors(get_item, [tensor, rows], {}, output)
            return
        array = output.array
        called = Kernel("slice", OfKind(get_rows, array, self.builder.span))
        self.builder.call(called, [self.builder.of(tensor), *bounds], result=array)

    def _bound(self, bound: Any) -> Any:
        """The value of a bound, or the bound itself; `...` for what is no integer."""
        if type(bound) is Symbol:
            return bound.value if type(bound.now) is int else ...
        if type(bound) is Tensor:
            is_position = bound.array.shape == () and bound.array.dtype.kind == "i"
            return self.builder.of(bound) if is_position else ...
        return bound if bound is None or type(bound) is int else ...

    def _operands(self, op: Op, arguments: dict[str, Any], output: Any) -> list[Any]:
        """The operands of a forward function as `apply` prepares them; GraphBreak for promotion of
        other ops than those of arithmetic.
        """
        builder = self.builder
        operands = dict(arguments)
        for name in op.parameters:
            value = arguments[name]
            if name in op.lists:
                operands[name] = [builder.of(tensor) for tensor in value]
            elif name in op.tensors:
                operands[name] = builder.of(value) if type(value) is Tensor else value
            elif name in op.keeps:
                operands[name] = self._index(value, arguments["self"])
            elif isinstance(value, (np.ndarray, np.generic)) and builder.knows(value):
                operands[name] = builder.value_of(value)  # numbers that were drawn for it
            elif not is_setting(value) or builder.varies(value):
                raise GraphBreak(f"`{op.name}` is given settings that may vary")
        promoted = signature_of(op).promoted
        dtypes = {operands[t].array.dtype for t in promoted if isinstance(operands[t], Value)}
        if op.name in CASTING and output.array.dtype in EVERYDAY and dtypes != {output.array.dtype}:
            for name in promoted:
                if isinstance(operands[name], Value):
                    operands[name] = self._cast(operands[name], output.array.dtype)
            dtypes = {output.array.dtype}
        if len(dtypes) > 1 or (op.floating and any(dtype.kind != "f" for dtype in dtypes)):
            raise GraphBreak(f"the operands of `{op.name}` are promoted to another dtype")
        if len(promoted) == 2 and dtypes:
            for name, other in (promoted, promoted[::-1]):
                if not isinstance(operands[name], Value):
                    operands[name] = self._number(operands[other], operands[name])
        elif any(not isinstance(operands[name], Value) for name in promoted):
            raise GraphBreak(f"`{op.name}` of a number where an array is expected")
        return [operands[name] for name in op.parameters]

    def _cast(self, value: Value, dtype: Any) -> Value:
        """The value of an array in a dtype."""
        if value.array.dtype is dtype:
            return value
        cast: Value = self.builder.call(CAST, [value, dtype])
        return cast

    def _index(self, key: Any, tensor: Tensor) -> Value | Key:
        """The index that picks elements of a tensor by position, made anew in every iteration, or
        itself where it picks by masks alone that stay what they are.
        """
        from gradcli.ops.indexing.basic import key_of_positions  # lazy: start-up: of an index

        known = self.builder.operand(key)
        if isinstance(known, Value):
            return known
        masks = [part for part, _ in key.parts if part is not None]
        if masks and all(type(each) is Tensor and self.builder.is_mask(each) for each in masks):
            found = tuple([each.array for each in masks])
            guard = Guard(Kind.VALUE, _same_numbers(*found), None, inputs=found)
            self.builder.guard.checks.append(guard)
            self.builder.fixed_keys[id(key)] = key
            return key
        parts = [part.array if type(part) is Tensor else part for part, _ in key.parts]
        arrays = [part for part in parts if part is not None]
        shape = tuple(tensor.array.shape)
        if 0 in shape or any(part.dtype.kind != "i" for part in arrays):
            raise GraphBreak("an index by a mask picks as many elements as it finds")
        operands = [
            part if array is None else self.builder.of(part) if type(part) is Tensor else array
            for (part, _), array in zip(key.parts, parts, strict=True)
        ]
        index = self.builder.compute(key_of_positions, [shape, *operands], key, True)
        return index.value

    def _number(self, array: Value, number: Any) -> Any:
        """A number beside an array, in the array's dtype."""
        mixed, _, promoted = number_and_array(array.array, number)
        if mixed:
            raise GraphBreak("a number is promoted to another dtype")
        value = self.builder.operand(number)
        return value if isinstance(value, Value) else promoted

    def _is_constant(self, operands: list[Any]) -> bool:
        """Whether all values among some operands are the same objects in every iteration."""
        is_constant = self.builder.is_constant
        return all(is_constant(each) for each in operands if isinstance(each, Value))

    def _computed(self, function: Any, operands: tuple[Any, ...], result: Any) -> None:
        builder = self.builder
        numbers = map(builder.operand, operands)
        values = [each if is_setting(each) else builder.value_of(each) for each in numbers]
        kernel = Kernel(function.__name__, function)
        if self.drew():
            builder.draw(kernel, values, result)
        else:
            builder.call(kernel, values, result=result)

    def _know(self, tensor: Tensor) -> None:
        """Enter a constant tensor that no op returned: a saved number, the seed of a pass."""
        if type(tensor.array) is BatchedArray:
            self._know(tensor.array.value)
        elif not self.builder.has(tensor):
            self.builder.constant(tensor.array)
            self.builder.remember(tensor)

    # --- random numbers -------------------------------------------------------------------------

    def drawn(self, generator: Any) -> None:
        super().drawn(generator)
        self._has_drawn = True
        if generator not in self.generators:
            self.generators.append(generator)

    def drew(self) -> bool:
        """Whether random numbers were drawn since this was last asked."""
        before, self._has_drawn = self._has_drawn, False
        return before

    # --- checks of values -----------------------------------------------------------------------

    def _read_value(self, check: Any, operands: tuple[Any, ...]) -> None:
        """Record a check of values that may vary; GraphBreak where one was taken out."""
        builder = self.builder
        values = [each if is_setting(each) else builder.value_of(each) for each in operands]
        if self._is_constant(values):
            read = check or _same_numbers(*operands)
            guard = Guard(Kind.VALUE, read, None, inputs=operands)
            self.builder.guard.checks.append(guard)
            return  # a guard looks when something else may have changed it
        if check is None:
            raise GraphBreak(
                "a number is taken out of a tensor, and what runs next depends on it",
            )
        builder.check(check, values)

    # --- writes ---------------------------------------------------------------------------------

    def _write(self, tensor: Tensor, new: Any, counted: bool) -> None:
        builder, array = self.builder, tensor.array
        result = new if type(new) is Tensor else None
        if result is not None and result.array.dtype is not array.dtype:
            raise GraphBreak("a write of another dtype")
        if result is not None and result.array is array:  # the op wrote there itself, unheard
            raise GraphBreak("elements of a tensor are set by their positions")
        if not builder.has(tensor):
            raise GraphBreak("a write to a tensor that nobody recorded", code="B01")
        target = builder.value_of(array)
        value = self._written(new) if result is None else builder.of(result)
        if not self._is_kept(target):
            self._check_replaced(tensor)
            replacement = value.array if isinstance(value, Value) else None
            if replacement is None or replacement.shape != array.shape:
                value = builder.call(_FULL_LIKE, [target, value], result=array)
            elif isinstance(replacement, np.generic):  # what is written to is an array
                value = builder.call(AS_ARRAY, [value], result=array)
            self._replace(tensor, value)
            return
        self._check_target(tensor)
        last = None if result is None else builder.take_last(value)
        self.builder.announce_write(target)
        if last is None:
            builder.effect(np.copyto, [target, value], writes=[target])
        else:
            builder.effect(last.op, [*last.inputs, target], writes=[target])
            builder.forget(new.array)
        self._count(tensor, target, counted)

    def write_at(self, tensor: Tensor, at: Any, new: Any) -> None:
        """Record that a tensor was set at a position that varies, or where a mask is true;
        GraphBreak where what is written might not fit, or has a graph.
        """
        builder, array = self.builder, tensor.array
        target = builder.of(tensor)
        masked = type(at) is Tensor
        fits = masked or type(at.now) is int
        part = array.dtype.type() if masked else array[at.now] if fits else None
        value = self._element(new, part) if fits else None
        if value is None or tensor.requires_grad:
            raise GraphBreak("an item is set at a place that varies")
        place = builder.of(at) if masked else at.value
        if masked and not self._is_kept(target):
            self._check_replaced(tensor)
            self._replace(tensor, builder.call(_filled, [target, place, value]))
            return
        if not self._is_kept(target):
            self._check_no_input(target)
            raise GraphBreak("a tensor of the iteration is set at a place that varies")
        self._check_target(tensor)
        if not masked:
            within = "-{1} <= {0} < {1}"
            builder.exit_unless(within, [place, len(array)], "a position is out of bounds")
        self.builder.announce_write(target)
        builder.effect(_SET_AT, [target, place, value], writes=[target])
        self._count(tensor, target, counted=True)

    def _element(self, new: Any, part: Any) -> Any:
        """The value of what is written to a part of an array; None where it might not fit there."""
        if type(new) is Tensor:
            fits = new.array.shape == part.shape and new.array.dtype is part.dtype
            return self.builder.of(new) if fits and not new.requires_grad else None
        if part.dtype not in EVERYDAY:
            return None
        number = new.now if type(new) is Symbol else new
        if type(number) is int:
            as_float = Inline("float({0})")
            return self.builder.compute(as_float, [self._written(new)], float(number), True).value
        return self._written(new) if type(number) is float else None

    def _written(self, new: Any) -> Any:
        """The value of an array or a number that is written, or the number itself."""
        new = self.builder.operand(new)
        if not is_setting(new) and (isinstance(new, np.ndarray) or self.builder.knows(new)):
            return self.builder.value_of(new)
        return new

    def _is_kept(self, target: Value) -> bool:
        """Whether the memory of a value outlives the iteration, so that writes to it count."""
        return self.builder.is_constant(target) or target in self.gradients.loaded

    def _check_replaced(self, tensor: Tensor) -> None:
        """Raise GraphBreak where a tensor that is written to may be seen as it was."""
        builder, array = self.builder, tensor.array
        if any(np.may_share_memory(array, each.array) for each in self.escaped):
            raise GraphBreak("a tensor that was put into a list is written to")
        self._check_no_input(builder.value_of(array))
        if any(map(self._outlives, (array, *builder.aliases(array)))):
            raise GraphBreak("a part of a tensor is written to, at a place that varies")

    def _outlives(self, array: Any) -> bool:
        """Whether memory that the iteration looked up is that of a tensor from outside."""
        value = self.builder.value_of(array)
        is_input = value in self.builder.trace.inputs or value in self.borrowed
        return is_input or self._is_kept(value)

    def _check_no_input(self, target: Value) -> None:
        """Raise GraphBreak for a write to an input of the iteration."""
        if target in self.builder.trace.inputs:
            self.changed_inputs.append(target)
            raise GraphBreak(
                "a tensor that is another one in every iteration is written to",
                "compute a new one: `average = average * 0.9 + loss * 0.1`",
            )

    def _replace(self, tensor: Tensor, new: Value) -> None:
        """A tensor that the iteration made has another value from here on."""
        builder, array = self.builder, tensor.array
        for alias in builder.aliases(array):
            builder.forget(alias)
        builder.stand_for(array, new)
        for leaf in self.gradients.now:
            if leaf.grad is tensor:
                self.gradients.now[leaf] = new

    def _check_target(self, tensor: Tensor) -> None:
        array = tensor.array
        if type(array) is not np.ndarray or (
            array.dtype not in EVERYDAY and array.dtype.kind not in "iub"
        ):
            raise GraphBreak("a write to an array that is none of everyday numbers", code="B04")

    def _count(self, tensor: Tensor, target: Value, counted: bool) -> None:
        """Record a write that the program can see; if it is `counted`, the version goes up."""
        known = self.builder.guard.tensors
        if target in self.gradients.loaded:
            leaf = next(each for each in self.builder.guard.gradients if each.grad is tensor)
            self.gradients.share(leaf)
            self.gradients.count_write(leaf, tensor, target)
            return
        for each in known:
            if counted and each.storage is not None and each.storage is tensor.storage:
                self.builder.count_writes(self.builder.storage(each), 1)
                break
        owner = next((each for each in known if each.array is target.array), tensor)
        self.builder.updated.append(owner)


def _filled(array: Any, mask: Any, value: Any) -> Any:
    """An array with a value where a mask is true."""
    copy = array.copy()
    copy[mask] = value
    return copy


def get_rows(array: Any, start: Any, stop: Any) -> Any:
    return array[start:stop]


_OWN = Kernel("own", own, raises=False)
_FULL_LIKE = Kernel("full_like", np.full_like)
_IN_ROWS = Kernel("in_row_order", in_row_order, raises=False)
_LAID_OUT = Kernel("laid_out", laid_out, raises=False)
_SET_AT = Inline("{0}[{1}] = {2}", "set_item")


def _same_numbers(*arrays: Any) -> Callable[..., None]:
    """A check that arrays hold the numbers that they hold now."""
    numbers = [array.tolist() for array in arrays]

    def check(*arrays: Any) -> None:
        if [array.tolist() for array in arrays] != numbers:
            raise type_error("the number is another one")

    return check


@cache
def _forward_of(op: Op) -> Kernel:
    """The forward function of an op, without the wrapper that serves half precision."""
    forward = getattr(op.forward, "__wrapped__", op.forward)
    return Kernel(op.name, forward, raises=op.raises == BY_VALUES)


def _lies_in_rows(operand: Any) -> bool:
    if isinstance(operand, Value):
        return operand.array is None or bool(operand.array.flags.c_contiguous)
    return type(operand) is not list or all(map(_lies_in_rows, operand))
