"""What `torch.autocast` does to the operands of an op, on the CPU.

PyTorch sorts its ops by what they take: matrix products and convolutions take the short dtype,
losses and products of elements take float32, all others what they are given. An op that was cast
for runs with autocast off: what it calls is not cast again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.arrays.dtypes import DType, bfloat16, float16, float32
from gradcli.arrays.layout.sizes import Device
from gradcli.autograd.tensor import Tensor
from gradcli.errors import type_error
from gradcli.ops.binding.catalogue import function as exposed
from gradcli.ops.creation.copies import cast_to_floating
from gradcli.state import active


class Casting:
    """What stands in the session's state while autocast is on.

    Attributes:
        dtype: the short dtype.
        kept: leaves that require grad and their casts, by `id`, until the outermost context ends;
            None where nothing is kept.
    """

    __slots__ = ("dtype", "kept")

    def __init__(self, dtype: DType, kept: dict[int, tuple[Tensor, Tensor]] | None) -> None:
        self.dtype = dtype
        self.kept = kept

    def anew(self) -> Casting:
        """The same autocast, begun once more: nothing is kept yet."""
        return Casting(self.dtype, None if self.kept is None else {})

    def cast(self, value: Any, dtype: DType) -> Any:
        """A tensor of another floating dtype than float64, cast; any other value as it is."""
        if type(value) in (list, tuple):
            return [self.cast(each, dtype) for each in value]
        if type(value) is not Tensor or value.device.type != "cpu":
            return value
        own = value.dtype
        if own is dtype or not own.is_floating_point or own.itemsize == 8:
            return value
        keeps = self.kept is not None and dtype is self.dtype and own is float32
        if not keeps or not value.requires_grad or not value.is_leaf or value.base is not None:
            return cast_to_floating.apply(value, dtype)
        assert self.kept is not None
        if id(value) not in self.kept:
            self.kept[id(value)] = value, cast_to_floating.apply(value, dtype)
        return self.kept[id(value)][1]

    def run(
        self, function: Callable[..., Any], dtype: DType, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """A function of arguments in a dtype; the last is cast first, as by PyTorch's compiler."""
        cast = [self.cast(each, dtype) for each in reversed(args)]
        named = {name: self.cast(each, dtype) for name, each in kwargs.items()}
        active.state.autocast = None
        try:
            return function(*reversed(cast), **named)
        finally:
            active.state.autocast = self

    def short(self, function: Callable[..., Any], *operands: Any) -> Any:
        """A function of operands in the short dtype."""
        return self.run(function, self.dtype, operands, {})


# --- what is set ----------------------------------------------------------------------------------

SHORT = {"cpu": bfloat16, "cuda": float16}
"""The dtypes that are cast to where a program names none, by device."""


def kind_of(function: str, device_type: Any) -> str:
    """The type of the device that a function is given the name of; raises E202 for anything but a
    name, a RuntimeError where there is no such device.
    """
    if not isinstance(device_type, str):
        kind = type(device_type).__name__
        raise type_error(
            f"{function}() takes the name of a device, not {kind}",
            text=f"{function}(): argument 'device_type' (position 1) must be str, not {kind}",
        )
    return Device(device_type).type


@exposed("is_autocast_enabled")
def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether matrix products of tensors on a device are computed in the short dtype."""
    return (
        kind_of("is_autocast_enabled", device_type) == "cpu" and active.state.autocast is not None
    )


@exposed("get_autocast_dtype")
def get_autocast_dtype(device_type: str) -> DType:
    """The short dtype of a device.

    Example: torch.get_autocast_dtype("cpu")
    """
    casting: Casting | None = active.state.autocast
    kind = kind_of("get_autocast_dtype", device_type)
    return casting.dtype if casting is not None and kind == "cpu" else SHORT.get(kind, float16)


@exposed("is_autocast_cpu_enabled")
def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on."""
    return is_autocast_enabled("cpu")


@exposed("get_autocast_cpu_dtype")
def get_autocast_cpu_dtype() -> DType:
    """The short dtype on the CPU."""
    return get_autocast_dtype("cpu")


@exposed("get_autocast_gpu_dtype")
def get_autocast_gpu_dtype() -> DType:
    """The short dtype on a GPU."""
    return SHORT["cuda"]


@exposed("is_autocast_cache_enabled")
def is_autocast_cache_enabled() -> bool:
    """Whether the casts of leaves are kept until autocast ends, as they are unless it is said."""
    casting: Casting | None = active.state.autocast
    return casting is None or casting.kept is not None
