"""Gradients of special functions, and of what floating numbers are made of."""

from __future__ import annotations

from tests.op_table.rows import Row, away, constant, integers, normal, positive, unit, values

ROWS = [
    # --- Bessel functions
    Row("i0(x)", x=normal(4)),
    Row("torch.special.i0e(x)", x=away(4)),
    Row("torch.special.i1(x)", x=away(4)),
    Row("torch.special.i1e(x)", x=away(4)),
    Row("torch.special.i1(x)", order=1, x=values(0.0)),
    Row("torch.special.i1e(x) + x", order=1, x=away(2)),
    # --- the normal distribution
    Row("torch.special.entr(x)", x=positive(4)),
    Row("torch.special.ndtr(x)", x=normal(2, 3)),
    Row("torch.special.ndtri(x)", x=unit(4)),
    Row("torch.special.log_ndtr(x)", x=normal(4)),
    Row("torch.special.erfcx(x)", x=normal(4)),
    # --- the gamma function
    Row("torch.mvlgamma(x + 2, 3)", x=positive(4)),
    Row("torch.igamma(y, x)", x=positive(2, 3), y=constant(positive(3))),
    Row("torch.igammac(y, x)", x=positive(2, 3), y=constant(positive(3))),
    Row("torch.igamma(y, x)", order=0, x=constant(positive(3)), y=positive(3)),
    Row("torch.special.zeta(y + 2, x)", x=positive(2, 3), y=constant(positive(3))),
    Row("torch.special.zeta(2.5, x)", x=positive(4)),
    Row("torch.special.zeta(x + 1, 2.5)", order=0, x=positive(4)),
    # --- x log (1 + y)
    Row("torch.special.xlog1py(x, y)", x=normal(2, 3), y=positive(3)),
    Row("torch.special.xlog1py(2.5, x)", x=positive(4)),
    Row("torch.special.xlog1py(x, 2.5)", x=normal(4)),
    Row("torch.special.xlog1py(x, -0.5)", x=normal(4)),
    # --- floating numbers
    Row("torch.ldexp(x, y)", x=normal(2, 3), y=normal(3)),
    Row("torch.ldexp(x, y)", x=normal(2, 3), y=integers(0, 4, 3)),
    Row("torch.frexp(x).mantissa", x=normal(4)),
    Row("torch.nextafter(x, y)", x=normal(2, 3), y=normal(3)),
]
