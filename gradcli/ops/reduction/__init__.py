"""Reductions, cumulative reductions, sorting and counting."""
