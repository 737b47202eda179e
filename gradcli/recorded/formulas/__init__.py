"""Derivative rules and instructions written as formulas and as calls."""
