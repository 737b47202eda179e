"""`blame`: the first value that is not finite, its cause, and what would prevent it."""
