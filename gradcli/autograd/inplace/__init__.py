"""Writes in place, aliasing, and view replay."""
