"""Sweeps: one program over many records."""
