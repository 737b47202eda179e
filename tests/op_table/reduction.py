"""Rows for sums, means, products, extremes, statistics and norms."""

from __future__ import annotations

from tests.op_table.rows import Row, distinct, normal, positive, values

ROWS = [
    *[
        Row(f"torch.segment_reduce(x, {name!r}, lengths=tensor([1, 2]))", x=distinct(3, 2), order=1)
        for name in ("sum", "mean", "prod", "max", "min")
    ],
    # --- sums and means ---
    Row("sum(x)", x=normal(2, 3)),
    Row("torch.sum(x)", x=normal(2, 3)),
    Row("x.sum()", x=normal()),
    Row("x.sum(0)", x=normal(2, 3)),
    Row("x.sum((0, -1), keepdim=True)", x=normal(2, 3, 2)),
    Row("x.sum_to_size(1, 3)", x=normal(2, 3)),
    Row("x.nansum()", x=normal(2, 3)),
    Row("x.nansum(-1)", x=normal(2, 3)),
    Row("x.nanmean(0)", x=normal(2, 3)),
    Row("x.mean()", x=normal(2, 3)),
    Row("x.mean(1, keepdim=True)", x=normal(2, 3)),
    Row("x.mean((0, 2))", x=normal(2, 3, 2)),
    # --- products ---
    Row("x.prod()", x=normal(2, 2)),
    Row("x.prod()", x=normal()),
    Row("x.prod()", x=values(2.0, 0.0, 3.0)),
    Row("x.prod()", x=values(2.0, 0.0, 0.0, 1.5)),
    Row("x.prod(-1)", x=normal(2, 3)),
    Row("x.prod(0, keepdim=True)", x=values([[0.0, 1.5, 2.0], [0.0, 0.0, -0.7]])),
    # --- logsumexp ---
    Row("x.logsumexp(1)", x=normal(2, 3)),
    Row("x.logsumexp((0, 1), keepdim=True)", x=normal(2, 3)),
    # --- extremes ---
    Row("x.max()", x=distinct(2, 3)),
    Row("x.min()", x=distinct(2, 3)),
    Row("x.max(1).values", x=distinct(2, 3)),
    Row("x.min(0, keepdim=True)[0]", x=distinct(3, 2)),
    Row("x.max(0).values", x=normal()),
    Row("torch.max(x, y)", x=distinct(2, 3), y=values(0.0)),
    Row("x.amax()", x=distinct(2, 3)),
    Row("x.amax((0, 2))", x=distinct(2, 2, 3)),
    Row("x.amin(-1, keepdim=True)", x=distinct(2, 3)),
    Row("x.aminmax()", x=distinct(2, 3)),
    Row("x.aminmax(dim=1)", x=distinct(2, 3)),
    Row("x.aminmax(dim=0, keepdim=True).max", x=distinct(2, 3)),
    # --- statistics ---
    Row("x.var()", x=normal(2, 3)),
    Row("x.var(0, keepdim=True)", x=normal(3, 2)),
    Row("x.var((0, -1), correction=0)", x=normal(2, 3, 2)),
    Row("x.std()", x=normal(2, 3)),
    Row("x.std(1)", x=normal(2, 3)),
    Row("x.std(dim=1, correction=2, keepdim=True)", x=normal(2, 4)),
    Row("torch.var_mean(x)", x=normal(2, 3)),
    Row("torch.var_mean(x, 1)", x=normal(2, 3)),
    Row("torch.var_mean(x, 1)[1]", x=normal(2, 3)),
    Row("torch.std_mean(x, 0, keepdim=True)", x=normal(3, 2)),
    Row("torch.std_mean(x)[0]", x=normal(3, 2)),
    Row("x.median()", x=distinct(2, 3)),
    Row("x.median(1).values", x=distinct(2, 4)),
    Row("x.nanmedian()", x=distinct(5)),
    Row("x.nanmedian(0, keepdim=True)[0]", x=distinct(3, 2)),
    Row("x.mode(1).values", x=distinct(2, 3)),
    # --- norms ---
    Row("x.norm()", x=normal(2, 3)),
    Row("x.norm(dim=1, keepdim=True)", x=normal(2, 3)),
    Row("x.norm(1)", x=normal(2, 3)),
    Row("x.norm(3, 1)", x=normal(2, 3)),
    Row("x.norm(1.5, (0, 1))", x=normal(2, 3)),
    Row("x.norm(0.5, 1)", x=positive(2, 3)),
    Row("x.norm(inf, 1)", x=distinct(2, 3)),
    Row("x.norm(-inf)", x=distinct(2, 3)),
    Row("torch.linalg.norm(x)", x=normal(3)),
    Row("torch.linalg.vector_norm(x, 2, (0, 2))", x=normal(2, 3, 2)),
    Row("torch.linalg.matrix_norm(x)", x=normal(2, 2, 3)),
    Row("torch.linalg.matrix_norm(x, 1)", x=normal(2, 3)),
    Row("torch.linalg.matrix_norm(x, -inf, keepdim=True)", x=normal(2, 3)),
    Row("torch.dist(x, y)", x=normal(2, 3), y=normal(3)),
    Row("torch.dist(x, y, 1)", x=normal(3), y=normal(3)),
]
