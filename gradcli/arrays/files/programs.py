"""Program files beside a script: what `from model import Net` reads."""

from __future__ import annotations

import os

from gradcli.arrays.files.gate import is_file, opened
from gradcli.errors import GradcliError
from gradcli.state import active

LARGEST_PROGRAM = 4_000_000
"""Bytes of a program file, and of one line of standard input: ten seconds of reading."""

DOCUMENTS = (".ipynb", ".md", ".markdown")
"""Suffixes of the documents that programs can be in."""


def program_beside(folder: str, module: str) -> tuple[str, str] | None:
    """The path and the text of a module's file in a folder, None where there is none.

    `model` is `model.py`, `models.net` is `models/net.py`, and a folder is its `__init__.py`.

    Raises:
        GradcliError: E606 where files are out of bounds, E503 for one that cannot be read, E602
            for one that is too large.
    """
    parts = module.split(".")
    stem = os.path.join(folder, *parts)
    try:
        active.state.limits.check_file(f"{stem}.py")
    except GradcliError as error:
        error.raises = "ModuleNotFoundError"  # for `except ImportError` there is no module
        raise
    if not all(part.isidentifier() for part in parts):
        return None
    for path in (f"{stem}.py", os.path.join(stem, "__init__.py"), f"{stem}.grad"):
        if is_file(path):
            return path, _text(path)
    return None


def _text(path: str) -> str:
    try:
        with opened(path) as file:
            data = file.read(LARGEST_PROGRAM + 1)
        if len(data) > LARGEST_PROGRAM:
            raise GradcliError(
                "E602", f"{path}: a program is too large beyond {LARGEST_PROGRAM:,} bytes"
            )
        return data.decode("utf-8-sig")
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise GradcliError("E503", f"{path}: {reason}") from error
    except UnicodeDecodeError as error:
        raise GradcliError("E503", f"{path} is not UTF-8") from error
