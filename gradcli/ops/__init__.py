"""The op catalogue: one entry per op, one module per family of ops."""
