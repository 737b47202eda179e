"""A state that grows in a loop, and an operation behind it that overflows."""

import torch
import torch.nn.functional as F
from torch import nn


class RNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.u, self.out = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 1)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 16)
        for t in range(x.shape[1]):
            h = F.relu(self.w(x[:, t]) + 4.5 * self.u(h))
        return self.out(h)


torch.manual_seed(0)
net = RNN()
opt = torch.optim.SGD(net.parameters(), lr=0.0)
for step in range(4):
    x, y = torch.randn(8, 10 if step < 2 else 150, 8), torch.randn(8, 1)
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
