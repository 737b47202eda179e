"""Gradients of the softmax family."""

from __future__ import annotations

from tests.op_table.rows import Row, normal

ROWS = [
    Row("softmax(x, 0)", x=normal(4)),
    Row("softmax(x, -1)", x=normal(2, 3)),
    Row("x.softmax(dim=1)", x=normal(2, 3, 2)),
    Row("softmax(x, 0)", x=normal(), order=1),
    Row("softmax(x, 0, dtype=torch.float64)", x=normal(4), float32=False),
    Row("log_softmax(x, 0)", x=normal(4)),
    Row("log_softmax(x, -2)", x=normal(2, 3)),
    Row("x.log_softmax(1)", x=normal(2, 3, 2)),
    Row("log_softmax(x, 0)", x=normal(), order=1),
    Row("F.softmin(x, 1)", x=normal(2, 3)),
]
