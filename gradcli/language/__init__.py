"""The language: text to syntax tree to running program."""
