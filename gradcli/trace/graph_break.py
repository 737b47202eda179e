"""Graph breaks: why recording ended, for a person, with place, reason, and what to write
instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.errors import Span


class GraphBreak(Exception):
    """What runs cannot be expressed in a trace.

    Attributes:
        reason: what could not be recorded, for a person.
        span: where it happened; None until a caller, which knows it, sets it.
        code: its kind, by the table in `gradcli help speed`: mostly, that there is no instruction
            for what runs.
    """

    def __init__(
        self, reason: str, hint: str | None = None, span: Span | None = None, code: str = "B06"
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.hint = hint
        self.span = span
