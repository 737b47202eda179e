"""Code generation: an op's `apply` and node class, written out as straight-line Python."""
