"""What `why` reports: a value, the reason, and the places that show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.autograd.graph import GraphNode
from gradcli.questions.why.detachments import Detachment
from gradcli.record import Record


class LeftOut(str):
    """What stands for a value whose numbers are not known."""

    def __repr__(self) -> str:
        return str(self)


class Why(Record):
    """The answer to a question.

    Attributes:
        question: such as `x.grad`.
        kind: a word for the reason, for machines: `carried`, `cut`, `unused`, …
        detachments: the operations that show it: where a gradient ends, above all.
        path: the nodes that carry the gradient, from the output to the tensor.
    """

    question: str
    value: Any
    kind: str
    reason: str
    detachments: Sequence[Detachment] = ()
    path: Sequence[GraphNode] = ()
