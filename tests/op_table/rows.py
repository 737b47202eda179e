"""What a row of the gradient table is, and the domains that its operands are drawn from.

A file of the table lists rows, each an expression in gradcli's language and what stands for its
names:

    ROWS = [
        Row("exp(x)", x=normal(2, 3)),
        Row("x @ y", x=normal(2, 3), y=normal(3, 4)),
        Row("floor(x)", x=away(4), order=1),
    ]

A domain says how values are drawn, so that they keep clear of the points where the function has no
derivative. The values follow from the row's own text: a row always checks the same numbers, and
two rows never share theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np

Generator = np.random.Generator


class Operand:
    """How the values of one operand are drawn: a domain and a shape.

    `differentiable` operands require grad; the others (integers, masks, constants) do not.
    """

    __slots__ = ("differentiable", "domain", "draw", "shape")

    def __init__(
        self,
        domain: str,
        shape: tuple[int, ...],
        draw: Callable[[Generator], Any],
        differentiable: bool = True,
    ) -> None:
        self.domain = domain
        self.shape = shape
        self.draw = draw
        self.differentiable = differentiable

    def __repr__(self) -> str:
        return f"{self.domain}({', '.join(map(str, self.shape))})"


class Row:
    """One function whose gradients are checked.

    Args:
        expression: a program in gradcli's language; its last statement is an expression, a tensor
            or a tuple or list of them. All of torch's names can be used plainly.
        order: 1 or 2, the highest order of derivative to check; 0 for what has a node and no
            derivative, so that differentiating it is E409.
        float32: whether float32 operands are checked too, to give float32 results close by.
        operands: the expression's names.
    """

    __slots__ = ("expression", "float32", "operands", "order")

    def __init__(
        self, expression: str, *, order: int = 2, float32: bool = True, **operands: Operand
    ) -> None:
        if order not in (0, 1, 2):
            raise ValueError(f"{expression}: order is 0, 1 or 2, not {order}")
        self.expression = expression
        self.order = order
        self.float32 = float32 and order > 0
        self.operands = operands

    def __repr__(self) -> str:
        described = ", ".join(f"{name}={operand}" for name, operand in self.operands.items())
        return f"{self.expression} [{described}]"

    def values(self) -> dict[str, Any]:
        """The operands' arrays, float64 where they are differentiable; the same on every call."""
        generator = self.generator()
        return {name: operand.draw(generator) for name, operand in self.operands.items()}

    def generator(self) -> Generator:
        """A random generator that starts from the row's text."""
        return np.random.default_rng(crc32(repr(self).encode()))


# --- numbers --------------------------------------------------------------------------------------


def normal(*shape: int) -> Operand:
    """Normally distributed: any sign, no value nearer to 0 than 0.05."""
    return Operand(
        "normal", shape, lambda g: _signed(g, shape, 0.05 + np.abs(g.normal(size=shape)))
    )


def positive(*shape: int) -> Operand:
    """Between 0.4 and 2.5."""
    return Operand("positive", shape, lambda g: g.uniform(0.4, 2.5, shape))


def unit(*shape: int) -> Operand:
    """Between 0.1 and 0.9: what a probability, asin and log1p accept."""
    return Operand("unit", shape, lambda g: g.uniform(0.1, 0.9, shape))


def signed_unit(*shape: int) -> Operand:
    """Between -0.9 and 0.9, no value nearer to 0 than 0.1."""
    return Operand("signed_unit", shape, lambda g: _signed(g, shape, g.uniform(0.1, 0.9, shape)))


def above_one(*shape: int) -> Operand:
    """Between 1.2 and 3: what acosh accepts."""
    return Operand("above_one", shape, lambda g: g.uniform(1.2, 3.0, shape))


def away(*shape: int, low: float = 0.5, high: float = 2.5) -> Operand:
    """Of either sign and at least `low` from 0, clear of a kink or a pole there; no value is
    within 0.03 of a multiple of 0.5.
    """

    def draw(g: Generator) -> Any:
        magnitude = g.uniform(low + 0.04, high - 0.04, shape)
        step = np.round(magnitude * 2) / 2
        near = np.abs(magnitude - step) < 0.03
        return _signed(g, shape, np.where(near, step + 0.04, magnitude))

    return Operand("away", shape, draw)


def distinct(*shape: int, gap: float = 0.3) -> Operand:
    """Any two values differ by half of `gap` or more: no near-ties for max, sort or median."""

    def draw(g: Generator) -> Any:
        count = int(np.prod(shape))
        spaced = (np.arange(count) - (count - 1) / 2) * gap + g.uniform(-gap / 4, gap / 4, count)
        return g.permutation(spaced).reshape(shape)

    return Operand("distinct", shape, draw)


def values(*numbers: Any) -> Operand:
    """The very numbers given, or one nested list of them."""
    array = np.array(numbers[0] if len(numbers) == 1 else numbers, np.float64)
    return Operand(f"values{array.tolist()}", array.shape, lambda g: array.copy())


# --- matrices -------------------------------------------------------------------------------------


def spd(*shape: int) -> Operand:
    """Symmetric positive definite matrices, eigenvalues distinct; the shape is the whole one,
    `spd(2, 3, 3)` for two matrices.
    """
    return Operand("spd", shape, lambda g: _conjugate(g, shape, 1.0))


def symmetric(*shape: int) -> Operand:
    """Symmetric matrices of distinct eigenvalues of both signs."""
    return Operand("symmetric", shape, lambda g: _conjugate(g, shape, -1.1))


def invertible(*shape: int) -> Operand:
    """Square matrices that are far from singular."""
    return Operand(
        "invertible",
        shape,
        lambda g: g.uniform(-0.5, 0.5, shape) + np.eye(shape[-1]) * (1 + shape[-1] / 2),
    )


# --- without gradient -----------------------------------------------------------------------------


def constant(operand: Operand) -> Operand:
    """The same values, in a tensor that does not require grad."""
    return Operand(f"constant {operand.domain}", operand.shape, operand.draw, False)


def integers(low: int, high: int, *shape: int) -> Operand:
    """Integers from `low` to `high` (exclusive), int64."""
    return Operand(
        f"integers {low}:{high}",
        shape,
        lambda g: g.integers(low, high, shape),
        differentiable=False,
    )


def indices(*numbers: Any) -> Operand:
    """The very integers given, or one nested list of them, int64."""
    array = np.array(numbers[0] if len(numbers) == 1 else numbers, np.int64)
    return Operand(f"indices{array.tolist()}", array.shape, lambda g: array.copy(), False)


def mask(*shape: int) -> Operand:
    """Truth values, of which at least one is true and, with two or more, one is false."""

    def draw(g: Generator) -> Any:
        chosen = np.asarray(g.uniform(size=shape) < 0.5)
        flat = chosen.reshape(-1)
        flat[-1:] = False
        flat[:1] = True
        return chosen

    return Operand("mask", shape, draw, differentiable=False)


def _signed(g: Generator, shape: tuple[int, ...], magnitude: Any) -> Any:
    return np.where(g.uniform(size=shape) < 0.5, -magnitude, magnitude)


def _conjugate(g: Generator, shape: tuple[int, ...], lowest: float) -> Any:
    """Symmetric matrices of evenly spaced eigenvalues, from `lowest` up."""
    size = shape[-1]
    basis = np.linalg.qr(g.normal(size=shape))[0]
    eigenvalues = lowest + 0.7 * np.arange(size)
    return (basis * eigenvalues) @ np.swapaxes(basis, -1, -2)
