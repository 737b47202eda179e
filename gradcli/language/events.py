"""The events of a running program, as data: `state.emit` receives one at a time."""

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


class Explained:
    """A tensor whose gradients `explain` or `derive` asked to show.

    Attributes:
        derived: whether their formulas are wanted, not the ledger of the backward pass.
    """

    __slots__ = ("derived", "tensor")

    def __init__(self, tensor: Tensor, derived: bool) -> None:
        self.tensor = tensor
        self.derived = derived


class Asked:
    """A question about the run so far: `why`, `blame` or `check`.

    Attributes:
        question: what `why` is asked, "" for the others.
    """

    __slots__ = ("command", "question")

    def __init__(self, command: str, question: str = "") -> None:
        self.command = command
        self.question = question
