"""Dot-commands such as `.why` and `.step`: one function each, in one table."""
