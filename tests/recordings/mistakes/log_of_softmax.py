"""The logarithm of a softmax that was rounded to 0."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.5)
x = torch.randn(8, 5) * 300
y = torch.randint(0, 4, (8,))
p = torch.softmax(net(x), dim=1)
loss = -torch.log(p)[torch.arange(8), y].mean()
opt.zero_grad()
loss.backward()
opt.step()
print(loss)
