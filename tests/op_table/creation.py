"""Copies, casts, fills and `where`; samples, whose gradients are zero: what is drawn is not
differentiated.
"""

from __future__ import annotations

from tests.op_table.rows import Row, mask, normal, unit

_SEEDED = "torch.manual_seed(1)\n"

ROWS = [
    # --- copies, casts, fills and `where`
    *[
        Row(f"torch.{name}_copy(x{arguments})", x=normal(2, 3))
        for name, arguments in (
            ("alias", ""),
            ("as_strided", ", (2, 2), (1, 2)"),
            ("diagonal", ", 1"),
            ("expand", ", (2, 2, 3)"),
            ("narrow", ", 1, 0, 2"),
            ("permute", ", (1, 0)"),
            ("select", ", 1, 2"),
            ("slice", ", 1, 0, 3, 2"),
            ("split", ", 2, 1"),
            ("split_with_sizes", ", (1, 2), 1"),
            ("squeeze", ""),
            ("squeeze", ", 0"),
            ("squeeze", ", (0, 1)"),
            ("t", ""),
            ("transpose", ", 0, 1"),
            ("unbind", ""),
            ("unfold", ", 1, 2, 1"),
            ("unsqueeze", ", 1"),
            ("view", ", (3, 2)"),
        )
    ],
    Row("torch.view_as_real_copy(torch.complex(x, y))", x=normal(2), y=normal(2)),
    Row("torch.abs(torch.view_as_complex_copy(x))", x=normal(3, 2)),
    Row("torch.as_strided_scatter(x, y, (2,), (2,), 1)", x=normal(2, 3), y=normal(2)),
    Row("x.clone()", x=normal(2, 3)),
    Row("x.clone()", x=normal()),
    Row("y = x * 1; y.copy_(z); y", x=normal(2, 3), z=normal(3)),
    Row("y = x * 1; y[:] = z; y * x", x=normal(3), z=normal()),
    Row("x.t().contiguous() * y", x=normal(2, 3), y=normal(3, 2)),
    Row("x.contiguous(memory_format=torch.channels_last) * y", x=normal(1, 2, 2, 2), y=normal(2)),
    Row("x.to(memory_format=torch.channels_last) * y", x=normal(1, 2, 2, 2), y=normal(2)),
    # Through float32 only the dtype of the gradient can be checked so finely.
    Row("(x * 0.5).float().double() * 0 + x * x", float32=False, x=normal(2)),
    Row("(x * x * x).sum().backward(create_graph=True); x.grad", x=normal(2)),
    Row("y = x * 1; y.zero_(); y + x", x=normal(2)),
    Row("y = x * 1; y.fill_(2.5); y * x", x=normal(2)),
    Row("y = x * 1; y.fill_(z); y * x", x=normal(2), z=normal()),
    Row("where(m, x, y)", m=mask(2, 3), x=normal(2, 3), y=normal(3)),
    Row("where(m, x, 2.0)", m=mask(3), x=normal(3)),
    Row("where(m, x, y)", m=mask(2, 1), x=normal(), y=normal(3)),
    # --- one number everywhere
    Row("torch.fill(x, y)", x=normal(2, 3), y=normal()),
    Row("torch.fill(x.t(), y) * x.t()", x=normal(2, 3), y=normal()),
    Row("torch.fill(x, 1.5)", x=normal(2, 3)),
    # --- samples
    *[
        Row(_SEEDED + drawn, order=1, float32=False, x=unit(2, 3))
        for drawn in (
            "(x * 1).uniform_()",
            "(x * 1).normal_()",
            "(x * 1).exponential_()",
            "(x * 1).cauchy_()",
            "(x * 1).geometric_(0.5)",
            "(x * 1).log_normal_()",
            "(x * 1).bernoulli_(0.5)",
            "(x * 1).bernoulli_(tensor(0.5))",
            "(x * 1).random_()",
            "(x * 1).random_(5)",
            "(x * 1).random_(2, 5)",
            "torch.bernoulli(x)",
            "torch.poisson(x)",
        )
    ],
    Row(_SEEDED + "torch.bernoulli(x, 0.5)", order=0, float32=False, x=unit(2, 3)),
    # The mean moves a sample and the deviation stretches it, yet PyTorch gives neither a gradient;
    # so these are constant.
    *[
        Row(_SEEDED + drawn, order=1, float32=False, x=unit(2, 3))
        for drawn in (
            "torch.normal(x * 0, 1.0)",
            "torch.normal(0.0, x * 0 + 1)",
            "torch.normal(x[0] * 0, x * 0 + 1)",
        )
    ],
]
