"""What a program reports on standard error: `logging`, `traceback` and `warnings`."""
