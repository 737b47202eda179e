"""Matrix exponential, and the signs that decompositions leave undetermined."""
