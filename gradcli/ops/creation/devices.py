"""Devices: `torch.cuda`, and the device of new tensors; and what PyTorch asks and sets of the
machine: threads, precision, determinism, random states.

The settings are for PyTorch's own kernels: they are kept and read back, and results here are the
same whatever they say.
"""

from __future__ import annotations

from typing import Any

from gradcli.arrays import backend
from gradcli.arrays.gpu.runtime import cupy
from gradcli.arrays.layout.sizes import Device
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, type_error, value_error
from gradcli.ops.binding.catalogue import function, method, modules
from gradcli.ops.creation.random import generator_of, get_state, manual_seed_of, seed_of, set_state
from gradcli.ops.definition.doc import RANDOM, STATE
from gradcli.state import active


@function("set_default_device", effects=(STATE,))
def set_default_device(device: Any) -> None:
    """Set the device of new tensors, the CPU for None. Raises E604 for a GPU that is not there.

    Example: torch.set_default_device('cpu')
    """
    target_device = None if device is None else backend.located("set_default_device", device)
    active.state.default_device = None if target_device is None else str(target_device)


@function("get_default_device")
def get_default_device() -> Device:
    """The device of new tensors."""
    return Device(active.state.default_device or "cpu")


@method("get_device")
def get_device(self: Any) -> int:
    """The number of the GPU that holds the tensor, -1 for the host's memory."""
    index = self.device.index
    return -1 if index is None else int(index)


# --- torch.cuda -----------------------------------------------------------------------------------

_CUDA = "torch.cuda"


def _runtime() -> Any:
    return cupy().cuda.runtime


def _index(name: str, device: Any) -> int:
    """The number of the GPU that a program names, of the one in use for None."""
    if device is None or type(device) is int:
        target_device = backend.located(name, "cuda" if device is None else Device(device))
    else:
        target_device = backend.located(name, device)
    if target_device.index is None:
        raise value_error(f"{name}() takes a GPU, not {device}")
    return target_device.index


@function("is_available", module=_CUDA)
def is_available() -> bool:
    """Whether there is a GPU, and CuPy for it."""
    return device_count() > 0


@function("device_count", module=_CUDA)
def device_count() -> int:
    """How many GPUs CuPy finds; 0 without CuPy."""
    try:
        return int(_runtime().getDeviceCount())
    except GradcliError:
        return 0


@function("current_device", module=_CUDA)
def current_device() -> int:
    """The number of the GPU in use. Raises E604 where there is none."""
    return _index("current_device", None)


@function("set_device", module=_CUDA)
def set_device(device: Any) -> None:
    """Use a GPU. Raises E604 where it is not there, and E205 for a second one."""
    _index("set_device", device)


@function("get_device_name", module=_CUDA)
def get_device_name(device: Any = None) -> str:
    """What a GPU is called. Raises E604 where there is none."""
    name = _runtime().getDeviceProperties(_index("get_device_name", device))["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


@function("synchronize", module=_CUDA)
def synchronize(device: Any = None) -> None:
    """Wait until the GPU has done all that it was asked to. Raises E604 where there is none."""
    cupy().cuda.Device(_index("synchronize", device)).synchronize()


@function("memory_allocated", module=_CUDA)
def memory_allocated(device: Any = None) -> int:
    """The bytes of the GPU's memory that tensors take; 0 before there are any."""
    if not backend.gpu_in_use():
        return 0
    return int(cupy().get_default_memory_pool().used_bytes())


@function("memory_reserved", module=_CUDA)
def memory_reserved(device: Any = None) -> int:
    """The bytes of the GPU's memory that the program holds; 0 before there are any."""
    if not backend.gpu_in_use():
        return 0
    return int(cupy().get_default_memory_pool().total_bytes())


@function("empty_cache", module=_CUDA)
def empty_cache() -> None:
    """Give memory back that no tensor takes."""
    if backend.gpu_in_use():
        cupy().get_default_memory_pool().free_all_blocks()


@function("max_memory_allocated", module=_CUDA)
def max_memory_allocated(device: Any = None) -> int:
    """The bytes of the GPU's memory that the program held at most; 0 before there are any."""
    return memory_reserved(device)


@function("is_initialized", module=_CUDA)
def is_initialized() -> bool:
    """Whether tensors have been put on a GPU."""
    return backend.gpu_in_use()


@function("is_bf16_supported", module=_CUDA)
def is_bf16_supported() -> bool:
    """Whether there is a GPU, whose kernels here take bfloat16."""
    return is_available()


@function("manual_seed", "manual_seed_all", module=_CUDA, effects=(STATE,))
def manual_seed(seed: Any) -> None:
    """Start the GPU's generator again from a seed; where there is none, nothing is to be done."""
    if is_available():
        manual_seed_of("cuda", seed)


@function("initial_seed", module=_CUDA)
def initial_seed() -> int:
    """The seed that the GPU's generator started from."""
    return seed_of("cuda")


modules[_CUDA]["device"] = Device


# --- what PyTorch asks and sets of the machine ----------------------------------------------------


_PRECISIONS = ("highest", "high", "medium")


def _kept() -> dict[str, Any]:
    return active.state.library.setdefault("torch", {})


def _check_count(name: str, count: Any) -> None:
    if type(count) is not int:
        kind = type(count).__name__
        raise type_error(f"{name} expects an int, but got {kind}", raises="RuntimeError")
    if count < 1:
        raise runtime_error(f"{name} expects a positive integer")


@function("set_num_threads", "set_num_interop_threads", effects=(STATE,))
def set_num_threads(int: Any, /) -> None:
    """How many threads PyTorch's kernels take. Raises E202, E204 for what is no positive integer.

    Example: torch.set_num_threads(1)
    """
    _check_count("set_num_threads", int)
    _kept()["threads"] = int


@function("get_num_threads", "get_num_interop_threads")
def get_num_threads() -> int:
    """The number of threads that was set, else 1."""
    return _kept().get("threads", 1)


@function("use_deterministic_algorithms", effects=(STATE,))
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for results that are alike from run to run, as all here are.

    Example: torch.use_deterministic_algorithms(True)
    """
    _kept()["deterministic"] = bool(mode)


@function("are_deterministic_algorithms_enabled")
def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms` was asked for."""
    return _kept().get("deterministic", False)


@function("set_float32_matmul_precision", effects=(STATE,))
def set_float32_matmul_precision(precision: str) -> None:
    """How exact products of float32 have to be on a GPU: "highest", "high" or "medium".

    Example: torch.set_float32_matmul_precision("highest")
    """
    if precision in _PRECISIONS:
        _kept()["precision"] = precision


@function("get_float32_matmul_precision")
def get_float32_matmul_precision() -> str:
    """The precision that was set."""
    return _kept().get("precision", "highest")


@function("get_rng_state", effects=(RANDOM,))
def get_rng_state() -> Tensor:
    """Where the session's generator stands, in bytes, as PyTorch writes it down.

    Example: torch.get_rng_state().shape
    """
    return get_state(generator_of(None))


@function("set_rng_state", effects=(STATE,))
def set_rng_state(new_state: Tensor) -> None:
    """Go back to where the session's generator stood. Raises E204 for bytes that are no state.

    Example: torch.set_rng_state(torch.get_rng_state())
    """
    set_state(generator_of(None), new_state)
