"""What a program reports on standard error: `logging` and `warnings`."""
