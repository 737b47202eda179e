"""Derivative rules and forward functions read with symbols: they write themselves down."""
