"""What batched ops are held against: a function under `vmap`, and for one example after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.library.torch.func.derivatives import vjp
from tests.op_table.check import leaf
from tests.op_table.rows import Row
from tests.running import Expression

EXAMPLES = 2


class Batch:
    """A row's function, and examples for it.

    Attributes:
        function: from the differentiable operands to the floating tensors of the result.
        arrays: the differentiable operands, the examples in front.
        generator: draws the seed vectors.
    """

    def __init__(self, row: Row) -> None:
        expression = Expression(row.expression)
        names = [name for name, operand in row.operands.items() if operand.differentiable]
        values = row.values()
        fixed = {name: Tensor(np.asarray(values[name])[()]) for name in values if name not in names}
        self.generator = row.generator()
        self.arrays = [
            np.stack(
                [
                    np.asarray(row.operands[name].draw(self.generator), np.float64)
                    for _ in range(EXAMPLES)
                ]
            )
            for name in names
        ]

        def function(*tensors: Tensor) -> tuple[Tensor, ...]:
            returned = expression(**dict(zip(names, tensors, strict=True)), **fixed)
            return tuple(_floating(returned))

        self.function = function

    def examples(self) -> list[list[Tensor]]:
        """The operands of each example."""
        return [[leaf(array[n]) for array in self.arrays] for n in range(EXAMPLES)]

    def seeds(self, outputs: Sequence[Tensor]) -> list[Tensor]:
        """A random seed for each output."""
        draw = self.generator.normal
        return [Tensor(np.asarray(draw(size=o.array.shape), o.array.dtype)[()]) for o in outputs]


def _floating(returned: Any) -> list[Tensor]:
    if isinstance(returned, (tuple, list)):
        return [tensor for part in returned for tensor in _floating(part)]
    return [returned] if isinstance(returned, Tensor) and returned.array.dtype.kind in "fc" else []


def pullback(function: Callable[..., Any], seeds: Sequence[Tensor]) -> Callable[..., Any]:
    """The function of the gradients at a point, from seeds."""

    def gradients(*tensors: Tensor) -> Any:
        _, pull = vjp(function, *tensors)
        return pull(tuple(seeds))

    return gradients


def stacked(results: Sequence[Sequence[Tensor]]) -> list[Any]:
    """The results of examples, one behind the other, as arrays."""
    columns = zip(*results, strict=True)
    return [np.stack([np.asarray(each.array) for each in column]) for column in columns]


def compare(found: Sequence[Tensor], expected: Sequence[Any]) -> None:
    """Raise AssertionError unless tensors have the elements of arrays."""
    for tensor, array in zip(found, expected, strict=True):
        assert tensor.array.dtype == array.dtype
        np.testing.assert_allclose(tensor.array, array, rtol=1e-9, atol=1e-9)
