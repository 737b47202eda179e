"""Writes in place, aliasing, and views that are made again."""
