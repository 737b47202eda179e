"""Kernels in C: optional, built with the package where there is a compiler."""
