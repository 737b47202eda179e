"""Gradients of choices and bounds."""

from __future__ import annotations

from tests.op_table.rows import Row, away, distinct, mask, normal, values

_COMPARISONS = (
    *("eq", "ne", "lt", "le", "gt", "ge"),
    *("not_equal", "less", "less_equal", "greater", "greater_equal"),
)

ROWS = [
    Row("torch.where(m, x, y)", m=mask(2, 3), x=normal(2, 3), y=normal(3)),
    Row("torch.where(m, x, 2.0)", m=mask(3), x=normal(2, 3)),
    Row("torch.where(m, -1.0, x)", m=mask(3), x=normal(3)),
    Row("x.where(m, y)", m=mask(), x=normal(), y=normal()),
    Row("maximum(x, y)", x=values([[0.1, 0.9, -0.4], [1.5, -0.6, 0.3]]), y=values(0.5, -0.1, 0.8)),
    Row("minimum(x, y)", x=values([[0.1, 0.9, -0.4], [1.5, -0.6, 0.3]]), y=values(0.5, -0.1, 0.8)),
    Row("fmax(x, y)", x=values([[0.1], [1.5]]), y=values(0.5, -0.1, 0.8)),
    Row("fmin(x, y)", x=values([[0.1], [1.5]]), y=values(0.5, -0.1, 0.8)),
    Row("heaviside(x, y)", x=normal(3), y=normal(3), order=0),
    Row("clamp(x, -0.5, 0.5)", x=distinct(2, 3)),
    Row("clamp(x, min=0.2)", x=distinct(4)),
    Row("clip(x, max=0.2)", x=distinct(4)),
    Row(
        "clamp(x, low, high)",
        x=values([[0.1, 0.9, -0.4], [1.5, -0.6, 0.3]]),
        low=values(-0.2, 0.2, 0.6),
        high=values(0.5),
    ),
    Row("clamp(x, min=low)", x=values(0.1, 0.9), low=values([[0.5], [-0.3]])),
    Row("clamp(x, max=high)", x=values(0.1, 0.9), high=values([[0.5], [-0.3]])),
    Row("clamp_min(x, 0.2)", x=distinct(4)),
    Row("clamp_max(x, 0.2)", x=distinct(4)),
    Row("clamp_min(x, y)", x=values(0.1, 0.9), y=values([[0.5], [-0.3]])),
    Row("clamp_max(x, y)", x=values(0.1, 0.9), y=values([[0.5], [-0.3]])),
    Row("y = x * 1; y.clamp_(-0.5, 0.5); y", x=distinct(4)),
    # --- written answers: in the graph, and nothing goes back
    *(
        Row(f"y = x * 1; y.{name}_(z * 1); y", x=away(4), z=away(4, low=2.5, high=4.0))
        for name in _COMPARISONS
    ),
    *(Row(f"y = x * 1; y.{name}_(0.1); y", x=away(4)) for name in _COMPARISONS),
]
