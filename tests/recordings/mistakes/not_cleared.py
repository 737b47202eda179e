"""No gradient is ever cleared."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(64, 3)
y = x @ torch.tensor([[1.0], [2.0], [3.0]])
for _ in range(20):
    loss = (model(x) - y).square().mean()
    loss.backward()
    opt.step()
    print(loss.item())
