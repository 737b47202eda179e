"""Formulas in LaTeX and as NumPy code."""
