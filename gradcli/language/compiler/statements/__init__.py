"""Statements, compiled to closures."""
