"""Sums in PyTorch's order, variances, norms, fused multiply-add."""
