"""Rows for normalisation."""

from __future__ import annotations

from tests.op_table.rows import Row, normal

_STATISTICS = (
    "m, v = torch.tensor([0.5, -1.0], dtype=x.dtype), torch.tensor([2.0, 0.5], dtype=x.dtype)\n"
)

ROWS = [
    # --- layer and group ---
    Row("F.layer_norm(x, (4,))", x=normal(3, 4)),
    Row("F.layer_norm(x, (4,), w, b)", x=normal(2, 4), w=normal(4), b=normal(4)),
    Row("F.layer_norm(x, (2, 3), w, eps=0.1)", x=normal(2, 2, 3), w=normal(2, 3)),
    Row("F.layer_norm(x, (3,), bias=b)", x=normal(2, 3), b=normal(3)),
    Row("F.group_norm(x, 2)", x=normal(2, 4, 2)),
    Row("F.group_norm(x, 2, w, b)", x=normal(2, 4, 2), w=normal(4), b=normal(4)),
    Row("F.rms_norm(x, (4,))", x=normal(2, 4)),
    Row("F.rms_norm(x, (2, 3), w, eps=0.1)", x=normal(2, 2, 3), w=normal(2, 3)),
    # --- batch and instance ---
    Row("F.batch_norm(x, None, None, training=True)", x=normal(4, 2)),
    Row(
        "F.batch_norm(x, None, None, w, b, training=True)",
        x=normal(2, 2, 3),
        w=normal(2),
        b=normal(2),
    ),
    Row(_STATISTICS + "F.batch_norm(x, m, v, w, b)", x=normal(3, 2), w=normal(2), b=normal(2)),
    Row(_STATISTICS + "F.batch_norm(x, m, v)", x=normal(2, 2, 2)),
    Row("F.instance_norm(x)", x=normal(2, 2, 4)),
    Row("F.instance_norm(x, weight=w, bias=b)", x=normal(2, 2, 3), w=normal(2), b=normal(2)),
    Row("F.local_response_norm(x, 2, alpha=0.5)", x=normal(2, 3, 2)),
    Row("F.local_response_norm(x, 3, alpha=0.5, k=2.0)", x=normal(1, 4, 2, 2)),
]
