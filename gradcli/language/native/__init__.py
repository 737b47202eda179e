"""Nodes in C: what the closures of common expressions are where the core is built."""
