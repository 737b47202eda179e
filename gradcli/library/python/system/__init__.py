"""What programs use of the system: `sys`, `os`, streams and paths."""
