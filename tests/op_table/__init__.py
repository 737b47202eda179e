"""The gradient table: one file per op family, each with its `ROWS`."""
