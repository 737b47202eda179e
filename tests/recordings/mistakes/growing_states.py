"""States that grow from step to step until they overflow."""

import torch
from torch import nn

torch.manual_seed(0)


class Cell(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.W = nn.Parameter(torch.randn(n, n) * 0.9)
        self.U = nn.Linear(3, n)

    def forward(self, x, h):
        return self.U(x) + h @ self.W


class RNN(nn.Module):
    def __init__(self, n=16):
        super().__init__()
        self.cell = Cell(n)
        self.out = nn.Linear(n, 1)
        self.n = n

    def forward(self, xs):
        h = xs.new_zeros(xs.shape[0], self.n)
        for t in range(xs.shape[1]):
            h = self.cell(xs[:, t], h)
        return self.out(h)


rnn = RNN()
opt = torch.optim.SGD(rnn.parameters(), lr=1e-3)
xs = torch.randn(4, 90, 3)
loss = rnn(xs).square().mean()
opt.zero_grad()
loss.backward()
opt.step()
print(loss)
