"""Gradients that are cleared between the pass and the step."""

import torch

torch.manual_seed(0)
x = torch.randn(16, 3)
y = x.sum(1, keepdim=True)
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(30):
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    net.zero_grad()
    opt.step()
