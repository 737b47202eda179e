"""Copies with the elements in other places, and padding."""

from __future__ import annotations

from tests.op_table.rows import Row, indices, normal

ROWS = [
    Row("x.flip(0)", x=normal(2, 3)),
    Row("x.flip(0, -1)", x=normal(2, 3)),
    Row("x.fliplr()", x=normal(2, 3)),
    Row("x.flipud()", x=normal(3)),
    Row("x.roll(1)", x=normal(2, 3)),
    Row("x.roll(-2, 1)", x=normal(2, 3)),
    Row("x.roll((1, 2), (0, 1))", x=normal(2, 3)),
    Row("x.rot90()", x=normal(2, 3)),
    Row("x.rot90(3, (2, 0))", x=normal(2, 3, 2)),
    Row("x.repeat(2)", x=normal(3)),
    Row("x.repeat(2, 1, 3)", x=normal(2, 3)),
    Row("x.repeat(2)", x=normal()),
    Row("x.tile(2)", x=normal(2, 3)),
    Row("x.repeat_interleave(2)", x=normal(2, 3)),
    Row("x.repeat_interleave(2, dim=-1)", x=normal(2, 3)),
    Row("x.repeat_interleave(n, dim=1)", x=normal(2, 3), n=indices(2, 0, 1)),
    Row("x.tril()", x=normal(3, 3)),
    Row("x.tril(-1)", x=normal(2, 3, 4)),
    Row("x.triu(1)", x=normal(3, 3)),
    Row("y = x * 1; y.tril_(); y", x=normal(3, 3)),
    Row("x.diag()", x=normal(3)),
    Row("x.diag(1)", x=normal(3, 3)),
    Row("x.diag(-1)", x=normal(2)),
    Row("diag_embed(x)", x=normal(2, 3)),
    Row("diag_embed(x, 1, 0, 2)", x=normal(2, 3)),
    Row("x.diagflat(1)", x=normal(2, 2)),
    # --- padding
    Row("F.pad(x, (1, 2))", x=normal(2, 3)),
    Row("F.pad(x, (1, -1, 0, 2), value=1.5)", x=normal(2, 3)),
    Row("F.pad(x, (1, 2), mode='reflect')", x=normal(2, 3)),
    Row("F.pad(x, (1, 2, 1, 0), mode='reflect')", x=normal(1, 3, 3)),
    Row("F.pad(x, (1, 0, 1, 1, 1, 0), mode='reflect')", x=normal(1, 2, 3, 2)),
    Row("F.pad(x, (2, 1), mode='replicate')", x=normal(2, 2)),
    Row("F.pad(x, (2, 1, 0, 3), mode='replicate')", x=normal(1, 2, 2)),
    Row("F.pad(x, (1, 1, 0, 1, 2, 0), mode='replicate')", x=normal(1, 2, 2, 2)),
    Row("F.pad(x, (1, 2), mode='circular')", x=normal(2, 3)),
    Row("F.pad(x, (1, 0, 2, 1), mode='circular')", x=normal(1, 3, 2)),
]
