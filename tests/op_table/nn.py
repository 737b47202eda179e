"""Activations, layers and losses: the functions of `torch.nn.functional`."""

from __future__ import annotations

from typing import Any

from tests.op_table.rows import (
    Row,
    away,
    constant,
    distinct,
    indices,
    normal,
    positive,
    unit,
    values,
)

_SPREAD = values([[-4.2, -2.3, -0.7], [0.2, 1.4, 3.6]])
"""Values on every piece of the activations made of pieces, clear of the kinks."""

_STATISTICS = (
    "m, v = torch.tensor([0.5, -1.0], dtype=x.dtype), torch.tensor([2.0, 0.5], dtype=x.dtype)\n"
)

PLACES = values([[[[-0.63, 0.21], [0.37, -0.42]], [[0.11, 0.83], [-0.27, 1.32]]]])

_REDUCTIONS = ("none", "mean", "sum")

_NEAR = values([[0.1, 0.9, -0.4], [1.5, -2.6, 0.3]])

_FAR = values([[0.4, -1.1, 2.2], [1.2, -0.9, 0.7]])
"""Against `_NEAR`: differences on both sides of 0.5, 1 and 0."""


def _each(call: str, **operands: Any) -> list[Row]:
    """A row for each reduction of a call that ends in `)`."""
    return [Row(f"{call[:-1]}, reduction='{name}')", **operands) for name in _REDUCTIONS]


_SIGNS = constant(values(1.0, -1.0, 1.0))

_CLASSES = indices(0, 2)

_PIXELS = indices([[[0, 2], [1, 1]]])

_IMAGE = normal(1, 3, 2, 2)

_WEIGHT = constant(positive(3))

ROWS = [
    # --- activations
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
    # --- the softmax family
    Row("softmax(x, 0)", x=normal(4)),
    Row("softmax(x, -1)", x=normal(2, 3)),
    Row("x.softmax(dim=1)", x=normal(2, 3, 2)),
    Row("softmax(x, 0)", x=normal(), order=1),
    Row("softmax(x, 0, dtype=torch.float64)", x=normal(4), float32=False),
    Row("log_softmax(x, 0)", x=normal(4)),
    Row("log_softmax(x, -2)", x=normal(2, 3)),
    Row("x.log_softmax(1)", x=normal(2, 3, 2)),
    Row("log_softmax(x, 0)", x=normal(), order=1),
    Row("F.softmin(x, 1)", x=normal(2, 3)),
    # --- normalisation: layer and group
    Row("F.layer_norm(x, (4,))", x=normal(3, 4)),
    Row("F.layer_norm(x, (4,), w, b)", x=normal(2, 4), w=normal(4), b=normal(4)),
    Row("F.layer_norm(x, (2, 3), w, eps=0.1)", x=normal(2, 2, 3), w=normal(2, 3)),
    Row("F.layer_norm(x, (3,), bias=b)", x=normal(2, 3), b=normal(3)),
    Row("F.group_norm(x, 2)", x=normal(2, 4, 2)),
    Row("F.group_norm(x, 2, w, b)", x=normal(2, 4, 2), w=normal(4), b=normal(4)),
    Row("F.rms_norm(x, (4,))", x=normal(2, 4)),
    Row("F.rms_norm(x, (2, 3), w, eps=0.1)", x=normal(2, 2, 3), w=normal(2, 3)),
    # --- batch and instance
    Row("F.batch_norm(x, None, None, training=True)", x=normal(4, 2)),
    Row(
        "F.batch_norm(x, None, None, w, b, training=True)",
        x=normal(2, 2, 3),
        w=normal(2),
        b=normal(2),
    ),
    Row(_STATISTICS + "F.batch_norm(x, m, v, w, b)", x=normal(3, 2), w=normal(2), b=normal(2)),
    Row(_STATISTICS + "F.batch_norm(x, m, v)", x=normal(2, 2, 2)),
    Row("F.instance_norm(x)", x=normal(2, 2, 4)),
    Row("F.instance_norm(x, weight=w, bias=b)", x=normal(2, 2, 3), w=normal(2), b=normal(2)),
    Row("F.local_response_norm(x, 2, alpha=0.5)", x=normal(2, 3, 2)),
    Row("F.local_response_norm(x, 3, alpha=0.5, k=2.0)", x=normal(1, 4, 2, 2)),
    # --- convolutions
    Row("F.conv1d(x, w)", x=normal(2, 2, 5), w=normal(3, 2, 3)),
    Row("F.conv1d(x, w, b)", x=normal(2, 5), w=normal(3, 2, 2), b=normal(3)),
    Row("F.conv2d(x, w, b)", x=normal(2, 2, 4, 4), w=normal(3, 2, 3, 3), b=normal(3)),
    Row(
        "F.conv2d(x, w, b, stride=(2, 1), padding=(1, 2), dilation=(1, 2))",
        x=normal(1, 2, 4, 5),
        w=normal(2, 2, 3, 2),
        b=normal(2),
    ),
    Row("F.conv2d(x, w, groups=2)", x=normal(1, 4, 3, 3), w=normal(2, 2, 2, 2)),
    Row("F.conv2d(x, w, padding='same')", x=normal(1, 2, 3, 4), w=normal(2, 2, 3, 2)),
    Row("F.conv2d(x, w, padding='valid')", x=normal(1, 2, 3, 3), w=normal(2, 2, 1, 1)),
    Row("F.conv2d(x, w)", x=constant(normal(1, 2, 3, 3)), w=normal(2, 2, 2, 2)),
    Row("F.conv2d(x, w)", x=normal(1, 2, 3, 3), w=constant(normal(2, 2, 2, 2))),
    Row("F.conv3d(x, w)", x=normal(1, 2, 3, 3, 3), w=normal(1, 2, 2, 2, 2)),
    # --- transposed
    Row("F.conv_transpose1d(x, w, b)", x=normal(2, 3), w=normal(2, 3, 2), b=normal(3)),
    Row(
        "F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1)",
        x=normal(1, 2, 3, 2),
        w=normal(2, 2, 3, 3),
        b=normal(2),
    ),
    Row(
        "F.conv_transpose2d(x, w, output_padding=1, groups=2, dilation=2)",
        x=normal(1, 2, 2, 3),
        w=normal(2, 2, 2, 2),
    ),
    Row("F.conv_transpose3d(x, w)", x=normal(1, 1, 2, 2, 2), w=normal(1, 1, 2, 2, 2)),
    # --- windows
    Row("F.unfold(x, 2)", x=normal(1, 2, 3, 3)),
    Row("F.unfold(x, (2, 3), dilation=(2, 1), padding=1, stride=2)", x=normal(2, 5, 4)),
    Row("F.fold(x, 3, 2)", x=normal(1, 4, 4)),
    Row("F.fold(x, (4, 3), 2, padding=1, stride=(2, 1))", x=normal(4, 12)),
    # --- pools: the largest
    Row("F.max_pool1d(x, 2)", x=distinct(2, 2, 5)),
    Row("F.max_pool2d(x, 2)", x=distinct(1, 2, 4, 4)),
    Row("F.max_pool2d(x, 3, stride=1, padding=1, dilation=2)", x=distinct(2, 5, 4)),
    Row("F.max_pool2d(x, 2, ceil_mode=True)", x=distinct(1, 1, 3, 5)),
    Row("F.max_pool2d(x, 2, return_indices=True)[0]", x=distinct(1, 1, 4, 4)),
    Row("F.max_pool3d(x, 2)", x=distinct(1, 1, 2, 4, 2)),
    Row("F.adaptive_max_pool1d(x, 2)", x=distinct(2, 5)),
    Row("F.adaptive_max_pool2d(x, (2, 3))", x=distinct(1, 2, 3, 5)),
    Row("F.adaptive_max_pool3d(x, 2)", x=distinct(1, 1, 3, 2, 4)),
    # --- the mean
    Row("F.avg_pool1d(x, 2)", x=normal(2, 5)),
    Row("F.avg_pool2d(x, 2)", x=normal(1, 2, 4, 4)),
    Row("F.avg_pool2d(x, 3, 2, 1, ceil_mode=True)", x=normal(1, 1, 4, 4)),
    Row("F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)", x=normal(1, 4, 3)),
    Row("F.avg_pool2d(x, (2, 1), divisor_override=3)", x=normal(1, 1, 4, 2)),
    Row("F.avg_pool3d(x, 2)", x=normal(1, 1, 2, 4, 2)),
    Row("F.adaptive_avg_pool1d(x, 3)", x=normal(2, 5)),
    Row("F.adaptive_avg_pool2d(x, (2, None))", x=normal(1, 2, 3, 2)),
    Row("F.adaptive_avg_pool2d(x, 1)", x=normal(1, 2, 3, 3)),
    Row("F.adaptive_avg_pool2d(x.to(memory_format=torch.channels_last), 1)", x=normal(2, 3, 2, 3)),
    Row("F.adaptive_avg_pool3d(x, 2)", x=normal(1, 1, 3, 2, 4)),
    Row("F.lp_pool1d(x, 3, 2)", x=positive(1, 4)),
    Row("F.lp_pool2d(x, 2, 2)", x=positive(1, 1, 4, 4)),
    # --- other sizes
    Row("F.interpolate(x, scale_factor=2)", x=normal(1, 2, 3)),
    Row("F.interpolate(x, size=(3, 5))", x=normal(1, 1, 2, 3)),
    Row("F.interpolate(x, scale_factor=1.5)", x=normal(1, 1, 2, 2, 2)),
    Row("F.interpolate(x, scale_factor=1.5, mode='nearest-exact')", x=normal(1, 1, 3)),
    Row("F.interpolate(x, scale_factor=2, mode='nearest-exact')", x=normal(1, 1, 2, 2)),
    Row("F.interpolate(x, size=3, mode='nearest-exact')", x=normal(1, 1, 2, 2, 2)),
    Row("F.interpolate(x, size=5, mode='linear')", x=normal(1, 2, 3)),
    Row("F.interpolate(x, scale_factor=2, mode='bilinear')", x=normal(1, 1, 2, 3)),
    Row("F.interpolate(x, size=4, mode='bilinear', align_corners=True)", x=normal(1, 1, 2, 3)),
    Row("F.interpolate(x, scale_factor=1.5, mode='bicubic')", x=normal(1, 1, 2, 4)),
    Row("F.interpolate(x, size=3, mode='trilinear')", x=normal(1, 1, 2, 2, 2)),
    Row("F.interpolate(x, size=3, mode='area')", x=normal(1, 1, 4, 5)),
    Row("F.pixel_shuffle(x, 2)", x=normal(1, 4, 2, 3)),
    Row("F.pixel_unshuffle(x, 2)", x=normal(1, 1, 4, 2)),
    Row("F.channel_shuffle(x, 2)", x=normal(1, 4, 2, 1)),
    # --- images read at places: grids
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
    # --- tables read by index
    Row("F.embedding(i, w)", i=indices(0, 2, 2), w=normal(4, 3)),
    # A row that is padding gets no gradient, whatever its derivative is: here it is not read.
    Row("F.embedding(i, w, padding_idx=2)", i=indices([[0, 1], [3, 1]]), w=normal(4, 2)),
    Row("F.embedding(i, w, scale_grad_by_freq=True)", order=1, i=indices(1), w=normal(3, 2)),
    Row("torch.embedding(w, i)", i=indices(1), w=normal(3, 2)),
    Row(
        "y = F.embedding(i, w) ** 3\ntorch.autograd.grad(y.sum(), w, create_graph=True)[0]",
        i=indices(0, 2, 0),
        w=normal(3, 2),
    ),
    Row("F.embedding_bag(i, w)", order=1, i=indices([[0, 2], [1, 1]]), w=normal(4, 3)),
    Row(
        "F.embedding_bag(i, w, o, mode='sum')",
        order=1,
        i=indices(0, 2, 1),
        o=indices(0, 1),
        w=normal(4, 3),
    ),
    Row(
        "F.embedding_bag(i, w, mode='max')",
        order=1,
        i=indices([[0, 2], [1, 3]]),
        w=distinct(4, 3),
    ),
    Row(
        "F.embedding_bag(i, w, mode='sum', per_sample_weights=p)",
        order=1,
        i=indices([[0, 2], [1, 1]]),
        w=normal(4, 3),
        p=normal(2, 2),
    ),
    # --- attention
    Row(
        "F.multi_head_attention_forward(x, y, y, 2, 1, w, None, None, None, True, 0., v, None)[0]",
        x=normal(2, 2),
        y=normal(3, 2),
        w=normal(6, 2),
        v=normal(2, 2),
    ),
    Row("F.scaled_dot_product_attention(x, y, z)", x=normal(2, 3), y=normal(4, 3), z=normal(4, 2)),
    Row(
        "F.scaled_dot_product_attention(x, y, z, is_causal=True, scale=0.5)",
        x=normal(2, 3, 2),
        y=normal(2, 3, 2),
        z=normal(2, 3, 2),
    ),
    Row(
        "F.scaled_dot_product_attention(x, y, z, m)",
        x=normal(2, 3),
        y=normal(2, 3),
        z=normal(2, 3),
        m=normal(2, 2),
    ),
    Row(
        "F.scaled_dot_product_attention(x, y, z)",
        order=1,
        x=normal(1, 2, 3, 2),
        y=normal(1, 2, 4, 2),
        z=normal(1, 2, 4, 2),
    ),
    Row(
        "F.scaled_dot_product_attention(x, y, z, enable_gqa=True)",
        order=1,
        x=normal(2, 4, 3, 2),
        y=normal(2, 2, 4, 2),
        z=normal(2, 2, 4, 2),
    ),
    Row(
        "F.scaled_dot_product_attention(x, y, z, is_causal=True, enable_gqa=True)",
        x=normal(4, 3, 2),
        y=normal(2, 3, 2),
        z=normal(1, 3, 2),
    ),
    Row(
        "torch.autograd.grad("
        "F.scaled_dot_product_attention(x, x, x).sum(), x, create_graph=True)[0]",
        order=0,
        x=normal(1, 1, 3, 2),
    ),
    # --- losses with each reduction: by element
    *_each("F.mse_loss(x, y)", x=normal(2, 3), y=normal(2, 3)),
    Row("F.mse_loss(x, y)", x=normal(2, 3), y=normal(3)),
    *_each("F.l1_loss(x, y)", x=_NEAR, y=_FAR),
    *_each("F.smooth_l1_loss(x, y)", x=_NEAR, y=_FAR),
    *_each("F.smooth_l1_loss(x, y, beta=0.5)", x=_NEAR, y=_FAR),
    *_each("F.huber_loss(x, y)", x=_NEAR, y=_FAR),
    *_each("F.huber_loss(x, y, delta=0.5)", x=_NEAR, y=_FAR),
    *_each("F.soft_margin_loss(x, y)", x=normal(3), y=_SIGNS),
    # --- of probabilities
    *_each("F.binary_cross_entropy(x, y)", x=unit(2, 3), y=unit(2, 3)),
    *_each("F.binary_cross_entropy(x, y, w)", x=unit(2, 3), y=unit(2, 3), w=_WEIGHT),
    *_each("F.binary_cross_entropy_with_logits(x, y)", x=normal(2, 3), y=unit(2, 3)),
    *_each(
        "F.binary_cross_entropy_with_logits(x, y, w, pos_weight=w)",
        x=normal(2, 3),
        y=unit(2, 3),
        w=_WEIGHT,
    ),
    *_each("F.kl_div(x, y)", x=normal(2, 3), y=unit(2, 3)),
    Row("F.kl_div(x, y, reduction='batchmean')", x=normal(2, 3), y=unit(2, 3)),
    Row("F.kl_div(x, y, reduction='sum', log_target=True)", x=normal(2, 3), y=normal(2, 3)),
    *_each("F.poisson_nll_loss(x, y)", x=normal(3), y=positive(3)),
    Row("F.poisson_nll_loss(x, y, log_input=False)", x=positive(3), y=positive(3)),
    Row("F.poisson_nll_loss(x, y, full=True)", x=normal(3), y=values(0.5, 1.5, 2.5)),
    *_each("F.gaussian_nll_loss(x, y, v)", x=normal(2, 3), y=normal(2, 3), v=positive(2, 1)),
    Row("F.gaussian_nll_loss(x, y, v, full=True)", x=normal(2, 3), y=normal(2, 3), v=positive(2)),
    Row("F.gaussian_nll_loss(x, y, v)", x=normal(3, 2, 2), y=normal(3, 2, 2), v=positive(1, 2, 2)),
    # --- of classes
    *_each("F.nll_loss(x, t)", x=normal(2, 3), t=_CLASSES),
    *_each("F.nll_loss(x, t, w)", x=normal(2, 3), t=_CLASSES, w=_WEIGHT),
    Row("F.nll_loss(x, t, ignore_index=2)", x=normal(2, 3), t=_CLASSES),
    Row("F.nll_loss(x, t)", x=normal(3), t=indices(1)),
    Row("F.nll_loss(x, t)", order=0, x=normal(3), t=indices([1])),
    *_each("F.nll_loss(x, t)", x=_IMAGE, t=_PIXELS),
    *_each("F.nll_loss(x, t, w)", x=normal(1, 3, 2), t=indices([[0, 2]]), w=_WEIGHT),
    *_each("F.cross_entropy(x, t)", x=normal(2, 3), t=_CLASSES),
    *_each("F.cross_entropy(x, t)", x=_IMAGE, t=_PIXELS),
    *_each("F.cross_entropy(x, t, w, label_smoothing=0.1)", x=normal(2, 3), t=_CLASSES, w=_WEIGHT),
    *_each("F.cross_entropy(x, t, label_smoothing=0.1)", x=_IMAGE, t=_PIXELS),
    *_each("F.cross_entropy(x, y)", x=normal(2, 3), y=unit(2, 3)),
    *_each("F.cross_entropy(x, y, w, label_smoothing=0.1)", x=normal(3), y=unit(3), w=_WEIGHT),
    # --- of pairs
    *_each("F.hinge_embedding_loss(x, y)", x=normal(3), y=_SIGNS),
    *_each("F.margin_ranking_loss(x, y, s, 0.3)", x=normal(3), y=normal(3), s=_SIGNS),
    *_each("F.triplet_margin_loss(x, y, z)", x=normal(2, 3), y=normal(2, 3), z=normal(2, 3)),
    Row(
        "F.triplet_margin_loss(x, y, z, swap=True)", x=normal(2, 3), y=normal(2, 3), z=normal(2, 3)
    ),
    *_each("F.cosine_embedding_loss(x, y, t)", x=normal(2, 3), y=normal(2, 3), t=indices([1, -1])),
    *_each(
        "F.multilabel_soft_margin_loss(x, y)",
        x=normal(2, 3),
        y=constant(values([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])),
    ),
    # --- angles and distances
    Row("F.cosine_similarity(x, y)", x=normal(2, 3), y=normal(2, 3)),
    Row("F.cosine_similarity(x, y, dim=-1)", x=normal(3), y=normal(2, 3)),
    Row("F.pairwise_distance(x, y)", x=normal(2, 3), y=normal(2, 3)),
    Row("F.pairwise_distance(x, y, 3.0, keepdim=True)", x=normal(2, 3), y=normal(3)),
    Row("F.normalize(x)", x=normal(2, 3)),
    Row("F.normalize(x, p=3.0, dim=0)", x=normal(2, 3)),
    Row("cdist(x, y)", x=normal(2, 3), y=normal(4, 3), order=1),
    Row("cdist(x, y, 1.0)", x=normal(2, 1, 2, 3), y=normal(2, 4, 3), order=1),
    Row("cdist(x, y, 3.0)", x=normal(2, 3), y=normal(4, 3), order=1),
]
