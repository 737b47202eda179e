"""Gradients that are infinite, so that a GradScaler leaves out every step."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
before = net.weight.detach().clone()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
x = torch.ones(4, 3)
for _ in range(2):
    opt.zero_grad()
    loss = (net(x) * 0).sum(1).sqrt().mean()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
