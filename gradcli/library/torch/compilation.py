"""`torch.compile`, `torch.compiler` and `torch.jit`: what is given to them runs as it is written.

PyTorch promises the same results of compiled code, to rounding; a warning says that nothing is
compiled, since the graph is that of the function as written and not one node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.errors import type_error
from gradcli.language.objects.attributes import get_attribute, set_attribute
from gradcli.language.objects.types import called, type_name
from gradcli.library.torch.nn.module import Module
from gradcli.state import active


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


def _no() -> bool:
    """Nothing is compiled, traced or scripted."""
    return False


def _nothing() -> None:
    """There is nothing to forget."""


COMPILER: dict[str, Any] = {
    "allow_in_graph": _as_it_is("allow_in_graph"),
    "compile": called("compile", compile_function),
    "disable": _as_it_is("disable"),
    "is_compiling": called("is_compiling", _no),
    "is_dynamo_compiling": called("is_dynamo_compiling", _no),
    "is_exporting": called("is_exporting", _no),
    "reset": called("reset", _nothing),
}
"""What `torch.compiler` holds."""

JIT: dict[str, Any] = {
    "export": _as_it_is("export"),
    "ignore": _as_it_is("ignore"),
    "is_scripting": called("is_scripting", _no),
    "is_tracing": called("is_tracing", _no),
    "script": script,
    "script_if_tracing": _as_it_is("script_if_tracing"),
    "trace": trace,
    "unused": _as_it_is("unused"),
}
"""What `torch.jit` holds."""
