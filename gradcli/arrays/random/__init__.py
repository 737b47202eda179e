"""Random numbers as PyTorch draws them: Mersenne Twister, Philox, Box-Muller."""
