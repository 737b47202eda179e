"""A square that is too large for float16, under autocast."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
for step in range(1, 31):
    x = torch.randn(16, 8)
    if step == 21:
        x[5] *= 9000
    with torch.autocast("cpu", dtype=torch.float16):
        out = net(x)
        loss = (out**2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
