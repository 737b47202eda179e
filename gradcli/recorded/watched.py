"""What `gradcli record --watch` writes: a line of figures for each parameter and step, and what was
found of the first step that is not finite.

It is data from a stranger, as all recordings are: what the index says is checked before it is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.dtypes import DTYPES
from gradcli.arrays.files.data_file import is_shape
from gradcli.arrays.files.json import NOT_FINITE
from gradcli.arrays.files.recording import Container, Recording, number_of, text_of
from gradcli.limits import in_bytes
from gradcli.record import Record

KIND = "watch"

_PHASES = ("forward", "backward", "data", "parameter", "buffer", "constant", "")
_MOST_ROWS = 10_000


class Parameter(Record):
    """A parameter that was watched."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class Missing(Record):
    """Why a gradient was none, from the first to the last step for that reason."""

    parameter: int
    reason: str
    first: int
    last: int


class Table(Record):
    """The figures of the parameters of one optimizer.

    Attributes:
        optimizer, name: its class, and the program's name for it; "" where there is none.
        has_closures: whether a line is a call of its closure, of which a step makes several.
        parameters: the numbers of its parameters.
        figures: for each step and parameter the norm of the gradient, the share of its zeros, and
            the norm of the update over that of the weight; -1 for none.
        steps, losses: for each step its number and the loss.
    """

    optimizer: str
    name: str
    has_closures: bool
    parameters: list[int]
    none: list[Missing]
    figures: Any
    steps: Any
    losses: Any


class Place(Record):
    """A line of the user's."""

    file: str
    line: int
    function: str
    text: str


class Operand(Record):
    """An operand at the element: its number there, or the range of those that matter."""

    parameter: str
    value: float | None
    low: float | None
    high: float | None


class Cure(Record):
    """What was tried, and what came of it."""

    text: str
    reason: str
    proof: str


class Source(Record):
    """Where an infinity came from that an operation made NaN of."""

    kind: str
    name: str
    op: str
    place: Place | None


class NonFinite:
    """The first step that is not finite, and where that began.

    Attributes:
        again: whether the step was run again; `reason` says why not.
        seen: the modules whose results were not finite: path, class and shape.
        phase: "forward" or "backward" for an operation, else what held it when it entered.
        chain: the operations that handed it on: name, path of the module, place.
        growth: how often its line had run, and by what factor its result grew each time; None
            where it did not grow.
        growing: the place of that line, where it is one ahead of the operation.
    """

    def __init__(self, entry: dict[str, Any]) -> None:
        self.step = number_of(entry["step"])
        self.spoilt = [_line(each) for each in _rows(entry["spoilt"])]
        self.more = number_of(entry["more"])
        self.again = entry["again"] is True
        self.reason = _line(entry["reason"])
        self.seen = [(_line(path), _line(kind)) for path, kind, _ in _rows(entry["seen"])]
        self.phase = _line(entry.get("phase", ""))
        if self.phase not in _PHASES:
            raise ValueError(f"{self.phase!r} is no phase")
        self.op = _line(entry.get("op", ""))
        self.node = _line(entry.get("node", ""))
        self.called = _line(entry.get("called", ""))
        self.module = _module(entry.get("module"))
        self.place = _place(entry.get("place"))
        self.element = tuple(number_of(each) for each in entry.get("element", ()))
        self.shape = tuple(number_of(each) for each in entry.get("shape", ()))
        self.dtype = _line(entry.get("dtype", "float32"))
        if self.dtype not in DTYPES or len(self.element) > 64:
            raise ValueError("its element or dtype is none")
        self.value = number(entry["value"]) if "value" in entry else None
        self.count = number_of(entry.get("count", 0))
        self.rows = number_of(entry.get("rows", 0))
        growth = entry.get("growth")
        self.growth = None if growth is None else (number_of(growth[0]), number(growth[1]))
        self.growing = _place(entry.get("growing"))
        self.incoming = _optional(entry.get("incoming"))
        self.operands = [_operand(each) for each in _rows(entry.get("operands", []))]
        self.chain = [
            (_line(op), _module(module), _place(place))
            for op, module, place in _rows(entry.get("chain", []))
        ]
        cure = entry.get("cure")
        self.cure = None if cure is None else Cure(
            _line(cure["text"]), _line(cure["reason"]), _line(cure["proof"])
        )  # fmt: skip
        source = entry.get("source")
        self.source = None if source is None else Source(
            _line(source["kind"]), _line(source["name"]), _line(source["op"]),
            _place(source["place"]),
        )  # fmt: skip


class Watched(Container):
    """What `gradcli record --watch` wrote.

    Attributes:
        parameters: those of the optimizers, and those of the modules that no optimizer holds.
        unheld: the numbers of the latter.
        late: those of them that a module got behind an optimizer: the number, where, the
            optimizer's class, and where that was made.
        steps: how many there were; a GradScaler left out `skipped` of them.
        nonfinite: the first one that is not finite, None where all are.
    """

    def take(self, index: dict[str, Any]) -> None:
        """Take what an index says, checked."""
        if self.kind != KIND:
            raise ValueError(f"it is a file of kind {self.kind!r}")
        self.parameters = [_parameter(*row) for row in index["parameters"]]
        count = len(self.parameters)
        self.unheld = [number_of(each, count) for each in index["unheld"]]
        self.late = [
            (number_of(each, count), _place(at), _line(kind), _place(place))
            for each, at, kind, place in _rows(index.get("late", []))
        ]
        self.steps = number_of(index["steps"])
        self.skipped = number_of(index["skipped"])
        self.tables = [self._table(n, each) for n, each in enumerate(_rows(index["tables"]))]
        nonfinite = index["nonfinite"]
        self.nonfinite = None if nonfinite is None else NonFinite(nonfinite)

    def _table(self, place: int, row: Any) -> Table:
        count = len(self.parameters)
        held = [number_of(each, count) for each in row["parameters"]]
        none = [
            Missing(number_of(each, count), _line(reason), number_of(first), number_of(last))
            for each, reason, first, last in row["none"]
        ]
        steps = self._column(f"#steps {place}", "int64")
        losses = self._column(f"#losses {place}", "float64")
        figures = self._column(f"#figures {place}", "float32")
        if steps.ndim != 1 or losses.shape != steps.shape:
            raise ValueError("the steps of a table are no row")
        if figures.shape != (len(steps), len(held), 3):
            raise ValueError("the figures of a table have another shape than its steps")
        return Table(
            _line(row["optimizer"]),
            _line(row.get("name", "")),
            row.get("closures", False) is True,
            held,
            none,
            figures,
            steps,
            losses,
        )

    def _column(self, name: str, dtype: str) -> Any:
        if self.entries[name].dtype != dtype:
            raise ValueError(f"{name} is not of dtype {dtype}")
        return self.array(name)

    def unreached(self) -> list[Parameter]:
        """The parameters that no step gave a gradient."""
        reached: set[int] = set()
        for table in self.tables:
            if len(table.steps) and table.parameters:
                got = (table.figures[:, :, 0] != -1).any(axis=0)
                reached.update(np.array(table.parameters)[got].tolist())
        return [each for n, each in enumerate(self.parameters) if n not in reached]

    def described(self) -> list[tuple[str, str]]:
        """What is in it, a row for each part."""
        nonfinite = self.nonfinite
        optimizers = [table.optimizer or "none" for table in self.tables]
        rows = [
            ("watched", f"{self.path}, {in_bytes(self.size)}"),
            ("made by", ", ".join(f"{name} {each}" for name, each in self.versions.items())),
            ("script", " ".join(self.argv)),
            ("steps", f"{self.steps:,}"),
            ("optimizers", ", ".join(dict.fromkeys(optimizers)) or "none"),
            ("parameters", f"{len(self.parameters):,}, {len(self.unreached()):,} never reached"),
            ("not finite", "no step" if nonfinite is None else f"step {nonfinite.step:,}"),
        ]
        if self.skipped:
            rows.append(("left out", f"{self.skipped:,} steps, by the GradScaler"))
        return [*rows, *(("note", each) for each in self.notes)]


def opened_recording(path: str) -> tuple[Recording | None, Watched | None]:
    """What a `.gradrun` holds: a recording, or what `--watch` wrote; the other one is None."""
    if Container(path).kind == KIND:
        return None, Watched(path)
    return Recording(path), None


def number(value: Any) -> float:
    """A number as an index has it; raises ValueError."""
    if isinstance(value, str):
        if value not in NOT_FINITE:
            return complex(value).real
        return NOT_FINITE[value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def _line(value: Any) -> str:
    """A text in one line; raises ValueError for what is none."""
    return " ".join(text_of(value).split())


def _optional(value: Any) -> float | None:
    return None if value is None else number(value)


def _rows(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) > _MOST_ROWS:
        raise TypeError("a list is none, or too long")
    return value


def _parameter(name: Any, shape: Any, dtype: Any) -> Parameter:
    if not is_shape(shape) or dtype not in DTYPES:
        raise ValueError(f"{name!r} has no shape or dtype")
    return Parameter(_line(name), tuple(shape), dtype)


def _module(value: Any) -> tuple[str, str] | None:
    if value is None:
        return None
    path, kind = value
    return _line(path), _line(kind)


def _place(value: Any) -> Place | None:
    if value is None:
        return None
    file, line, function, text = value
    return Place(_line(file), number_of(line, 1 << 31), _line(function), _line(text))


def _operand(value: Any) -> Operand:
    return Operand(
        _line(value["parameter"]),
        _optional(value.get("value")),
        _optional(value.get("low")),
        _optional(value.get("high")),
    )
