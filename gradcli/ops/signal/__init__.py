"""Fourier transforms and window functions."""
