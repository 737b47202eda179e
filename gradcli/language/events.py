"""What a running program shows, as data: `state.emit` receives one of these at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.errors import Warned as Warned

if TYPE_CHECKING:
    from gradcli.autograd.tensor import Tensor


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
