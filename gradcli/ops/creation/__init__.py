"""Tensors from data, from sequences and from random numbers; copies and devices."""
