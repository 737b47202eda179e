"""Batching: how ops compute all examples of a `vmap` at once."""
