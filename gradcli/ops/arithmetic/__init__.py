"""Sums, products and quotients, and their operators."""
