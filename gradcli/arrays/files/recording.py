"""Recordings of what PyTorch ran, `.gradrun`: a program of the language, its arrays, and tables
that lead from each line to the user's place. `gradcli record` writes them, from another Python.

A recording is data from a stranger: every size and offset that it declares is checked before
anything of that size is made, and its program runs under the limits of any program.
"""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from collections.abc import Sequence
from itertools import pairwise
from struct import Struct
from typing import Any

import numpy as np

from gradcli.arrays.dtypes import DTYPES
from gradcli.arrays.files.data_file import DataFile, is_shape, unreadable
from gradcli.arrays.files.gate import LARGEST_PROGRAM, opened
from gradcli.errors import GradcliError
from gradcli.limits import in_bytes
from gradcli.record import Record
from gradcli.state import active

MAGIC = b"\x89GRUN\r\n\x1a"
"""The first bytes of a recording: a copy as text, or without the eighth bit, is noticed."""

VERSION = 1

CHECKS = "#checks"
"""The array of what the results of the run are compared by."""

SAMPLES = 32
BLOCKS = 16
"""A large result is compared by so many of its elements, sums of blocks, and sums of absolutes."""

MOST_DRAWN = 1 << 22
"""Elements of a recording whose picture shows numbers."""

_ROUNDING = 1e-5
"""A gradient of this share of the largest one of a pass may be what rounding leaves of 0."""

_HEADER = Struct("<8sIIQQQ")
_FLOATING = re.compile(r"\btorch\.(float16|bfloat16|float32|float64)\b")
_BACKWARD = re.compile(r"\.backward\(")
_CONVERSION = re.compile(r"\.(half|bfloat16|float|double)\(\)")
_AUTOCAST = re.compile(r"""(?m)^with torch\.autocast\([^)]*\): |, torch\.autocast\([^)]*\)(?=: )""")
_LARGEST_INDEX = 64_000_000
_MOST_PARTS = 4_000_000
"""An index of more commas and brackets would take many times its size as lists and dicts."""

_ALIGNED = 64


class Entry(Record):
    """An array of a recording; `start` is its offset in the file, -1 where it was left out."""

    dtype: str
    shape: tuple[int, ...]
    start: int

    @property
    def end(self) -> int:
        """The offset behind it."""
        return self.start + math.prod(self.shape) * DTYPES[self.dtype].itemsize


class Check(Record):
    """A result of the run, or a gradient, that the replay is compared with.

    Attributes:
        line: the line of the program behind which it is compared.
        text: what it is, as the program spells it: `net.fc.weight.grad`.
        kind: "value", "gradient", or "step" for a parameter behind an optimizer's step.
        first, count: its numbers in the array of checks.
    """

    line: int
    text: str
    kind: str
    shape: tuple[int, ...]
    dtype: str
    first: int
    count: int


class Opaque(Record):
    """An operation that is not computed anew, with what PyTorch computed.

    Attributes:
        name: what PyTorch calls it, and `node` what it calls the node of its gradient.
        results: the names of the arrays of its results, with whether they require grad.
        passes: for each backward pass the arrays of the gradients that arrived, one for each
            result, and of those that left, one for each input; None for none.
    """

    name: str
    node: str
    results: list[tuple[str, bool]]
    passes: list[tuple[list[str | None], list[str | None]]]


class Container:
    """What a file of this format holds, its arrays read when they are asked for.

    Attributes:
        kind: "recording", or "watch" for the figures of each step.
        versions: of gradcli and of what it recorded, by name.
        argv: the script with its arguments.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = DataFile(path)
        index = self._read_index()
        self.kind = index.get("kind", "recording")
        self.entries: dict[str, Entry] = {}
        try:
            self.versions = {
                text_of(key): text_of(each) for key, each in dict(index["made"]).items()
            }
            self.argv = texts_of(index["argv"])
            self.notes = texts_of(index["notes"])
            self.entries = _without_twins([self._entry(*row) for row in index["arrays"]])
            self._check_apart()
            self.take(index)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise self._file.damaged("its index", f"{type(error).__name__}: {error}") from error

    def take(self, index: dict[str, Any]) -> None:
        """Take what an index says beside that, checked; raises ValueError and its like."""

    def _read_index(self) -> dict[str, Any]:
        damaged = self._file.damaged
        try:
            with opened(self.path, is_program=True) as file:
                self.size = os.fstat(file.fileno()).st_size
                head = file.read(_HEADER.size)
                if len(head) < _HEADER.size or not head.startswith(MAGIC):
                    raise damaged("byte 0", "this is no recording")
                _, version, _, packed, unpacked, size = _HEADER.unpack(head)
                if version != VERSION:
                    raise damaged(
                        "byte 8", f"it has version {version} of the format, and this is {VERSION}"
                    )
                if size != self.size:
                    raise damaged(
                        "byte 32", f"it is said to have {size:,} bytes, and has {self.size:,}"
                    )
                if packed > self.size - _HEADER.size or unpacked > _LARGEST_INDEX:
                    raise damaged("byte 16", f"an index of {unpacked:,} bytes is too large")
                text = file.read(packed)
        except (OSError, ValueError) as error:
            raise unreadable(self.path, error) from error
        self._start = -(-(_HEADER.size + packed) // _ALIGNED) * _ALIGNED
        unpacker = zlib.decompressobj()
        try:
            plain = unpacker.decompress(text, unpacked + 1)
            if sum(map(plain.count, (b",", b"[", b"{"))) > _MOST_PARTS:
                raise ValueError(f"it has more than {_MOST_PARTS:,} parts")
            index = json.loads(plain, object_pairs_hook=_without_twins)
        except (zlib.error, ValueError, RecursionError) as error:
            raise damaged("its index", str(error)) from error
        if len(plain) != unpacked or not isinstance(index, dict):
            raise damaged("its index", "it is not as long as it is said to be")
        return index

    def _entry(self, name: Any, dtype: Any, shape: Any, offset: Any) -> tuple[str, Entry]:
        if dtype not in DTYPES or not is_shape(shape):
            raise ValueError(f"{name!r} is no array of dtype {dtype!r} and shape {shape!r}")
        start = -1 if offset == -1 else self._start + number_of(offset)
        entry = Entry(dtype, tuple(shape), start)
        if start >= 0 and (offset % _ALIGNED or entry.end > self.size):
            raise ValueError(f"{name!r} lies outside of the file")
        active.state.limits.check_elements(math.prod(shape), f"elements of {name!r}")
        return text_of(name), entry

    def _check_apart(self) -> None:
        """Raise ValueError where an array lies in another one."""
        placed = sorted((each.start, each.end, name) for name, each in self.entries.items()
                        if 0 <= each.start < each.end)  # fmt: skip
        for (_, end, name), (start, _, other) in pairwise(placed):
            if start < end:
                raise ValueError(f"{other!r} lies in {name!r}")

    def entry(self, name: str) -> Entry:
        """What is known of an array; raises E506 where the file has none of the name."""
        entry = self.entries.get(name)
        if entry is None:
            raise self._file.missing("array", name, self.entries)
        return entry

    def array(self, name: str) -> Any:
        """An array, which may be written to and is nobody else's.

        Raises:
            GradcliError: E506 where the recording has none of the name, or left it out.
        """
        entry = self.entry(name)
        if entry.start < 0:
            raise GradcliError(
                "E506",
                f"{self.path}: the elements of {name} were left out when it was recorded",
                help="record it again without --no-data",
            )
        dtype = DTYPES[entry.dtype].numpy_dtype
        if not math.prod(entry.shape):
            return np.empty(entry.shape, dtype)
        # Private pages of the file: nothing is copied before it is written to.
        mapped = np.memmap(self.path, dtype, "c", entry.start, entry.shape or (1,))
        return mapped.view(np.ndarray).reshape(entry.shape)


class Recording(Container):
    """What `gradcli record` wrote of a run.

    Attributes:
        program: the text of the program.
        origins: for each line of it, from 1, the user's place, "" for none.
        calls: the calls of modules: the module's path, and the number of the call around it or -1.
        call_of: for each line the number of the call that it ran in, -1 for none.
        checks: what the replay is compared with, by line.
        unwritten: the operations that could not be written down, whose results are read.
        drawn: the arrays that were drawn at random.
        numbers: the numbers in the program that the run read out of tensors.
        output: the name of what the last backward pass began with, "" for none.
        rebound: the names that the script gave to another tensor since, with that one's name here.
        has_data: whether it has arrays.
        is_told: whether it was said how the replay compares with the run: in a session that is
            said once.
        opaque_inputs: a hash of what went into each opaque operation when it was replayed in a
            dtype with the values of the run.
    """

    # --- reading ----------------------------------------------------------------------------------

    def take(self, index: dict[str, Any]) -> None:
        """Take what an index says, checked."""
        if self.kind != "recording":
            raise ValueError(f"it is a file of kind {self.kind!r}")
        self.is_told = False
        self.opaque_inputs: dict[tuple[int, str | None], bytes] = {}
        self.program = text_of(index["program"], LARGEST_PROGRAM)
        count = self.program.count("\n")
        self.unwritten = texts_of(index["unwritten"])
        self.drawn = frozenset(texts_of(index["drawn"]))
        self.numbers = texts_of(index["numbers"])
        self.output = text_of(index["output"])
        rebound = dict(index.get("rebound", {}))
        self.rebound = {text_of(name): text_of(other) for name, other in rebound.items()}
        self.has_data = index["data"] is True
        files = texts_of(index["files"])
        places = [
            f"{files[number_of(file, len(files))]}:{number_of(line)}"
            + ("" if function == "<module>" else f" in {text_of(function)}")
            for file, line, function in index["places"]
        ]
        self.calls = [
            (text_of(path), number_of(up, n, -1)) for n, (path, up) in enumerate(index["calls"])
        ]
        rows = [
            (number_of(place, len(places), -1), number_of(call, len(self.calls), -1))
            for place, call in index["lines"]
        ]
        if len(rows) != count:
            raise ValueError(f"{len(rows)} places for {count} lines")
        self.origins = ["", *("" if place < 0 else places[place] for place, _ in rows)]
        self.call_of = [-1, *(call for _, call in rows)]
        self.opaque = [_opaque(each) for each in index["opaque"]]
        self._take_checks(index["checks"], count)

    def _take_checks(self, rows: Any, lines: int) -> None:
        entry = self.entries.get(CHECKS)
        numbers = math.prod(entry.shape) if entry is not None and entry.dtype == "float64" else 0
        self.checks: dict[int, list[Check]] = {}
        for line, text, kind, shape, dtype, first, count in rows:
            if not is_shape(shape) or number_of(first) + number_of(count) > numbers:
                raise ValueError("a check lies outside of its array")
            check = Check(number_of(line, lines + 1), text_of(text), text_of(kind), tuple(shape),
                          text_of(dtype), first, count)  # fmt: skip
            self.checks.setdefault(check.line, []).append(check)

    # --- what it holds ----------------------------------------------------------------------------

    def program_in(self, dtype: str | None) -> str:
        """The program with another dtype in the place of every floating one that it names, and
        without autocast, which would round; line by line the same.
        """
        if dtype is None:
            return self.program
        text = _AUTOCAST.sub("", self.program)
        text = _FLOATING.sub(f"torch.{dtype}", text)
        wide = {"float32": "float", "float64": "double", "float16": "half"}.get(dtype, dtype)
        return _CONVERSION.sub(f".{wide}()", text)

    @staticmethod
    def ahead_of_step(program: str) -> str:
        """The lines of a recording's program up to its last backward pass, or all of them."""
        lines = program.splitlines(keepends=True)
        passes = [number for number, line in enumerate(lines, 1) if _BACKWARD.search(line)]
        return "".join(lines[: passes[-1]] if passes else lines)

    def digest_of(self, check: Check) -> Any:
        """What a result is compared by; its elements or its digest."""
        return self._checks()[check.first : check.first + check.count]

    @property
    def is_small(self) -> bool:
        """Whether its picture shows numbers: these cost a run and all its memory."""
        return self.elements <= MOST_DRAWN

    @property
    def elements(self) -> int:
        """The elements of all its arrays."""
        return sum(math.prod(each.shape) for each in self.entries.values())

    def arrays_from(self, elements: int) -> frozenset[str]:
        """The names of its arrays of at least so many elements."""
        entries = self.entries.items()
        return frozenset(name for name, each in entries if math.prod(each.shape) >= elements)

    def has_gradient(self, name: str) -> bool:
        """Whether the run gave a parameter a gradient that is not 0, nor so small beside those of
        the same pass that it may be what rounding left of 0; NaN is not 0.
        """
        path = f"{name}.grad".replace("[", ".").replace("]", "")
        for checks in reversed(self.checks.values()):
            sizes = {
                each.text.replace("[", ".").replace("]", ""): self._mean_size(each)
                for each in checks
                if each.kind == "gradient"
            }
            if path in sizes:
                finite = [each for each in sizes.values() if math.isfinite(each)]
                own = sizes[path]
                return not math.isfinite(own) or bool(own > _ROUNDING * max(finite))
        return False

    def _mean_size(self, check: Check) -> float:
        """The mean of the absolutes of a result."""
        numbers = self.digest_of(check)
        elements = math.prod(check.shape)
        if len(numbers) > elements or not elements:  # a complex one has two numbers an element
            return 0.0
        whole = len(numbers) == elements
        return float(np.abs(numbers).sum() if whole else numbers[-BLOCKS:].sum()) / elements

    def _checks(self) -> Any:
        checks = getattr(self, "_read_checks", None)
        if checks is None:
            checks = self._read_checks = self.array(CHECKS)
        return checks

    # --- what is in it ----------------------------------------------------------------------------

    def described(self) -> list[tuple[str, str]]:
        """What is in it, a row for each part."""
        arrays = {name: each for name, each in self.entries.items() if name != CHECKS}
        lines = len(self.origins) - 1
        elements = sum(math.prod(each.shape) for each in arrays.values())
        checks = sum(map(len, self.checks.values()))
        rows = [
            ("recording", f"{self.path}, {in_bytes(self.size)}"),
            ("made by", ", ".join(f"{name} {each}" for name, each in self.versions.items())),
            ("script", " ".join(self.argv) or "left out"),
            ("program", f"{lines:,} lines, {len(self.calls):,} calls of modules"),
            ("output", self.output or "none: there was no backward pass"),
            (
                "arrays",
                f"{len(arrays):,} of {elements:,} elements" if self.has_data else "left out",
            ),
            ("compared", f"{checks:,} results of {len(self.checks):,} lines"),
            ("opaque", _counted([each.name for each in self.opaque])),
            ("not computed again", _counted(self.unwritten)),
            ("drawn at random", f"{len(self.drawn):,} arrays"),
        ]
        return [*rows, *(("note", each) for each in self.notes)]


def _without_twins(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The dict of some pairs; raises ValueError where two have one name."""
    named = dict(pairs)
    if len(named) < len(pairs):
        raise ValueError("two parts of it have the same name")
    return named


def _counted(names: list[str]) -> str:
    """Names with how often each stands there, as a sentence."""
    counts = {name: names.count(name) for name in sorted(set(names))}
    shown = [f"{name} ({count})" if count > 1 else name for name, count in counts.items()]
    return ", ".join(shown) or "none"


def _opaque(entry: Any) -> Opaque:
    results = [(text_of(name), bool(grad)) for name, grad in entry["results"]]
    passes = [
        ([_optional(each) for each in arrived], [_optional(each) for each in left])
        for arrived, left in entry["passes"]
    ]
    return Opaque(text_of(entry["name"]), text_of(entry["node"]), results, passes)


def _optional(value: Any) -> str | None:
    return None if value is None else text_of(value)


def text_of(value: Any, most: int = 10_000) -> str:
    """A text; raises ValueError for what is none, or too long."""
    if not isinstance(value, str) or len(value) > most:
        raise ValueError("a text is none, or too long")
    return value


def texts_of(value: Any) -> list[str]:
    """A list of texts; raises TypeError and ValueError."""
    if not isinstance(value, list):
        raise TypeError("a list of texts is none")
    return [text_of(each) for each in value]


def number_of(value: Any, below: int = 1 << 62, least: int = 0) -> int:
    """A whole number in bounds; raises ValueError."""
    if type(value) is not int or not least <= value < below:
        raise ValueError(f"{value!r} is no number from {least} to {below - 1}")
    return value
