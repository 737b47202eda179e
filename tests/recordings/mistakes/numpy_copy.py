"""A loss of what NumPy computed of a parameter."""

import numpy as np
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
v = torch.tensor([1.0, 2.0], requires_grad=True)

grown = np.exp(w.detach().numpy())
loss = (torch.from_numpy(grown) * v).sum()
loss.backward()
