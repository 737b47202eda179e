"""Reading a file of data in whatever format it has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gradcli.arrays.files.data_file import STDIN, DataFile

_PLAIN_NUMBER = re.compile(rb"\s*[+-]?[\d.][\w.+-]*\s*")
_TEXTS = ("csv", "json")


def read(file: DataFile) -> Any:
    """What a file holds: an array, a mapping of arrays by name, or the value of a JSON text.

    Archives read an array when it is asked for.

    Raises:
        GradcliError: E502 where the file cannot be read, E504 where it is damaged, E505 where it
            holds what makes no tensor, E506 where it has no such key, E602 where it is too large.
    """
    data = b""
    if not file.format:
        data = file.content()
        file.format = sniffed(data)
        if not file.format:
            raise file.unfit(
                "",
                "the file is a pickle, which could run any code",
                help="save it from Python as .npy, .npz or .safetensors",
            )
        file = _Held(file.path, file.key, file.format, data)
    if file.format == "npy":
        from gradcli.arrays.files.npy import decode  # lazy: start-up: one format

        if file.key:
            raise file.missing("array", file.key, ())
        return decode(file, file.content())
    if file.format in ("npz", "safetensors"):
        return _part(file)
    if file.format == "csv":
        from gradcli.arrays.files.csv import decode as table  # lazy: start-up: one format

        return table(file, file.content())
    from gradcli.arrays.files.json import decode as document  # lazy: start-up: one format

    return document(file, file.content())


def read_one(file: DataFile) -> Any:
    """The one array or value of a file; raises E506 where several are, and as `read` does."""
    value = read(file)
    if isinstance(value, Mapping) and file.format not in _TEXTS:
        if len(value) != 1:
            raise file.missing("array", "", value)
        return next(iter(value.values()))
    return value


def is_text(file: DataFile) -> bool:
    """Whether a file that was read holds numbers as text, which have no dtype of their own."""
    return file.format in _TEXTS


class _Held(DataFile):
    """A file whose content has been read."""

    data: bytes = b""

    def content(self) -> bytes:
        return self.data


def _part(file: DataFile) -> Any:
    """An archive, or the array in it that the key names."""
    archive: Mapping[str, Any]
    if file.format == "npz":
        from gradcli.arrays.files.npy import Archive  # lazy: start-up: one format

        archive = Archive(file)
    else:
        from gradcli.arrays.files.safetensors import (  # lazy: start-up: one format
            Archive as Safetensors,
        )

        archive = Safetensors(file)
    if not file.key:
        return archive
    if file.key not in archive:
        raise file.missing("array", file.key, archive)
    return archive[file.key]


def sniffed(data: bytes) -> str:
    """The format of a content, "" for a pickle."""
    if data.startswith(b"\x93NUMPY"):
        return "npy"
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "npz"
    if data[:1] == b"\x80" and data[1:2] in b"\x02\x03\x04\x05":
        return ""
    if data[8:9] == b"{" and int.from_bytes(data[:8], "little") <= len(data) - 8:
        return "safetensors"
    start = data[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:1] in (b"[", b"{") or (len(data) < 100 and _PLAIN_NUMBER.fullmatch(data)):
        return "json"
    return "csv"


def reads_stdin(text: str) -> bool:
    """Whether `[FORMAT:]FILE[:KEY]` names standard input."""
    pieces = text.split(":", 2)
    return STDIN in pieces[:1] or (len(pieces) > 1 and pieces[1] == STDIN)
