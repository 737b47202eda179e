"""Functions that work element by element."""
