"""The records of `--inputs`: where they come from, and what a record gives the program."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Container, Iterator
from typing import IO, TYPE_CHECKING, Any

from gradcli.arrays.files.data_file import STDIN, DataFile, unreadable
from gradcli.arrays.files.gate import opened
from gradcli.errors import GradcliError
from gradcli.running.arguments.words import Argument, read_argument

if TYPE_CHECKING:
    from gradcli.running.arguments.options import Options

RIGHT, WRONG = b"record", b"wrong"

_AT_ONCE = 16
"""Records that a process of `--jobs` gets at a time from a file; one at a time from a stream."""

_LONGEST_RECORD = 1 << 28
_LONGEST_SHOWN = 200


class Records:
    """The records that a run is asked for, in parcels.

    Args:
        done: how many of them have their results already.

    Attributes:
        at_once: how many records the next parcel has.
    """

    def __init__(self, options: Options, done: int = 0) -> None:
        assert options.inputs is not None
        self._file = DataFile.named(options.inputs)
        self._stream = _opened(self._file)
        self._shard = options.sweep.shard or (1, 1)
        self._done = done
        self._size = 0 if self._file.path == STDIN else os.fstat(self._stream.fileno()).st_size
        shared = options.jobs > 1 and self._file.path != STDIN
        self.at_once = options.sweep.chunk or (_AT_ONCE if shared else 1)

    def parcels(self) -> Iterator[bytes]:
        """The records in parcels, a line each: number, line, whether it is one, text."""
        first, step = self._shard
        parcel: list[bytes] = []
        for number, (line, kind, text) in enumerate(_texts(self._file, self._stream), 1):
            place, other = divmod(number - first, step)
            if other or place < self._done:
                continue
            parcel.append(b"%d %d %s %s" % (number, line, kind, text))
            if len(parcel) >= self.at_once:
                yield b"\n".join(parcel)
                parcel.clear()
        if parcel:
            yield b"\n".join(parcel)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def share(self) -> float | None:
        """How much of the file has been read, from 0 to 1; None where nobody knows its length."""
        if not self._size or self._stream.closed:
            return None
        return self._stream.tell() / self._size


def pieces(parcel: bytes) -> list[bytes]:
    """The records of a parcel."""
    return parcel.split(b"\n")


def _opened(file: DataFile) -> IO[bytes]:
    if file.path == STDIN:
        return sys.stdin.buffer
    try:
        return opened(file.path)
    except OSError as error:
        raise unreadable(file.path, error) from error


def _texts(file: DataFile, stream: IO[bytes]) -> Iterator[tuple[int, bytes, bytes]]:
    """Each record's line and its JSON behind `RIGHT`, or what is wrong behind `WRONG`."""
    if file.format == "csv":
        from gradcli.arrays.files.csv import records  # lazy: start-up: NumPy

        lines = (_decoded(file, f"line {line}", text) for line, text in _lines(file, stream))
        for line, cells in records(lines, file.name):
            if isinstance(cells, str):
                yield line, WRONG, cells.encode()
            else:
                yield line, RIGHT, json.dumps(cells).encode()
        return
    for line, text in _lines(file, stream):
        bare = text.removeprefix(b"\xef\xbb\xbf").strip() if line == 1 else text.strip()
        if bare:
            yield line, RIGHT, bare


def _decoded(file: DataFile, place: str, text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        wrong = text[error.start]
        raise file.damaged(place, f"the byte 0x{wrong:02x} is not UTF-8") from error


def _lines(file: DataFile, stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines of a stream as they arrive, none of them larger than memory may bear."""
    line = 0
    while text := stream.readline(_LONGEST_RECORD):
        line += 1
        if len(text) == _LONGEST_RECORD:
            raise GradcliError("E602", f"{file.name}: line {line} is too long for a record")
        yield line, text


def arguments_of(number: int, line: int, text: bytes, used: Container[str]) -> list[Argument]:
    """The values of a record that a program uses; raises E507, or E504 for no JSON."""
    from gradcli.arrays.files.json import numbered, parse  # lazy: start-up: NumPy
    from gradcli.arrays.files.reading import reads_stdin  # lazy: start-up: likewise

    place = f"record {number}"
    file = DataFile(f"{place} (line {line})")
    value = parse(file, _decoded(file, "", text))
    if not isinstance(value, dict):
        raise GradcliError(
            "E507",
            f"{file.name}: a record is an object of names and values",
            help='write one object on a line: {"a": 2, "b": [1, 2]}',
        )
    arguments = []
    for name, each in value.items():
        if name.partition(":")[0] not in used:
            continue  # data may hold more than a program needs, and under any names
        each = numbered(each)
        word = each if isinstance(each, str) else _shown(each)
        argument = read_argument(f"{name}={word}")
        if argument is None:
            raise GradcliError(
                "E507",
                f"{file.name}: {name!r} is no NAME or NAME:const",
                help="`NAME:const` keeps a value's Python type",
            )
        if argument.file and reads_stdin(argument.file):
            raise GradcliError(
                "E507",
                f"{file.name}: {name!r} names standard input, which one record would use up",
                help=f"give it to all records: {name}=@- on the command line",
            )
        argument.source.name = place
        if not isinstance(each, str):
            argument.held = each
        arguments.append(argument)
    return arguments


def _shown(value: Any) -> str:
    """A value as an expression of the language, for diagnostics: shortened where it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
