"""What batched ops are held against: a function under `vmap`, and example by example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gradcli.functional.load  # noqa: F401  (torch.func)
from gradcli.autograd.tensor import Tensor
from gradcli.functional.derivatives import vjp
from gradcli.functional.vmap import vmap
from gradcli.ops.shape.joining import stack_
from tests.op_table.check import differentiable, leaf
from tests.op_table.rows import Row
from tests.running import Expression

EXAMPLES = 3


class Batch:
    """A row's function, and examples for it.

    Attributes:
        function: from the differentiable operands to its floating outputs, a tuple.
        arrays: the differentiable operands, examples in front.
    """

    def __init__(self, row: Row) -> None:
        expression = Expression(row.expression)
        names = [name for name, operand in row.operands.items() if operand.differentiable]
        values = row.values()
        fixed = {
            name: Tensor(np.asarray(value)[()]) for name, value in values.items() if name not in names
        }
        draws = [row.operands[name].draw for name in names]
        self.generator = row.generator()
        self.arrays = [
            np.stack([np.asarray(draw(self.generator), np.float64) for _ in range(EXAMPLES)])
            for draw in draws
        ]

        def function(*tensors: Tensor) -> tuple[Tensor, ...]:
            returned = expression(**dict(zip(names, tensors, strict=True)), **fixed)
            return tuple(floating(returned))

        self.function = function

    def examples(self) -> list[list[Tensor]]:
        """The operands of each example."""
        return [[leaf(a[n]) for a in self.arrays] for n in range(EXAMPLES)]


def floating(returned: Any) -> list[Tensor]:
    """The floating tensors of what a function returned."""
    values = returned if isinstance(returned, (tuple, list)) else (returned,)
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, (tuple, list)):
            found += floating(value)
        elif isinstance(value, Tensor) and value.array.dtype.kind in "fc":
            found.append(value)
    return found


def pullback(function: Callable[..., Any], seeds: Sequence[Tensor]) -> Callable[..., Any]:
    """The function of the gradients at a point, from seeds."""

    def gradients(*tensors: Tensor) -> Any:
        _, pull = vjp(function, *tensors)
        return pull(tuple(seeds))

    return gradients


def stacked(results: Sequence[Sequence[Tensor]]) -> list[Any]:
    """The results of examples, one after another, as arrays."""
    return [np.stack([np.asarray(each.array) for each in column]) for column in zip(*results, strict=True)]


def arrays(results: Sequence[Tensor]) -> list[Any]:
    return [np.asarray(each.array) for each in results]
