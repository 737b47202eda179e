"""Calling a module: its `forward`, the hooks before and after it, and those of the backward pass,
which see the gradients of its outputs and its inputs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from gradcli.autograd.custom_function import Function, FunctionNode
from gradcli.autograd.naming import ModuleCall
from gradcli.autograd.node import Node, RemovableHandle
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, attribute_error, runtime_error
from gradcli.library.torch.nn.state_dict import OrderedDict
from gradcli.library.torch.nn.traversal import Members
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


class ModuleHooks:
    """The hooks of one module by kind, each in the order of calling.

    Attributes:
        pre_with_kwargs, with_kwargs: the keys of the forward pre-hooks, and of the forward hooks,
            that take the keywords too.
        always: the keys of those that are called even if the module ends with an error.
    """

    __slots__ = (
        "always",
        "backward",
        "backward_pre",
        "forward",
        "forward_pre",
        "load_state",
        "load_state_pre",
        "of_last_node",
        "pre_with_kwargs",
        "state",
        "state_pre",
        "with_kwargs",
    )

    def __init__(self) -> None:
        self.pre_with_kwargs: set[int] = set()
        self.with_kwargs: set[int] = set()
        self.always: set[int] = set()
        self.forward_pre = OrderedDict()
        self.forward = OrderedDict()
        self.backward_pre = OrderedDict()
        self.backward = OrderedDict()
        self.of_last_node = OrderedDict()
        self.state_pre: dict[int, Any] = {}
        self.state: dict[int, Any] = {}
        self.load_state_pre: dict[int, Any] = {}
        self.load_state: dict[int, Any] = {}


def _check_tensors(module: Any, args: tuple[Any, ...]) -> None:
    """Raise E202 for an argument of a module that is no tensor, after `forward` failed to read an
    attribute that only tensors have.
    """
    for argument in args:
        if type(argument) is not Tensor:
            raise attribute_error(
                f"{type(module).__name__} takes tensors, not {type(argument).__name__}",
                text=f"'{type(argument).__name__}' object has no attribute 'dim'",
            ) from None


class Calling(Members):
    """A module as a function."""

    __slots__ = ("_hooks",)

    _hooks: ModuleHooks | None

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "_hooks", None)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's computation; raises E205 where a module defines none."""
        name = type(self).__name__
        raise GradcliError(
            "E205",
            f"{name} has no forward()",
            text=f'Module [{name}] is missing the required "forward" function',
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        state = active.state
        try:
            if self._hooks is None and state.recorder is None:
                # A function that was assigned to the instance comes before the class's method.
                return (self._values.get("forward") or self.forward)(*args, **kwargs)
            call, listener = ModuleCall(self), state.recorder
            state.calls.append(call)
            if listener is not None:
                listener.entered(call)
            try:
                result = self._observed(args, kwargs)
                if type(result) is Tensor and result.grad_fn is not None:
                    call.result = weakref.ref(result.grad_fn)
                return result
            finally:
                state.calls.pop()
                if listener is not None:
                    listener.left(call)
        except AttributeError:
            _check_tensors(self, args)
            raise
        except GradcliError as error:
            error.modules += ((self, args),)
            raise

    def _observed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a module with hooks, or of one that a recorder hears."""
        forward = self._values.get("forward") or self.forward
        hooks = self._hooks
        if hooks is None:
            return forward(*args, **kwargs)
        for key, prehook in list(hooks.forward_pre.items()):
            args, kwargs = _after_prehook(self, prehook, key in hooks.pre_with_kwargs, args, kwargs)
        backward = None
        if hooks.backward or hooks.backward_pre:
            backward = BackwardHooks(
                self, list(hooks.backward_pre.values()), list(hooks.backward.values())
            )
            args = backward.watch_inputs(args)
        called: set[int] = set()
        result = None
        try:
            result = forward(*args, **kwargs)
            for key, hook in list(hooks.forward.items()):
                called.add(key)
                arguments = (args, kwargs) if key in hooks.with_kwargs else (args,)
                returned = hook(self, *arguments, result)
                result = result if returned is None else returned
        except Exception:
            for key in hooks.always - called:
                if key in hooks.forward:
                    arguments = (args, kwargs) if key in hooks.with_kwargs else (args,)
                    hooks.forward[key](self, *arguments, result)
            raise
        if backward is not None:
            result = backward.watch_outputs(result)
        if hooks.of_last_node:
            _watch_last_node(self, list(hooks.of_last_node.values()), result)
        return result

    # --- registering hooks --------------------------------------------------------------------

    @property
    def _forward_hooks(self) -> OrderedDict:
        """The forward hooks by key; a program may take some out."""
        return self._hook_tables().forward

    @property
    def _forward_pre_hooks(self) -> OrderedDict:
        """The forward pre-hooks by key."""
        return self._hook_tables().forward_pre

    @property
    def _backward_hooks(self) -> OrderedDict:
        """The backward hooks by key."""
        tables = self._hook_tables()
        return tables.backward or tables.of_last_node

    def _hook_tables(self) -> ModuleHooks:
        if self._hooks is None:
            object.__setattr__(self, "_hooks", ModuleHooks())
        tables: Any = self._hooks
        return tables

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before `forward`; what it returns replaces the arguments."""
        tables = self._hook_tables()
        handle = RemovableHandle(tables.forward_pre, hook, prepend)
        if with_kwargs:
            tables.pre_with_kwargs.add(handle.id)
        return handle

    def register_forward_hook(
        self,
        hook: Hook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after `forward`; what it returns replaces the output.
        With `always_call` it is called, with None, where `forward` ends with an error too.
        """
        tables = self._hook_tables()
        handle = RemovableHandle(tables.forward, hook, prepend)
        if with_kwargs:
            tables.with_kwargs.add(handle.id)
        if always_call:
            tables.always.add(handle.id)
        return handle

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the gradients of the outputs are known; what it
        returns replaces them.
        """
        return RemovableHandle(self._hook_tables().backward_pre, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are known;
        what it returns replaces them. Raises E204 beside a hook of `register_backward_hook`.
        """
        tables = self._hook_tables()
        _check_no_other_kind(tables.of_last_node)
        return RemovableHandle(tables.backward, hook, prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` with the gradients of the node that made
        the output. Raises E204 beside a hook of `register_full_backward_hook`.
        """
        tables = self._hook_tables()
        _check_no_other_kind(tables.backward)
        return RemovableHandle(tables.of_last_node, hook)

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` reads the module."""
        return RemovableHandle(self._hook_tables().state_pre, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata)` when the module's part is there."""
        return RemovableHandle(self._hook_tables().state, hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)`
        before `load_state_dict` reads a copy of the state, which the hook may change.
        """
        return RemovableHandle(self._hook_tables().load_state_pre, hook)

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` when the module and all below it are loaded, and
        before missing and unexpected keys, which it may change, are an error.
        """
        return RemovableHandle(self._hook_tables().load_state, hook)


def _check_no_other_kind(hooks: dict[int, Any]) -> None:
    if hooks:
        raise runtime_error(
            "a module has backward hooks of one kind, and it has one of the other kind already",
            help="register them all with register_full_backward_hook()",
        )


# --- calling hooks --------------------------------------------------------------------------------


def _after_prehook(
    module: Any, hook: Hook, with_kwargs: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of `forward` after a pre-hook."""
    returned = hook(module, args, kwargs) if with_kwargs else hook(module, args)
    if returned is None:
        return args, kwargs
    if not with_kwargs:
        return (returned if isinstance(returned, tuple) else (returned,)), kwargs
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise runtime_error(
            "a hook with keywords has to return None, or arguments and keywords in a tuple"
        )
    return returned


def _watch_last_node(module: Any, hooks: list[Hook], result: Any) -> None:
    """Let the hooks see the gradients of the node that made the first tensor of a result."""
    while not isinstance(result, Tensor):
        result = next(iter(result.values())) if isinstance(result, dict) else result[0]
    if result.grad_fn is None:
        return
    for hook in hooks:
        result.grad_fn.register_hook(lambda *gradients, hook=hook: hook(module, *gradients))
