"""Graph breaks: why recording ended, for a person, with place, reason, and what to write
instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.errors import Span

TITLES = {
    "B01": "a value that the trace does not know",
    "B02": "a call that cannot be made again",
    "B03": "too many instructions",
    "B04": "an array that compiled code does not take",
    "B05": "a check of values that comes too late",
    "B06": "something that the trace has no instruction for",
    "B07": "too many paths through the body",
    "B08": "values that change too often",
    "B09": "a compiled iteration that did something else",
    "B10": "nothing to gain",
}
"""The kinds of breaks, by their code."""


class GraphBreak(Exception):
    """What runs cannot be expressed in a trace.

    Attributes:
        reason: what could not be recorded, for a person.
        span: where it happened; None until a caller, which knows it, sets it.
    """

    def __init__(
        self, code: str, reason: str, hint: str | None = None, span: Span | None = None
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.hint = hint
        self.span = span
