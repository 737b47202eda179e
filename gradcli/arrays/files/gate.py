"""The gate to every file that a command line or a program names: none is opened, or asked about,
where files are out of bounds. Program files beside a script, what `from model import Net` reads,
come through it too.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import IO

from gradcli.errors import GradcliError
from gradcli.state import active


def opened(path: str, *, is_program: bool = False) -> IO[bytes]:
    """A file open for reading. A named pipe is waited for no longer than the limit of time says.

    Args:
        path: the file.
        is_program: whether it is the program that the command line names, which is never out of
            bounds.

    Raises:
        OSError: the system does not open it; ValueError: it is no name of a file.
        GradcliError: E606 where files are out of bounds, E607 where nobody writes to a pipe.
    """
    state = active.state
    limits = state.limits
    if not is_program:
        limits.check_file(path)
    if limits.seconds is None or not stat.S_ISFIFO(os.stat(path).st_mode):
        return open(path, "rb")
    import select  # lazy: start-up

    file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")  # noqa: SIM115
    try:
        if not select.select([file], [], [], limits.seconds)[0]:
            error = limits.out_of_time()
            error.span, error.stack = state.place, tuple(state.stack)
            raise error
        os.set_blocking(file.fileno(), True)
    except BaseException:  # the end of the program's own time too
        file.close()
        raise
    return file


def exists(path: str) -> bool:
    """Whether there is a file, or a folder, of this name; where files are out of bounds there is
    none.
    """
    return active.state.limits.files and os.path.exists(path)


def program_stamps(path: str) -> dict[str, tuple[int, int]]:
    """When a program's file, and those beside it that it may import, were written, and their sizes;
    a file that is not there is left out.
    """
    folder = os.path.dirname(path)
    names = [path]
    if active.state.limits.files:
        with suppress(OSError):
            beside = sorted(os.listdir(folder or "."))
            names += [os.path.join(folder, n) for n in beside if n.endswith((".py", ".grad"))]
    stamps = {}
    for name in names:
        with suppress(OSError, ValueError):
            status = os.stat(name)
            stamps[name] = status.st_mtime_ns, status.st_size
    return stamps


def is_file(path: str) -> bool:
    """Whether a name is that of a file; where files are out of bounds none is."""
    return active.state.limits.files and os.path.isfile(path)


# --- program files --------------------------------------------------------------------------------


LARGEST_PROGRAM = 4_000_000
"""Bytes of a program file, and of one line of standard input: ten seconds of reading."""

DOCUMENTS = (".ipynb", ".md", ".markdown")
"""Suffixes of the documents that programs can be in."""


def program_beside(folder: str, module: str, *, of_python: bool = False) -> tuple[str, str] | None:
    """The path and the text of a module's file in a folder, None where there is none.

    `model` is `model.py`, `models.net` is `models/net.py`, and a folder is its `__init__.py`;
    unless it has to be `of_python`, it may be `model.grad`.

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
    own = () if of_python else (f"{stem}.grad",)
    for path in (f"{stem}.py", os.path.join(stem, "__init__.py"), *own):
        if is_file(path):
            return path, _text(path)
    return None


def is_folder_beside(folder: str, module: str) -> bool:
    """Whether a module is a folder of modules in a folder; raises E606 where files are out of
    bounds.
    """
    path = os.path.join(folder, *module.split("."))
    active.state.limits.check_file(path)
    return os.path.isdir(path)


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
