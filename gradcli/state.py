"""The state of a session: everything that changes while programs run and is not a tensor or a node.

One slotted object per session, reached as `active.state`; sessions do not share it, and one thread
runs one session. Nothing else in gradcli holds state. This module imports nothing of gradcli but
`errors`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.errors import Span


class PrintOptions:
    """How tensors are written; the defaults are those of `torch.set_printoptions`."""

    __slots__ = ("edgeitems", "linewidth", "precision", "sci_mode", "threshold")

    def __init__(self) -> None:
        self.precision = 4
        self.threshold: float = 1000
        self.edgeitems = 3
        self.linewidth = 80
        self.sci_mode: bool | None = None


class State:
    """What a session remembers between two operations.

    Attributes:
        grad_enabled: whether operations are recorded in the graph.
        inference: whether `torch.inference_mode` is on.
        sequence_nr: the number of the node made last; a node's own number orders the backward pass.
        object_ids: how many objects have been given a printed number (`<MulBackward0 object at
            0x3>`).
        place: the source text of the operation at hand, or None outside a program.
        stack: the language functions being called, outermost first: `(name, place of the call)`.
        default_dtype: the dtype of new floating tensors, as the name of a dtype.
        print_options: how tensors are written.
        recorder: receives every operation and every backward step, or None when nobody asked.
        emit: receives what a program shows (text, traces) as it runs.
        generators: random generators by device, made when first used.
    """

    __slots__ = (
        "default_dtype",
        "emit",
        "generators",
        "grad_enabled",
        "inference",
        "object_ids",
        "place",
        "print_options",
        "recorder",
        "sequence_nr",
        "stack",
    )

    def __init__(self, emit: Callable[[Any], None] | None = None) -> None:
        self.grad_enabled = True
        self.inference = False
        self.sequence_nr = 0
        self.object_ids = 0
        self.place: Span | None = None
        self.stack: list[tuple[str, Span | None]] = []
        self.default_dtype = "float32"
        self.print_options = PrintOptions()
        self.recorder: Any = None
        self.emit: Callable[[Any], None] = emit or (lambda event: None)
        self.generators: dict[str, Any] = {}


class _Active(threading.local):
    """The state of the session that this thread runs; a thread outside any session has one of its
    own.
    """

    def __init__(self) -> None:
        self.state = State()


active = _Active()
