"""The walk through one iteration while it is captured: statements, expressions, calls, reads."""
