"""Convolution, pooling, padding, resampling, grids."""
