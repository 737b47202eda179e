"""The operations that a piece of a program runs, as straight-line Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gradcli.autograd.recording.listeners import Listener
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.loops.capture import Watch
from gradcli.language.loops.lower_backward import is_setting
from gradcli.language.tree.base import Expression
from gradcli.ops.codegen.runtime import number_and_array
from gradcli.ops.codegen.signature import layout_of
from gradcli.ops.definition.op import Op
from gradcli.state import active
from gradcli.trace.builder import TraceBuilder
from gradcli.trace.graph_break import GraphBreak
from gradcli.trace.guards import Guard, Kind, same
from gradcli.trace.ir import Kernel, Value

_Value = TypeVar("_Value")


class _Heard(Listener):
    """Keeps what writes the calls of ops, and the looks at values between them."""

    __slots__ = ("lines",)

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Callable[[TraceBuilder], None]] = []

    def operation(self, op: Op, given: dict[str, Any], out: Any) -> None:
        span, stack = active.state.place, tuple(active.state.stack)

        def write(text: TraceBuilder) -> None:
            text.span, text.stack = span, stack
            _write_call(text, op, given, out)

        self.lines.append(write)

    def backward(self, roots: Any, accumulate: bool) -> None:
        for _, _, seed in roots:
            if type(seed) is Tensor:
                self.wrapped(seed)

    def wrapped(self, tensor: Tensor) -> None:
        self.lines.append(lambda text: _know(text, tensor))

    def looked(self, check: Any, operands: tuple[Any, ...]) -> None:
        self.lines.append(lambda text: _write_look(text, check, operands))


def write_operations(text: TraceBuilder, run: Callable[[], _Value]) -> _Value:
    """Run something, and write the calls of ops that it makes.

    Raises:
        GraphBreak: when it has run, where an operand came from elsewhere, or a call would not give
            the same once more.
    """
    heard = _Heard()
    heard.install()
    try:
        value = run()
    finally:
        heard.remove()
    for write in heard.lines:
        write(text)
    return value


def operations_of(text: TraceBuilder, watch: Watch, node: Expression) -> Any:
    """The value of an expression, whose operations are written; it is computed ahead of the
    statement that does, which counts.
    """
    watch.expression(node)
    state, steps = watch.compiler.state, watch.compiler.steps
    before = state.sequence_nr, steps.left
    try:
        return write_operations(text, lambda: watch.read(node))
    finally:
        state.sequence_nr, steps.left = before


def _write_call(text: TraceBuilder, op: Op, given: dict[str, Any], out: Any) -> None:
    operands = _operands(text, op, given)
    if op.view and _constant(text, operands):
        text.constant(out.array)  # the same part of the same memory in every round
        return
    # The wrapper serves half precision.
    forward = Kernel(op.name, getattr(op.forward, "__wrapped__", op.forward))
    several = type(out) is tuple
    known = tuple([each.array for each in out]) if several else out.array
    if all(map(_lies_in_rows, operands)):
        text.call(forward, operands, op.deferrable, known)
        return
    # What comes out may have been laid out otherwise since.
    result = text.call(forward, operands, op.deferrable)
    arrays = zip(result, known, strict=True) if several else [(result, known)]
    for variable, array in arrays:
        if variable is None or not same(variable.array, array):
            raise GraphBreak("B02", "a call gave other bits when it was made again")
        text.stand_for(array, variable)


def _know(text: TraceBuilder, tensor: Tensor) -> None:
    """Let the text know a tensor that is the same in every round, if no operation made it: a number
    that a node saved, or the ones that a backward pass begins with.
    """
    if not text.knows(tensor.array):
        text.constant(tensor.array)


def _write_look(text: TraceBuilder, check: Any, operands: tuple[Any, ...]) -> None:
    """Write a check of values that may be others in the next round; raises GraphBreak where a
    number was taken out of some, which would be another.
    """
    given = [each if is_setting(each) else text.value_of(each) for each in operands]
    if _constant(text, given):
        read = check or _same_number(operands[0])
        text.trace.guards.append(Guard(Kind.VALUE, read, None, inputs=operands))
        return  # a guard looks when something else may have changed it
    if check is None:
        raise GraphBreak(
            "B06", "a number was taken out of a tensor, and may be another in the next iteration"
        )
    text.check(check, given)


def _constant(text: TraceBuilder, operands: list[Any]) -> bool:
    """Whether all values among some operands are the same objects in every round."""
    return all(text.is_constant(each) for each in operands if isinstance(each, Value))


def _same_number(array: Any) -> Callable[[Any], None]:
    """A check that an array holds the number that it holds now."""
    number = array.item()

    def check(array: Any) -> None:
        if array.item() != number:
            raise GradcliError("E202", "the number is another one")

    return check


def _lies_in_rows(operand: Any) -> bool:
    if isinstance(operand, Value):
        return bool(operand.array.flags.c_contiguous)
    return type(operand) is not list or all(map(_lies_in_rows, operand))


def _operands(text: TraceBuilder, op: Op, given: dict[str, Any]) -> list[Any]:
    """The operands of an entry's forward function, as its `apply` prepares them; raises GraphBreak
    where they would be promoted.
    """
    found = dict(given)
    for name in op.parameters:
        operand = name in op.tensors or name in op.lists
        if not operand and (name in op.keeps or not is_setting(given[name])):
            raise GraphBreak("B06", "an op is given more than settings and arrays")
    for name in op.tensors:
        if type(given[name]) is Tensor:
            found[name] = text.value_of(given[name].array)
    for name in op.lists:
        found[name] = [text.value_of(tensor.array) for tensor in given[name]]
    promoted = layout_of(op).promoted
    dtypes = {found[t].array.dtype for t in promoted if isinstance(found[t], Value)}
    if len(dtypes) > 1 or (op.floating and any(dtype.kind != "f" for dtype in dtypes)):
        raise GraphBreak("B06", "operands are promoted to another dtype")
    if len(promoted) == 2 and dtypes:
        for name, other in (promoted, promoted[::-1]):
            if not isinstance(found[name], Value):
                mixed, _, found[name] = number_and_array(found[other].array, found[name])
                if mixed:
                    raise GraphBreak("B06", "a number is promoted to another dtype")
    elif any(not isinstance(found[name], Value) for name in promoted):
        raise GraphBreak("B06", "a number stands where an array is expected")
    return [found[name] for name in op.parameters]
