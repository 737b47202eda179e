"""Products of vectors, matrices and tensors, as `einsum` writes them too."""
