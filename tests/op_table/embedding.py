"""Rows for tables read by index."""

from __future__ import annotations

from tests.op_table.rows import Row, distinct, indices, normal

ROWS = [
    Row("F.embedding(i, w)", i=indices(0, 2, 2), w=normal(4, 3)),
    # A row that is padding gets no gradient, whatever its derivative is: here it is not read.
    Row("F.embedding(i, w, padding_idx=2)", i=indices([[0, 1], [3, 1]]), w=normal(4, 2)),
    Row("F.embedding(i, w, scale_grad_by_freq=True)", order=1, i=indices(1), w=normal(3, 2)),
    Row("torch.embedding(w, i)", i=indices(1), w=normal(3, 2)),
    Row(
        "y = F.embedding(i, w) ** 3\ntorch.autograd.grad(y.sum(), w, create_graph=True)[0]",
        i=indices(0, 2, 0),
        w=normal(3, 2),
    ),
    Row("F.embedding_bag(i, w)", order=1, i=indices([[0, 2], [1, 1]]), w=normal(4, 3)),
    Row(
        "F.embedding_bag(i, w, o, mode='sum')",
        order=1,
        i=indices(0, 2, 1),
        o=indices(0, 1),
        w=normal(4, 3),
    ),
    Row(
        "F.embedding_bag(i, w, mode='max')",
        order=1,
        i=indices([[0, 2], [1, 3]]),
        w=distinct(4, 3),
    ),
    Row(
        "F.embedding_bag(i, w, mode='sum', per_sample_weights=p)",
        order=1,
        i=indices([[0, 2], [1, 1]]),
        w=normal(4, 3),
        p=normal(2, 2),
    ),
]
