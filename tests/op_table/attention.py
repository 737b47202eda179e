"""Rows for attention."""

from __future__ import annotations

from tests.op_table.rows import Row, normal

ROWS = [
    Row(
        "F.multi_head_attention_forward(x, y, y, 2, 1, w, None, None, None, True, 0., v, None)[0]",
        x=normal(2, 2),
        y=normal(3, 2),
        w=normal(6, 2),
        v=normal(2, 2),
    ),
    Row("F.scaled_dot_product_attention(x, y, z)", x=normal(2, 3), y=normal(4, 3), z=normal(4, 2)),
    Row(
        "F.scaled_dot_product_attention(x, y, z, is_causal=True, scale=0.5)",
        x=normal(2, 3, 2),
        y=normal(2, 3, 2),
        z=normal(2, 3, 2),
    ),
    Row(
        "F.scaled_dot_product_attention(x, y, z, m)",
        x=normal(2, 3),
        y=normal(2, 3),
        z=normal(2, 3),
        m=normal(2, 2),
    ),
    Row(
        "F.scaled_dot_product_attention(x, y, z)",
        order=1,
        x=normal(1, 2, 3, 2),
        y=normal(1, 2, 4, 2),
        z=normal(1, 2, 4, 2),
    ),
    Row(
        "F.scaled_dot_product_attention(x, y, z, enable_gqa=True)",
        order=1,
        x=normal(2, 4, 3, 2),
        y=normal(2, 2, 4, 2),
        z=normal(2, 2, 4, 2),
    ),
    Row(
        "F.scaled_dot_product_attention(x, y, z, is_causal=True, enable_gqa=True)",
        x=normal(4, 3, 2),
        y=normal(2, 3, 2),
        z=normal(1, 3, 2),
    ),
    Row(
        "torch.autograd.grad("
        "F.scaled_dot_product_attention(x, x, x).sum(), x, create_graph=True)[0]",
        order=0,
        x=normal(1, 1, 3, 2),
    ),
]
