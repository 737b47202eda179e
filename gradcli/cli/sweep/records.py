"""The records of `--inputs`: where they come from, and what a record gives the program; and where
their results go: to standard output, on to a file, which goes on where it was cut off, into arrays,
a sum.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Container, Iterator
from typing import IO, TYPE_CHECKING, Any

from gradcli.arrays.files.data_file import STDIN, DataFile, unreadable
from gradcli.arrays.files.gate import opened
from gradcli.errors import GradcliError
from gradcli.packages import imported
from gradcli.running.arguments.options import Options
from gradcli.running.arguments.words import Argument, UsageError, read_argument
from gradcli.running.process.terminal import Terminal
from gradcli.state import active

if TYPE_CHECKING:
    import numpy as np

    from gradcli.running.arguments.options import Options


# --- records --------------------------------------------------------------------------------------


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
    from gradcli.arrays.files.formats import reads_stdin  # lazy: start-up: likewise
    from gradcli.arrays.files.json import numbered, parse  # lazy: start-up: NumPy

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


# --- results --------------------------------------------------------------------------------------


def continued(path: str, accept: Callable[[bytes], object]) -> IO[bytes]:
    """A file open for writing behind its whole lines; one that is not there is made.

    Args:
        accept: is given each whole line. What is left of a line that was cut off is taken away
            after that.

    Raises:
        GradcliError: E603 where it cannot be read and written, E606 where files are out of bounds.
    """
    active.state.limits.check_file(path)
    try:
        file = open(path, "a+b")  # noqa: SIM115
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise GradcliError("E603", f"{path}: {reason.lower()}") from error
    try:
        end = file.seek(0)
        for line in file:
            if line.endswith(b"\n"):
                accept(line)
                end += len(line)
        file.seek(end)
        file.truncate()
    except OSError as error:
        file.close()
        raise GradcliError("E603", f"{path}: {(error.strerror or '').lower()}") from error
    except BaseException:
        file.close()
        raise
    return file


_SCHEMA = "gradcli.reduced/1"


def sink_of(terminal: Terminal, options: Options) -> Sink:
    """Where the options want the results."""
    if options.sweep.resume is not None:
        return Resumed(options.sweep.resume, options.sweep.shard or (1, 1))
    if options.sweep.reduce is not None:
        return Reduced(terminal, options)
    if options.output is not None:
        return Stacked(terminal, options)
    return Sink(terminal)


class Sink:
    """Prints results on standard output.

    Attributes:
        done, failed, first: how many records have their results already, how many of those failed,
            and the first that did.
    """

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.done = self.failed = 0
        self.first: dict[str, Any] = {}

    def add(self, summary: dict[str, Any], content: bytes) -> None:
        """Take the results of some records."""
        self.terminal.write(content.decode())
        self.terminal.flush()

    def finish(self) -> None:
        """All results are there."""

    def close(self) -> None:
        """There will be no more, be it all or not."""


class Resumed(Sink):
    """Writes results on to a file, behind those that it holds.

    Raises:
        UsageError: the file holds something else.
        GradcliError: E603 where it cannot be written, E606 where files are out of bounds.
    """

    def __init__(self, path: str, shard: tuple[int, int]) -> None:
        self.done = self.failed = 0
        self.first = {}
        self._path = path
        first, step = shard

        def whole(line: bytes) -> bool:
            result = _result_in(line)
            if result is None or result.get("record") != first + self.done * step:
                raise UsageError(
                    f"--resume {path}: line {self.done + 1} is no result of record"
                    f" {first + self.done * step}",
                    "it goes on with the file that the same --inputs and --shard wrote",
                )
            self.done += 1
            error = result.get("error")
            if error is not None:
                self.failed += 1
                self.first = self.first or {"record": result["record"], **error}
            return True

        self._file: IO[bytes] = continued(path, whole)

    def add(self, summary: dict[str, Any], content: bytes) -> None:
        try:
            self._file.write(content)
            self._file.flush()
        except OSError as error:
            raise GradcliError("E603", f"{self._path}: {error.strerror}") from error

    def close(self) -> None:
        self._file.close()


def _result_in(line: bytes) -> dict[str, Any] | None:
    """The result that a line holds, None where it holds something else."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    schema = document.get("schema") if isinstance(document, dict) else None
    return document if schema == "gradcli.result/1" else None


class _Arrays(Sink):
    """Takes results as arrays."""

    def __init__(self, terminal: Terminal, options: Options) -> None:
        super().__init__(terminal)
        self.options = options

    def add(self, summary: dict[str, Any], content: bytes) -> None:
        import numpy as np  # lazy: start-up: NumPy

        from gradcli.arrays.dtypes import DTYPES  # lazy: start-up: NumPy

        start = 0
        for number, described in summary["arrays"]:
            arrays = {}
            for name, dtype, shape, own in described:
                kind = np.dtype(DTYPES[dtype].numpy_dtype)
                count = int(np.prod(shape, dtype=int))
                array = np.frombuffer(content, kind, count, start).reshape(shape)
                start += array.nbytes
                arrays[name] = array, own
            self.take(number, arrays)

    def take(self, number: int, arrays: dict[str, tuple[np.ndarray[Any, Any], bool]]) -> None:
        """Take the arrays of one record."""
        raise NotImplementedError


class Stacked(_Arrays):
    """Stacks the results of records that are alike, for a file; a record that failed has no row.

    Raises E507 for a record that is not like the first, E602 where the rows become too many, E609
    before the first for a package that the file needs.
    """

    def __init__(self, terminal: Terminal, options: Options) -> None:
        super().__init__(terminal, options)
        assert options.output is not None
        self._path = options.output
        if self._path.endswith(".parquet"):
            imported("pyarrow.parquet")
        self._rows: dict[str, list[np.ndarray[Any, Any]]] = {}
        self._numbers: list[int] = []
        self._elements = 0

    def take(self, number: int, arrays: dict[str, tuple[np.ndarray[Any, Any], bool]]) -> None:
        if not self._numbers:
            self._rows = {name: [] for name in arrays}
        if list(arrays) != list(self._rows):
            raise _unlike(number, self._numbers[0], ", ".join(arrays), ", ".join(self._rows))
        for name, (array, _) in arrays.items():
            rows = self._rows[name]
            if rows and (array.shape, array.dtype) != (rows[0].shape, rows[0].dtype):
                raise _unlike(number, self._numbers[0], _said(name, array), _said(name, rows[0]))
            rows.append(array)
            self._elements += array.size
        self._numbers.append(number)
        self.options.limits.check_elements(self._elements, "elements of the results")

    def finish(self) -> None:
        import numpy as np  # lazy: start-up: NumPy

        rows = {name: np.stack(each) for name, each in self._rows.items()}
        columns = {"record": np.array(self._numbers, int), **rows}
        if self._path.endswith(".parquet"):
            from gradcli.arrays.files.formats import write_rows  # lazy: start-up: NumPy

            write_rows(self._path, columns)
        else:
            from gradcli.arrays.files.formats import write_arrays  # lazy: start-up: NumPy

            write_arrays(self._path, columns)


class Reduced(_Arrays):
    """Adds the outputs and the gradients of all records up in their order, in double precision.

    The gradients of what a record gave itself are its own, and not added. Raises E507 for arrays
    that cannot be added, and the error of a record that failed: a sum without it would be wrong.
    """

    def __init__(self, terminal: Terminal, options: Options) -> None:
        super().__init__(terminal, options)
        self._sums: dict[str, np.ndarray[Any, Any]] = {}
        self._dtypes: dict[str, Any] = {}
        self._count = 0

    def add(self, summary: dict[str, Any], content: bytes) -> None:
        first = summary["first"]
        if first:
            raise GradcliError(
                first["code"], f"record {first['record']}: {first['message']}", help=first["help"]
            )
        super().add(summary, content)

    def take(self, number: int, arrays: dict[str, tuple[np.ndarray[Any, Any], bool]]) -> None:
        self._count += 1
        for name, (array, own) in arrays.items():
            if own:
                continue
            wide = array.astype({"c": "c16", "f": "f8", "V": "f8"}.get(array.dtype.kind, "i8"))
            before = self._sums.get(name)
            if before is not None and before.shape != wide.shape:
                raise _unlike(number, 1, _said(name, wide), _said(name, before))
            self._sums[name] = wide if before is None else before + wide
            self._dtypes.setdefault(name, array.dtype)

    def finish(self) -> None:
        reduced = {}
        for name, total in self._sums.items():
            dtype = self._dtypes[name]
            if self.options.sweep.reduce == "mean":
                total = total / self._count
            reduced[name] = total if dtype.kind in "bui" else total.astype(dtype)
        if self.options.output is not None:
            from gradcli.arrays.files.formats import write_arrays  # lazy: start-up: NumPy

            write_arrays(self.options.output, reduced)
            return
        from gradcli.show.json import number, text  # lazy: start-up: NumPy

        rows = {
            name: {"value": number(each), "shape": list(each.shape), "dtype": each.dtype.name}
            for name, each in reduced.items()
        }
        grads = {name.removesuffix(".grad"): rows[name] for name in rows if name.endswith(".grad")}
        document = {
            "schema": _SCHEMA,
            "reduce": self.options.sweep.reduce,
            "records": self._count,
            "outputs": [{"name": n, **r} for n, r in rows.items() if not n.endswith(".grad")],
            "gradients": [{"name": name, **row} for name, row in grads.items()],
        }
        self.terminal.write(text(document, compact=True))


def _said(name: str, array: np.ndarray[Any, Any]) -> str:
    return f"{name} of shape {array.shape} and {array.dtype}"


def _unlike(number: int, first: int, own: str, wanted: str) -> GradcliError:
    return GradcliError(
        "E507",
        f"record {number} gives {own}, where record {first} gave {wanted}",
        help="results of records that differ are lines of JSON: leave -o out",
    )
