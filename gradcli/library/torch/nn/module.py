"""`nn.Module`: a function with parameters, composed of other modules; and what a call of one does:
its `forward`, the hooks before and after it, and those of the backward pass.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

from gradcli.arrays import dtypes
from gradcli.arrays.backend import located
from gradcli.arrays.dtypes import DType
from gradcli.arrays.layout.meta import META, no_data
from gradcli.arrays.layout.sizes import Device
from gradcli.autograd.custom_function import Function, FunctionNode
from gradcli.autograd.graph import ModuleCall
from gradcli.autograd.node import Node, RemovableHandle
from gradcli.autograd.tensor import Tensor, meta_of
from gradcli.errors import GradcliError, attribute_error, runtime_error, type_error, value_error
from gradcli.language.objects.classes.user_classes import init_next, own_method
from gradcli.library.torch.nn.attributes import Attributes, is_initialised, kind_of, names
from gradcli.library.torch.nn.state_dict import (
    OrderedDict,
    get_extra_state,
    load,
    set_extra_state,
    state_of,
)
from gradcli.library.torch.nn.traversal import Members
from gradcli.ops.binding.catalogue import function, modules
from gradcli.ops.binding.functions import methods, torch
from gradcli.ops.codegen.runtime import type_name
from gradcli.ops.creation.copies import (
    cast_to,
    detach,
    detach_in_place,
    gpu_of,
    to_device,
    wanted,
    zero_,
)
from gradcli.ops.creation.tensor_methods import set_data, set_requires_grad
from gradcli.state import active, charge_tensors

# --- calls ----------------------------------------------------------------------------------------


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
        replaces_state: the keys of those in `state` that may return another state.
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
        "replaces_state",
        "state",
        "state_pre",
        "with_kwargs",
    )

    def __init__(self) -> None:
        self.pre_with_kwargs: set[int] = set()
        self.with_kwargs: set[int] = set()
        self.always: set[int] = set()
        self.replaces_state: set[int] = set()
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


def _no_argument(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> GradcliError:
    """The error of arguments for `Module.__init__`."""
    text = f"{name}.__init__() got an unexpected keyword argument {next(iter(kwargs), None)!r}"
    if not kwargs:
        text = f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given"
    return GradcliError("E201", f"{name}.__init__() takes no arguments", text=text)


class Calling(Members):
    """A module as a function."""

    fields: ClassVar[tuple[str, ...]] = ("_hooks",)

    _hooks: ModuleHooks | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        goes_on = own_method(self, "call_super_init")
        if (args or kwargs) and not goes_on:
            raise _no_argument(type(self).__name__, args, kwargs)
        super().__init__()
        object.__setattr__(self, "_hooks", None)
        if goes_on:
            init_next(self, Attributes, *args, **kwargs)

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

    def _register_state_dict_hook(self, hook: Hook) -> RemovableHandle:
        """The same of a hook that may return another state, which takes the place of this one."""
        tables = self._hook_tables()
        handle = RemovableHandle(tables.state, hook)
        tables.replaces_state.add(handle.id)
        return handle

    def _register_load_state_dict_pre_hook(
        self, hook: Hook, with_module: bool = False
    ) -> RemovableHandle:
        """As `register_load_state_dict_pre_hook`, but that the hook gets no module, unless it is to
        be given `with_module`.
        """
        if with_module:
            return self.register_load_state_dict_pre_hook(hook)

        def call_hook(module: Any, *given: Any) -> Any:
            return hook(*given)

        return self.register_load_state_dict_pre_hook(call_hook)

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


# --- modules --------------------------------------------------------------------------------------


Self = TypeVar("Self", bound="Module")

_FROM_META = (
    " Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from"
    " meta to a different device."
)


class Module(Calling):
    """The base of every layer and of a program's own networks.

    A layer overrides `forward` and, for printing, `extra_repr`. A program's class does the same in
    the language.

    Example: nn.Module()
    """

    language_name: ClassVar[str] = "torch.nn.modules.module.Module"
    language_base: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = names(
        "__getstate__ __setstate__ "
        "_apply _backward_hooks _buffers _check_input_dim _conv_forward _ff_block "
        "_fill_padding_idx_with_zero _forward_hooks _forward_pre_hooks _get_name _mha_block "
        "_modules _parameters _register_load_state_dict_pre_hook _register_state_dict_hook "
        "_reset_parameters _sa_block "
        "add_module apply bfloat16 buffers children cpu cuda double eval extra_repr float forward "
        "get_buffer get_extra_state get_parameter get_submodule half load_state_dict modules "
        "named_buffers named_children named_modules named_parameters parameters "
        "register_backward_hook register_buffer register_forward_hook register_forward_pre_hook "
        "register_full_backward_hook register_full_backward_pre_hook "
        "register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module "
        "register_parameter register_state_dict_post_hook register_state_dict_pre_hook "
        "requires_grad_ set_extra_state set_submodule reset_parameters reset_running_stats "
        "state_dict to to_empty train training type zero_grad"
    )

    # --- what the language asks for -----------------------------------------------------------

    def language_getattr(self, name: str) -> Any:
        """An attribute that was assigned; raises AttributeError where there is none. A submodule of
        the name of a method stands in `_modules` alone: Python finds the class's first.
        """
        found = self.lookup(name)
        if (
            name in self.language_attributes
            and isinstance(found, Module)
            and name not in self._values
            and callable(getattr(type(self), name, None))
        ):
            raise AttributeError(name)
        return found

    def language_setattr(self, name: str, value: Any) -> None:
        """Assign an attribute; see `register`. What another base of a program's class goes by is
        its own.
        """
        if name in self.all_fields - Module.all_fields & self.language_attributes:
            setattr(self, name, value)
        else:
            self.register(name, value)

    # --- state --------------------------------------------------------------------------------

    def state_dict(
        self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Parameters and persistent buffers by dotted name, on the same memory."""
        return state_of(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Any, strict: bool = True, assign: bool = False
    ) -> tuple[Any, ...]:
        """Copy the tensors of a `state_dict` into the module's own; returns what was missing and
        what was not expected.

        Raises E204 for tensors of other shapes and, if `strict`, for keys that are missing or
        unexpected.
        """
        return load(self, state_dict, strict, assign)

    get_extra_state = get_extra_state
    set_extra_state = set_extra_state

    def __getstate__(self) -> dict[str, Any]:
        """What a copy is made of: the module's tables, and what else was assigned."""
        tables = _TABLES.items() if is_initialised(self) else ()
        return {**{name: getattr(self, slot) for name, (slot, _, _) in tables}, **self._values}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what `__getstate__` gave; raises E202 for tables that a module cannot have."""
        if not is_initialised(self):
            Members.__init__(self)
        for name, value in state.items():
            if type(name) is not str:
                raise type_error(f"an attribute's name is no {type_name(name)}")
            if name not in _TABLES:
                self._values[name] = value
                continue
            slot, kind, of = _TABLES[name]
            held = value.values() if type(value) is dict else value if type(value) is set else ()
            if type(value) is not kind or not all(isinstance(each, of) for each in held):
                raise type_error(f"`{name}` of a module's state cannot be {type_name(value)}")
            object.__setattr__(self, slot, value)

    def train(self: Self, mode: bool = True) -> Self:
        """Switch the module and all below it to training, or to evaluation with `mode` False."""
        if not isinstance(mode, bool):
            raise value_error(
                f"train() takes True or False, not {kind_of(mode)}",
                text="training mode is expected to be boolean",
            )
        charge_tensors(4)  # one module may stand in many places
        object.__setattr__(self, "training", mode)
        for module in self.children():
            module.own_train()(mode)
        return self

    def eval(self: Self) -> Self:
        """Switch the module and all below it to evaluation."""
        switched: Self = self.own_train()(False)
        return switched

    def own_train(self) -> Callable[..., Any]:
        """What switches this module: a function assigned to it, or its class's method."""
        return self._values.get("train") or self.train

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of the parameters, or set them to zero."""
        clear_grads(self.parameters(), set_to_none)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Set whether the parameters require grad."""
        for parameter in self.parameters():
            set_requires_grad(parameter, requires_grad)
        return self

    def apply(self: Self, fn: Callable[[Any], Any]) -> Self:
        """Call a function with every module below, and with this one last."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # --- dtypes and devices ---------------------------------------------------------------------

    def _convert(
        self: Self,
        dtype: DType | None,
        kinds: frozenset[str] | None = frozenset({"float"}),
        device: Device | None = None,
    ) -> Self:
        """Cast what has a dtype of these kinds, of any kind for None, and move all."""

        def converted(tensor: Tensor) -> Tensor:
            if hasattr(tensor.array, "materialize"):  # it has no shape yet
                tensor.array = tensor.array.astype(dtype.numpy_dtype if dtype else None)
                return tensor
            if device is not None and tensor.device != device:
                if tensor.device is META:
                    raise no_data(_FROM_META)
                tensor = to_device(detach(tensor), device, tensor.device)
            if dtype and (kinds is None or tensor.dtype.category in kinds):
                tensor = cast_to(tensor, dtype)
            return tensor

        return self._apply(converted)

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Put what a function makes of them in place of the parameters, their gradients and the
        buffers, of the modules below first; a class replaces it to convert tensors beside those.
        """
        charge_tensors(4)  # one module may stand in many places
        for module in self.children() if recurse else ():
            module._apply(fn)
        for tensor in (*self._parameters.values(), *self._buffers.values()):
            for part in () if tensor is None else (tensor, tensor.grad):
                made = part if part is None else fn(part)
                if made is not part and part is not None:
                    set_data(part, made)
        return self

    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Cast the floating parameters and buffers to a dtype, or move all to a device, or both as
        another tensor is.

        Raises E202 for a dtype that is not floating, E604 for a GPU that is not there.
        """
        dtype, device, copy = wanted("to", args, kwargs.get("dtype"), kwargs.get("device"))
        if copy or kwargs.get("copy"):
            raise runtime_error(".to() does not accept copy argument")
        if dtype is not None and dtype.category not in ("float", "complex"):
            raise type_error(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired"
                f" dtype={dtype}"
            )
        if kwargs.get("memory_format") is not None:
            for tensor in (*self.parameters(), *self.buffers()):
                if tensor.array.ndim in (4, 5):
                    moved = methods.to(detach(tensor), memory_format=kwargs["memory_format"])
                    set_data(tensor, moved)
        return self._convert(dtype, frozenset({"float", "complex"}), device)

    def to_empty(self: Self, *, device: Any, recurse: bool = True) -> Self:
        """Give the parameters and buffers memory of their own on a device, whose values nobody
        promises; without `recurse` only those of this module.
        """
        target = located("to_empty", device)
        for table in ("_parameters", "_buffers"):
            for _, tensor in self.each_tensor(table, recurse=recurse):
                set_data(tensor, torch.empty_like(tensor, device=target))
        return self

    def type(self: Self, dst_type: DType) -> Self:
        """Cast all parameters and buffers to a dtype."""
        return self._convert(dst_type, None)

    def double(self: Self) -> Self:
        """Cast the floating parameters and buffers to float64."""
        return self._convert(dtypes.float64)

    def float(self: Self) -> Self:
        """Cast the floating parameters and buffers to float32."""
        return self._convert(dtypes.float32)

    def half(self: Self) -> Self:
        """Cast the floating parameters and buffers to float16."""
        return self._convert(dtypes.float16)

    def bfloat16(self: Self) -> Self:
        """Cast the floating parameters and buffers to bfloat16."""
        return self._convert(dtypes.bfloat16)

    def cuda(self: Self, device: Any = None) -> Self:
        """Move the parameters and buffers to a GPU. Raises E604 where there is none."""
        return self.to(device=gpu_of(device))

    def cpu(self: Self) -> Self:
        """Move the parameters and buffers to the host's memory."""
        return self.to(device="cpu")

    # --- text ---------------------------------------------------------------------------------

    def _get_name(self) -> str:
        """The class's name as it is printed; it shows whether parameters are parametrized."""
        computed = "Parametrized" if "parametrizations" in self._modules else ""
        return computed + type(self).__name__

    def extra_repr(self) -> str:
        """The text between the parentheses of the printed module."""
        return ""

    def __repr__(self) -> str:
        charge_tensors(4)  # one module may stand in many places
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        inner = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        if len(lines) == 1 and not inner:
            return f"{self._get_name()}({extra})"
        return bracketed(self._get_name(), [*lines, *inner])


modules["torch.nn"]["Module"] = Module


def clear_grads(parameters: Iterable[Tensor], set_to_none: bool) -> None:
    """Clear the gradients of parameters, or set them to zero outside the graph; optimizers that
    begin hear of it.
    """
    listening = active.state.library.get("first steps")
    for parameter in parameters:
        grad = parameter.grad
        if grad is None:
            continue
        if set_to_none:
            meta_of(parameter).grad = None
        else:
            if grad.grad_fn is not None:
                detach_in_place(grad)
            grad.requires_grad = False
            zero_(grad)
        for each in listening or ():
            each.cleared(parameter, active.state.place)


def indented(text: str) -> str:
    """A text whose lines after the first are indented."""
    return text.replace("\n", "\n  ")


def bracketed(name: str, lines: list[str]) -> str:
    """`NAME(` with each line indented below it, or `NAME()`."""
    if not lines:
        return f"{name}()"
    inner = "\n  ".join(lines)
    return f"{name}(\n  {inner}\n)"


def check_module(name: str, module: Any) -> None:
    """Raise E202 where an argument of a function is no module."""
    if not isinstance(module, Module):
        raise type_error(f"{name}() takes an nn.Module, not {type_name(module)}")


@function("skip_init", module="torch.nn.utils")
def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Module:
    """A module whose parameters are not initialised: made on `meta`, then given memory.

    Raises E202 for what makes no module.

    Example: nn.utils.skip_init(nn.Linear, 2, 1).weight.shape
    """
    module = module_cls(*args, **{**kwargs, "device": "meta"})
    if not isinstance(module, Module):
        raise type_error(f"skip_init() takes a class of modules, not what makes {kind_of(module)}")
    return module.to_empty(device=kwargs.get("device", "cpu"))


_TABLES: dict[str, tuple[str, type, tuple[type, ...]]] = {
    "training": ("training", bool, ()),
    "_parameters": ("_parameters", dict, (Tensor, type(None))),
    "_buffers": ("_buffers", dict, (Tensor, type(None))),
    "_non_persistent_buffers_set": ("_transient", set, (str,)),
    "_modules": ("_modules", dict, (Module, type(None))),
}
"""What a module keeps apart from what is assigned, by its name in a state: where, of which class,
and what is in it.
"""
