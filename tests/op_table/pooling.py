"""Rows for pools, and for images in other sizes."""

from __future__ import annotations

from tests.op_table.rows import Row, distinct, normal, positive

ROWS = [
    # --- the largest ---
    Row("F.max_pool1d(x, 2)", x=distinct(2, 2, 5)),
    Row("F.max_pool2d(x, 2)", x=distinct(1, 2, 4, 4)),
    Row("F.max_pool2d(x, 3, stride=1, padding=1, dilation=2)", x=distinct(2, 5, 4)),
    Row("F.max_pool2d(x, 2, ceil_mode=True)", x=distinct(1, 1, 3, 5)),
    Row("F.max_pool2d(x, 2, return_indices=True)[0]", x=distinct(1, 1, 4, 4)),
    Row("F.max_pool3d(x, 2)", x=distinct(1, 1, 2, 4, 2)),
    Row("F.adaptive_max_pool1d(x, 2)", x=distinct(2, 5)),
    Row("F.adaptive_max_pool2d(x, (2, 3))", x=distinct(1, 2, 3, 5)),
    Row("F.adaptive_max_pool3d(x, 2)", x=distinct(1, 1, 3, 2, 4)),
    # --- the mean ---
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
    # --- other sizes ---
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
]
