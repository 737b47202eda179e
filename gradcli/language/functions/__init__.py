"""Functions: calls, parameters, signatures, and how a block ends."""
