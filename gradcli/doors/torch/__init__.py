"""Records what PyTorch runs, to be asked about as a program."""
