"""NumPy as programs import it: arrays, their functions, and what they share with tensors."""
