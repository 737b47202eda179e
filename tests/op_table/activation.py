"""Gradients of the activations."""

from __future__ import annotations

from tests.op_table.rows import Row, away, normal, values

_SPREAD = values([[-4.2, -2.3, -0.7], [0.2, 1.4, 3.6]])
"""Values on every piece of the activations made of pieces, clear of the kinks."""

ROWS = [
    Row("relu(x)", x=away(2, 3)),
    Row("relu(x)", x=away()),
    Row("y = x * 1; y.relu_(); y", x=away(3)),
    Row("F.relu(x * 1, inplace=True)", x=away(3)),
    Row("F.relu6(x * 3)", x=away(2, 3)),
    Row("F.threshold(x, 0.1, 0.7)", x=away(4)),
    Row("F.leaky_relu(x)", x=away(2, 3)),
    Row("F.leaky_relu(x, 0.3)", x=away(4)),
    Row("F.rrelu(x)", x=away(4)),
    Row("F.hardtanh(x)", x=_SPREAD),
    Row("F.hardtanh(x, -0.5, 2.0)", x=_SPREAD),
    Row("F.hardsigmoid(x)", x=_SPREAD, order=1),
    Row("F.hardswish(x)", x=_SPREAD),
    Row("F.hardshrink(x)", x=_SPREAD),
    Row("F.softshrink(x)", x=_SPREAD),
    Row("F.prelu(x, w)", x=away(2, 3), w=normal(3)),
    Row("F.prelu(x, w)", x=away(2, 3, 2), w=normal(1)),
    Row("F.prelu(x, w)", x=away(3), w=normal()),
    Row("F.silu(x)", x=normal(2, 3)),
    Row("F.mish(x)", x=normal(2, 3)),
    Row("F.gelu(x)", x=normal(2, 3)),
    Row("F.gelu(x)", x=normal()),
    Row("F.gelu(x, approximate='tanh')", x=normal(2, 3)),
    Row("F.elu(x)", x=away(2, 3)),
    Row("F.elu(x, 0.7)", x=away(4)),
    Row("F.selu(x)", x=away(4)),
    Row("F.celu(x, 0.7)", x=away(4)),
    Row("F.softplus(x)", x=normal(2, 3)),
    Row("F.softplus(x, 2.0, 1.0)", x=_SPREAD),
    Row("F.logsigmoid(x)", x=normal(2, 3)),
    Row("F.softsign(x)", x=away(4)),
    Row("F.tanhshrink(x)", x=normal(4)),
    Row("F.glu(x)", x=normal(2, 4)),
    Row("F.glu(x, dim=0)", x=normal(4, 3)),
    Row("F.glu(x, -2)", x=normal(2, 2, 3)),
    Row("torch.manual_seed(3); F.dropout(x, 0.4)", x=normal(6)),
    Row("y = x * 1; F.elu_(y); y", x=away(3)),
    Row("y = x * 1; F.celu_(y, 0.7); y", x=away(4)),
    Row("y = x * 1; F.threshold_(y, 0.1, 0.7); y", x=away(4)),
    Row("y = x * 1; F.leaky_relu_(y, 0.3); y", x=away(4)),
    Row("y = x * 1; F.rrelu_(y); y", x=away(4)),
]
