"""`explain`: every number of a backward pass and where it comes from."""
