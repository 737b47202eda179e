"""Expressions, compiled to closures."""
