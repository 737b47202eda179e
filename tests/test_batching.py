"""`vmap` of every row of the gradient table: its values and gradients are those of the examples.

The rows stand in `tests/op_table/`. What PyTorch prints, raises and warns inside `vmap` is recorded
in `tests/programs/functional/batched_*.grad`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.library.torch.func.vmap import vmap
from tests.batching import EXAMPLES, Batch, compare, pullback, stacked
from tests.op_table.rows import Row
from tests.rows import each_row
from tests.test_gradients import ROWS

REFUSED = (
    "can output dynamic shape",
    "over `mask` in torch.masked_select",
    "called random operation",
    "inplace arithmetic(self, *extra_args) is not possible",
    "backward() called inside a functorch transform",
    "call Tensor.requires_grad_()",
    "does not require grad and does not have a grad_fn",
)
"""Parts of PyTorch's texts for what cannot be batched."""

UNLIKE = {
    # Recorded, its gradient divides by an integer power of 2, as in PyTorch.
    "torch.frexp(x).mantissa",
}
"""Rows whose gradient as an array is another one than as a tensor."""


def _batched(batch: Batch, whole: list[Tensor]) -> Any:
    """The results of all examples; None where PyTorch refuses to batch the function too."""
    try:
        return vmap(batch.function)(*whole)
    except GradcliError as error:
        if any(part in (error.text or error.message) for part in REFUSED):
            return None
        raise


@each_row("row", ROWS, every=3)
def test_batches(row: Row) -> None:
    batch = Batch(row)
    examples = batch.examples()
    whole = [Tensor(array) for array in batch.arrays]
    expected = [batch.function(*operands) for operands in examples]
    if not expected[0]:
        return
    found = _batched(batch, whole)
    if found is None:
        return
    compare(found, stacked(expected))
    if row.order == 0 or row.expression in UNLIKE:
        return
    seeds = batch.seeds(expected[0])
    gradients = pullback(batch.function, seeds)
    wanted = stacked([gradients(*operands) for operands in batch.examples()])
    compare(vmap(gradients)(*whole), wanted)
    every = [Tensor(np.stack([seed.array] * EXAMPLES)) for seed in seeds]
    compare(pullback(vmap(batch.function), every)(*whole), wanted)
