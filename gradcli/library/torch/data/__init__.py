"""`torch.utils.data`: data sets and data loaders."""
