"""`nn.Module`: a function with parameters, composed of other modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from gradcli.arrays import dtypes
from gradcli.arrays.backend import located
from gradcli.arrays.dtypes import DType
from gradcli.arrays.layout.meta import META, no_data
from gradcli.arrays.layout.sizes import Device
from gradcli.autograd.tensor import Tensor, meta_of
from gradcli.errors import runtime_error, type_error, value_error
from gradcli.language.objects.classes.extensible import Slotted
from gradcli.library.torch.nn.attributes import kind_of, names
from gradcli.library.torch.nn.call import Calling
from gradcli.library.torch.nn.state_dict import get_extra_state, load, set_extra_state, state_of
from gradcli.ops.binding.catalogue import function, modules
from gradcli.ops.binding.functions import methods, torch
from gradcli.ops.codegen.runtime import type_name
from gradcli.ops.creation.copies import cast_to, detach, detach_in_place, to_device, wanted, zero_
from gradcli.ops.creation.tensor_methods import set_data, set_requires_grad
from gradcli.state import charge_tensors

Self = TypeVar("Self", bound="Module")

_FROM_META = (
    " Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from"
    " meta to a different device."
)


class Module(Calling, metaclass=Slotted):
    """The base of every layer and of a program's own networks.

    A layer overrides `forward` and, for printing, `extra_repr`. A program's class does the same in
    the language.

    Example: nn.Module()
    """

    language_name: ClassVar[str] = "torch.nn.modules.module.Module"
    language_base: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = names(
        "_backward_hooks _buffers _forward_hooks _forward_pre_hooks _get_name _modules _parameters "
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
        """An attribute that was assigned; raises AttributeError where there is none."""
        return self.lookup(name)

    def language_setattr(self, name: str, value: Any) -> None:
        """Assign an attribute; see `register`."""
        self.register(name, value)

    # --- state --------------------------------------------------------------------------------

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """Parameters and persistent buffers by dotted name, on the same memory."""
        return state_of(self, prefix, keep_vars)

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

    def train(self: Self, mode: bool = True) -> Self:
        """Switch the module and all below it to training, or to evaluation with `mode` False."""
        if not isinstance(mode, bool):
            raise value_error(f"train() takes True or False, not {kind_of(mode)}")
        for _, module in self.each_module(remove_duplicate=False):
            object.__setattr__(module, "training", mode)
        return self

    def eval(self: Self) -> Self:
        """Switch the module and all below it to evaluation."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of the parameters, or set them to zero."""
        for parameter in self.parameters():
            clear_grad(parameter, set_to_none)

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
        for table in ("_parameters", "_buffers"):
            for _, tensor in self.each_tensor(table):
                for part in (tensor, tensor.grad):
                    if part is None:
                        continue
                    if hasattr(part.array, "materialize"):  # it has no shape yet
                        part.array = part.array.astype(dtype.numpy_dtype if dtype else None)
                        continue
                    if device is not None and part.device != device:
                        if part.device is META:
                            raise no_data(_FROM_META)
                        set_data(part, to_device(detach(part), device, part.device))
                    if dtype and (kinds is None or part.dtype.category in kinds):
                        set_data(part, cast_to(part, dtype))
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
        return self.to(device="cuda" if device is None else device)

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


def clear_grad(parameter: Tensor, set_to_none: bool) -> None:
    """Clear a tensor's gradient, or set it to zero outside the graph."""
    if parameter.grad is None:
        return
    if set_to_none:
        meta_of(parameter).grad = None
        return
    if parameter.grad.grad_fn is not None:
        detach_in_place(parameter.grad)
    parameter.grad.requires_grad = False
    zero_(parameter.grad)


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
