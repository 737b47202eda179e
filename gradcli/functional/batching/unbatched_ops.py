"""Ops for which PyTorch has no batching rule: it computes them example by example, and warns."""

from __future__ import annotations

from gradcli.state import active

_NAMES = {
    "masked_fill.MaskedFillBackward1": "masked_fill.Tensor",
}
"""PyTorch's names of ops where they are not those of our registry."""

_WITHOUT = frozenset(
    {
        "_ctc_loss", "_ctc_loss_backward", "_embedding_bag", "_embedding_bag_backward",
        "_embedding_bag_per_sample_weights_backward", "_pdist_backward", "_pdist_forward",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention_for_cpu_backward", "_trilinear",
        "_upsample_nearest_exact1d", "_upsample_nearest_exact1d_backward",
        "_upsample_nearest_exact2d", "_upsample_nearest_exact2d_backward",
        "_upsample_nearest_exact3d", "_upsample_nearest_exact3d_backward", "_weight_norm_interface",
        "affine_grid_generator", "fractional_max_pool2d", "fractional_max_pool2d_backward",
        "fractional_max_pool3d", "fractional_max_pool3d_backward", "index_reduce", "linalg_lu",
        "masked_fill.MaskedFillBackward1", "masked_scatter", "masked_scatter_backward",
        "max_unpool2d", "max_unpool3d", "mkldnn_rnn_layer", "multi_margin_loss",
        "multi_margin_loss_backward",
        "multilabel_margin_loss_backward", "multilabel_margin_loss_forward", "ormqr", "put",
        "renorm", "soft_margin_loss", "soft_margin_loss_backward", "take", "unfold_backward",
    }
)  # fmt: skip
"""Their keys in the registry, recorded from PyTorch."""


def warn_of(key: str) -> None:
    """Warn as PyTorch does where an op of this key has no batching rule there."""
    if key in _WITHOUT:
        name = _NAMES.get(key, key)
        active.state.warn(
            "W013",
            "There is a performance drop because we have not yet implemented the batching rule for"
            f" aten::{name}. Please file us an issue on GitHub so that we can prioritize its"
            " implementation.",
        )
