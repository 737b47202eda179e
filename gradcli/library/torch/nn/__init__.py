"""`torch.nn`: modules, their layers, initialisation and utilities."""
