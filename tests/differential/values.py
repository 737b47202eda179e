"""The tensors of a program being written, as the generator knows them, and their literals."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

Shape = tuple[int, ...]

ORDER = ("bool", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
"""The dtypes that programs use; of two of a rank, the later is what an operation yields."""

KINDS = dict(zip(ORDER, "bihhffcc", strict=True))
"""The kind of each dtype; b, i, h (half precision), f or c."""


_CATEGORIES = {"b": 0, "i": 1, "h": 2, "f": 2, "c": 3}


class Value(NamedTuple):
    """A tensor that a program has: `text` is the name or expression that stands for it."""

    text: str
    shape: Shape
    dtype: str = "float32"
    requires_grad: bool = False
    is_leaf: bool = True

    @property
    def kind(self) -> str:
        """b, i, h (a half-precision float), f or c."""
        return KINDS[self.dtype]


def promoted(*values: Value) -> str:
    """The dtype of an operation on the values: by kind, then dimensions, then width."""
    category = max(_CATEGORIES[value.kind] for value in values)
    of_kind = [value for value in values if _CATEGORIES[value.kind] == category]
    with_dimensions = [value for value in of_kind if value.shape]
    return max((value.dtype for value in with_dimensions or of_kind), key=ORDER.index)


class Numbers:
    """Writes the literals of one program, all of one style.

    Quarters are added and multiplied exactly in every order; decimals show rounding.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.style = random.choice(("quarters", "quarters", "decimals", "positive"))

    def number(self, dtype: str = "float32") -> str:
        """The text of one element."""
        random, kind = self.random, KINDS[dtype]
        if kind == "b":
            return random.choice(("True", "False"))
        if kind == "i":
            return str(random.randint(-3, 4))
        if kind == "c":
            return f"complex({self.number()}, {self.number()})"
        if self.style == "decimals":
            return str(round(random.uniform(-3, 3), 2))
        if self.style == "positive":
            return str(random.randint(1, 12) / 4)
        return str(random.randint(-10, 10) / 4)

    def nested(self, shape: Shape, dtype: str = "float32") -> str:
        """The text of the elements as nested lists."""
        if not shape:
            return self.number(dtype)
        return f"[{', '.join(self.nested(shape[1:], dtype) for _ in range(shape[0]))}]"

    def tensor(self, shape: Shape, dtype: str = "float32", requires_grad: bool = False) -> str:
        """A `torch.tensor` call with literal elements."""
        natural = {"int64": "int64", "bool": "bool"}.get(dtype, "float32")
        if KINDS[dtype] == "c":
            natural = "complex64"
        written = "" if dtype == natural and 0 not in shape else f", dtype=torch.{dtype}"
        recorded = ", requires_grad=True" if requires_grad else ""
        if 0 in shape:  # nested lists would lose the sizes behind a 0
            return f"torch.zeros({shape}{written}{recorded})"
        return f"torch.tensor({self.nested(shape, dtype)}{written}{recorded})"

    def shape(self, low: int = 0, high: int = 3) -> Shape:
        """A shape of `low` to `high` dimensions, rarely with none of something."""
        random = self.random
        rank = random.choice(
            [rank for rank in (0, 1, 1, 2, 2, 2, 3) if low <= rank <= high] or [low]
        )
        sizes = (1, 2, 2, 3, 3, 4) if random.random() > 0.03 else (0, 1, 2, 3)
        return tuple(random.choice(sizes) for _ in range(rank))

    def broadcasting(self, shape: Shape) -> Shape:
        """A shape that broadcasts with another one."""
        random = self.random
        kept = shape[random.randint(0, len(shape)) if random.random() < 0.5 else 0 :]
        sizes = [1 if random.random() < 0.25 else size for size in kept]
        if len(sizes) == len(shape) < 3 and random.random() < 0.15:
            sizes = [random.choice((1, 2, 3)), *sizes]
        return tuple(sizes)
