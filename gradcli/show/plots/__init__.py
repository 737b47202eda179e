"""Plots: a document of panels and marks, as text in the terminal, as SVG, and as JSON."""
