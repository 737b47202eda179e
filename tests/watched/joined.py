"""A softmax at one place and its logarithm, of some elements, at another."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.5)
for _ in range(4):
    x, y = torch.randn(16, 8), torch.randint(0, 4, (16, 1))
    p = torch.softmax(net(x) * 80, dim=1)
    loss = -torch.log(p.gather(1, y)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
