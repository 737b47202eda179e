"""What torch says of itself and of the machine: `torch.backends`, `torch.version`, `torch.amp`.

The settings that programs make for PyTorch's own kernels are kept and read back; nothing here runs
otherwise for them. What is asked about is answered as it is here: no CUDA kernels, no MKL, no other
process.

So it is with `torch.compile`, `torch.compiler` and `torch.jit`: what is given to them runs as it is
written. PyTorch promises the same results of compiled code, to rounding; a warning says that
nothing is compiled, since the graph is that of the function as written and not one node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.arrays.layout.sizes import Device
from gradcli.errors import GradcliError, type_error
from gradcli.language.limits import check_collection
from gradcli.language.objects.attributes import PerSession, get_attribute, set_attribute
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.types import called, type_name
from gradcli.library.torch.nn.module import Module
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.binding.functions import cuda, torch
from gradcli.state import active


def _no(*values: Any) -> bool:
    """What is not there."""
    return False


def _named(name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    def tell(*values: Any, **named: Any) -> Any:
        return answer(*values, **named)

    return called(name, tell)


def _setting(name: str, start: Any) -> PerSession:
    """A setting that each session has for itself; it takes values of the kind it starts with."""

    def kept() -> dict[str, Any]:
        return active.state.library.setdefault("torch.backends", {})

    def write(new: Any) -> None:
        if type(new) is not type(start):
            raise type_error(
                f"{name} takes a value of type {type_name(start)}, not {type_name(new)}"
            )
        kept()[name] = new

    return PerSession(lambda: kept().get(name, start), write)


def _current_accelerator(check_available: bool = False) -> Device | None:
    """The device that computes beside the CPU, None where there is none."""
    return Device("cuda") if cuda.is_available() else None


def _of_gpu(name: str) -> Callable[..., Any]:
    """A function of `torch.cuda`, where there is a GPU."""

    def call(*values: Any) -> Any:
        if not cuda.is_available():
            raise GradcliError("E604", "Cannot access accelerator device when none is available.")
        return modules["torch.cuda"][name](*values)

    return call


ACCELERATOR: dict[str, Any] = {
    "current_accelerator": _current_accelerator,
    "device_count": _named("device_count", lambda: cuda.device_count()),
    "is_available": _named("is_available", lambda: cuda.is_available()),
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
    "is_built": _named("is_built", lambda: cuda.is_available()),
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


class Flags:
    """`torch.backends.cudnn.flags(…)`: the context of settings that change nothing here."""

    __slots__ = ()

    language_name: ClassVar[str] = "contextlib._GeneratorContextManager"
    language_context: ClassVar[bool] = True

    def __init__(self, *settings: Any, **named: Any) -> None:
        """Take settings of a library that is not there."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        """Nothing was changed."""


_FLAGS = _named("flags", Flags)

CUDNN: dict[str, Any] = {
    **_UNAVAILABLE,
    "flags": _FLAGS,
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
    "flags": _FLAGS,
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
CPU_DEVICE: dict[str, Any] = {
    "current_device": _named("current_device", lambda: "cpu"),
    "device_count": _named("device_count", lambda: 1),
    "is_available": _named("is_available", lambda: True),
    "synchronize": _named("synchronize", lambda device=None: None),
}
"""What `torch.cpu` holds."""
DISTRIBUTED: dict[str, Any] = {**_UNAVAILABLE, "is_initialized": _named("is_initialized", _no)}

VERSION: dict[str, Any] = {
    "__version__": torch.__version__,
    "cuda": None,
    "debug": False,
    "git_version": "",
    "hip": None,
}
"""What `torch.version` holds: the version whose behaviour this is."""


# --- torch.random, torch.profiler -----------------------------------------------------------------


class ForkRng:
    """`torch.random.fork_rng()`: what is drawn inside leaves the session's generator as it was."""

    __slots__ = ("enabled", "state")

    language_name: ClassVar[str] = "torch.random.fork_rng"
    language_context: ClassVar[bool] = True

    def __init__(self, devices: Any = None, enabled: bool = True, **settings: Any) -> None:
        self.enabled = enabled

    def __enter__(self) -> None:
        self.state = torch.get_rng_state()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if self.enabled:
            torch.set_rng_state(self.state)


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


class OptimizedModule(Module):
    """What `torch.compile` makes of a module: it calls the module, and has its attributes."""

    language_name: ClassVar[str] = "torch._dynamo.eval_frame.OptimizedModule"

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.register("_orig_mod", module)
        self.train(module.training)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._modules["_orig_mod"](*args, **kwargs)

    def language_getattr(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules[name]
        return get_attribute(self._modules["_orig_mod"], name)

    def language_setattr(self, name: str, value: Any) -> None:
        set_attribute(self._modules["_orig_mod"], name, value)


def _warn(name: str) -> None:
    active.state.warn(
        "W025",
        f"{name}(): nothing is compiled: what it is given runs as it is written",
        help="results and gradients are the same; a trace shows each op of the function",
    )


def compile_function(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
    **settings: Any,
) -> Any:
    """The function itself, or a module that calls the one given; without either, what does that.

    Raises E202 for what cannot be called.

    Example: torch.compile(torch.sin)
    """
    if model is None:
        return called("compile", lambda function: compile_function(function, disable=disable))
    if not callable(model):
        raise type_error(f"compile() takes a function or a module, not {type_name(model)}")
    if disable:
        return model
    _warn("torch.compile")
    return OptimizedModule(model) if isinstance(model, Module) else model


def _as_it_is(name: str) -> Callable[..., Any]:
    """A decorator, with or without arguments, that changes nothing."""

    def mark(function: Any = None, *args: Any, **settings: Any) -> Any:
        return function if callable(function) else called(name, lambda function: function)

    return called(name, mark)


def script(obj: Any, *args: Any, **settings: Any) -> Any:
    """The function or module itself.

    Example: torch.jit.script(torch.sin)
    """
    _warn("torch.jit.script")
    return obj


def trace(func: Any, example_inputs: Any = None, **settings: Any) -> Any:
    """The function or module itself, called once with the inputs, a tensor or a tuple of some.

    Example: torch.jit.trace(torch.sin, torch.ones(2))
    """
    _warn("torch.jit.trace")
    if example_inputs is not None:
        inputs = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
        func(*inputs)
    return func


def _never() -> bool:
    """Nothing is compiled, traced or scripted."""
    return False


def _nothing() -> None:
    """There is nothing to forget."""


COMPILER: dict[str, Any] = {
    "allow_in_graph": _as_it_is("allow_in_graph"),
    "compile": called("compile", compile_function),
    "disable": _as_it_is("disable"),
    "is_compiling": called("is_compiling", _never),
    "is_dynamo_compiling": called("is_dynamo_compiling", _never),
    "is_exporting": called("is_exporting", _never),
    "reset": called("reset", _nothing),
}
"""What `torch.compiler` holds."""

JIT: dict[str, Any] = {
    "export": _as_it_is("export"),
    "ignore": _as_it_is("ignore"),
    "is_scripting": called("is_scripting", _never),
    "is_tracing": called("is_tracing", _never),
    "script": script,
    "script_if_tracing": _as_it_is("script_if_tracing"),
    "trace": trace,
    "unused": _as_it_is("unused"),
}
"""What `torch.jit` holds."""
