"""`torch.compile`: a function as it is, a module inside another of PyTorch's name for it.

A program's numbers and graphs are those of the program as it is written, as they are in PyTorch;
what gradcli compiles it finds for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.errors import type_error
from gradcli.language.objects.attributes import get_attribute
from gradcli.nn.module import Module


class OptimizedModule(Module):
    """What `torch.compile(module)` returns: the module, `_orig_mod` in it, and its attributes."""

    language_name: ClassVar[str] = "torch._dynamo.eval_frame.OptimizedModule"

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.register("_orig_mod", module)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._modules["_orig_mod"](*args, **kwargs)

    def language_getattr(self, name: str) -> Any:
        """An attribute of this module, or else of the one in it."""
        try:
            return super().language_getattr(name)
        except AttributeError:
            return get_attribute(super().language_getattr("_orig_mod"), name)


def compile_(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
) -> Any:
    """`torch.compile(model)`, and `@torch.compile` with or without settings, which change nothing.

    Example: torch.compile(torch.sin)(tensor([1., 2.]))
    """
    if model is None:
        return lambda model: compile_(model, disable=disable)
    if not callable(model):
        raise type_error(f"torch.compile() takes a function or a module, not {model}")
    return OptimizedModule(model) if isinstance(model, Module) and not disable else model


def _unchanged(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """`torch.compiler.disable`: a function as it is."""
    return fn if fn is not None else lambda fn: fn


def _nothing() -> None:
    """There is nothing compiled to forget."""


def _no() -> bool:
    """What is not so."""
    return False


_TELL: dict[str, Callable[..., Any]] = dict.fromkeys(
    ("is_compiling", "is_dynamo_compiling", "is_exporting"), _no
)

COMPILER: dict[str, Any] = {
    "compile": compile_,
    "disable": _unchanged,
    "reset": _nothing,
    **_TELL,
}
"""What `torch.compiler` holds."""
