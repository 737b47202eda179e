"""Random programs, each of which follows from a seed and its number alone."""

from __future__ import annotations

from random import Random

from tests.differential import expressions, graphs, layers, matrices, misuse, scenes, statements
from tests.differential.values import Value
from tests.differential.writing import Row, Writer

IMPORTS = ["import torch", "import torch.nn.functional as F", "from torch import nn", ""]
"""The lines that every program begins with."""

_DTYPES = ["float32"] * 12 + [
    "float64",
    "float64",
    "int64",
    "bool",
    "complex64",
    "float16",
    "bfloat16",
]

_EXPRESSIONS = {**expressions.FAMILIES, **matrices.FAMILIES}
"""The families whose rows are expressions, to be given a name."""

_COMMON = {
    **_EXPRESSIONS,
    **statements.FAMILIES,
    **graphs.FAMILIES,
    "caught misuse": (3, misuse.CAUGHT),
}
"""The families that any piece of a program may come from, each with how often it does."""

_LONGER = {**scenes.FAMILIES, **layers.FAMILIES}

_FAMILIES = {**_COMMON, **_LONGER}

FAMILIES = {name: table for name, (_, table) in _FAMILIES.items()} | {"misuse": misuse.MISUSE}
"""Every row that programs are made of, by family."""


def program(seed: int, number: int) -> str:
    """The text of a program."""
    writer = Writer(Random(f"{seed}:{number}"))
    random = writer.random
    for _ in range(random.randint(1, 3)):
        dtype = random.choice(_DTYPES)
        floating = dtype not in ("int64", "bool")
        writer.leaf(writer.numbers.shape(), dtype, floating and random.random() < 0.85)
    for name in _drawn(random):
        row = random.choice(FAMILIES[name])
        if name in _EXPRESSIONS:
            _assign(writer, row)
        else:
            writer.statement(row)
    if random.random() < 0.25:
        writer.statement(random.choice(misuse.MISUSE))
        writer.lines.append("print('not reached')")
    else:
        _conclude(writer)
    return "\n".join(IMPORTS + writer.lines) + "\n"


def one_of(row: Row, seed: int, number: int) -> str:
    """A short program around one row, so that every row can be recorded."""
    writer = Writer(Random(f"{row.text}:{seed}:{number}"))
    if any(row in family for _, family in _EXPRESSIONS.values()):
        _assign(writer, row)
        value = writer.values[-1]
        writer.lines.append(f"print({value.text}, {value.text}.requires_grad)")
    else:
        writer.statement(row)
    _conclude(writer)
    return "\n".join(IMPORTS + writer.lines) + "\n"


def _drawn(random: Random) -> list[str]:
    """The families of a program's pieces, in order; rarely more than one of the longer ones."""
    weights = [weight for weight, _ in _COMMON.values()]
    count = random.randint(3, 12) if random.random() < 0.7 else random.randint(15, 30)
    drawn = random.choices(list(_COMMON), weights, k=count)
    for _ in range(sum(random.random() < 0.4 for _ in range(1 + count // 12))):
        longer = [name for name, (weight, _) in _LONGER.items() for _ in range(weight)]
        drawn.insert(random.randrange(len(drawn)), random.choice(longer))
    return drawn


def _assign(writer: Writer, row: Row) -> None:
    value = writer.assignment(row)
    if writer.random.random() < 0.5:
        writer.lines.append(f"print({value.text})")


def _conclude(writer: Writer) -> None:
    """Go back from some value; print the gradients of the leaves, versions, some of the rest."""
    recorded = [v for v in writer.values if v.requires_grad and not v.is_leaf and v.kind == "f"]
    if recorded and writer.random.random() < 0.6:
        value = writer.random.choice(recorded)
        weights = writer.numbers.tensor(value.shape, value.dtype)
        writer.lines.append(f"({value.text} * {weights}).sum().backward()")
    for value in writer.values:
        if value.is_leaf and value.requires_grad:
            writer.lines.append(f"print({value.text}.grad)")
        elif writer.random.random() < 0.3:
            writer.lines.append(f"print({value.text}, {_described(value)})")


def _described(value: Value) -> str:
    return f"{value.text}._version, {value.text}.grad_fn is None"
