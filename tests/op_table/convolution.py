"""Rows for convolutions, and for what slides windows: unfold and fold."""

from __future__ import annotations

from tests.op_table.rows import Row, constant, normal

ROWS = [
    # --- convolutions ---
    Row("F.conv1d(x, w)", x=normal(2, 2, 5), w=normal(3, 2, 3)),
    Row("F.conv1d(x, w, b)", x=normal(2, 5), w=normal(3, 2, 2), b=normal(3)),
    Row("F.conv2d(x, w, b)", x=normal(2, 2, 4, 4), w=normal(3, 2, 3, 3), b=normal(3)),
    Row(
        "F.conv2d(x, w, b, stride=(2, 1), padding=(1, 2), dilation=(1, 2))",
        x=normal(1, 2, 4, 5),
        w=normal(2, 2, 3, 2),
        b=normal(2),
    ),
    Row("F.conv2d(x, w, groups=2)", x=normal(1, 4, 3, 3), w=normal(2, 2, 2, 2)),
    Row("F.conv2d(x, w, padding='same')", x=normal(1, 2, 3, 4), w=normal(2, 2, 3, 2)),
    Row("F.conv2d(x, w, padding='valid')", x=normal(1, 2, 3, 3), w=normal(2, 2, 1, 1)),
    Row("F.conv2d(x, w)", x=constant(normal(1, 2, 3, 3)), w=normal(2, 2, 2, 2)),
    Row("F.conv2d(x, w)", x=normal(1, 2, 3, 3), w=constant(normal(2, 2, 2, 2))),
    Row("F.conv3d(x, w)", x=normal(1, 2, 3, 3, 3), w=normal(1, 2, 2, 2, 2)),
    # --- transposed ---
    Row("F.conv_transpose1d(x, w, b)", x=normal(2, 3), w=normal(2, 3, 2), b=normal(3)),
    Row(
        "F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1)",
        x=normal(1, 2, 3, 2),
        w=normal(2, 2, 3, 3),
        b=normal(2),
    ),
    Row(
        "F.conv_transpose2d(x, w, output_padding=1, groups=2, dilation=2)",
        x=normal(1, 2, 2, 3),
        w=normal(2, 2, 2, 2),
    ),
    Row("F.conv_transpose3d(x, w)", x=normal(1, 1, 2, 2, 2), w=normal(1, 1, 2, 2, 2)),
    # --- windows ---
    Row("F.unfold(x, 2)", x=normal(1, 2, 3, 3)),
    Row("F.unfold(x, (2, 3), dilation=(2, 1), padding=1, stride=2)", x=normal(2, 5, 4)),
    Row("F.fold(x, 3, 2)", x=normal(1, 4, 4)),
    Row("F.fold(x, (4, 3), 2, padding=1, stride=(2, 1))", x=normal(4, 12)),
]
