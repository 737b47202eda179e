"""Rows for sorting and for the elements that an order picks."""

from __future__ import annotations

from tests.op_table.rows import Row, distinct, normal

ROWS = [
    Row("x.sort().values", x=distinct(2, 3)),
    Row("x.sort(0, descending=True)[0]", x=distinct(3, 2)),
    Row("x.sort().values", x=normal()),
    Row("x.msort()", x=distinct(3, 2)),
    Row("x.topk(2).values", x=distinct(2, 4)),
    Row("x.topk(1, 0, largest=False)[0]", x=distinct(3, 2)),
    Row("x.kthvalue(2).values", x=distinct(2, 3)),
    Row("x.kthvalue(1, 0, keepdim=True)[0]", x=distinct(3, 2)),
    Row("torch.unique(x)", order=0, x=distinct(4)),
    Row("torch.unique(x, dim=0)", order=0, x=distinct(3, 2)),
    Row("torch.unique_consecutive(x)", order=0, x=distinct(4)),
]
