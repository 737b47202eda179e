"""Modules of Python's standard library: each a table of the names that programs can reach."""
