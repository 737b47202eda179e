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
from gradcli.ops.codegen.promotion import number_and_array
from gradcli.ops.codegen.signature import layout_of
from gradcli.ops.definition.op import Op
from gradcli.trace.builder import StraightLine, Untraceable, same
from gradcli.trace.ufuncs import Variable

_Value = TypeVar("_Value")


class _Heard(Listener):
    """Keeps what writes the calls of ops, and the looks at values between them."""

    __slots__ = ("lines",)

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Callable[[StraightLine], None]] = []

    def operation(self, op: Op, given: dict[str, Any], out: Any) -> None:
        self.lines.append(lambda text: _write_call(text, op, given, out))

    def backward(self, roots: Any, accumulate: bool) -> None:
        for _, _, seed in roots:
            if type(seed) is Tensor:
                self.wrapped(seed)

    def wrapped(self, tensor: Tensor) -> None:
        self.lines.append(lambda text: _know(text, tensor))

    def looked(self, check: Any, operands: tuple[Any, ...]) -> None:
        self.lines.append(lambda text: _write_look(text, check, operands))


def write_operations(text: StraightLine, run: Callable[[], _Value]) -> _Value:
    """Run something, and write the calls of ops that it makes.

    Raises:
        Untraceable: when it has run, where an operand came from elsewhere, or a call would not give
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


def operations_of(text: StraightLine, watch: Watch, node: Expression) -> Any:
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


def _write_call(text: StraightLine, op: Op, given: dict[str, Any], out: Any) -> None:
    operands = _operands(text, op, given)
    if op.view and all(each.constant for each in operands if isinstance(each, Variable)):
        text.constant(out.array)  # the same part of the same memory in every round
        return
    forward = getattr(op.forward, "__wrapped__", op.forward)  # which serves half precision
    several = type(out) is tuple
    known = tuple([each.array for each in out]) if several else out.array
    if all(map(_lies_in_rows, operands)):
        text.call(forward, operands, op.deferrable, known)
        return
    # What comes out may have been laid out otherwise since.
    result = text.call(forward, operands, op.deferrable)
    arrays = zip(result, known, strict=True) if several else [(result, known)]
    for variable, array in arrays:
        if variable is None or not same(variable.value, array):
            raise Untraceable
        text.stand_for(array, variable)


def _know(text: StraightLine, tensor: Tensor) -> None:
    """Let the text know a tensor that is the same in every round, if no operation made it: a number
    that a node saved, or the ones that a backward pass begins with.
    """
    if not text.knows(tensor.array):
        text.constant(tensor.array)


def _write_look(text: StraightLine, check: Any, operands: tuple[Any, ...]) -> None:
    """Write a check of values that may be others in the next round; raises Untraceable where a
    number was taken out of some, which would be another.
    """
    given = [each if is_setting(each) else text.variable_of(each) for each in operands]
    if all(each.constant for each in given if isinstance(each, Variable)):
        text.looks.append((check or _same_number(operands[0]), operands))
        return  # a guard looks when something else may have changed it
    if check is None:
        raise Untraceable
    read = [each for each in given if isinstance(each, Variable) and not each.constant]
    text.check(text.call_of(check, given), read)


def _same_number(array: Any) -> Callable[[Any], None]:
    """A check that an array holds the number that it holds now."""
    number = array.item()

    def check(array: Any) -> None:
        if array.item() != number:
            raise GradcliError("E202", "the number is another one")

    return check


def _lies_in_rows(operand: Any) -> bool:
    if isinstance(operand, Variable):
        return bool(operand.value.flags.c_contiguous)
    return type(operand) is not list or all(map(_lies_in_rows, operand))


def _operands(text: StraightLine, op: Op, given: dict[str, Any]) -> list[Any]:
    """The operands of an entry's forward function, as its `apply` prepares them; raises Untraceable
    where they would be promoted.
    """
    found = dict(given)
    for name in op.parameters:
        operand = name in op.tensors or name in op.lists
        if not operand and (name in op.keeps or not is_setting(given[name])):
            raise Untraceable
    for name in op.tensors:
        if type(given[name]) is Tensor:
            found[name] = text.variable_of(given[name].array)
    for name in op.lists:
        found[name] = [text.variable_of(tensor.array) for tensor in given[name]]
    promoted = layout_of(op).promoted
    dtypes = {found[t].value.dtype for t in promoted if isinstance(found[t], Variable)}
    if len(dtypes) > 1 or (op.floating and any(dtype.kind != "f" for dtype in dtypes)):
        raise Untraceable
    if len(promoted) == 2 and dtypes:
        for name, other in (promoted, promoted[::-1]):
            if not isinstance(found[name], Variable):
                mixed, _, found[name] = number_and_array(found[other].value, found[name])
                if mixed:
                    raise Untraceable
    elif any(not isinstance(found[name], Variable) for name in promoted):
        raise Untraceable
    return [found[name] for name in op.parameters]
