"""`why`: why a tensor has a gradient, or none."""
