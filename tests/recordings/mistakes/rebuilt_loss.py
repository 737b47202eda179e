"""The loss is put together again from the numbers of its parts."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 1)
a = (net(x) - y).square().mean()
b = net.weight.abs().sum()
loss = torch.tensor([a.item(), b.item()], requires_grad=True).sum()
opt.zero_grad()
loss.backward()
opt.step()
