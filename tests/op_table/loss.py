"""Gradients of the losses and distances, with each reduction."""

from __future__ import annotations

from typing import Any

from tests.op_table.rows import (
    Row,
    constant,
    indices,
    normal,
    positive,
    unit,
    values,
)

_REDUCTIONS = ("none", "mean", "sum")
_NEAR = values([[0.1, 0.9, -0.4], [1.5, -2.6, 0.3]])
_FAR = values([[0.4, -1.1, 2.2], [1.2, -0.9, 0.7]])
"""Against `_NEAR`: differences on both sides of 0.5, 1 and 0."""


def _each(call: str, **operands: Any) -> list[Row]:
    """A row for each reduction of a call that ends in `)`."""
    return [Row(f"{call[:-1]}, reduction='{name}')", **operands) for name in _REDUCTIONS]


_SIGNS = constant(values(1.0, -1.0, 1.0))
_CLASSES = indices(0, 2)
_PIXELS = indices([[[0, 2], [1, 1]]])
_IMAGE = normal(1, 3, 2, 2)
_WEIGHT = constant(positive(3))

ROWS = [
    # --- by element
    *_each("F.mse_loss(x, y)", x=normal(2, 3), y=normal(2, 3)),
    Row("F.mse_loss(x, y)", x=normal(2, 3), y=normal(3)),
    *_each("F.l1_loss(x, y)", x=_NEAR, y=_FAR),
    *_each("F.smooth_l1_loss(x, y)", x=_NEAR, y=_FAR),
    *_each("F.smooth_l1_loss(x, y, beta=0.5)", x=_NEAR, y=_FAR),
    *_each("F.huber_loss(x, y)", x=_NEAR, y=_FAR),
    *_each("F.huber_loss(x, y, delta=0.5)", x=_NEAR, y=_FAR),
    *_each("F.soft_margin_loss(x, y)", x=normal(3), y=_SIGNS),
    # --- of probabilities
    *_each("F.binary_cross_entropy(x, y)", x=unit(2, 3), y=unit(2, 3)),
    *_each("F.binary_cross_entropy(x, y, w)", x=unit(2, 3), y=unit(2, 3), w=_WEIGHT),
    *_each("F.binary_cross_entropy_with_logits(x, y)", x=normal(2, 3), y=unit(2, 3)),
    *_each(
        "F.binary_cross_entropy_with_logits(x, y, w, pos_weight=w)",
        x=normal(2, 3),
        y=unit(2, 3),
        w=_WEIGHT,
    ),
    *_each("F.kl_div(x, y)", x=normal(2, 3), y=unit(2, 3)),
    Row("F.kl_div(x, y, reduction='batchmean')", x=normal(2, 3), y=unit(2, 3)),
    Row("F.kl_div(x, y, reduction='sum', log_target=True)", x=normal(2, 3), y=normal(2, 3)),
    *_each("F.poisson_nll_loss(x, y)", x=normal(3), y=positive(3)),
    Row("F.poisson_nll_loss(x, y, log_input=False)", x=positive(3), y=positive(3)),
    Row("F.poisson_nll_loss(x, y, full=True)", x=normal(3), y=values(0.5, 1.5, 2.5)),
    *_each("F.gaussian_nll_loss(x, y, v)", x=normal(2, 3), y=normal(2, 3), v=positive(2, 1)),
    Row("F.gaussian_nll_loss(x, y, v, full=True)", x=normal(2, 3), y=normal(2, 3), v=positive(2)),
    # --- of classes
    *_each("F.nll_loss(x, t)", x=normal(2, 3), t=_CLASSES),
    *_each("F.nll_loss(x, t, w)", x=normal(2, 3), t=_CLASSES, w=_WEIGHT),
    Row("F.nll_loss(x, t, ignore_index=2)", x=normal(2, 3), t=_CLASSES),
    Row("F.nll_loss(x, t)", x=normal(3), t=indices(1)),
    Row("F.nll_loss(x, t)", order=0, x=normal(3), t=indices([1])),
    *_each("F.nll_loss(x, t)", x=_IMAGE, t=_PIXELS),
    *_each("F.nll_loss(x, t, w)", x=normal(1, 3, 2), t=indices([[0, 2]]), w=_WEIGHT),
    *_each("F.cross_entropy(x, t)", x=normal(2, 3), t=_CLASSES),
    *_each("F.cross_entropy(x, t)", x=_IMAGE, t=_PIXELS),
    *_each("F.cross_entropy(x, t, w, label_smoothing=0.1)", x=normal(2, 3), t=_CLASSES, w=_WEIGHT),
    *_each("F.cross_entropy(x, t, label_smoothing=0.1)", x=_IMAGE, t=_PIXELS),
    *_each("F.cross_entropy(x, y)", x=normal(2, 3), y=unit(2, 3)),
    *_each("F.cross_entropy(x, y, w, label_smoothing=0.1)", x=normal(3), y=unit(3), w=_WEIGHT),
    # --- of pairs
    *_each("F.hinge_embedding_loss(x, y)", x=normal(3), y=_SIGNS),
    *_each("F.margin_ranking_loss(x, y, s, 0.3)", x=normal(3), y=normal(3), s=_SIGNS),
    *_each("F.triplet_margin_loss(x, y, z)", x=normal(2, 3), y=normal(2, 3), z=normal(2, 3)),
    Row(
        "F.triplet_margin_loss(x, y, z, swap=True)", x=normal(2, 3), y=normal(2, 3), z=normal(2, 3)
    ),
    *_each("F.cosine_embedding_loss(x, y, t)", x=normal(2, 3), y=normal(2, 3), t=indices([1, -1])),
    *_each(
        "F.multilabel_soft_margin_loss(x, y)",
        x=normal(2, 3),
        y=constant(values([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])),
    ),
    # --- angles and distances
    Row("F.cosine_similarity(x, y)", x=normal(2, 3), y=normal(2, 3)),
    Row("F.cosine_similarity(x, y, dim=-1)", x=normal(3), y=normal(2, 3)),
    Row("F.pairwise_distance(x, y)", x=normal(2, 3), y=normal(2, 3)),
    Row("F.pairwise_distance(x, y, 3.0, keepdim=True)", x=normal(2, 3), y=normal(3)),
    Row("F.normalize(x)", x=normal(2, 3)),
    Row("F.normalize(x, p=3.0, dim=0)", x=normal(2, 3)),
    Row("cdist(x, y)", x=normal(2, 3), y=normal(4, 3), order=1),
    Row("cdist(x, y, 1.0)", x=normal(2, 1, 2, 3), y=normal(2, 4, 3), order=1),
    Row("cdist(x, y, 3.0)", x=normal(2, 3), y=normal(4, 3), order=1),
]
