"""`check`: gradients against differences and against a derivation."""
