"""A recurrent network whose states grow until they overflow, with the length of what it reads."""

import torch
from torch import nn


class RNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(4, 16)
        self.rec = nn.Linear(16, 16, bias=False)
        nn.init.normal_(self.rec.weight, std=1.5)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        h = torch.zeros(x.shape[0], 16)
        for t in range(x.shape[1]):
            h = torch.relu(self.inp(x[:, t]) + self.rec(h))
        return self.out(h)


torch.manual_seed(0)
rnn = RNN()
optimizer = torch.optim.SGD(rnn.parameters(), lr=1e-30)
for length in (5, 10, 20, 80):
    loss = rnn(torch.randn(8, length, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
