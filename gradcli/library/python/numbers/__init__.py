"""Numbers beside those that are built in: `decimal`, `fractions`, `random`."""
