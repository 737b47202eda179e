"""Which module an array belongs to: NumPy, or CuPy where there are arrays on a GPU.

Code that works on either writes `xp = module_of(array)` and calls `xp`. CuPy is imported by the
first array on a GPU and never before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.sizes import Device
from gradcli.errors import GradcliError

_CPU = Device("cpu")


def module_of(array: Any) -> Any:
    """`numpy` for a NumPy array or scalar, `cupy` for an array on a GPU."""
    return np if isinstance(array, (np.ndarray, np.generic)) else cupy()


def device_of(array: Any) -> Device:
    """The device that an array's memory belongs to."""
    if isinstance(array, (np.ndarray, np.generic)):
        return _CPU
    return Device("cuda", array.device.id)


def check_device(name: str, device: Any) -> None:
    """Raise, for the function `name`, E604 where a program asks for a GPU that is not there, and
    E205 for every other device but the CPU, which the ops compute on.
    """
    wanted = Device(device)
    if wanted.type == "cuda":
        cupy()
    if wanted.type != "cpu":
        raise GradcliError("E205", f"{name}(): tensors on {wanted} are outside the catalogue")


def to_host(array: Any) -> Any:
    """An array as one of NumPy's: itself, or a copy of one on a GPU."""
    return array if isinstance(array, (np.ndarray, np.generic)) else array.get()


def cupy() -> Any:
    """The module `cupy`. Raises E604 where it is missing or finds no GPU."""
    try:
        import cupy
    except ImportError:
        raise GradcliError(
            "E604",
            "tensors on a GPU need CuPy, which is not installed",
            help="install `gradcli[cuda12]` or `gradcli[cuda13]`, whichever CUDA the driver has",
        ) from None
    if not cupy.is_available():
        raise GradcliError("E604", "CuPy finds no GPU")
    return cupy
