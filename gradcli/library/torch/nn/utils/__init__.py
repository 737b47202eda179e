"""`torch.nn.init` and `torch.nn.utils`: initialisation, clipping, parametrisations."""
