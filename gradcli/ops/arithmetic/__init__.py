"""Sums, products and quotients, and the operators that mean them."""
