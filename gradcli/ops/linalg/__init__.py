"""Products of matrices, systems, decompositions, norms."""
