"""Reductions, running reductions, order and counting."""
