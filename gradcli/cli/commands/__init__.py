"""One file per command: its click declaration and its body."""
