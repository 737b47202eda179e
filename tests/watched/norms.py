"""Batch norms, whose kernels count no version of what they write, and a NaN in a batch."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4),
    nn.Flatten(), nn.Linear(64, 3),
)  # fmt: skip
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for step in range(4):
    x, y = torch.randn(5, 1, 8, 8), torch.randint(0, 3, (5,))
    if step == 2:
        x[1, 0, 3, 3] = float("nan")
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
