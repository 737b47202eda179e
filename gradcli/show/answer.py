"""What a question found, ready to be shown in either of its two forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.record import Record
from gradcli.show.style import Style


class Answer(Record):
    """What a question found.

    Attributes:
        text: writes it for a person, with a line end.
        document: the same as a JSON object.
    """

    text: Callable[[Style], str]
    document: Callable[[], dict[str, Any]]

    def shown(self, format: str, style: Style) -> str:
        """The answer as JSON for the formats `json` and `jsonl`, as text for all others."""
        if format not in ("json", "jsonl"):
            return self.text(style)
        from gradcli.show.json import text  # lazy: start-up: JSON

        return text(self.document(), compact=format == "jsonl")
