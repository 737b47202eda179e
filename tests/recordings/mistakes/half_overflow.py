"""A square that is too large for float16."""

import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 64)
        self.fc2 = nn.Linear(64, 1)

    def forward(self, x):
        h = self.fc1(x)
        h = h * h
        return self.fc2(h)


net = Net().half()
x = (torch.randn(4, 16) * 300).half()
loss = net(x).float().mean()
loss.backward()
print(loss)
