"""What a running program shows, as data: `state.emit` receives one of these at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.autograd.tensor import Tensor
    from gradcli.errors import Span


class Printed:
    """Text that `print` wrote, with its line end."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Traced:
    """A tensor whose graph `trace` asked to show, in the style `tree`, `next` or `steps`."""

    __slots__ = ("style", "tensor")

    def __init__(self, tensor: Tensor, style: str) -> None:
        self.tensor = tensor
        self.style = style


class Warned:
    """A warning: what was noticed, where, and the mend."""

    __slots__ = ("code", "help", "message", "span")

    def __init__(
        self, code: str, message: str, span: Span | None = None, help: str | None = None
    ) -> None:
        self.code = code
        self.message = message
        self.span = span
        self.help = help
