"""Gradients of images read at places, of pools turned round, and of distances and slopes."""

from __future__ import annotations

from tests.op_table.rows import Row, constant, distinct, indices, normal, unit, values

PLACES = values([[[[-0.63, 0.21], [0.37, -0.42]], [[0.11, 0.83], [-0.27, 1.32]]]])

ROWS = [
    # --- grids
    Row("F.affine_grid(x, (2, 1, 2, 3))", x=normal(2, 2, 3)),
    Row("F.affine_grid(x, (1, 1, 2, 3, 2), align_corners=True)", x=normal(1, 3, 4)),
    Row("F.grid_sample(x, g)", x=normal(1, 2, 3, 4), g=PLACES),
    Row("F.grid_sample(x, g, align_corners=True)", x=normal(1, 1, 3, 3), g=PLACES),
    Row("F.grid_sample(x, g, padding_mode='border')", x=normal(1, 1, 3, 4), g=PLACES),
    Row("F.grid_sample(x, g, padding_mode='reflection')", x=normal(1, 1, 3, 4), g=PLACES),
    Row("F.grid_sample(x, g, mode='bicubic')", x=normal(1, 1, 4, 4), g=PLACES),
    Row("F.grid_sample(x, g, mode='nearest')", x=normal(1, 1, 3, 4), g=PLACES),
    Row("F.grid_sample(x, g)", x=normal(1, 1, 2, 3, 3), g=unit(1, 1, 2, 1, 3)),
    # The third derivative, which the second is composed for.
    Row(
        "torch.autograd.grad(F.grid_sample(x, g, mode='bicubic').sum(), g, create_graph=True)[0]",
        x=constant(normal(1, 1, 3, 3)),
        g=PLACES,
    ),
    Row(
        "torch.autograd.grad(F.grid_sample(x, g).sum(), g, create_graph=True)[0]",
        x=normal(1, 1, 2, 2, 2),
        g=unit(1, 1, 1, 1, 3),
    ),
    # --- pools
    Row("F.max_unpool2d(x, i, 2)", x=normal(1, 1, 2, 2), i=indices([[[[0, 3], [9, 14]]]])),
    Row("F.max_unpool1d(x, i, 2)", x=normal(1, 1, 2), i=indices([[[1, 2]]])),
    Row("F.max_unpool3d(x, i, 2)", x=normal(1, 1, 1, 1, 2), i=indices([[[[[3, 12]]]]])),
    Row(
        "F.fractional_max_pool2d(x, 2, output_size=2, _random_samples=s)",
        x=distinct(1, 2, 5, 5),
        s=constant(unit(1, 2, 2)),
    ),
    Row(
        "F.fractional_max_pool3d(x, 2, output_size=2, _random_samples=s)",
        x=distinct(1, 1, 4, 4, 5),
        s=constant(unit(1, 1, 3)),
    ),
    # --- distances and slopes
    Row("torch.pdist(x)", order=1, x=normal(4, 3)),
    Row("torch.pdist(x, 3.0)", order=1, x=normal(4, 3)),
    Row("torch.pdist(x, 1.0)", order=1, x=normal(3, 2)),
    Row(
        "x.requires_grad_(); y = torch.autograd.grad(torch.pdist(x).sum(), x,"
        " create_graph=True)[0]; y * w",
        order=0,
        x=constant(normal(3, 2)),
        w=normal(3, 2),
    ),
    Row("torch.renorm(x, 2, 0, 1.0)", x=normal(3, 4)),
    Row("torch.renorm(x, 3, 1, 0.7)", x=normal(3, 4)),
    # PyTorch's second derivative takes the norms for constants.
    Row("torch._weight_norm(x, y, 0)", order=1, x=normal(3, 2, 2), y=normal(3, 1, 1)),
    Row("torch._weight_norm(x, y, 1)", order=1, x=normal(2, 3), y=normal(1, 3)),
    Row("torch.gradient(x)[0]", x=normal(5)),
    Row("torch.gradient(x, spacing=2.0, dim=1, edge_order=2)[0]", x=normal(2, 5)),
    Row(
        "torch.gradient(x, spacing=(y,), edge_order=2)[0]",
        x=normal(4),
        y=values(0.1, 0.5, 1.7, 2.0),
    ),
    # --- reflections
    Row("torch.linalg.householder_product(x, t)", x=normal(4, 3), t=normal(3)),
    Row("torch.linalg.householder_product(x, t)", x=normal(2, 3, 2), t=normal(2, 2)),
    Row("torch.ormqr(x, t, c)", x=normal(3, 2), t=normal(2), c=normal(3, 2)),
    Row(
        "torch.ormqr(x, t, c, left=False, transpose=True)",
        x=normal(3, 2),
        t=normal(2),
        c=normal(2, 3),
    ),
    # --- losses
    Row("F.multi_margin_loss(x, i)", order=1, x=normal(2, 4), i=indices([1, 3])),
    Row(
        "F.multi_margin_loss(x, i, p=2, margin=0.7, weight=w, reduction='sum')",
        order=1,
        x=normal(2, 3),
        i=indices([1, 2]),
        w=constant(unit(3)),
    ),
    Row(
        "F.multilabel_margin_loss(x, i)",
        order=1,
        x=normal(2, 4),
        i=indices([[1, 3, -1, 0], [0, -1, 2, 2]]),
    ),
    Row(
        "F.ctc_loss(x.log_softmax(2), i, (5, 4), (2, 1))",
        order=1,
        x=normal(5, 2, 3),
        i=indices([[1, 2], [2, 0]]),
    ),
    Row(
        "F.ctc_loss(x.log_softmax(1), i, (5,), (3,), reduction='sum')",
        order=1,
        x=normal(5, 3),
        i=indices([1, 1, 2]),
    ),
]
