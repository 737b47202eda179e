"""`torch.utils.data`: data sets, and batches of what is in them."""
