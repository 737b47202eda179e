"""Errors and warnings: for people, in short form, as JSON."""
