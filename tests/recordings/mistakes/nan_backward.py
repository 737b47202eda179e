"""A distance of two points that meet: the loss is finite, the gradient is not."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 6)
x = torch.randn(5, 4)
y = torch.randn(5, 4)
y[3] = x[3]
distance = torch.sqrt((net(x) - net(y)).pow(2).sum(-1))
loss = distance.mean()
loss.backward()
print(loss.item(), net.weight.grad.isnan().any().item())
