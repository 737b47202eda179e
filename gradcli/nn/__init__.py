"""`torch.nn`: modules, which hold parameters and compute from them."""
