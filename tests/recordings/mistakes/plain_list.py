"""Layers in a plain list, where no optimizer finds them."""

import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.layers = [nn.Linear(8, 8) for _ in range(depth)]
        self.out = nn.Linear(8, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.out(x)


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(3):
    x = torch.randn(16, 8)
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
