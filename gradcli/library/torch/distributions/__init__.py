"""`torch.distributions`: what can be drawn from, with densities, entropies and divergences."""
