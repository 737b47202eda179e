"""The trace: what ran, as instructions, and straight-line code from it."""
