"""Reading and writing files of data, in whatever format they have, whole or not at all; and
Parquet, through pyarrow: a row for each of many results, a column for each array.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from gradcli.arrays.files.data_file import FORMATS, STDIN, DataFile
from gradcli.errors import GradcliError
from gradcli.packages import imported
from gradcli.state import active

if TYPE_CHECKING:
    import numpy as np


# --- reading --------------------------------------------------------------------------------------


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


# --- writing --------------------------------------------------------------------------------------


SUFFIXES = tuple(f".{format}" for format in FORMATS)
"""The suffixes that name a format to write."""


def write_arrays(path: str, value: Any, header: bool = True) -> None:
    """Write an array, or a mapping of arrays by name, in the format that the suffix names.

    Raises:
        GradcliError: E603 where the format does not hold it or the file cannot be written, E606
            where files are out of bounds.
    """
    replace(path, lambda stream: _encode(path, stream, value, header))


def _encode(path: str, stream: IO[bytes], value: Any, header: bool) -> None:
    named = value if isinstance(value, Mapping) else {"arr_0": value}
    if path.endswith(".npy"):
        from gradcli.arrays.files.npy import encode  # lazy: start-up: one format

        if len(named) != 1:
            raise GradcliError(
                "E603",
                f"{path}: npy holds one array, and there are {len(named)}",
                help="choose one, or write to a .npz file",
            )
        encode(stream, next(iter(named.values())))
    elif path.endswith(".npz"):
        from gradcli.arrays.files.npy import encode_archive  # lazy: start-up: one format

        encode_archive(stream, named)
    elif path.endswith(".safetensors"):
        from gradcli.arrays.files.safetensors import (  # lazy: start-up: one format
            encode as safetensors,
        )

        safetensors(stream, named)
    elif path.endswith(".csv"):
        from gradcli.arrays.files.csv import encode as table  # lazy: start-up: one format

        table(stream, named, header and named is value)
    elif path.endswith(".json"):
        from gradcli.arrays.files.json import encode as document  # lazy: start-up: one format

        document(stream, value)
    else:
        raise GradcliError(
            "E603", f"{path}: the suffix is none of {', '.join(SUFFIXES)}", raises="ValueError"
        )


def replace(path: str, write: Callable[[IO[bytes]], object]) -> None:
    """Write to a temporary name beside a file and move it into place, so that the file is the old
    one or the new one at any moment.

    Raises E603 where it cannot be written, E606 where files are out of bounds.
    """
    active.state.limits.check_file(path)
    target = os.path.realpath(path)
    temporary = ""
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as device:  # nothing to move: a pipe, or /dev/null
                write(device)
            return
        temporary, file = _beside(target)
        with file:
            if os.path.exists(target):
                os.chmod(temporary, os.stat(target).st_mode & 0o7777)
            write(file)
            file.flush()
            os.fsync(file.fileno())  # else a crash of the machine may leave an empty file
        os.replace(temporary, target)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise GradcliError("E603", f"{path}: {reason.lower()}") from error
    finally:
        active.state.temporary.discard(temporary)
        with suppress(OSError):  # moved into place, or never made
            os.unlink(temporary)


def _beside(target: str) -> tuple[str, IO[bytes]]:
    """A new file beside the target: its name, which a signal in the middle of writing has to
    remove, and the file, open. What a killed process of the same number left is not touched.
    """
    number = 0
    while True:
        name = f"{target}.{os.getpid()}.{number}.part"
        active.state.temporary.add(name)
        try:
            return name, open(name, "xb")
        except OSError as error:
            active.state.temporary.discard(name)
            if not isinstance(error, FileExistsError):
                raise
        number += 1


# --- Parquet --------------------------------------------------------------------------------------


def write_rows(path: str, columns: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write columns that are equally long, whole or not at all.

    A row of more than one dimension becomes nested lists of fixed sizes.

    Raises:
        GradcliError: E603 for a dtype that Parquet has not, or where the file cannot be written;
            E606 where files are out of bounds; E609 without pyarrow.
    """
    arrow = imported("pyarrow")
    parquet = imported("pyarrow.parquet")
    table = arrow.table({name: _column(arrow, name, each) for name, each in columns.items()})
    replace(path, lambda stream: parquet.write_table(table, stream))


def _column(arrow: Any, name: str, array: np.ndarray[Any, Any]) -> Any:
    if array.dtype.kind not in "biuf":
        raise GradcliError(
            "E603",
            f"Parquet has no dtype for {name}, which is {array.dtype.name}",
            help="write to a .npz file",
        )
    column = arrow.array(array.reshape(-1))
    for size in reversed(array.shape[1:]):
        column = arrow.FixedSizeListArray.from_arrays(column, size)
    return column
