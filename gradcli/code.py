"""What a code of an error or a warning stands for. Imports nothing of gradcli."""

from __future__ import annotations


class Code:
    """What a code stands for: a title, the Python class it raises, the stage it belongs to and its
    exit code.
    """

    __slots__ = ("exit_code", "raises", "stage", "title")

    def __init__(self, title: str, raises: str, stage: str, exit_code: int = 3) -> None:
        self.title = title
        self.raises = raises
        self.stage = stage
        self.exit_code = exit_code
