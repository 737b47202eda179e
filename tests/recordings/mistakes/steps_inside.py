"""Optimizers that step inside the backward pass; what reads the gradients behind it finds none."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in net.parameters()}


def step(p):
    optimizers[p].step()
    optimizers[p].zero_grad()


for p in net.parameters():
    p.register_post_accumulate_grad_hook(step)
for _ in range(3):
    loss = net(torch.ones(4, 3)).pow(2).mean()
    loss.backward()
norms = [p.grad.norm().item() for p in net.parameters() if p.grad is not None]
