"""A schedule that begins with a rate of 0."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
before = net.weight.detach().clone()
opt = torch.optim.AdamW(net.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: 0 if step < 10 else 1)
for _ in range(4):
    opt.zero_grad()
    loss = (net(torch.ones(4, 3)) - 1).pow(2).mean()
    loss.backward()
    opt.step()
    schedule.step()
