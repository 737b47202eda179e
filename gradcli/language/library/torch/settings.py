"""What torch says of itself and of the machine: `torch.backends`, `torch.version`, `torch.amp`.

The settings that programs make for PyTorch's own kernels are kept and read back; nothing here runs
otherwise for them. What is asked about is answered as it is here: no CUDA kernels, no MKL, no other
process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.arrays.sizes import Device
from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.limits import check_collection
from gradcli.language.objects.attributes import PerSession
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import called, type_name, type_of
from gradcli.ops.binding.catalogue import modules
from gradcli.state import active

_CUDA = modules["torch.cuda"]


def _no(*values: Any) -> bool:
    """What is not there."""
    return False


def _named(name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    def tell(*values: Any) -> Any:
        return answer(*values)

    return called(name, tell)


def _setting(name: str, start: Any) -> PerSession:
    """A setting that each session has for itself; it takes values of the kind it starts with."""

    def kept() -> dict[str, Any]:
        found: dict[str, Any] = active.state.library.setdefault("torch.backends", {})
        return found

    def write(new: Any) -> None:
        if type(new) is not type(start):
            raise type_error(
                f"{name} takes a value of type {type_name(start)}, not {type_name(new)}"
            )
        kept()[name] = new

    return PerSession(lambda: kept().get(name, start), write)


def _current_accelerator(check_available: bool = False) -> Device | None:
    """The device that computes beside the CPU, None where there is none."""
    return Device("cuda") if _CUDA["is_available"]() else None


def _of_gpu(name: str) -> Callable[..., Any]:
    """A function of `torch.cuda`, where there is a GPU."""

    def call(*values: Any) -> Any:
        if not _CUDA["is_available"]():
            raise GradcliError("E604", "Cannot access accelerator device when none is available.")
        return _CUDA[name](*values)

    return call


ACCELERATOR: dict[str, Any] = {
    "current_accelerator": _current_accelerator,
    "device_count": _named("device_count", lambda: _CUDA["device_count"]()),
    "is_available": _named("is_available", lambda: _CUDA["is_available"]()),
    **{
        own: _named(own, _of_gpu(name))
        for own, name in (
            ("current_device_index", "current_device"),
            ("empty_cache", "empty_cache"),
            ("max_memory_allocated", "max_memory_allocated"),
            ("memory_allocated", "memory_allocated"),
            ("memory_reserved", "memory_reserved"),
            ("set_device_index", "set_device"),
            ("synchronize", "synchronize"),
        )
    },
}
"""What `torch.accelerator` holds: the GPU, whatever its maker calls it."""

_UNAVAILABLE = {"is_available": _named("is_available", _no)}

BACKENDS: dict[str, Any] = {}
"""What `torch.backends` holds beside its modules."""

CPU: dict[str, Any] = {"get_cpu_capability": _named("get_cpu_capability", lambda: "DEFAULT")}
CUDA: dict[str, Any] = {
    "is_built": _named("is_built", lambda: _CUDA["is_available"]()),
    **{
        f"{name}_sdp_enabled": _named(f"{name}_sdp_enabled", _no)
        for name in ("cudnn", "flash", "mem_efficient")
    },
    **{
        f"enable_{name}_sdp": _named(f"enable_{name}_sdp", lambda enabled: None)
        for name in ("cudnn", "flash", "math", "mem_efficient")
    },
    "math_sdp_enabled": _named("math_sdp_enabled", lambda: True),
}
MATMUL: dict[str, Any] = {
    name: _setting(f"torch.backends.cuda.matmul.{name}", name != "allow_tf32")
    for name in (
        "allow_bf16_reduced_precision_reduction",
        "allow_fp16_reduced_precision_reduction",
        "allow_tf32",
    )
}
CUDNN: dict[str, Any] = {
    **_UNAVAILABLE,
    "version": _named("version", lambda: None),
    **{
        name: _setting(f"torch.backends.cudnn.{name}", start)
        for name, start in (
            ("allow_tf32", True),
            ("benchmark", False),
            ("benchmark_limit", 10),
            ("deterministic", False),
            ("enabled", True),
        )
    },
}
MKL: dict[str, Any] = dict(_UNAVAILABLE)
MKLDNN: dict[str, Any] = {
    **_UNAVAILABLE,
    "enabled": _setting("torch.backends.mkldnn.enabled", True),
}
MPS: dict[str, Any] = {**_UNAVAILABLE, "is_built": _named("is_built", _no)}
OPENMP: dict[str, Any] = dict(_UNAVAILABLE)
OPT_EINSUM: dict[str, Any] = dict(_UNAVAILABLE)
XPU: dict[str, Any] = {**_UNAVAILABLE, "device_count": _named("device_count", lambda: 0)}
MPS_DEVICE: dict[str, Any] = {
    **XPU,
    "empty_cache": _named("empty_cache", lambda: None),
    "manual_seed": _named("manual_seed", lambda seed: None),
}
DISTRIBUTED: dict[str, Any] = {**_UNAVAILABLE, "is_initialized": _named("is_initialized", _no)}

VERSION: dict[str, Any] = {
    "__version__": modules["torch"]["__version__"],
    "cuda": None,
    "debug": False,
    "git_version": "",
    "hip": None,
}
"""What `torch.version` holds: the version whose behaviour this is."""


class Autocast:
    """`torch.autocast(device_type, dtype, enabled)`: where it is off, or the device is not there,
    nothing is cast.

    Raises E205 where it would cast: programs are run in the dtypes that they name.

    Example: torch.autocast("cpu", enabled=False)
    """

    __slots__ = ()

    language_name: ClassVar[str] = "torch.amp.autocast_mode.autocast"
    language_context: ClassVar[bool] = True

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise value_error(
                f"Expected `device_type` of type `str`, got: `{display(type_of(device_type))}`"
            )
        if enabled and (device_type != "cuda" or _CUDA["is_available"]()):
            raise GradcliError(
                "E205",
                f"autocast on {device_type} is left out: nothing is cast by itself",
                help="cast what is to be short: `x.to(torch.bfloat16)`, or say `enabled=False`",
            )

    def __enter__(self) -> Autocast:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        """Nothing was cast."""


class GradScaler:
    """`torch.amp.GradScaler(device)`: scales nothing, as PyTorch's where there is no CUDA.

    Example: torch.GradScaler("cpu", enabled=False)
    """

    __slots__ = ("device",)

    language_name: ClassVar[str] = "torch.amp.grad_scaler.GradScaler"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"get_scale", "is_enabled", "load_state_dict", "scale", "state_dict", "step", "unscale_"}
        | {"update"}
    )

    def __init__(
        self, device: str = "cuda", *settings: Any, enabled: bool = True, **named: Any
    ) -> None:
        if enabled and (device != "cuda" or _CUDA["is_available"]()):
            raise GradcliError(
                "E205",
                "a GradScaler that is enabled is left out: losses are not scaled by themselves",
                help="multiply the loss, and divide the gradients; or say `enabled=False`",
            )

    def scale(self, outputs: Any) -> Any:
        """The loss as it is."""
        return outputs

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step."""
        return optimizer.step(*args, **kwargs)

    def unscale_(self, optimizer: Any) -> None:
        """Gradients are as they are."""

    def update(self, new_scale: Any = None) -> None:
        """There is no scale."""

    def get_scale(self) -> float:
        """1, since nothing is scaled."""
        return 1.0

    def is_enabled(self) -> bool:
        """Whether it scales."""
        return False

    def state_dict(self) -> dict[str, Any]:
        """There is nothing to keep."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """There is nothing to keep."""


AMP: dict[str, Any] = {"GradScaler": GradScaler, "autocast": Autocast}
"""What `torch.amp` holds."""


def _cuda_scaler(*settings: Any, **named: Any) -> GradScaler:
    return GradScaler("cuda", *settings, **named)


def _cuda_autocast(enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> Autocast:
    return Autocast("cuda", dtype, enabled, cache_enabled)


CUDA_AMP: dict[str, Any] = {"GradScaler": _cuda_scaler, "autocast": _cuda_autocast}
"""What `torch.cuda.amp` holds."""


# --- torch.random, torch.profiler -----------------------------------------------------------------


class ForkRng:
    """`torch.random.fork_rng()`: what is drawn inside leaves the session's generator as it was."""

    __slots__ = ("enabled", "state")

    language_name: ClassVar[str] = "torch.random.fork_rng"
    language_context: ClassVar[bool] = True

    def __init__(self, devices: Any = None, enabled: bool = True, **settings: Any) -> None:
        self.enabled = enabled

    def __enter__(self) -> None:
        self.state = modules["torch"]["get_rng_state"]()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if self.enabled:
            modules["torch"]["set_rng_state"](self.state)


class RecordFunction:
    """`torch.profiler.record_function(name)`: a name for a profiler, of which there is none."""

    __slots__ = ("name",)

    language_name: ClassVar[str] = "torch.autograd.profiler.record_function"
    language_context: ClassVar[bool] = True

    def __init__(self, name: str, args: Any = None) -> None:
        self.name = name

    def __enter__(self) -> RecordFunction:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        """There is nothing to end."""


_DRAWING = ("get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state")

GENERATOR: dict[str, Any] = {
    "fork_rng": ForkRng,
    **{name: modules["torch"][name] for name in _DRAWING},
}
"""What `torch.random` holds."""

PROFILER: dict[str, Any] = {"record_function": RecordFunction}
"""What `torch.profiler` and `torch.autograd.profiler` hold."""


# --- torch.nn.modules.utils -----------------------------------------------------------------------


def _ntuple(n: int, name: str = "parse") -> Callable[..., Any]:
    """A function that gives a number for each of n dimensions, and a sequence as a tuple."""

    check_collection(n)

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(bounded(x)) if hasattr(type(x), "__iter__") else (x,) * n

    return called(name, parse)


TUPLES: dict[str, Any] = {
    "_ntuple": _ntuple,
    **{
        name: _ntuple(n, name)
        for n, name in enumerate(("_single", "_pair", "_triple", "_quadruple"), 1)
    },
}
"""What `torch.nn.modules.utils` holds."""
