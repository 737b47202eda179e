"""Gradient rows of convolution, pooling, normalisation, resampling and embedding."""

from __future__ import annotations

from tests.op_table.rows import Row, distinct, normal

ROWS = [
    # --- convolution ---
    Row("F.conv1d(x, w, b)", x=normal(2, 2, 5), w=normal(3, 2, 2), b=normal(3)),
    Row("F.conv1d(x, w, groups=2, padding=1)", x=normal(1, 2, 4), w=normal(4, 1, 3)),
    Row("F.conv2d(x, w, b, stride=2)", x=normal(1, 2, 4, 3), w=normal(2, 2, 2, 2), b=normal(2)),
    Row("F.conv2d(x, w, padding=1, dilation=2)", x=normal(2, 1, 4, 4), w=normal(2, 1, 2, 2)),
    Row("F.conv2d(x, w, padding='same')", x=normal(1, 3, 3), w=normal(2, 1, 2, 3)),
    Row(
        "F.conv_transpose2d(x, w, b, stride=2)",
        x=normal(1, 2, 2, 2),
        w=normal(2, 1, 2, 2),
        b=normal(1),
    ),
    Row("F.unfold(x, 2)", x=normal(1, 2, 3, 3)),
    Row("F.fold(x, (3, 3), 2)", x=normal(1, 4, 4)),
    # --- pooling ---
    Row("F.max_pool1d(x, 2)", x=distinct(1, 2, 6)),
    Row("F.max_pool2d(x, 2, 1)", x=distinct(1, 2, 3, 4)),
    Row("F.max_pool3d(x, 2)", x=distinct(1, 1, 2, 4, 2)),
    Row("F.avg_pool1d(x, 2, 1, 1)", x=normal(1, 2, 4)),
    Row("F.avg_pool2d(x, 2, ceil_mode=True)", x=normal(1, 2, 3, 3)),
    Row("F.avg_pool3d(x, 2)", x=normal(1, 1, 2, 2, 4)),
    Row("F.adaptive_avg_pool2d(x, (2, 3))", x=normal(1, 2, 3, 4)),
    Row("F.adaptive_avg_pool3d(x, (2, 1, 2))", x=normal(1, 1, 3, 2, 2)),
    Row("F.adaptive_max_pool2d(x, 2)", x=distinct(1, 2, 3, 4)),
    Row("F.adaptive_max_pool3d(x, 2)", x=distinct(1, 1, 3, 2, 2)),
    # --- normalisation ---
    Row("F.layer_norm(x, (3,))", x=normal(2, 3)),
    Row("F.layer_norm(x, (2, 3), w, b)", x=normal(2, 2, 3), w=normal(2, 3), b=normal(2, 3)),
    Row("F.group_norm(x, 2, w, b)", x=normal(2, 4, 2), w=normal(4), b=normal(4)),
    Row(
        "F.batch_norm(x, None, None, w, b, training=True)", x=normal(4, 2), w=normal(2), b=normal(2)
    ),
    Row("F.batch_norm(x, zeros(2), ones(2), w, b)", x=normal(3, 2), w=normal(2), b=normal(2)),
    # --- resampling ---
    Row("F.interpolate(x, 5)", x=normal(1, 2, 3)),
    Row("F.interpolate(x, scale_factor=2)", x=normal(1, 1, 2, 3)),
    Row("F.interpolate(x, scale_factor=2)", x=normal(1, 1, 2, 1, 2)),
    Row("F.interpolate(x, 5, mode='nearest-exact')", x=normal(1, 2, 3)),
    Row("F.interpolate(x, 3, mode='nearest-exact')", x=normal(1, 1, 2, 4)),
    Row("F.interpolate(x, 3, mode='nearest-exact')", x=normal(1, 1, 2, 1, 2)),
    Row("F.interpolate(x, 5, mode='linear')", x=normal(1, 2, 3)),
    Row("F.interpolate(x, (3, 5), mode='bilinear', align_corners=True)", x=normal(1, 1, 2, 3)),
    Row("F.interpolate(x, (4, 3), mode='bicubic')", x=normal(1, 1, 3, 2)),
    Row("F.interpolate(x, (3, 2, 3), mode='trilinear')", x=normal(1, 1, 2, 1, 2)),
    Row("F.pixel_shuffle(x, 2)", x=normal(1, 4, 2, 1)),
    Row("F.pixel_unshuffle(x, 2)", x=normal(1, 1, 2, 4)),
    Row("F.channel_shuffle(x, 2)", x=normal(1, 4, 2, 1)),
    # --- embedding ---
    Row("F.embedding(tensor([[0, 2], [2, 1]]), w)", w=normal(3, 2)),
    Row("F.embedding(tensor([0, 2, 0]), w) ** 2", w=normal(3, 2)),
    Row(
        "y = F.embedding(tensor([0, 2, 0]), w) ** 3\n"
        "torch.autograd.grad(y.sum(), w, create_graph=True)[0]",
        w=normal(3, 2),
    ),
    Row("F.embedding_bag(tensor([[0, 2], [2, 1]]), w)", w=normal(3, 2)),
    # --- attention ---
    Row(
        "F.scaled_dot_product_attention(q, k, v)",
        order=1,
        q=normal(1, 2, 3, 2),
        k=normal(1, 2, 3, 2),
        v=normal(1, 2, 3, 2),
    ),
    Row("F.scaled_dot_product_attention(q, k, v)", q=normal(3, 2), k=normal(4, 2), v=normal(4, 2)),
    Row(
        "F.scaled_dot_product_attention(q, k, v, attn_mask=m)",
        q=normal(1, 1, 3, 2),
        k=normal(1, 1, 4, 2),
        v=normal(1, 1, 4, 2),
        m=normal(3, 4),
    ),
]
