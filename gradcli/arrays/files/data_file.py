"""A file of data as a person names it, `[FORMAT:]FILE[:KEY]`, and the errors of one."""

from __future__ import annotations

import math
import os
import re
import stat
import sys
from collections.abc import Iterable
from typing import IO, Any

from gradcli.arrays.files.gate import exists, opened
from gradcli.errors import GradcliError
from gradcli.record import Record
from gradcli.state import active

FORMATS = ("npy", "npz", "csv", "json", "safetensors")
"""The formats by their names, which are their suffixes as well."""

STDIN = "-"
"""The file that is standard input."""

_MOST_DIMENSIONS = 64
_LARGEST_ARRAY = 1 << 60

_SUFFIX = re.compile(rf"\.({'|'.join(FORMATS)}|tsv)\b", re.IGNORECASE)

_MOST_NAMES = 10
_BLOCK = 1 << 20


def has_suffix(text: str) -> bool:
    """Whether a text names a file by the suffix of a format."""
    return _SUFFIX.search(text) is not None


class DataFile(Record):
    """A file of data, or standard input."""

    path: str
    key: str = ""
    format: str = ""

    @classmethod
    def named(cls, text: str) -> DataFile:
        """The file that `[FORMAT:]FILE[:KEY]` names; raises E606 out of bounds, E502 for none."""
        format = ""
        head, colon, rest = text.partition(":")
        prefixed = bool(colon) and head in FORMATS
        if (rest if prefixed else text).partition(":")[0] != STDIN:
            # Where files are out of bounds, even their existence is not revealed.
            active.state.limits.check_file(text)
        if prefixed and not exists(text):
            format, text = head, rest
        path, key = _split(text)
        if not path:
            raise GradcliError("E502", "no file is named", help="name one behind `@`: @x.npy")
        if not format and path != STDIN:
            suffix = os.path.splitext(path)[1].lower().removeprefix(".")
            format = "csv" if suffix == "tsv" else suffix if suffix in FORMATS else ""
        return cls(path, key, format)

    @property
    def name(self) -> str:
        """What messages call it."""
        return "stdin" if self.path == STDIN else self.path

    def content(self) -> bytes:
        """All of it; raises E502 where it cannot be read, E602 where it is too large."""
        if self.path == STDIN:
            return self._arriving(sys.stdin.buffer)
        limits = active.state.limits
        try:
            with opened(self.path) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    return self._arriving(file)
                limits.check_file_size(self.path, status.st_size)
                return file.read()
        except (OSError, ValueError) as error:
            raise unreadable(self.path, error) from error

    def _arriving(self, stream: IO[bytes]) -> bytes:
        """What a stream brings, stopped where it becomes too large: it may have no end."""
        limits = active.state.limits
        blocks: list[bytes] = []
        size = 0
        while block := stream.read(_BLOCK):
            blocks.append(block)
            size += len(block)
            limits.check_file_size(self.name, size)
        return b"".join(blocks)

    def decoded(self, data: bytes) -> str:
        """The text of a file in UTF-8; raises E504 with the line of a byte that is none."""
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            reason = f"the byte 0x{data[error.start]:02x} is not UTF-8"
            raise self.damaged(f"line {line}", reason) from error

    def damaged(self, place: str, message: str, help: str | None = None) -> GradcliError:
        """The error of a damaged content.

        Args:
            place: the position, as `line 3` or `byte 10`; "" for the whole file.
        """
        where = f"{self.name}: {place}: " if place else f"{self.name}: "
        return GradcliError("E504", where + message, help=help)

    def unfit(self, place: str, message: str, help: str | None = None) -> GradcliError:
        """The error of an undamaged content that no array of PyTorch's can hold."""
        where = f"{self.name}: {place}: " if place else f"{self.name}: "
        return GradcliError("E505", where + message, help=help)

    def missing(self, what: str, key: str, names: Iterable[str]) -> GradcliError:
        """The error of a key that the file does not have.

        Args:
            what: what keys stand for in it: `array`, `column`.
            key: the key, "" where none was given and one is needed.
        """
        known = list(names)
        listed = _listed(known)
        if not known:
            return GradcliError("E506", f"{self.name}: the file holds no {what}")
        if not key:
            return GradcliError(
                "E506",
                f"{self.name}: the file holds {len(known)} {what}s: {listed}",
                help=f"name one: {self.path}:{known[0]}",
            )
        from difflib import get_close_matches

        near = get_close_matches(key, known, n=1)
        return GradcliError(
            "E506",
            f"{self.name}: there is no {what} {key!r}: the file holds {listed}",
            help=f"did you mean `{near[0]}`?" if near else None,
        )


def is_shape(sizes: Any) -> bool:
    """Whether a file's word for a shape is one that an array can have."""
    if not isinstance(sizes, (list, tuple)) or len(sizes) > _MOST_DIMENSIONS:
        return False
    if any(type(size) is not int or size < 0 for size in sizes):
        return False
    # An empty array could claim anything for its other sizes.
    return math.prod(size for size in sizes if size) < _LARGEST_ARRAY


def unreadable(path: str, error: Exception) -> GradcliError:
    """The error of a file that the system does not let us read."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    said, raises = _REASONS.get(type(error), (reason.lower(), None))
    number = getattr(error, "errno", None)
    text = None if number is None else f"[Errno {number}] {reason}: {path!r}"
    return GradcliError("E502", f"{path}: {said}", raises=raises, text=text)


_REASONS: dict[type[Exception], tuple[str, str | None]] = {
    FileNotFoundError: ("no such file", "FileNotFoundError"),
    IsADirectoryError: ("is a folder", "IsADirectoryError"),
    PermissionError: ("may not be read", "PermissionError"),
}


def _listed(names: list[str]) -> str:
    """Names for a message: each on its line would be many, and a name may hold anything."""
    shown = [name if name.isprintable() and name else repr(name) for name in names[:_MOST_NAMES]]
    return ", ".join(shown) + (f", … ({len(names):,} in all)" if len(names) > _MOST_NAMES else "")


def _split(text: str) -> tuple[str, str]:
    """The path and the key in `FILE[:KEY]`, either of which may hold colons."""
    if text.partition(":")[0] == STDIN:
        return STDIN, text[2:]
    if exists(text):
        return text, ""
    at = text.find(":")
    while at >= 0:
        if exists(text[:at]):
            return text[:at], text[at + 1 :]
        at = text.find(":", at + 1)
    suffix = _SUFFIX.search(text)
    if suffix is not None and text[suffix.end() : suffix.end() + 1] == ":":
        return text[: suffix.end()], text[suffix.end() + 1 :]
    return text, ""
