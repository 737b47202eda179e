"""The op catalogue: one entry per op, a file per family."""
