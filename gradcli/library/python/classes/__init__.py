"""Modules of the standard library that make and copy classes and their instances."""
