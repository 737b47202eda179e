"""Expressions of matrices and of complex numbers that random programs are made of."""

from __future__ import annotations

from tests.differential.expressions import (
    broadcast,
    filled_dimensions,
    multiplied,
    square,
)
from tests.differential.values import Shape
from tests.differential.writing import Filled, Row, scalar

SYMMETRIC = "($x @ $x.mT + torch.eye($x.shape[-2]))"
"""A symmetric matrix with positive eigenvalues."""


def rows_of(filled: Filled) -> Shape:
    """Square: as many rows and columns as `$x` has rows."""
    shape = filled["x"].shape
    return (*shape[:-1], shape[-2])


def row(filled: Filled) -> Shape:
    """One number for each row of `$x`."""
    return filled["x"].shape[:-1]


MATRICES = [
    *[Row("$x @ $factor", multiplied, rank=(1, 3))] * 3,
    Row("torch.matmul($x, $factor)", multiplied, rank=(1, 3)),
    Row("torch.mm($x, $factor)", multiplied, rank=(2, 2)),
    Row("$x @ $x.T", lambda f: f["x"].shape[:1] * 2, rank=(2, 2)),
    Row("$x @ $x", scalar, rank=(1, 1)),
    Row("$x.dot($like)", scalar, rank=(1, 1)),
    Row("torch.outer($x, $like)", lambda f: f["x"].shape * 2, rank=(1, 1)),
    Row("F.linear($x, $like)", lambda f: f["x"].shape[:1] * 2, rank=(2, 2)),
    Row("torch.bmm($x, $x.mT)", lambda f: (*f["x"].shape[:2], f["x"].shape[1]), rank=(3, 3)),
    Row("torch.einsum('ij,ij->i', $x, $like)", lambda f: f["x"].shape[:1], rank=(2, 2)),
    Row("torch.einsum('i,j->ij', $x, $like)", lambda f: f["x"].shape * 2, rank=(1, 1)),
    Row("torch.addmm($x, $x, torch.eye($x.shape[1]), beta=0.5)", rank=(2, 2)),
    Row("torch.kron($x, torch.tensor([1.0, 2.0]))", lambda f: (2 * f["x"].shape[0],), rank=(1, 1)),
    Row("$x.trace()", scalar, rank=(2, 2)),
    Row("torch.det($matrix) * $x", rank=(1, 2), fits=filled_dimensions),
    Row("torch.linalg.det($x)", scalar, kinds="f", rank=(2, 2), fits=square),
    Row("torch.linalg.inv($matrix + 0 * $x)", lambda f: f["x"].shape[-1:] * 2, rank=(1, 1),
        fits=filled_dimensions),
    Row("torch.linalg.solve($matrix, $x)", kinds="f", rank=(1, 1), fits=filled_dimensions),
    Row("torch.linalg.matrix_power($x, 2)", rank=(2, 2), fits=square),
    Row("torch.cross($x, $x.exp(), dim=-1)", rank=(1, 2), fits=lambda shape: shape[-1] == 3),
    Row("torch.cdist($x, $like)", kinds="f", shape=lambda f: f["x"].shape[:1] * 2, rank=(2, 2),
        fits=filled_dimensions),
    Row(f"torch.linalg.inv({SYMMETRIC})", rows_of, "f", (2, 3), fits=filled_dimensions),
    Row(f"torch.linalg.cholesky({SYMMETRIC})", rows_of, "f", (2, 3), fits=filled_dimensions),
    Row(f"torch.linalg.eigvalsh({SYMMETRIC})", row, "f", (2, 2), fits=filled_dimensions),
    Row(f"torch.linalg.slogdet({SYMMETRIC}).logabsdet", lambda f: f["x"].shape[:-2], "f", (2, 3),
        fits=filled_dimensions),
    Row(f"torch.logdet({SYMMETRIC})", lambda f: f["x"].shape[:-2], "f", (2, 3),
        fits=filled_dimensions),
    Row(f"torch.linalg.solve({SYMMETRIC}, $x)", kinds="f", rank=(2, 3), fits=filled_dimensions),
    Row("torch.linalg.svdvals($x)", lambda f: (min(f["x"].shape),), "f", (2, 2),
        fits=filled_dimensions),
    Row("torch.linalg.matrix_norm($x)", lambda f: f["x"].shape[:-2], "f", (2, 3)),
    Row("torch.linalg.vector_norm($x, dim=$dim)", rank=(1, 1), shape=scalar),
    Row("torch.linalg.matrix_exp($matrix / 8) @ $x", kinds="f", rank=(1, 1),
        fits=filled_dimensions),
    Row("torch.linalg.multi_dot([$x, $x.T, $x])", kinds="f", rank=(2, 2), fits=filled_dimensions),
    Row("torch.linalg.qr($matrix).R * $x", lambda f: f["x"].shape * 2, "f", (1, 1),
        fits=filled_dimensions),
    Row("torch.baddbmm($x, $x @ $x.mT, $x)", kinds="f", rank=(3, 3)),
    Row("torch.addmv($x, $matrix, $x, alpha=0.5)", kinds="f", rank=(1, 1), fits=filled_dimensions),
    Row("torch.tensordot($x, $like, 1)", kinds="f", rank=(1, 1), shape=scalar),
    Row("torch.diag_embed($x)", lambda f: (*f["x"].shape, f["x"].shape[-1]), rank=(1, 2)),
    Row("torch.vander($x)", lambda f: f["x"].shape * 2, rank=(1, 1), kinds="f"),
    Row("torch.block_diag($x, $x)", lambda f: tuple(2 * size for size in f["x"].shape),
        rank=(2, 2)),
]  # fmt: skip

COMPLEX = [
    Row("$x * $y", broadcast, kinds="c"),
    Row("$x + $like", kinds="c"),
    Row("$x * 2j", kinds="c"),
    Row("$x / 2", kinds="c"),
    Row("$x.conj()", kinds="c"),
    Row("$x.abs()", kinds="c", dtype="float32"),
    Row("$x.angle()", kinds="c", dtype="float32"),
    Row("$x.real", kinds="c", dtype="float32"),
    Row("$x.imag", kinds="c", dtype="float32"),
    Row("$x * $x.conj()", kinds="c"),
    Row("$x.exp()", kinds="c"),
    Row("$x.sum()", scalar, kinds="c"),
    Row("torch.view_as_real($x)", lambda f: (*f["x"].shape, 2), kinds="c", dtype="float32"),
    Row("torch.complex($x, $like)", kinds="f", dtype="complex64"),
    Row("torch.polar($x, $like)", kinds="f", dtype="complex64"),
    Row("$x * 1j", kinds="f", dtype="complex64"),
    Row("$x.abs() ** 2 + $x.real", kinds="c", dtype="float32"),
    Row("$x.conj() * 2 - $x", kinds="c"),
    Row("$x ** 2", kinds="c"),
    Row("$x.reciprocal()", kinds="c"),
    Row("$x.sqrt()", kinds="c"),
    Row("torch.sin($x)", kinds="c"),
    Row("$x.mean()", scalar, kinds="c"),
    Row("$x.prod()", scalar, kinds="c"),
    Row("$x[..., :1] * $x", kinds="c", rank=(1, 3)),
    Row("$x.reshape(-1).dot($x.conj().reshape(-1)).real", scalar, kinds="c", dtype="float32"),
    Row("$x @ $x.mH", rows_of, kinds="c", rank=(2, 3)),
    Row("torch.view_as_complex(torch.stack([$x, $like], -1))", kinds="f", dtype="complex64"),
    Row("torch.fft.fft($x)", kinds="f", dtype="complex64", rank=(1, 2), fits=filled_dimensions),
    Row("$x.to(torch.complex64) * $x", kinds="f", dtype="complex64"),
    Row("$x.sgn()", kinds="c"),
    Row("$x.imag * $x.real", kinds="c", dtype="float32"),
    Row("$x * $x.abs()", kinds="c"),
    Row("torch.exp(1j * $x)", kinds="f", dtype="complex64"),
]

FAMILIES: dict[str, tuple[int, list[Row]]] = {
    "matrices": (6, MATRICES),
    "complex": (2, COMPLEX),
}
"""Each family of these expressions, and how often it is drawn beside the others."""
