"""`torch.optim`: what changes parameters by their gradients, and schedules of learning rates."""
