"""Backends: NumPy for arrays in the host's memory, CuPy for arrays in a GPU's, and arrays without
values.

Code that works on either writes `xp = module_of(array)` and makes arrays with `xp`. CuPy is
imported by the first array on a GPU and never before. A process computes on one GPU: the first that
it names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.flat.recorded import Recorded
from gradcli.arrays.gpu.array import on_device, on_host, wrapped
from gradcli.arrays.gpu.runtime import cupy
from gradcli.arrays.layout import meta
from gradcli.arrays.layout.meta import META, without_values
from gradcli.arrays.layout.sizes import Device
from gradcli.errors import GradcliError
from gradcli.state import active

_CPU = Device("cpu")

Function = Callable[..., Any]

_gpus: list[Device] = []
"""The GPU in use, once there is one."""

_elsewhere: list[Device] = []
"""The devices in use that are not the CPU."""


def gpu_in_use() -> bool:
    """Whether any array of the process may be on a GPU."""
    return bool(_gpus)


def all_on_cpu() -> bool:
    """Whether no array of the process can be anywhere else."""
    return not _elsewhere


def module_of(*operands: Any) -> Any:
    """The module that makes arrays on the operands' device: `numpy`, or
    `gradcli.arrays.gpu.creation` where one of them is on a GPU. Numbers have no device.
    """
    if _elsewhere:
        for each in operands:
            device = getattr(each, "device", "cpu")
            if type(device) is not str:
                return module_on(META if device is META else _gpus[0])
    return np


def new_empty(array: Any, shape: Sequence[int], dtype: Any = None) -> Any:
    """An array without gaps for what is computed of another one, where that one is: on its device,
    and on a tape. Its dtype is that of the other one, where none is given.
    """
    if type(array) is Recorded:
        return np.empty_like(array, dtype, "C", shape=shape)
    return module_of(array).empty(shape, array.dtype if dtype is None else dtype)


def new_zeros(array: Any, shape: Sequence[int], dtype: Any = None) -> Any:
    """The same, of zeros."""
    if type(array) is Recorded:
        return np.zeros_like(array, dtype, "C", shape=shape)
    return module_of(array).zeros(shape, array.dtype if dtype is None else dtype)


def in_order(array: Any) -> Any:
    """An array whose elements lie in row order without gaps, itself where they do already."""
    return array if array.flags.c_contiguous else array.copy("C")


def module_on(device: Device) -> Any:
    """The same for a device, as `located` gives it."""
    if device.type == "cpu":
        return np
    if device.type == "meta":
        return meta.creation
    from gradcli.arrays.gpu import creation  # lazy: start-up: only arrays on a GPU

    return creation


def device_of(array: Any) -> Device:
    """The device that an array's memory belongs to."""
    if not _elsewhere or type(array.device) is str:
        return _CPU
    return META if array.device is META else _gpus[0]


def is_uninitialized(array: Any) -> bool:
    """Whether an array stands for the parameter of a lazy layer in front of its first input."""
    return hasattr(type(array), "sizes")


def shape_of(array: Any) -> tuple[int, ...]:
    """An array's shape, with 0 where the first input of a lazy layer decides."""
    return tuple(array.sizes if is_uninitialized(array) else array.shape)


def has_values(array: Any) -> bool:
    """Whether an array has numbers: one on meta has none, and neither has an uninitialized one."""
    return device_of(array) is not META and not is_uninitialized(array)


def located(name: str, device: Any) -> Device:
    """The device that a program names, a GPU with its number.

    Raises, for the function `name`, E604 where a program asks for a GPU that is not there, and
    E205 for what is no CPU and no GPU, and for a second GPU.
    """
    wanted = device if type(device) is Device else Device(device)
    if wanted.type == "cpu":
        return _CPU
    if wanted.type == "meta":
        if META not in _elsewhere:
            _elsewhere.append(META)
        return META
    if wanted.type != "cuda":
        raise GradcliError("E205", f"{name}(): tensors on {wanted} are outside the catalogue")
    if not _gpus:
        _gpus.append(_opened(wanted.index))
        _elsewhere.append(_gpus[0])
    if wanted.index not in (None, _gpus[0].index):
        runtime = cupy().cuda.runtime
        if wanted.index >= runtime.getDeviceCount():
            raise _missing(wanted.index, runtime.getDeviceCount())
        raise GradcliError(
            "E205", f"{name}(): a program computes on one GPU, and this one uses {_gpus[0]}"
        )
    return _gpus[0]


def moved(array: Any, device: Device) -> Any:
    """An array on a device, as `located` gives it: itself where it is there, else a copy."""
    if device_of(array) == device:
        return array
    if device is META:
        return without_values(array)
    if device.type == "cpu":
        return to_host(array)
    return module_on(device).asarray(np.asarray(array))


def on_default_device(array: Any) -> Any:
    """An array on the device of the session's new tensors."""
    device = active.state.default_device
    return array if device is None else moved(array, located("--device", device))


def to_host(array: Any) -> Any:
    """An array as an ndarray, or a NumPy scalar for no dimensions: itself, or a copy of one on a
    GPU, which waits for the GPU. Raises E205 for one without values.
    """
    return array if device_of(array) is _CPU else array.get()[()]


def on_the_host(function: Function) -> Function:
    """Decorates a function of arrays that goes through their elements one by one, or that calls
    LAPACK: arrays on a GPU are copied to the host, which waits for them, and its arrays back.
    Raises E205 for arrays without values.
    """

    def call(*operands: Any, **options: Any) -> Any:
        module = module_of(*operands)
        if module is np:
            return function(*operands, **options)
        if module is meta.creation:
            raise meta.no_data()
        return wrapped(on_device(function(*on_host(operands), **on_host(options))))

    call.__name__ = function.__name__
    call.__doc__ = function.__doc__
    return call


def address_of(array: Any) -> int:
    """The address of an array's first element, 0 where it has no values."""
    device = device_of(array)
    if device is _CPU:
        return int(array.__array_interface__["data"][0])
    return 0 if device is META else int(array.address)


def _opened(index: int | None) -> Device:
    """The GPU of a number, CuPy's current one for None, made the current one."""
    cuda = cupy().cuda
    if index is None:
        return Device("cuda", int(cuda.Device().id))
    count = int(cuda.runtime.getDeviceCount())
    if index >= count:
        raise _missing(index, count)
    cuda.Device(index).use()
    return Device("cuda", index)


def _missing(index: int, count: int) -> GradcliError:
    return GradcliError(
        "E604",
        f"there is no GPU {index}: CuPy finds {count}",
        help=f"write cuda:0 for the first one{'' if count == 1 else ', cuda:1 for the second'}",
    )
