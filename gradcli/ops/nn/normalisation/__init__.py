"""Batch, group, layer and weight normalisation."""
