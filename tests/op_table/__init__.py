"""The gradient table: a file for each family of ops, with its `ROWS`."""
