"""Writes one random program: fills the slots of a table's rows and keeps track of the tensors.

The text of a row is Python with slots in it. `$x` is the main tensor, which the row's `kinds` and
`rank` describe; the methods of `Writer` that are named in `SLOTS` say what the others stand for. A
slot that stands twice in a row stands for the same thing both times.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np

from tests.differential.values import Numbers, Shape, Value, promoted

_SLOT = re.compile(r"\$map\((\w+)\)|\$([a-z]+)([0-9]?)")

Filled = dict[str, Any]
"""What the slots of a row were filled with: a Value, a shape, a dimension."""


def same(filled: Filled) -> Shape:
    """The shape of `$x`."""
    return filled["x"].shape


def scalar(filled: Filled) -> Shape:
    """No dimensions."""
    return ()


class Row(NamedTuple):
    """A piece of a program: its text, and what the generator must know of it."""

    text: str
    shape: Callable[[Filled], Shape] = same
    kinds: str = "fh"
    rank: tuple[int, int] = (0, 3)
    dtype: str | None = None
    """The dtype of the result where it is not promoted from the tensors in the row."""
    fits: Callable[[Shape], bool] = lambda shape: True
    """What must hold of the shape of `$x`."""
    needs: str = ""
    """What `$x` must be: `graph` requires grad, `written` may be written to, `leaf` collects."""


def _has_shape(row: Row, shape: Shape) -> bool:
    low, high = row.rank
    return low <= len(shape) <= high and row.fits(shape)


def _serves(row: Row, value: Value) -> bool:
    """Whether the value can be the row's `$x`."""
    if value.kind not in row.kinds or not _has_shape(row, value.shape):
        return False
    leaf = value.is_leaf and value.requires_grad
    return {
        "": True,
        "graph": value.requires_grad,
        "written": not leaf,
        "leaf": leaf,
    }[row.needs]


class Writer:
    """A program being written, line by line."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.numbers = Numbers(random)
        self.lines: list[str] = []
        self.values: list[Value] = []
        self.count = 0

    # --- names and statements ---------------------------------------------------------------------

    def new_name(self, stem: str = "z") -> str:
        """A name that the program does not have yet."""
        self.count += 1
        return f"{stem}{self.count}"

    def leaf(self, shape: Shape, dtype: str, requires_grad: bool) -> Value:
        """Write a new leaf with literal elements."""
        value = Value(self.new_name("t"), shape, dtype, requires_grad)
        self.lines.append(f"{value.text} = {self.numbers.tensor(shape, dtype, requires_grad)}")
        self.values.append(value)
        return value

    def made_for(self, row: Row) -> Value:
        """Write a tensor that can be the row's `$x`."""
        shape: Shape = (2, 2)
        for _ in range(50):
            shape = self.numbers.shape(*row.rank)
            if _has_shape(row, shape):
                break
        dtype = {"f": "float32", "i": "int64", "b": "bool", "c": "complex64"}[row.kinds[0]]
        leaf = self.leaf(shape, dtype, dtype in ("float32", "complex64"))
        if row.needs != "written" or not leaf.requires_grad:
            return leaf
        value = Value(self.new_name(), shape, dtype, True, False)
        self.lines.append(f"{value.text} = {leaf.text} * 1")
        self.values.append(value)
        return value

    def statement(self, row: Row) -> None:
        """Write a row of statements, of which each may have several lines."""
        text, _ = self.filled(row)
        self.lines += text.split("\n")

    def assignment(self, row: Row) -> Value:
        """Write the assignment of a row's expression to a new name."""
        text, filled = self.filled(row)
        value = self.result(self.new_name(), row, filled)
        self.lines.append(f"{value.text} = {text}")
        self.values.append(value)
        return value

    def result(self, name: str, row: Row, filled: Filled) -> Value:
        """The value that a row's expression has."""
        tensors = [value for value in filled.values() if isinstance(value, Value)]
        dtype = row.dtype or promoted(*tensors)
        differentiable = dtype not in ("int64", "bool")
        requires_grad = differentiable and any(value.requires_grad for value in tensors)
        return Value(name, tuple(row.shape(filled)), dtype, requires_grad, not requires_grad)

    # --- slots ------------------------------------------------------------------------------------

    def filled(self, row: Row) -> tuple[str, Filled]:
        """The text of a row with its slots filled, and what they were filled with."""
        filled: Filled = {}
        if "$x" in row.text:
            filled["x"] = self.main(row)

        def fill(match: re.Match[str]) -> str:
            mapped, slot, number = match.groups()
            if mapped is not None:
                return re.sub(r"\bt\b", mapped, self.random.choice(_MAPS))
            key = f"{slot}{number}"
            if key not in filled:
                filled[key] = SLOTS[slot](self, filled)
            found = filled[key]
            return found.text if isinstance(found, Value) else str(found)

        text = row.text
        while "$" in text:
            text = _SLOT.sub(fill, text)
        return text, filled

    def main(self, row: Row) -> Value:
        """A tensor that can be the row's `$x`; later ones more likely."""
        fitting = [value for value in self.values if _serves(row, value)]
        if not fitting or self.random.random() < 0.05:
            return self.made_for(row)
        return fitting[max(self.random.randrange(len(fitting)) for _ in range(2))]

    def existing_or_literal(
        self, shapes: Callable[[Shape], bool], shape: Shape, dtype: str
    ) -> Value:
        """A tensor of the program whose shape fits, or else a literal of the given shape."""
        fitting = [v for v in self.values if v.dtype == dtype and shapes(v.shape)]
        if fitting and self.random.random() < 0.75:
            return self.random.choice(fitting)
        return Value(self.numbers.tensor(shape, dtype), shape, dtype)

    def other(self, filled: Filled) -> Value:
        """A tensor that broadcasts with `$x`, perhaps of another dtype."""
        shape, dtype = filled["x"].shape, filled["x"].dtype
        if self.random.random() < 0.1:
            dtype = self.random.choice(("float64", "int64", "float32"))
        return self.existing_or_literal(
            lambda other: _broadcast(shape, other), self.numbers.broadcasting(shape), dtype
        )

    def like(self, filled: Filled) -> Value:
        """A tensor of the shape and dtype of `$x`."""
        value = filled["x"]
        return self.existing_or_literal(
            lambda other: other == value.shape, value.shape, value.dtype
        )

    def differentiated(self, filled: Filled) -> Value:
        """A leaf that requires grad."""
        leaves = [value for value in self.values if value.is_leaf and value.requires_grad]
        return self.random.choice(leaves) if leaves else self.leaf((2,), "float32", True)

    def within(self, filled: Filled) -> Value:
        """A tensor that can be written into `$x`: it broadcasts to its shape."""
        shape = filled["x"].shape
        narrower = self.numbers.broadcasting(shape)[-len(shape) :] if shape else ()
        return self.existing_or_literal(
            lambda other: (
                _broadcast(shape, other)
                and len(other) <= len(shape)
                and np.broadcast_shapes(shape, other) == shape
            ),
            narrower,
            filled["x"].dtype,
        )

    def factor(self, filled: Filled) -> Value:
        """A matrix that `$x`, which has dimensions, can be multiplied with from the right."""
        inner = filled["x"].shape[-1]
        return self.existing_or_literal(
            lambda other: len(other) == 2 and other[0] == inner,
            (inner, self.random.choice((1, 2, 3))),
            filled["x"].dtype,
        )

    def dim(self, filled: Filled) -> int:
        """A dimension of `$x`, counted from either end."""
        rank = max(1, len(filled["x"].shape))
        return self.random.randrange(-rank, rank)

    def index(self, filled: Filled) -> str:
        """A basic index into `$x`; its result's shape is kept for the row."""
        return self.indexed(filled, advanced=False)

    def advanced(self, filled: Filled) -> str:
        """An index into `$x` with a list, an integer tensor or a mask in it."""
        return self.indexed(filled, advanced=True)

    def indexed(self, filled: Filled, advanced: bool) -> str:
        """The text of an index into `$x`."""
        shape, random = filled["x"].shape, self.random
        parts: list[Any] = []
        texts: list[str] = []
        chosen = random.randrange(len(shape)) if advanced and shape else -1
        for position, size in enumerate(shape):
            part, text = self.index_part(size, position == chosen)
            parts.append(part)
            texts.append(text)
            if position != chosen and random.random() < 0.08:
                parts.append(None)
                texts.append("None")
            if position >= chosen and random.random() < 0.4:
                break
        if not texts:
            parts, texts = [Ellipsis], ["..."]
        elif len(texts) < len(shape) and random.random() < 0.2 and not advanced:
            parts, texts = [Ellipsis, *parts[:1]], ["...", *texts[:1]]
            if isinstance(parts[1], int) and not -shape[-1] <= parts[1] < shape[-1]:
                parts, texts = [Ellipsis], ["..."]
        filled["indexed"] = np.empty(shape)[tuple(parts)].shape
        return ", ".join(texts)

    def index_part(self, size: int, advanced: bool) -> tuple[Any, str]:
        """What stands for one dimension of an index."""
        random = self.random
        if advanced:
            if random.random() < 0.3:
                mask = [random.random() < 0.6 for _ in range(size)]
                return np.array(mask, dtype=bool), f"torch.tensor({mask}, dtype=torch.bool)"
            positions = [
                random.randrange(-size, size) for _ in range(random.randint(1, 3) if size else 0)
            ]
            text = f"torch.tensor({positions}, dtype=torch.int64)"
            if positions and random.random() < 0.6:
                text = random.choice((str(positions), f"torch.tensor({positions})"))
            return np.array(positions, dtype=int), text
        if size and random.random() < 0.4:
            position = random.randrange(-size, size)
            return position, str(position)
        low, high, step = (random.choice((None, 0, 1, -1, 2)) for _ in range(3))
        if not isinstance(step, int) or step < 1:
            step = None
        text = f"{'' if low is None else low}:{'' if high is None else high}"
        return slice(low, high, step), text if step is None else f"{text}:{step}"

    def elements(self, filled: Filled) -> int:
        """How many elements `$x` has."""
        return int(np.prod(filled["x"].shape))

    def matrix(self, filled: Filled) -> Value:
        """A well-conditioned square matrix that fits the rows of `$x`."""
        return self.well_conditioned(filled["x"].shape[-1], "float32")

    def well_conditioned(self, size: int, dtype: str) -> Value:
        """A literal matrix whose diagonal dominates."""
        rows = [
            [self.random.randint(-4, 4) / 4 + (5 if i == j else 0) for j in range(size)]
            for i in range(size)
        ]
        return Value(f"torch.tensor({rows})", (size, size), dtype)


_MAPS = (
    "t * 2",
    "t * t",
    "t.sin()",
    "torch.exp(-t)",
    "t.tanh() + t",
    "(t + 1) ** 2",
    "3 - t",
    "t.sigmoid()",
    "torch.relu(t) * 0.5",
    "t / (1 + t * t)",
    "t * t.detach()",
    "t ** 3",
)


def _broadcast(shape: Shape, other: Shape) -> bool:
    try:
        np.broadcast_shapes(shape, other)
    except ValueError:
        return False
    return True


def _choice(*texts: str) -> Callable[[Writer, Any], str]:
    return lambda writer, filled: writer.random.choice(texts)


SLOTS: dict[str, Callable[[Writer, Any], Any]] = {
    "y": Writer.other,
    "like": Writer.like,
    "within": Writer.within,
    "factor": Writer.factor,
    "dim": Writer.dim,
    "index": Writer.index,
    "advanced": Writer.advanced,
    "elements": Writer.elements,
    "matrix": Writer.matrix,
    "leaf": Writer.differentiated,
    "name": lambda writer, filled: writer.new_name(),
    "class": lambda writer, filled: writer.new_name("C"),
    "literal": lambda writer, filled: writer.numbers.number(),
    "number": _choice("2", "3", "0.5", "-1.5", "1", "0", "10", "0.1", "-2"),
    "exponent": _choice("2", "3", "0.5", "-1", "0", "1", "1.5", "4"),
    "operator": _choice("+", "-", "*", "/", "+", "*"),
    "comparison": _choice(">", "<", ">=", "<=", "==", "!="),
    "flag": _choice("True", "False"),
    "reduction": _choice("'mean'", "'sum'", "'none'"),
    "dtype": _choice(
        "torch.float64", "torch.float32", "torch.int64", "torch.float16", "torch.bool"
    ),
    "loss": _choice("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCEWithLogitsLoss"),
    "optimiser": _choice(
        "SGD([$name], lr=0.1)",
        "SGD([$name], lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)",
        "Adam([$name], lr=0.1)",
        "Adam([$name], lr=0.05, betas=(0.8, 0.9), amsgrad=True)",
        "AdamW([$name], lr=0.1)",
        "RMSprop([$name], lr=0.05, momentum=0.5)",
        "Adagrad([$name], lr=0.5)",
        "Adadelta([$name])",
    ),
    "seed": lambda writer, filled: writer.random.randint(0, 10**6),
    "count": _choice("2", "3", "4"),
}
