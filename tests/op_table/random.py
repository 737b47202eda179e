"""Rows for samples: what is drawn is not differentiated, so the gradients are zero."""

from __future__ import annotations

from tests.op_table.rows import Row, unit

_SEEDED = "torch.manual_seed(1)\n"

ROWS = [
    Row(_SEEDED + drawn, order=1, float32=False, x=unit(2, 3))
    for drawn in (
        "(x * 1).uniform_()",
        "(x * 1).normal_()",
        "(x * 1).exponential_()",
        "(x * 1).cauchy_()",
        "(x * 1).geometric_(0.5)",
        "(x * 1).log_normal_()",
        "(x * 1).bernoulli_(0.5)",
        "(x * 1).bernoulli_(tensor(0.5))",
        "(x * 1).random_()",
        "(x * 1).random_(5)",
        "(x * 1).random_(2, 5)",
        "torch.bernoulli(x)",
    )
]

ROWS.append(
    Row(_SEEDED + "torch.bernoulli(x, 0.5)", order=0, float32=False, x=unit(2, 3)),
)

# The mean moves a sample and the deviation stretches it, yet PyTorch gives neither a gradient; so
# these are constant.
ROWS += [
    Row(_SEEDED + drawn, order=1, float32=False, x=unit(2, 3))
    for drawn in (
        "torch.normal(x * 0, 1.0)",
        "torch.normal(0.0, x * 0 + 1)",
        "torch.normal(x[0] * 0, x * 0 + 1)",
    )
]
