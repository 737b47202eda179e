"""Convolution and pooling over windows."""
