"""`torch.amp`: autocast, and the scaler of losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.dtypes import DType, bfloat16, float16, float64
from gradcli.arrays.layout.sizes import Device
from gradcli.autograd.modes import decorated, name_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, value_error
from gradcli.language.objects.exceptions import Raised
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import called, type_of
from gradcli.ops.arithmetic.arithmetic import mul
from gradcli.ops.binding.functions import cuda, methods
from gradcli.ops.creation.autocast import SHORT, Casting, kind_of
from gradcli.state import active


def _has_gpu() -> bool:
    return bool(cuda.is_available())


def _warn(text: str, category: str = "UserWarning") -> None:
    code = "W009" if category == "UserWarning" else "W015"
    active.state.warn(code, text, text=text, category=category)


class Autocast:
    """`torch.autocast(device_type, dtype, enabled)`: matrix products and convolutions are computed
    in the short dtype, losses in float32.

    Where the device is not there, nothing is cast, and a warning says so. Raises E205 on a GPU.

    Example: torch.autocast("cpu", enabled=False)
    """

    __slots__ = ("_before", "_enabled", "device", "fast_dtype", "keeps")

    language_name: ClassVar[str] = "torch.amp.autocast_mode.autocast"
    language_context: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset({"device", "fast_dtype"})

    def __init__(
        self,
        device_type: str,
        dtype: DType | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        _check_type(device_type)
        self.device = Device(device_type).type
        self.fast_dtype = dtype or SHORT.get(self.device, float16)
        self.keeps = cache_enabled is None or bool(cache_enabled)
        self._enabled = bool(enabled) and self._can_cast()
        self._before: list[Casting | None] = []

    def _can_cast(self) -> bool:
        """Whether this device casts to that dtype here; warns where it does not."""
        if self.device == "cpu":
            if self.fast_dtype not in (bfloat16, float16):
                _warn(
                    "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                    "CPU Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."
                )
                return False
            return True
        if self.device == "cuda" and not _has_gpu():
            _warn("CUDA is not available or torch_xla is imported. Disabling autocast.")
            return False
        raise GradcliError(
            "E205",
            f"autocast on {self.device} is left out: operands are cast on the CPU alone",
            help="cast what is to be short: `x.to(torch.bfloat16)`, or say `enabled=False`",
        )

    def __enter__(self) -> Autocast:
        before: Casting | None = active.state.autocast
        self._before.append(before)
        if self.device == "cpu":
            kept = ({} if before is None else before.kept) if self.keeps else None
            active.state.autocast = Casting(self.fast_dtype, kept) if self._enabled else None
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        active.state.autocast = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, run in this context."""
        return decorated(self, function)


class GradScaler:
    """`torch.amp.GradScaler(device)`: scales losses, and steps only where no gradient is infinite.

    Where there is no CUDA and the device is "cuda" it scales nothing, and a warning says so.

    Example: torch.GradScaler("cpu", enabled=False)
    """

    __slots__ = ("_stepped", "_unscaled", "enabled", "growth_tracker", "scaling", "settings")

    language_name: ClassVar[str] = "torch.amp.grad_scaler.GradScaler"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"get_backoff_factor", "get_growth_factor", "get_growth_interval", "get_scale"}
        | {"is_enabled", "load_state_dict", "scale", "state_dict", "step", "unscale_", "update"}
    )

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and device == "cuda" and not _has_gpu():
            _warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            enabled = False
        if enabled and not growth_factor > 1.0:
            raise _asserted("The growth factor must be > 1.0.")
        if enabled and not backoff_factor < 1.0:
            raise _asserted("The backoff factor must be < 1.0.")
        self.enabled = bool(enabled)
        self.scaling = float(init_scale)
        self.settings = float(growth_factor), float(backoff_factor), int(growth_interval)
        self.growth_tracker: int | None = None  # None until something was scaled
        self._unscaled: dict[int, tuple[Any, bool]] = {}
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """A tensor times the scale, or each of a list's."""
        if not self.enabled:
            return outputs
        self.growth_tracker = self.growth_tracker or 0
        if isinstance(outputs, Tensor):
            return mul.apply(outputs, Tensor(np.float32(self.scaling)))
        if not hasattr(type(outputs), "__iter__"):
            raise value_error("outputs must be a Tensor or an iterable of Tensors")
        scaled = [self.scale(each) for each in bounded(outputs)]
        return tuple(scaled) if type(outputs) is tuple else scaled

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale."""
        if not self.enabled:
            return
        self._check_scaled("unscale_")
        if id(optimizer) in self._stepped:
            raise runtime_error("unscale_() is being called after step().")
        if id(optimizer) in self._unscaled:
            raise runtime_error(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        infinite = False
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    finite = methods.isfinite(parameter.grad)
                    infinite = infinite or not bool(methods.all(finite))
                    methods.mul_(parameter.grad, 1.0 / self.scaling)
        self._unscaled[id(optimizer)] = optimizer, infinite

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step, where its gradients are finite."""
        if not self.enabled:
            return optimizer.step(*args, **kwargs)
        self._check_scaled("step")
        if id(optimizer) in self._stepped:
            raise runtime_error("step() has already been called since the last update().")
        if id(optimizer) not in self._unscaled:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        return None if self._unscaled[id(optimizer)][1] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """A smaller scale where a gradient was infinite, a larger one where none was for long."""
        if not self.enabled:
            return
        self._check_scaled("update")
        growth, backoff, interval = self.settings
        if new_scale is not None:
            self.scaling = float(new_scale)
        elif not self._unscaled:
            raise _asserted("No inf checks were recorded prior to update.")
        elif any(infinite for _, infinite in self._unscaled.values()):
            self.scaling, self.growth_tracker = self.scaling * backoff, 0
        else:
            assert self.growth_tracker is not None
            self.growth_tracker += 1
            if self.growth_tracker == interval:
                self.scaling, self.growth_tracker = self.scaling * growth, 0
        self._unscaled.clear()
        self._stepped.clear()

    def _check_scaled(self, name: str) -> None:
        if self.growth_tracker is None:
            raise _asserted(
                f"Attempted {name} but _scale is None.  This may indicate your script did not use"
                " scaler.scale(loss or outputs) earlier in the iteration."
            )

    def get_scale(self) -> float:
        """The scale; 1 where nothing is scaled."""
        return self.scaling if self.enabled else 1.0

    def get_growth_factor(self) -> float:
        """What a scale that held long is multiplied by."""
        return self.settings[0]

    def get_backoff_factor(self) -> float:
        """What a scale that was too large is multiplied by."""
        return self.settings[1]

    def get_growth_interval(self) -> int:
        """After how many steps a scale grows."""
        return self.settings[2]

    def is_enabled(self) -> bool:
        """Whether it scales."""
        return self.enabled

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` takes; empty where nothing is scaled."""
        if not self.enabled:
            return {}
        names = ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker")
        values = (self.scaling, *self.settings, self.growth_tracker or 0)
        return dict(zip(names, values, strict=True))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take on a scale and what it grows by."""
        if not self.enabled:
            return
        if not state_dict:
            raise runtime_error(
                "The source state dict is empty, possibly because it was saved from a disabled"
                " instance of GradScaler."
            )
        self.scaling = float(state_dict["scale"])
        self.settings = (
            float(state_dict["growth_factor"]),
            float(state_dict["backoff_factor"]),
            int(state_dict["growth_interval"]),
        )
        self.growth_tracker = int(state_dict["_growth_tracker"])


def _asserted(text: str) -> GradcliError:
    """The error of an `assert` of PyTorch's own."""
    return Raised("AssertionError", text, (text,), "E204")


_DEPRECATED = (
    "`torch.{0}.amp.{1}(args...)` is deprecated. Please use `torch.amp.{1}('{0}', args...)`"
    " instead."
)


def _of_device(device: str, kind: Any, name: str) -> Callable[..., Any]:
    """The old name of a class of `torch.amp` for one device."""

    def make(*settings: Any, **named: Any) -> Any:
        _warn(_DEPRECATED.format(device, name), "FutureWarning")
        if kind is Autocast:  # here `enabled` came first
            order = ("enabled", "dtype", "cache_enabled")
            named = {**dict(zip(order, settings, strict=False)), **named}
            settings = ()
        return kind(device, *settings, **named)

    return called(name, make)


# --- custom functions -----------------------------------------------------------------------------


def _check_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise value_error(
            f"Expected `device_type` of type `str`, got: `{display(type_of(device_type))}`"
        )


def _cast_to(value: Any, device_type: str, dtype: DType) -> Any:
    """An argument with its floating tensors on a device, but for doubles, in a dtype."""
    if isinstance(value, Tensor):
        fits = value.dtype.category == "float" and value.dtype is not float64
        return methods.to(value, dtype) if fits and value.device.type == device_type else value
    if type(value) is dict:
        return {key: _cast_to(each, device_type, dtype) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_cast_to(each, device_type, dtype) for each in value])
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: DType | None = None) -> Any:
    """A decorator of a custom function's `forward`: inside autocast its inputs are cast to
    `cast_inputs`, where that is given, and what it calls casts nothing.
    """
    _check_type(device_type)
    if fwd is None:
        return called(
            "custom_fwd", lambda f: custom_fwd(f, device_type=device_type, cast_inputs=cast_inputs)
        )

    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        casting: Casting | None = active.state.autocast if device_type == "cpu" else None
        dtype = SHORT.get(device_type, float16) if casting is None else casting.dtype
        ctx.language_setattr("_dtype", dtype)
        ctx.language_setattr("_fwd_used_autocast", casting is not None and cast_inputs is None)
        if casting is None or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        args, kwargs = [_cast_to(each, device_type, cast_inputs) for each in (args, kwargs)]
        with Autocast(device_type, enabled=False):
            return fwd(ctx, *args, **kwargs)

    return _as_method(fwd, forward)


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """A decorator of a custom function's `backward`, which casts as its `forward` did."""
    _check_type(device_type)
    if bwd is None:
        return called("custom_bwd", lambda b: custom_bwd(b, device_type=device_type))

    def backward(ctx: Any, *grads: Any) -> Any:
        enabled, dtype = (ctx.language_getattr(f"_{n}") for n in ("fwd_used_autocast", "dtype"))
        if device_type != "cpu" and not enabled:
            return bwd(ctx, *grads)
        with Autocast(device_type, dtype, enabled):
            return bwd(ctx, *grads)

    return _as_method(bwd, backward)


def _as_method(function: Any, run: Callable[..., Any]) -> Callable[..., Any]:
    run.__name__ = name_of(function)
    vars(run)["language_decorated"] = True
    return run


def _of_cuda(decorator: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of old, for `cuda`."""
    name = decorator.__name__

    def decorate(function: Any = None, **settings: Any) -> Any:
        _warn(_DECORATOR.format(name), "FutureWarning")
        return decorator(function, **settings, device_type="cuda")

    return called(name, decorate)


_DECORATOR = (
    "`torch.cuda.amp.{0}(args...)` is deprecated. Please use `torch.amp.{0}(args...,"
    " device_type='cuda')` instead."
)

AMP: dict[str, Any] = {
    "GradScaler": GradScaler,
    "autocast": Autocast,
    "custom_bwd": custom_bwd,
    "custom_fwd": custom_fwd,
    "is_autocast_available": called(
        "is_autocast_available",
        lambda device_type: kind_of("_is_autocast_available", device_type) in SHORT,
    ),
}
"""What `torch.amp` holds."""

CUDA_AMP: dict[str, Any] = {
    "custom_bwd": _of_cuda(custom_bwd),
    "custom_fwd": _of_cuda(custom_fwd),
    "GradScaler": _of_device("cuda", GradScaler, "GradScaler"),
    "autocast": _of_device("cuda", Autocast, "autocast"),
}
"""What `torch.cuda.amp` holds."""

CPU_AMP: dict[str, Any] = {
    "GradScaler": _of_device("cpu", GradScaler, "GradScaler"),
    "autocast": _of_device("cpu", Autocast, "autocast"),
}
"""What `torch.cpu.amp` holds."""
