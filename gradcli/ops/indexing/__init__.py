"""Indexing, gathering, masks, and writes to the elements that they select."""
