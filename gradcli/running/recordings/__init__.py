"""Runs the programs of recordings, and compares them with what PyTorch computed."""
