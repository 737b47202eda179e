"""Gradients that an evaluation switched off, and no backward pass."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
torch.set_grad_enabled(False)
for _ in range(2):
    opt.zero_grad()
    loss = (net(torch.ones(4, 3)) - 1).pow(2).mean()
    if loss.requires_grad:
        loss.backward()
    opt.step()
