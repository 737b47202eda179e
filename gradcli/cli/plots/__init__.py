"""Plots on the command line: shown, written, and the curve of a function."""
