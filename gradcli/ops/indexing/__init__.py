"""Indexing, gathering, masks, and writes to what they pick."""
