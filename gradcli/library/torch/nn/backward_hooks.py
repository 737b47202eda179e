"""Backward hooks of a module: functions that see the gradients of its outputs and its inputs.

The module's inputs pass through one node and its outputs through another, each of which passes
every gradient on unchanged. The hooks are registered at these two nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.autograd.custom.context import FunctionNode
from gradcli.autograd.custom.function import Function
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.state import active

Hook = Callable[..., Any]
Gradients = tuple[Tensor | None, ...]


class BackwardHookFunction(Function):
    """The identity, for arguments and for gradients."""

    __slots__ = ()

    @staticmethod
    def forward(ctx: FunctionNode, *args: Tensor) -> tuple[Tensor, ...]:
        """The arguments; those that need no gradient stay outside the graph."""
        ctx.mark_non_differentiable(*[value for value in args if not value.requires_grad])
        return args

    @staticmethod
    def backward(ctx: FunctionNode, *grads: Tensor) -> tuple[Tensor, ...]:
        """The gradients that arrived."""
        return grads


class Side:
    """The values that go into a module, or that come out of it.

    Attributes:
        values: the values, its tensors behind a node of `BackwardHookFunction` where one of them
            requires grad.
        numbers: the positions of the tensors among the values.
        node: that node, None where no value requires grad.
    """

    __slots__ = ("node", "numbers", "values")

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values
        self.numbers = [number for number, value in enumerate(values) if isinstance(value, Tensor)]
        self.node: Node | None = None
        tensors = [values[number] for number in self.numbers]
        if not active.state.grad_enabled or not any(tensor.requires_grad for tensor in tensors):
            return
        behind = list(values)
        for number, tensor in zip(self.numbers, BackwardHookFunction.apply(*tensors), strict=True):
            behind[number] = tensor
            self.node = self.node or tensor.grad_fn
        self.values = tuple(behind)

    def spread(self, gradients: Any) -> Gradients:
        """A gradient for each value: those of the tensors, None for the others."""
        by_position: list[Tensor | None] = [None] * len(self.values)
        for number, gradient in zip(self.numbers, gradients, strict=True):
            by_position[number] = gradient
        return tuple(by_position)

    def gathered(self, gradients: Gradients) -> Gradients:
        """The gradients at the positions of the tensors."""
        return tuple([gradients[number] for number in self.numbers])


class BackwardHooks:
    """The backward hooks of one call of a module.

    Attributes:
        prehooks: called with the module and the gradients of its outputs.
        hooks: called with the module, the gradients of its inputs and those of its outputs.
        arriving: the gradients of the outputs, from when they are known until the inputs' are.
    """

    __slots__ = ("arriving", "hooks", "inputs", "module", "outputs", "prehooks")

    def __init__(self, module: Any, prehooks: list[Hook], hooks: list[Hook]) -> None:
        self.module = module
        self.prehooks = prehooks
        self.hooks = hooks
        self.arriving: Gradients | None = None

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments that the module has to be called with."""
        self.inputs = Side(args)
        if self.inputs.node is not None:
            self.inputs.node.register_hook(self._at_inputs)
        return self.inputs.values

    def watch_outputs(self, result: Any) -> Any:
        """What the module has to return."""
        several = isinstance(result, tuple)
        self.outputs = Side(result if several else (result,))
        if self.outputs.node is not None:
            self.outputs.node.register_hook(self._at_outputs)
        return self.outputs.values if several else self.outputs.values[0]

    def _at_outputs(self, _: Any, gradients: Gradients) -> Gradients | None:
        arriving = self.outputs.spread(gradients)
        for hook in self.prehooks:
            arriving = _after_hook(hook(self.module, arriving), arriving)
        self.arriving = arriving
        if self.inputs.node is None:
            none: Gradients = (None,) * len(self.inputs.values)
            for hook in self.hooks:
                if any(value is not None for value in hook(self.module, none, arriving) or ()):
                    raise GradcliError(
                        "E410",
                        "a backward hook returned a gradient for a module of which no input"
                        " requires grad",
                    )
            self.arriving = None
        return self.outputs.gathered(arriving)

    def _at_inputs(self, gradients: Gradients, _: Any) -> Gradients | None:
        if self.arriving is None:  # the inputs are differentiated past the module's outputs
            return None
        left = self.inputs.spread(gradients)
        for hook in self.hooks:
            left = _after_hook(hook(self.module, left, self.arriving), left)
        self.arriving = None
        return self.inputs.gathered(left)


def _after_hook(returned: Any, gradients: Gradients) -> Gradients:
    """The gradients after a hook; raises E410 for another number of them."""
    if returned is None:
        return gradients
    if not isinstance(returned, (tuple, list, Tensor)):
        raise GradcliError(
            "E410",
            f"a backward hook has to return gradients in a tuple, not {type(returned).__name__}",
            raises="TypeError",
        )
    replaced = tuple(returned)  # a lone tensor counts as the tuple of its rows
    if len(replaced) != len(gradients):
        raise GradcliError(
            "E410", f"a backward hook has to return {len(gradients)} gradients, or None"
        )
    return replaced
