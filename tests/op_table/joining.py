"""Joining tensors and cutting them."""

from __future__ import annotations

from tests.op_table.rows import Row, constant, normal

ROWS = [
    Row("cat([x, y])", x=normal(2, 3), y=normal(1, 3)),
    Row("cat([x, y], -1)", x=normal(2, 3), y=normal(2, 1)),
    Row("cat([x, x * 2, y])", x=normal(3), y=constant(normal(2))),
    Row("cat([x, tensor([])])", x=normal(2, 2)),
    Row("concat([x, y])", x=normal(2), y=normal(2)),
    Row("stack([x, y])", x=normal(2, 3), y=normal(2, 3)),
    Row("stack([x, y, x], -1)", x=normal(2), y=normal(2)),
    Row("stack([x, y])", x=normal(), y=normal()),
    Row("hstack([x, y])", x=normal(2, 1), y=normal(2, 3)),
    Row("vstack([x, y])", x=normal(3), y=normal(2, 3)),
    Row("dstack([x, y])", x=normal(3), y=normal(1, 3)),
    Row("column_stack([x, y])", x=normal(3), y=normal(3, 2)),
    Row("block_diag(x, y, z)", x=normal(2, 3), y=normal(2), z=normal()),
    Row("cartesian_prod(x, y)", x=normal(2), y=normal(3)),
    Row("combinations(x)", x=normal(3)),
    Row("combinations(x, 3, True)", x=normal(2)),
    # --- cutting
    Row("x.split(2)", x=normal(5, 2)),
    Row("x.split(2, -1)[0]", x=normal(2, 3)),
    Row("x.split([1, 0, 2], 1)", x=normal(2, 3)),
    Row("x.split_with_sizes([1, 2])[1]", x=normal(3)),
    Row("x.chunk(2)", x=normal(5)),
    Row("x.unsafe_chunk(2)", x=normal(4)),
    Row("x.unsafe_split(3)[1]", x=normal(4)),
    Row("x.unsafe_split_with_sizes((1, 3))[1]", x=normal(4)),
    Row("x.unbind()", x=normal(2, 3)),
    Row("x.unbind(-1)[1]", x=normal(2, 3)),
    Row("a, b = x; a * b", x=normal(2, 3)),
    Row("x.tensor_split(2)", x=normal(5)),
    Row("x.tensor_split((1, 2), 1)", x=normal(2, 3)),
    Row("x.hsplit(3)", x=normal(2, 3)),
    Row("x.vsplit(2)", x=normal(2, 3)),
    Row("x.dsplit([1])", x=normal(1, 2, 3)),
]
