"""Gradients of complex tensors: of their parts, of what is made from real ones, and of the other
families where an operand is complex. A row's complex operands are pairs of real ones.
"""

from __future__ import annotations

from tests.op_table.rows import Row, away, invertible, normal, positive

Z = "z = torch.complex(x, y); "
TWO = "z = torch.complex(x, y); w = torch.complex(u, v); "


def of_one(result: str, *shape: int, order: int = 2, prepare: str = "") -> Row:
    """A row of one complex operand, `z`; the result's parts are what is checked."""
    return Row(
        f"{Z}{prepare}e = {result}; torch.view_as_real(e.resolve_conj())",
        x=normal(*shape),
        y=normal(*shape),
        order=order,
    )


def of_two(result: str, *shape: int, other: tuple[int, ...] | None = None) -> Row:
    """A row of two complex operands, `z` and `w`."""
    other = shape if other is None else other
    return Row(
        f"{TWO}e = {result}; torch.view_as_real(e.resolve_conj())",
        x=normal(*shape),
        y=normal(*shape),
        u=normal(*other),
        v=normal(*other),
    )


ROWS = [
    # --- parts
    Row("torch.complex(x, y).real", x=normal(2, 3), y=normal(3)),
    Row("torch.complex(x, y).imag", x=normal(), y=normal(3)),
    Row("torch.view_as_real(torch.view_as_complex(x))", x=normal(3, 2)),
    Row("torch.complex(x, y).conj().imag", x=normal(3), y=normal(3)),
    Row("torch.complex(x, y).conj().real", x=normal(3), y=normal(3)),
    Row("torch.complex(x, y).conj_physical().imag", x=normal(3), y=normal(3)),
    Row("torch.complex(x, y).conj_physical_().imag", x=normal(3), y=normal(3)),
    Row("torch.complex(x, y).abs()", x=normal(2, 3), y=normal(2, 3)),
    Row("torch.complex(x, y).angle()", x=normal(2, 3), y=normal(2, 3)),
    Row("x.angle()", x=away(3)),
    Row("torch.view_as_real(torch.polar(x, y))", x=positive(2, 3), y=normal(2, 3)),
    of_one("z.sgn()", 3),
    of_one("z.conj()", 3),
    # --- functions of one number
    *[
        of_one(f"z.{name}()", 3)
        for name in (
            "exp",
            "log",
            "log2",
            "log10",
            "log1p",
            "exp2",
            "expm1",
            "sqrt",
            "rsqrt",
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
            "tanh",
            "asin",
            "acos",
            "atan",
            "asinh",
            "acosh",
            "atanh",
            "sigmoid",
            "sinc",
            "neg",
            "reciprocal",
            "square",
            "sum",
            "mean",
            "prod",
        )
    ],
    of_one("z.cumsum(0)", 3),
    of_one("z.cumprod(0)", 3),
    of_one("z.logsumexp(0)", 3),
    of_one("z ** 2.5", 3),
    of_one("z ** 1.5j", 3),
    of_one("2.5 ** z", 3),
    of_one("1.5j ** z", 3),
    of_one("z * 2j - 1j / z", 3),
    Row("(x ** 1.5j).imag", x=positive(3)),
    Row("(1.5j ** x).real", x=normal(3)),
    Row("(x * 2j).imag + (x / 2j).imag", x=normal(3)),
    # --- of two
    of_two("z + w", 2, 3, other=(3,)),
    of_two("z - w", 3),
    of_two("z * w", 2, 3, other=(3,)),
    of_two("z / w", 3),
    of_two("z ** w", 2),
    of_two("torch.addcmul(z, z, w, value=2.0)", 3),
    of_two("torch.addcdiv(z, z, w, value=2.0)", 3),
    of_two("z @ w", 2, 3, other=(3, 2)),
    of_two("z @ w", 3),
    of_two("torch.vdot(z, w)", 3),
    of_two("torch.addmm(z, z, w, alpha=2j, beta=1j)", 2, 2),
    Row("torch.view_as_real(torch.complex(x, y) * u)", x=normal(3), y=normal(3), u=normal(2, 3)),
    # --- matrices
    *[
        of_one(name, 3, 3)
        for name in (
            "torch.linalg.det(z)",
            "torch.linalg.inv(z)",
            "torch.linalg.matrix_exp(z)",
            "z.mH",
        )
    ],
    of_one("torch.linalg.slogdet(z).sign", 3, 3),
    *[
        of_one(f"torch.linalg.qr(z).{factor}", *shape)
        for factor in "QR"
        for shape in ((2, 3), (3, 2))
    ],
    Row("torch.linalg.slogdet(torch.complex(x, y)).logabsdet", x=normal(3, 3), y=normal(3, 3)),
    Row("torch.linalg.eigvals(x).abs()", x=invertible(3, 3)),
    Row("torch.view_as_real(torch.linalg.eigvals(x))", x=invertible(3, 3)),
    Row("torch.linalg.eig(x).eigenvectors.abs()", x=invertible(3, 3)),
    Row("torch.linalg.vector_norm(torch.complex(x, y))", x=normal(3), y=normal(3)),
    Row("torch.complex(x, y).norm(1)", x=normal(3), y=normal(3)),
    Row("torch.complex(x, y).var()", x=normal(3), y=normal(3)),
    Row("torch.complex(x, y).renorm(2, 0, 0.5).imag", x=normal(2, 3), y=normal(2, 3)),
]
