"""Where the results of many records go: to standard output, on to a file, which goes on where it
was cut off, into arrays, a sum.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

from gradcli.errors import GradcliError
from gradcli.packages import imported
from gradcli.running.arguments.options import Options
from gradcli.running.arguments.words import UsageError
from gradcli.running.process.terminal import Terminal
from gradcli.state import active

if TYPE_CHECKING:
    import numpy as np


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
            from gradcli.arrays.files.writing import write_rows  # lazy: start-up: NumPy

            write_rows(self._path, columns)
        else:
            from gradcli.arrays.files.writing import write_arrays  # lazy: start-up: NumPy

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
            from gradcli.arrays.files.writing import write_arrays  # lazy: start-up: NumPy

            write_arrays(self.options.output, reduced)
            return
        from gradcli.show.result_json import number, text  # lazy: start-up: NumPy

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
