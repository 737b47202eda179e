"""The tensor-level instructions of a trace: calls of ops, writes, backward passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor
from gradcli.state import active
from gradcli.trace.ir import ALIAS, Effect, Effects, Inline, Instruction, Operand, Value

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
    """

    __slots__ = ("result", "tensor")

    def __init__(
        self, tensor: Tensor, result: Tensor | None, inputs: Sequence[Operand], after: Value
    ) -> None:
        about = inputs[0] if len(inputs) > 1 else after
        assert isinstance(about, Value)
        super().__init__(WRITE, inputs, [after], {Effect.WRITES: (about,)})
        self.tensor = tensor
        self.result = result


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


def source_of(value: Value) -> Value:
    """The value that aliases and writes lead back to."""
    while value.maker is not None and value.maker.op in (ALIAS, WRITE):
        before = value.maker.inputs[-1]
        if not isinstance(before, Value):
            break  # an array or a number was written
        value = before
    return value
