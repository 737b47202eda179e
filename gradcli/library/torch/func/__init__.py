"""Function transforms: the derivatives of `torch.func` and `torch.autograd.functional`,
forward mode, `vmap`, checks of gradients, and checkpoints.
"""
