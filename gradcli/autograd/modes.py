"""Grad modes: whether operations are recorded. Each is a context, and a decorator for functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error
from gradcli.state import active


def _set_inference(mode: bool) -> None:
    state = active.state
    state.inference = mode
    state.notes_creation = mode or state.born is not None


def name_of(function: Any) -> str:
    """The name of a function of the program or of ours; "function" for a module or an object."""
    for attribute in ("name", "__name__"):
        try:
            name = getattr(function, attribute, None)
        except GradcliError:  # what a module says of an attribute that it has not
            continue
        if isinstance(name, str) and name:
            return name
    return "function"


def decorated(context: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is run in a context."""

    def in_context(*args: Any, **kwargs: Any) -> Any:
        with context:
            return function(*args, **kwargs)

    in_context.__name__ = name_of(function)
    # In a class it is a method, as the function itself would be.
    vars(in_context)["language_decorated"] = True
    return in_context


class GradMode:
    """Sets whether gradients are recorded, until the context is left."""

    __slots__ = ("before", "enabled")

    language_context: ClassVar[bool] = True

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self.before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        state = active.state
        self.before.append((state.grad_enabled, state.inference))
        state.grad_enabled = self.enabled and not state.inference

    def __exit__(self, *exception: object) -> None:
        active.state.grad_enabled, inference = self.before.pop()
        _set_inference(inference)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, run in this mode; a generator is in it each time it goes on."""
        if not getattr(function, "makes_generator", False):
            return decorated(self, function)

        def resumed(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs).resume_in(self)

        resumed.__name__ = name_of(function)
        vars(resumed).update(language_decorated=True, makes_generator=True)
        return resumed


class _Fixed(GradMode):
    """A mode that the class names."""

    __slots__ = ()

    records: ClassVar[bool]

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """The mode; `@torch.no_grad` without parentheses gives the function in it."""
        return object.__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(self.records)


class NoGrad(_Fixed):
    """`torch.no_grad()`: nothing is recorded.

    Example: torch.no_grad()
    """

    __slots__ = ()

    language_name = "torch.autograd.grad_mode.no_grad"
    records = False


class EnableGrad(_Fixed):
    """`torch.enable_grad()`: operations are recorded, also inside `no_grad`.

    Example: torch.enable_grad()
    """

    __slots__ = ()

    language_name = "torch.autograd.grad_mode.enable_grad"
    records = True


class SetGradEnabled(GradMode):
    """`torch.set_grad_enabled(mode)`: takes effect at once, and ends with the context where it is
    used as one.

    Example: torch.set_grad_enabled(True)
    """

    __slots__ = ()

    language_name = "torch.autograd.grad_mode.set_grad_enabled"

    def __init__(self, mode: bool) -> None:
        if type(mode) is not bool:
            raise type_error(f"set_grad_enabled() takes True or False, not {type(mode).__name__}")
        super().__init__(mode)
        state = active.state
        self.before.append((state.grad_enabled, state.inference))
        state.grad_enabled = self.enabled

    def __enter__(self) -> None:
        active.state.grad_enabled = self.enabled

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, run in this mode; the mode set at once is taken back."""
        self.__exit__()
        mode = GradMode(self.enabled)
        return mode(function)


class InferenceMode(GradMode):
    """`torch.inference_mode()`: nothing is recorded.

    Example: torch.inference_mode()
    """

    __slots__ = ("inference",)

    language_name = "torch.autograd.grad_mode.inference_mode"

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        """The mode, or the function in it, as for `no_grad`."""
        return cls()(mode) if callable(mode) else object.__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)
        self.inference = mode

    def __enter__(self) -> None:
        self.before.append((active.state.grad_enabled, active.state.inference))
        active.state.grad_enabled = self.enabled
        _set_inference(self.inference)


def is_grad_enabled() -> bool:
    """Whether operations are recorded now.

    Example: torch.is_grad_enabled()
    """
    return active.state.grad_enabled


def is_inference_mode_enabled() -> bool:
    """Whether `torch.inference_mode()` is on.

    Example: torch.is_inference_mode_enabled()
    """
    return active.state.inference
