"""The answer to a question about a program, for Python."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from gradcli.errors import Warned


@dataclass(frozen=True)
class Answer:
    """What a question found.

    Attributes:
        text: as the command line prints it.
        data: as `--json` prints it, with its schema.
        passed: False where `check` found a wrong gradient, or `blame` a number that is not finite.
        warnings: what is likely a mistake in the program.
    """

    text: str
    data: dict[str, Any]
    passed: bool
    warnings: tuple[Warned, ...] = ()

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return self.passed

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"
