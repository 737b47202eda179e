"""What a code of an error or a warning stands for. Imports nothing of gradcli."""

from __future__ import annotations


class Code:
    """What a code stands for: the Python class it raises, the stage it belongs to, its exit code
    and its long text.
    """

    __slots__ = ("example", "exit_code", "explanation", "raises", "stage", "title")

    def __init__(
        self,
        title: str,
        raises: str,
        stage: str,
        explanation: str,
        example: str = "",
        exit_code: int = 3,
    ) -> None:
        self.title = title
        self.raises = raises
        self.stage = stage
        self.explanation = explanation
        self.example = example
        self.exit_code = exit_code
