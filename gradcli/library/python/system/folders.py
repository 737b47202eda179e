"""The modules `glob` and `tempfile`, and what `os` does with folders, through the gate of files."""

from __future__ import annotations

import glob as host
import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Any, ClassVar
from weakref import finalize

from gradcli.errors import GradcliError, value_error
from gradcli.language.objects.exceptions import Raised
from gradcli.language.objects.iteration import Iterator, bounded, drawing
from gradcli.language.objects.types import (
    EXCEPTIONS,
    EnteredAsItself,
    by_name,
    called,
    check_kind,
    names,
)
from gradcli.library.files import Buffer, file_name
from gradcli.state import State, active


def refused(error: OSError) -> GradcliError:
    """The error of the language for one of the system's: of its class, with its text."""
    name = type(error).__name__
    return Raised(name if name in EXCEPTIONS else "OSError", str(error), error.args, "E502")


def listdir(path: Any = ".", /) -> list[str]:
    """`os.listdir(path)`: the names in a folder.

    Raises:
        GradcliError: E502 where the folder cannot be read, E606 where files are out of bounds.
    """
    folder = file_name("listdir()", path, "a path")
    active.state.limits.check_file(folder)
    try:
        return list(bounded(os.listdir(folder)))
    except OSError as error:
        raise refused(error) from error


def _make(make: Callable[..., None], path: Any, *settings: Any) -> None:
    """Make a folder; E606 where files are out of bounds, E603 where it cannot be made."""
    folder = file_name(f"{make.__name__}()", path, "a path")
    active.state.limits.check_file(folder)
    try:
        make(folder, *settings)
    except OSError as error:
        raise _unwritten(error) from error


def _unwritten(error: OSError) -> GradcliError:
    failure = refused(error)
    failure.code = "E603"
    return failure


def mkdir(path: Any, mode: int = 0o777) -> None:
    """`os.mkdir(path)`: make a folder; raises E603 where there is one, or none around it."""
    _make(os.mkdir, path, mode)


def makedirs(name: Any, mode: int = 0o777, exist_ok: bool = False) -> None:
    """`os.makedirs(name)`: make a folder and those around it; raises E603 where there is one,
    unless that is `exist_ok`.
    """
    _make(os.makedirs, name, mode, bool(exist_ok))


def iglob(
    pathname: str,
    *,
    root_dir: Any = None,
    recursive: bool = False,
    include_hidden: bool = False,
) -> Iterator:
    """`glob.iglob(pattern)`: the paths that a pattern matches; raises E606 where files are out of
    bounds.
    """
    check_kind(pathname, str, "glob() takes a pattern")
    root = None if root_dir is None else file_name("glob()", root_dir, "a path")
    active.state.limits.check_file(root or pathname)
    paths = host.iglob(
        pathname, root_dir=root, recursive=bool(recursive), include_hidden=bool(include_hidden)
    )
    return drawing("generator", paths)


def glob(pathname: str, **named: Any) -> list[str]:
    """`glob.glob(pattern)`: the same as a list."""
    return list(bounded(iglob(pathname, **named)))


GLOB: dict[str, Any] = {
    **by_name(glob, iglob),
    "escape": called("escape", lambda pathname, /: host.escape(file_name("escape()", pathname))),
    "has_magic": called("has_magic", lambda s, /: host.has_magic(file_name("has_magic()", s))),
}
"""What `glob` holds."""


# --- temporary files and folders ------------------------------------------------------------------


def _delete(path: str, ignore_errors: bool) -> None:
    State.temporary.discard(path)
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError as error:
        if not ignore_errors:
            raise refused(error) from error


def gettempdir() -> str:
    """`tempfile.gettempdir()`: the folder of temporary files."""
    folder = tempfile.gettempdir()
    active.state.limits.check_file(folder)
    return folder


def _placed(make: Callable[..., Any], dir: Any, **settings: Any) -> Any:
    """A new temporary file or folder; E606 where files are out of bounds, E603 where it cannot be
    made.
    """
    folder = gettempdir() if dir is None else file_name("tempfile", dir, "a path")
    active.state.limits.check_file(folder)
    try:
        return make(dir=folder, **settings)
    except OSError as error:
        raise _unwritten(error) from error


def mkdtemp(suffix: str | None = None, prefix: str | None = None, dir: Any = None) -> str:
    """`tempfile.mkdtemp()`: the path of a new folder, which the program leaves behind."""
    path: str = _placed(tempfile.mkdtemp, dir, suffix=_part(suffix), prefix=_part(prefix))
    return path


def _part(text: str | None) -> str | None:
    """A part of a file's name; raises E202 for another value, E204 for one with a folder in it."""
    if text is None:
        return None
    check_kind(text, str, "a suffix and a prefix are texts")
    if "/" in text or "\0" in text:
        raise value_error(f"{text!r} is no part of a file's name")
    return text


class TemporaryDirectory(EnteredAsItself):
    """`tempfile.TemporaryDirectory()`: a folder that goes with what is in it, at the end of the
    `with`, by `cleanup()`, and with the program.
    """

    language_name: ClassVar[str] = "tempfile.TemporaryDirectory"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"cleanup", "name"})

    def __init__(
        self,
        suffix: str | None = None,
        prefix: str | None = None,
        dir: Any = None,
        ignore_cleanup_errors: bool = False,
    ) -> None:
        self.name = mkdtemp(suffix, prefix, dir)
        # It deletes the folder when it is called, with its owner, or with the process.
        active.state.temporary.add(self.name)
        self._finalizer = finalize(self, _delete, self.name, ignore_cleanup_errors)

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.cleanup()

    def cleanup(self) -> None:
        """Delete the folder with what is in it."""
        self._finalizer()

    def __repr__(self) -> str:
        return f"<TemporaryDirectory {self.name!r}>"


class TemporaryFile(Buffer):
    """`tempfile.NamedTemporaryFile()`: a file that goes when it is closed."""

    __slots__ = ()

    language_name: ClassVar[str] = "tempfile._TemporaryFileWrapper"
    language_attributes = names("""close closed flush mode name read readline readlines seek tell
        truncate write""")

    @property
    def content(self) -> Any:
        """What is written: bytes, or a text."""
        return bytes if "b" in self.host.mode else str

    @property
    def name(self) -> str:
        """Its path."""
        path: str = self.host.name
        return path

    def close(self) -> None:
        """Close the file, and delete it."""
        self.host.close()
        State.temporary.discard(self.name)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.close()

    def __iter__(self) -> Any:
        return iter(self.host)


_MODES = names("w w+ w+b wb r+b r+ x+b")


def named_temporary_file(
    mode: str = "w+b",
    buffering: int = -1,
    encoding: str | None = None,
    newline: str | None = None,
    suffix: str | None = None,
    prefix: str | None = None,
    dir: Any = None,
    delete: bool = True,
) -> TemporaryFile:
    """`tempfile.NamedTemporaryFile()`; raises E204 for a mode that does not write."""
    if mode not in _MODES:
        raise value_error(f"NamedTemporaryFile() has no mode {mode!r}")
    file = _placed(
        tempfile.NamedTemporaryFile, dir, mode=mode, suffix=_part(suffix), prefix=_part(prefix),
        encoding=None if "b" in mode else "utf-8", newline=newline, delete=bool(delete),
    )  # fmt: skip
    if delete:
        active.state.temporary.add(file.name)
    return TemporaryFile(file)


TEMPFILE: dict[str, Any] = {
    "NamedTemporaryFile": called("NamedTemporaryFile", named_temporary_file),
    "TemporaryFile": called("TemporaryFile", named_temporary_file),
    **by_name(TemporaryDirectory, gettempdir, mkdtemp),
}
"""What `tempfile` holds."""
