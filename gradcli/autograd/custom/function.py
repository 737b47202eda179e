"""Custom functions: operations whose forward and backward a program writes.

`Function.apply` runs the program's `forward` outside the graph and makes one node for it, which is
also the context `ctx` that forward and backward share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gradcli.autograd.custom.context import FunctionNode
from gradcli.autograd.modes import name_of
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor, alias, join_graph, refresh, with_history
from gradcli.errors import GradcliError, runtime_error
from gradcli.state import active

DETAILS = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class FunctionCall:
    """A call of a custom function, reported to recorders in place of an op.

    Attributes:
        inputs: the parameters that are tensors; parameters are named by their numbers.
        node: the node of the call, which is in no graph where grad mode was off.
    """

    __slots__ = ("inputs", "name", "node", "node_name")

    lists: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str, node: FunctionNode) -> None:
        self.name = name
        self.node = node
        self.node_name = node.node_name
        self.inputs = tuple([str(number) for number, yes in enumerate(node.is_tensor) if yes])


class Function:
    """`torch.autograd.Function`: the base of a program's own differentiable operations.

    A class that derives from it defines `forward(ctx, …)`, or `forward(…)` with
    `setup_context(ctx, inputs, output)`, and `backward(ctx, *grads)`.
    """

    __slots__ = ()

    language_name: ClassVar[str] = "torch.autograd.function.Function"
    language_base: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"backward", "forward", "jvp", "setup_context", "vjp", "vmap"}
    )
    language_class_attributes: ClassVar[frozenset[str]] = frozenset({"apply"})
    node_class: ClassVar[type[FunctionNode] | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        raise GradcliError(
            "E202",
            f"{name} has no instances",
            text="Legacy autograd function with non-static forward method is deprecated. Please use"
            " new-style autograd function with static forward method. (Example:"
            " https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)",
            raises="RuntimeError",
            help=f"run it: `{name}.apply(…)`",
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """What the function computes; raises E205 where the program does not say."""
        raise GradcliError(
            "E205",
            "a custom function has to define forward()",
            text="You must implement the forward function for custom autograd.Function.",
        )

    @staticmethod
    def vjp(*grads: Any) -> Any:
        """Another name of `backward`; raises E205 where the program defines neither."""
        raise GradcliError(
            "E205",
            "a custom function has to define backward() to be differentiated",
            text="You must implement either the backward or vjp method for your custom"
            " autograd.Function to use it with backward mode AD.",
        )

    @staticmethod
    def jvp(*tangents: Any) -> Any:
        """The tangents of the results; by default forward mode goes by `backward`."""
        raise GradcliError("E205", "a custom function has to define jvp() for forward mode")

    @classmethod
    def backward(cls, *grads: Any) -> Any:
        """The gradients of the arguments."""
        return cls.vjp(*grads)

    @staticmethod
    def setup_context(ctx: FunctionNode, inputs: tuple[Any, ...], output: Any) -> None:
        """Where it is overridden, forward gets no `ctx`, and this saves what backward needs."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """The function of a batch of examples, and where their dimension is in the results; raises
        E204 where the program does not say.
        """
        raise runtime_error("a custom function has to define vmap() to be batched")

    @classmethod
    def _check_vmap(cls) -> None:
        """Raise E204 unless the function defines how it runs inside `vmap`."""
        generated = False
        for each in cls.__mro__:
            names = getattr(each.__dict__.get("language_class"), "names", {})
            if "generate_vmap_rule" in names:
                generated = bool(names["generate_vmap_rule"])
                break
        if generated is (cls.vmap is not Function.vmap):
            problem = (
                "it has both generate_vmap_rule=True and an overridden vmap staticmethod. Please"
                " set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid"
                " ambiguity."
                if generated
                else "it does not have vmap support. Please override and implement the vmap"
                " staticmethod or set generate_vmap_rule=True."
            )
            raise runtime_error(
                f"vmap() cannot run {cls.__name__}, which has"
                f" {'a vmap() besides' if generated else 'no vmap() and no'} generate_vmap_rule",
                text=f"You tried to vmap over {cls.__name__}, but {problem} {DETAILS}",
                help="write `generate_vmap_rule = True` in the class, or define vmap()",
            )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward on the arguments and record one node for it.

        Raises E201 for a keyword that does not follow the other arguments, E204 for a forward with
        `ctx` inside a transform of `torch.func`, E405 for a tensor that was changed in place and
        may not be, E202 for a saved value that is no tensor.
        """
        state = active.state
        in_two_parts = cls.setup_context is not Function.setup_context
        forward = cls.forward
        # setup_context sees every argument, those with a default too.
        if in_two_parts:
            args, kwargs = _placed(forward, "positional_arguments", args, kwargs)
        elif kwargs:
            (_, *rest), kwargs = _placed(forward, "placed_arguments", (None, *args), kwargs)
            args = tuple(rest)
        if state.transforms and not in_two_parts:
            raise runtime_error(
                f"a transform of torch.func cannot run {cls.__name__}, whose forward takes ctx",
                text="In order to use an autograd.Function with functorch transforms (vmap, grad,"
                " jvp, jacrev, ...), it must override the setup_context staticmethod."
                f" {DETAILS}",
                help="define forward(…) without ctx, and setup_context(ctx, inputs, output)",
            )
        batch = state.batch
        if batch is not None and batch.level_of(args):
            cls._check_vmap()
            if cls.vmap is not Function.vmap:
                forward = batch.forward_of(cls)
            elif batch.records_below(args):
                return batch.looped(cls.apply, args, kwargs)
        for value in args:
            if isinstance(value, Tensor) and value.storage is not None and state.grad_enabled:
                refresh(value)
        node = node_class_of(cls)(cls, args)
        before = state.grad_enabled
        recorded = before and True in node.needs_input_grad
        state.grad_enabled = False
        try:
            if in_two_parts:
                returned = forward(*args, **kwargs)
                cls.setup_context(node, args, returned)
            else:
                returned = cls.forward(node, *args, **kwargs)
        finally:
            state.grad_enabled = before
            state.forget_methods(cls.__name__)
        single = not isinstance(returned, tuple)
        outputs = node.finish(args, (returned,) if single else returned, recorded)
        result = outputs[0] if single else tuple(outputs)
        # Of examples side by side a recorder hears what forward() computes, not their sizes here.
        if state.recorder is not None and (batch is None or not batch.level_of(args)):
            call = FunctionCall(cls.__name__, node)
            operands = {str(number): value for number, value in enumerate(args)}
            state.recorder.operation(call, operands, result)
        return result


def _placed(
    forward: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a program's function or class method in their places, by its method `name`;
    as they are for other functions.
    """
    function = getattr(forward, "function", forward)
    placed = getattr(function, name, None)
    if placed is None:
        return args, kwargs
    receiver = () if function is forward else (forward.receiver,)
    return placed((*receiver, *args), kwargs)[len(receiver) :], {}


def node_class_of(function: type[Function]) -> type[FunctionNode]:
    """The class of a function's nodes, `NameBackward`."""
    node_class = function.__dict__.get("node_class")
    if node_class is None:
        name = f"{function.__name__}Backward"
        full_name = f"torch.autograd.function.{name}"
        node_class = type(
            name,
            (FunctionNode,),
            {"__slots__": (), "node_name": name, "language_name": full_name},
        )
        function.node_class = node_class
    return node_class


class Error(Node):
    """The node of gradients that cannot be differentiated, because of `once_differentiable`."""

    __slots__ = ()

    node_name = "Error"
    multiple = True

    def run(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        raise GradcliError(
            "E409",
            "the gradient of a function that can be differentiated only once was differentiated",
        )

    run_recorded = run


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` whose results cannot be differentiated again: trying is E409."""

    def once(ctx: Any, *grads: Any) -> Any:
        state = active.state
        before = state.grad_enabled
        state.grad_enabled = False
        try:
            returned = function(ctx, *grads)
        finally:
            state.grad_enabled = before
        if not before or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return returned
        several = returned if isinstance(returned, tuple) else (returned,)
        shown = refused(several)
        return shown if isinstance(returned, tuple) else shown[0]

    once.__name__ = name_of(function)
    return once


def refused(gradients: tuple[Any, ...]) -> tuple[Any, ...]:
    """Gradients whose own gradient is E409, outputs of one node; None stays None."""
    leaves = [
        alias(value) if isinstance(value, Tensor) else Tensor(np.float32()) for value in gradients
    ]
    for leaf, gradient in zip(leaves, gradients, strict=True):
        leaf.requires_grad = gradient is not None
    node = Error()
    join_graph(node, leaves, leaves)
    shown = []
    for number, gradient in enumerate(gradients):
        if isinstance(gradient, Tensor):
            gradient = with_history(alias(gradient).array, node, number)
        shown.append(gradient)
    return tuple(shown)
