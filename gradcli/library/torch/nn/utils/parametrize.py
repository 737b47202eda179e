"""`torch.nn.utils.parametrize`: a parameter that is computed from another one.

The computed tensor stands under the parameter's name; what it is computed from is a parameter of
`module.parametrizations.NAME`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.autograd.inplace.writes import overwrite
from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error, value_error
from gradcli.library.torch.nn.attributes import is_parameter, kind_of
from gradcli.library.torch.nn.layers.containers import ModuleDict, ModuleList
from gradcli.library.torch.nn.module import Module, check_module
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.catalogue import function, modules
from gradcli.ops.binding.functions import methods
from gradcli.ops.creation.copies import detach
from gradcli.ops.creation.data import parameter
from gradcli.ops.creation.tensor_methods import set_data
from gradcli.state import active

_MODULE = "torch.nn.utils.parametrize"


class ParametrizationList(ModuleList):
    """The modules that compute one tensor, each from the result of the one before.

    The first takes `original`, or, if its `right_inverse` gave several tensors, `original0`,
    `original1` and so on.
    """

    language_name = "torch.nn.utils.parametrize.ParametrizationList"

    def __init__(self, modules: list[Any], original: Tensor) -> None:
        super().__init__(modules)
        start: Any = original
        with NoGrad():
            for module in reversed(modules):
                inverse = _right_inverse(module)
                if inverse is not None:
                    start = inverse(module, start)
        self.is_tensor = isinstance(start, Tensor)
        if isinstance(start, Tensor):
            self._begin(original, start)
            return
        if not isinstance(start, (tuple, list)):
            raise value_error(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...)."
                f" Got {type(start).__name__}"
            )
        self.ntensors = len(start)
        for number, tensor in enumerate(start):
            self._take(f"original{number}", tensor, original)

    def _begin(self, original: Tensor, start: Tensor) -> None:
        """Let the original hold what the tensor is computed from."""
        if start.dtype != original.dtype:
            raise value_error(
                "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {start.dtype}"
            )
        if start.array.shape != original.array.shape:
            set_data(original, start)
        elif start is not original:
            overwrite(original, start.array)
        self._take("original", original, original)

    def _take(self, name: str, tensor: Tensor, like: Tensor) -> None:
        """Add a tensor as a parameter, or as a buffer, as `like` is one."""
        if not is_parameter(like):
            self.register_buffer(name, tensor)
        elif is_parameter(tensor):
            self.register_parameter(name, tensor)
        else:
            self.register_parameter(name, parameter(detach(tensor), like.requires_grad))

    def right_inverse(self, value: Any) -> None:
        """Let the tensor be a value that a program assigns."""
        with NoGrad():
            for module in reversed(self._modules.values()):
                inverse = _right_inverse(module)
                if inverse is None:
                    raise GradcliError(
                        "E205",
                        f"parametrization {type(module).__name__} does not implement"
                        " right_inverse.",
                        raises="RuntimeError",
                    )
                value = inverse(module, value)
        if self.is_tensor:
            set_data(self.original, value)
            return
        for number, part in enumerate(value):
            set_data(getattr(self, f"original{number}"), part)

    def forward(self) -> Any:
        """The tensor."""
        first, *rest = list(self._modules.values())
        if self.is_tensor:
            value = first(self.original)
        else:
            value = first(*(getattr(self, f"original{n}") for n in range(self.ntensors)))
        for module in rest:
            value = module(value)
        return value


def _right_inverse(module: Any) -> Any:
    """The method that finds what a value is computed from, None where there is none."""
    written = getattr(type(module), "language_class", None)
    if written is not None:
        inverse = written.find("right_inverse")
        return inverse if callable(inverse) else None
    return getattr(type(module), "right_inverse", None)


@function("register_parametrization", module=_MODULE)
def register_parametrization(
    module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Any:
    """Let a module compute one of its parameters or buffers; returns the module whose it is.

    Args:
        module: the module.
        tensor_name: the name of the parameter or buffer.
        parametrization: a module; its `forward` computes the tensor, its `right_inverse`, if it
            has one, what to begin with.
        unsafe: whether the computed tensor may have another shape or dtype.

    Raises E204 for an unknown name, and for a tensor that does not fit.
    """
    check_module("register_parametrization", module)
    present = module._modules.get("parametrizations")
    if isinstance(parametrization, Module):
        parametrization.train(module.training)
    if present is not None and tensor_name in present._modules:
        if not unsafe:
            _check_added(module, tensor_name, parametrization)
        present._modules[tensor_name].append(parametrization)
        return module
    original = module._parameters.get(tensor_name)
    if original is None:
        original = module._buffers.get(tensor_name)
    if original is None:
        raise value_error(
            f"the module has no parameter or buffer '{tensor_name}'",
            text=f"Module '{module!r}' does not have a parameter, a buffer, or a parametrized"
            f" element with name '{tensor_name}'",
        )
    if not isinstance(parametrization, Module):
        raise type_error(f"a parametrization is a module, not {kind_of(parametrization)}")
    shape, dtype = original.shape, original.dtype
    parametrizations = ParametrizationList([parametrization], original)
    if not unsafe:
        with NoGrad():
            computed = parametrizations()
        _check_returned(computed)
        for what, before, after in (
            ("dtype", dtype, computed.dtype),
            ("shape", shape, computed.shape),
        ):
            if before != after:
                raise value_error(
                    f"Registering a parametrization may not change the {what} of the tensor, unless"
                    f" `unsafe` flag is enabled.\nunparametrized {what}: {before}\nparametrized"
                    f" {what}: {after}"
                )
    if present is None:
        present = ModuleDict()
    module.language_delattr(tensor_name)
    module._modules["parametrizations"] = present
    present[tensor_name] = parametrizations
    return module


def _check_returned(computed: Any) -> None:
    if not isinstance(computed, Tensor):
        kind = type(computed).__name__
        raise value_error(f"A parametrization must return a tensor. Got {kind}.")


def _changes(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    """In what two tensors differ, dtype or shape, and how."""
    pairs = [(what, getattr(before, what), getattr(after, what)) for what in ("dtype", "shape")]
    return [(what, was, now) for what, was, now in pairs if was != now]


def _check_added(module: Any, name: str, parametrization: Any) -> None:
    """Raise E204 where one more parametrization, or its inverse, gives a tensor that does not fit
    the one that is computed so far.
    """
    inverse = _right_inverse(parametrization)
    with NoGrad():
        before = module._modules["parametrizations"]._modules[name]()
        after = parametrization(before)
        _check_returned(after)
        back = before if inverse is None else inverse(parametrization, after)
    for what, was, now in _changes(before, after):
        raise value_error(
            f"Registering a parametrization may not change the {what} of the tensor, unless the"
            f" `unsafe` flag is enabled.\nmodule.{name}.{what}: {was}\nparametrization("
            f"module.{name}).{what}: {now}"
        )
    if not isinstance(back, Tensor):
        raise value_error(
            f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
        )
    for what, was, now in _changes(before, back):
        raise value_error(
            f"The tensor returned by parametrization.right_inverse must have the same {what} as"
            f" module.{name}, unless the `unsafe` flag is enabled.\nmodule.{name}.{what}: {was}"
            f"\nreturned {what}: {now}"
        )


@function("remove_parametrizations", module=_MODULE)
def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a computed tensor a parameter again: with the computed value, or else the original's.

    Raises E204 where it is not computed, and for several originals with `leave_parametrized` off.
    """
    if not is_parametrized(module, tensor_name):
        text = f"Module {module!r} does not have a parametrization on {tensor_name}"
        raise value_error(f"the tensor '{tensor_name}' is not parametrized", text=text)
    table = module._modules["parametrizations"]._modules
    parametrizations = table.pop(tensor_name)
    if not parametrizations.is_tensor and not leave_parametrized:
        raise value_error(
            "there are several originals, and none can be the parameter",
            text="Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is"
            " parametrized in terms of a sequence of tensors.",
        )
    if parametrizations.is_tensor:
        tensor = parametrizations.original
        if leave_parametrized:
            with NoGrad():
                overwrite(tensor, parametrizations().array)
    else:
        with NoGrad():
            tensor = parameter(detach(parametrizations()))
    if not table:
        del module._modules["parametrizations"]
    if is_parameter(tensor):
        module.register_parameter(tensor_name, tensor)
    else:
        module.register_buffer(tensor_name, tensor)
    return module


@function("is_parametrized", module=_MODULE)
def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a module computes a tensor of that name, or any."""
    check_module("is_parametrized", module)
    table = module._modules.get("parametrizations")
    if table is None:
        return False
    return tensor_name is None or tensor_name in table._modules


class Cached:
    """`parametrize.cached()`: a context in which each computed tensor is computed once."""

    __slots__ = ()

    language_name: ClassVar[str] = f"{_MODULE}.cached"
    language_context: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset()
    depth: ClassVar[str] = "parametrize.depth"

    def __enter__(self) -> None:
        kept = active.state.library
        kept.setdefault("parametrize", {})
        kept[self.depth] = kept.get(self.depth, 0) + 1

    def __exit__(self, *exception: object) -> None:
        kept = active.state.library
        kept[self.depth] -= 1
        if not kept[self.depth]:
            del kept["parametrize"]


@function("type_before_parametrizations", module=_MODULE)
def type_before_parametrizations(module: Any) -> Any:
    """The class of a module, parametrized or not.

    Example: nn.utils.parametrize.type_before_parametrizations(nn.Linear(2, 1))
    """
    check_module("type_before_parametrizations", module)
    kind = type(module)
    return getattr(kind, "language_class", None) or catalogue.class_of(kind)


modules[_MODULE].update(ParametrizationList=ParametrizationList, cached=Cached)


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight as a matrix whose rows are its slices along `dim`."""
    if dim != 0:
        order = [dim, *(d for d in range(weight.array.ndim) if d != dim)]
        weight = methods.permute(weight, *order)
    return methods.flatten(weight, 1)
