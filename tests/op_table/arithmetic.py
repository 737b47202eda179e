"""Arithmetic: operators, their functions, in-place forms, and the forms that rules write."""

from __future__ import annotations

from tests.op_table.rows import Row, away, constant, normal, positive

ROWS = [
    # --- sums and differences
    Row("x + y", x=normal(2, 3), y=normal(2, 3)),
    Row("x + y", x=normal(2, 3), y=normal(3)),
    Row("x + y", x=normal(2, 1), y=normal(1, 3)),
    Row("x + y", x=normal(), y=normal(2)),
    Row("x + y", x=normal(), y=normal()),
    Row("x + x", x=normal(2)),
    Row("1.5 + x", x=normal(2)),
    Row("add(x, y, alpha=2.5)", x=normal(2, 3), y=normal(3)),
    Row("x - y", x=normal(2, 3), y=normal(2, 1)),
    Row("x - 2", x=normal(3)),
    Row("2 - x", x=normal(3)),
    Row("sub(x, y, alpha=-0.5)", x=normal(2), y=normal(2)),
    Row("torch.rsub(x, y, alpha=3)", x=normal(2), y=normal(3, 1)),
    Row("-x", x=normal(2, 2)),
    Row("-x", x=normal()),
    Row("y = x * 1; y += z; y -= x; y", x=normal(2, 3), z=normal(3)),
    # --- products and quotients
    Row("x * y", x=normal(2, 3), y=normal(2, 3)),
    Row("x * y", x=normal(2, 3), y=normal(1, 3)),
    Row("x * y", x=normal(), y=normal(2)),
    Row("x * y", x=normal(2, 3), y=constant(normal(3))),
    Row("x * x", x=normal(2)),
    Row("x * 3", x=normal()),
    Row("y = x * 1; y *= z; y", x=normal(2, 3), z=normal(3)),
    Row("x / y", x=normal(2, 3), y=away(2, 3)),
    Row("x / y", x=normal(3), y=away(2, 1)),
    Row("x / y", x=normal(), y=away()),
    Row("x / 4", x=normal(2)),
    Row("2 / x", x=away(3)),
    Row("y = x * 1; y /= z; y", x=normal(2, 3), z=away(3)),
    Row("reciprocal(x)", x=away(2, 2)),
    Row("x / y", x=constant(normal(2)), y=away(2)),
    # Conjugates stand in the gradient of a complex product only.
    Row(
        "(x.to(complex128) * y.to(complex128)).abs()",
        float32=False,
        x=normal(2),
        y=normal(2),
    ),
    # --- powers
    Row("x ** 2", x=normal(2, 3)),
    Row("x ** 3", x=normal()),
    Row("x ** 0", x=normal(2)),
    Row("x ** -1", x=away(2)),
    Row("x ** 2.5", x=positive(3)),
    Row("2 ** x", x=normal(3)),
    Row("x ** y", x=positive(2, 3), y=normal(3)),
    Row("x ** y", x=positive(), y=normal(2)),
    Row("square(x)", x=normal(2)),
    Row("y = x * 1; y **= 2; y", x=normal(2)),
    # --- rounded quotients and remainders
    Row("x // y", order=0, x=away(3), y=away(3)),
    Row("x // 2", order=0, x=away(3)),
    Row("7 // x", order=0, x=away(3)),
    Row("div(x, y, rounding_mode='floor')", x=away(3), y=constant(away(3, low=3.5, high=4.5))),
    Row("div(x, y, rounding_mode='trunc')", x=away(3), y=constant(away(3, low=3.5, high=4.5))),
    Row("7.5 % x", order=0, x=away(3)),
    Row("x % 3", x=away(4)),
    Row("x % y", x=away(2, 3), y=away(3, low=3.5, high=4.5)),
    Row("torch.fmod(x, 3)", x=away(4)),
    Row("torch.fmod(x, y)", x=away(2, 3, low=5.0, high=6.0), y=away(3, low=2.0, high=2.4)),
]
