"""Lazy arrays, fused plans, and the executor that runs them tile by tile."""
