"""Functions of functions: derivatives as `torch.func` and `torch.autograd.functional` give them,
forward mode, `vmap`, checks of gradients, and checkpoints.
"""
