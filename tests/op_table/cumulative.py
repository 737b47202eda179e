"""Rows for running sums, products and extremes."""

from __future__ import annotations

from tests.op_table.rows import Row, distinct, normal, values

ROWS = [
    Row("x.cumsum(0)", x=normal(3, 2)),
    Row("x.cumsum(-1)", x=normal(2, 3)),
    Row("x.cumsum(0)", x=normal()),
    Row("x.cumprod(1)", x=normal(2, 3)),
    Row("x.cumprod(0)", x=normal()),
    Row("x.cumprod(0)", x=values(2.0, 0.0, 3.0, -1.5)),
    Row("x.cumprod(-1)", x=values([[0.0, 1.5, 2.0], [1.2, 0.0, 0.0]])),
    Row("x.cummax(1).values", x=distinct(2, 4)),
    Row("x.cummin(0).values", x=distinct(4, 2)),
    Row("x.logcumsumexp(1)", x=normal(2, 3)),
    Row("x.logcumsumexp(0)", x=normal()),
    Row("x.diff()", x=normal(2, 4)),
    Row("x.diff(n=2, dim=0)", x=normal(4, 2)),
    Row("x.diff(prepend=y)", x=normal(2, 2), y=normal(2, 1)),
]
