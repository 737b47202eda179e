"""`torch.autograd.Function` and its context."""
