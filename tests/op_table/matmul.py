"""Rows for matrix products in all ranks."""

from __future__ import annotations

from tests.op_table.rows import Row, constant, normal

ROWS = [
    # --- two operands ---
    Row("x.dot(y)", x=normal(3), y=normal(3)),
    Row("torch.vdot(x, y)", x=normal(3), y=normal(3)),
    Row("x.mv(y)", x=normal(2, 3), y=normal(3)),
    Row("x.mm(y)", x=normal(2, 3), y=normal(3, 2)),
    Row("x.bmm(y)", x=normal(2, 2, 3), y=normal(2, 3, 2)),
    Row("x @ y", x=normal(3), y=normal(3)),
    Row("x @ y", x=normal(2, 3), y=normal(3)),
    Row("x @ y", x=normal(3), y=normal(3, 2)),
    Row("x @ y", x=normal(2, 3), y=normal(3, 2)),
    Row("x @ y", x=normal(2, 2, 3), y=normal(3, 2)),
    Row("x @ y", x=normal(2, 3), y=normal(2, 3, 2)),
    Row("x @ y", x=normal(2, 2, 3), y=normal(3)),
    Row("x @ y", x=normal(3), y=normal(2, 3, 2)),
    Row("x @ y", x=normal(2, 2, 3), y=normal(2, 3, 2)),
    Row("x @ y", x=normal(1, 2, 3), y=normal(2, 3, 2)),
    Row("x @ y", x=normal(2, 2, 3), y=normal(1, 3, 2)),
    Row("x @ y", x=normal(2, 1, 2, 3), y=normal(2, 3, 2)),
    Row("x @ y", x=constant(normal(2, 3)), y=normal(2, 3, 2)),
    Row("x @ y", x=normal(2, 2, 3), y=constant(normal(3))),
    Row("x.transpose(0, 1) @ y", x=normal(2, 2, 3), y=constant(normal(3, 2))),
    # --- products added to something ---
    Row("torch.addmm(b, x, y)", b=normal(2), x=normal(2, 3), y=normal(3, 2)),
    Row("torch.addmm(b, x, y, beta=2, alpha=3)", b=normal(2, 2), x=normal(2, 3), y=normal(3, 2)),
    Row("torch.addmv(b, x, y, beta=2, alpha=3)", b=normal(2), x=normal(2, 3), y=normal(3)),
    Row("torch.addr(b, x, y, beta=2, alpha=3)", b=normal(2, 3), x=normal(2), y=normal(3)),
    Row("torch.baddbmm(b, x, y, alpha=3)", b=normal(2, 2), x=normal(2, 2, 3), y=normal(2, 3, 2)),
    Row("torch.addbmm(b, x, y, beta=2)", b=normal(2), x=normal(2, 2, 3), y=normal(2, 3, 2)),
    # --- linear ---
    Row("F.linear(x, w)", x=normal(3), w=normal(2, 3)),
    Row("F.linear(x, w, b)", x=normal(4, 3), w=normal(2, 3), b=normal(2)),
    Row("F.linear(x, w, b)", x=normal(2, 2, 3), w=normal(2, 3), b=normal(2)),
    Row("F.linear(x.transpose(0, 1), w, b)", x=normal(2, 2, 3), w=normal(2, 3), b=normal(2)),
    Row("F.bilinear(x, y, w, b)", x=normal(2, 3), y=normal(2, 2), w=normal(2, 3, 2), b=normal(2)),
    # --- composed products ---
    Row("torch.outer(x, y)", x=normal(2), y=normal(3)),
    Row("torch.inner(x, y)", x=normal(2, 3), y=normal(2, 3)),
    Row("torch.inner(x, y)", x=normal(3), y=normal(3)),
    Row("torch.tensordot(x, y, 2)", x=normal(2, 3, 2), y=normal(3, 2, 2)),
    Row("torch.tensordot(x, y, ([0], [1]))", x=normal(2, 3), y=normal(3, 2)),
    Row("torch.kron(x, y)", x=normal(2, 2), y=normal(2, 3)),
    Row("torch.linalg.vecdot(x, y, dim=0)", x=normal(3, 2), y=normal(3, 2)),
    Row("torch.linalg.multi_dot([x, y, z])", x=normal(3), y=normal(3, 2), z=normal(2, 3)),
    Row("torch.chain_matmul(x, y, x, y)", x=normal(2, 3), y=normal(3, 2)),
    Row("torch.matrix_power(x, 5)", x=normal(2, 2)),
    Row("torch.matrix_power(x, 3)", x=normal(2, 2, 2)),
    Row("x.trace()", x=normal(2, 3)),
]
