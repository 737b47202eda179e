"""`torch.optim`: optimisers and learning-rate schedules."""
