"""From an entry to straight-line Python: its `apply` and its node class."""
