"""Tables of numbers: csv with commas, semicolons or tabs, with or without a header.

A first line without a single number is a header. Cells hold numbers, `nan` and `inf` included;
columns that are not asked for may hold anything.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import IO, Any

import numpy as np

from gradcli.arrays.files.data_file import DataFile
from gradcli.errors import GradcliError
from gradcli.state import active

_DELIMITERS = ",\t;"
_ROWS_AT_ONCE = 1 << 14
_INTEGER = re.compile(r"[+-]?\d+")
_SLICE = re.compile(r"(-?\d*):(-?\d*)")


def decode(file: DataFile, data: bytes) -> Any:
    """The numbers of a table, (rows, columns), or (rows,) where there is one column; int64 where
    all are written as integers, float64 otherwise.

    The file's key chooses columns, separated by commas: names of the header, numbers from 0 (from
    the end if negative), or ranges `0:3`.

    Raises:
        GradcliError: E504 with the line of what is no table, E505 with the line and column of the
            first cell that is no number, E506 for a column that there is not.
    """
    table = _Table(file, data)
    numbers = table.numbers()
    array = table.explained() if numbers is None else numbers
    return array[:, 0] if array.shape[1] == 1 else array


class _Table:
    """A table's text and which of its columns are meant."""

    def __init__(self, file: DataFile, data: bytes) -> None:
        self.file = file
        self.text = file.decoded(data)
        self.delimiter = _delimiter(self.text)
        first = self._first_row()
        self.width = len(first)
        numeric = [_is_number(cell) for cell in first]
        self.names = None if any(numeric) else [cell.strip() for cell in first]
        self.columns = self._columns() if file.key else range(self.width)
        # float() takes these, and a table means something else by them.
        self.odd = "_" in self.text or not self.text.isascii()

    def _rows(self) -> Any:
        return csv.reader(io.StringIO(self.text, newline=""), delimiter=self.delimiter, strict=True)

    def _first_row(self) -> list[str]:
        rows = self._rows()
        try:
            for row in rows:
                if row:
                    return list(row)
        except csv.Error as error:
            raise self.file.damaged(f"line {rows.line_num}", f"no table: {error}") from error
        raise self.file.damaged("", "the table is empty")

    def _columns(self) -> list[int]:
        """The numbers of the columns that the key names."""
        key, names = self.file.key, self.names or []
        columns: list[int] = []
        for piece in [key] if key in names else key.split(","):
            word = piece.strip()
            between = _SLICE.fullmatch(word)
            if word in names:
                columns.append(names.index(word))
            elif _INTEGER.fullmatch(word) and -self.width <= int(word) < self.width:
                columns.append(int(word) % self.width)
            elif between is not None:
                ends = [int(end) if end else None for end in between.groups()]
                columns += range(self.width)[slice(*ends)]
            else:
                known = names or [str(number) for number in range(self.width)]
                raise self.file.missing("column", word, known)
        if not columns:
            raise self.file.missing("column", key, names or map(str, range(self.width)))
        return columns

    def numbers(self) -> Any:
        """The numbers as an array, None where a row or cell is wrong."""
        rows = self._rows()
        width, columns = self.width, self.columns
        every = isinstance(columns, range)
        blocks: list[Any] = []
        integers = not self.odd
        size = 0
        waiting = self.names is not None
        try:
            while block := list(islice(rows, _ROWS_AT_ONCE)):
                block = [row for row in block if row]
                if waiting and block:
                    del block[0]
                    waiting = False
                if any(len(row) != width for row in block):
                    return None
                chosen = block if every else [[row[at] for at in columns] for row in block]
                cells = list(chain.from_iterable(chosen))
                if self.odd and not all(map(_is_number, cells)):
                    return None
                blocks.append(np.fromiter(map(float, cells), np.float64, len(cells)))
                integers = integers and all(map(_INTEGER.fullmatch, map(str.strip, cells)))
                size += len(cells)
                active.state.limits.check_elements(size)
        except (csv.Error, ValueError):
            return None
        array = np.concatenate(blocks) if blocks else np.empty(0)
        if integers and size and np.abs(array).max() < 2.0**53:
            array = array.astype(np.int64)
        return array.reshape(-1, len(columns))

    def explained(self) -> Any:
        """Raise the error of the first row or cell that is wrong."""
        rows = self._rows()
        line, waiting = 1, self.names is not None
        try:
            for row in rows:
                if row and not waiting:
                    self._check(row, line)
                waiting = waiting and not row
                line = rows.line_num + 1
        except csv.Error as error:
            raise self.file.damaged(f"line {line}", f"no table: {error}") from error
        raise self.file.damaged("", "the table cannot be read")

    def _check(self, row: Sequence[str], line: int) -> None:
        if len(row) != self.width:
            raise self.file.damaged(
                f"line {line}",
                f"the row has {_cells(len(row))}, and the first row has {self.width}",
            )
        for at in sorted(set(self.columns)):
            if _is_number(row[at]):
                continue
            name = f" ({self.names[at]})" if self.names is not None else ""
            cell = row[at] if len(row[at]) <= 40 else f"{row[at][:39]}…"
            message, help = f"{cell!r} is no number", None
            if not row[at].strip():
                message, help = "the cell is empty", "write nan for a number that is missing"
            elif line == 1:
                help = "a first line that holds a number is no header"
            elif self.width > 1:
                help = f"columns are chosen by name or number: {self.file.path}:0,1"
            raise self.file.unfit(f"line {line}, column {at + 1}{name}", message, help)


def _cells(count: int) -> str:
    return f"{count} cell" if count == 1 else f"{count} cells"


def _delimiter(text: str) -> str:
    """The character between the cells of the first line that holds anything."""
    first = next((line for line in text[: 1 << 16].splitlines() if line.strip()), "")
    bare = re.sub(r'"[^"]*"', "", first)
    return max(_DELIMITERS, key=bare.count)


def _is_number(cell: str) -> bool:
    if "_" in cell or not cell.isascii():
        return False
    try:
        float(cell)
    except ValueError:
        return False
    return True


def records(stream: Iterator[str], name: str) -> Iterator[tuple[int, dict[str, str] | str]]:
    """The rows below a header as they arrive: line, and cells by column or what is wrong; E504."""
    file = DataFile(name, format="csv")
    rows = csv.reader(stream, strict=True)
    header: list[str] = []
    line = 1
    try:
        for row in rows:
            if row and not header:
                header = [cell.strip().removeprefix("\ufeff") for cell in row]
            elif row:
                if len(row) == len(header):
                    yield line, dict(zip(header, row, strict=True))
                else:
                    yield line, f"the row has {_cells(len(row))}, and the header has {len(header)}"
            line = rows.line_num + 1
    except csv.Error as error:
        raise file.damaged(f"line {line}", f"no table: {error}") from error


def encode(stream: IO[bytes], arrays: Mapping[str, Any], header: bool) -> None:
    """Write one matrix or vector, or vectors of one length, as columns; raises E603.

    Args:
        header: whether the first line has the names of the columns; those of a matrix are numbered.
    """
    hosts = {name: np.asarray(array) for name, array in arrays.items()}
    lengths = {host.shape for host in hosts.values()}
    if len(hosts) == 1:
        host = next(iter(hosts.values()))
        if host.ndim > 2:
            raise GradcliError(
                "E603", f"csv holds a vector or a matrix, not {host.ndim} dimensions"
            )
        rows = host.reshape(-1, 1) if host.ndim < 2 else host
    elif len(lengths) == 1 and len(next(iter(lengths))) < 2:
        rows = np.stack([host.reshape(-1) for host in hosts.values()], axis=1)
        if len({host.dtype for host in hosts.values()}) > 1:
            rows = np.stack([host.reshape(-1).astype(object) for host in hosts.values()], axis=1)
    else:
        shapes = ", ".join(f"{name} {host.shape}" for name, host in hosts.items())
        raise GradcliError(
            "E603",
            f"csv holds one matrix, or vectors of one length: these are {shapes or 'none'}",
            help="choose one with --wrt, or write to a .npz file",
        )
    text = io.TextIOWrapper(stream, "utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    if header:
        name, *others = hosts
        is_matrix = not others and hosts[name].ndim == 2
        writer.writerow([f"{name}[{at}]" for at in range(rows.shape[1])] if is_matrix else hosts)
    for row in rows:
        writer.writerow([int(x) if isinstance(x, (bool, np.bool_)) else str(x) for x in row])
    text.detach()
