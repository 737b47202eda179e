"""Rows for einsum."""

from __future__ import annotations

from tests.op_table.rows import Row, constant, normal

ROWS = [
    # --- one operand ---
    Row("torch.einsum('ij->ji', x)", x=normal(2, 3)),
    Row("torch.einsum('ij->', x)", x=normal(2, 3)),
    Row("torch.einsum('ii', x)", x=normal(3, 3)),
    Row("torch.einsum('iij->ji', x)", x=normal(2, 2, 3)),
    Row("torch.einsum('...ij->...ji', x)", x=normal(2, 3, 2)),
    # --- two ---
    Row("torch.einsum('i,i', x, y)", x=normal(3), y=normal(3)),
    Row("torch.einsum('i,j->ij', x, y)", x=normal(2), y=normal(3)),
    Row("torch.einsum('ij,jk', x, y)", x=normal(2, 3), y=normal(3, 2)),
    Row("torch.einsum('ij,kj->ki', x, y)", x=normal(2, 3), y=normal(4, 3)),
    Row("torch.einsum('bij,bjk->bik', x, y)", x=normal(2, 2, 3), y=normal(2, 3, 2)),
    Row("torch.einsum('...ij,jk->...ik', x, y)", x=normal(2, 2, 3), y=normal(3, 2)),
    Row("torch.einsum('ij,ij->i', x, y)", x=normal(1, 3), y=normal(2, 3)),
    Row("torch.einsum('ii,ik->k', x, y)", x=normal(3, 3), y=normal(3, 2)),
    Row("torch.einsum('ij,k->ik', x, y)", x=normal(2, 3), y=normal(2)),
    Row("torch.einsum('ij,jk', x, y)", x=constant(normal(2, 3)), y=normal(3, 2)),
    # --- more, and other forms ---
    Row("torch.einsum('i,ij,j', x, y, z)", x=normal(2), y=normal(2, 3), z=normal(3)),
    Row("torch.einsum('ij,jk,kl->il', [x, y, z])", x=normal(2, 3), y=normal(3, 2), z=normal(2, 2)),
    Row("torch.einsum(x, [0, 1], y, [1, 2], [2, 0])", x=normal(2, 3), y=normal(3, 2)),
]
