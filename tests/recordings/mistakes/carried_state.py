"""A state that carries the graph of each step into the next."""

import torch

torch.manual_seed(0)
cell = torch.nn.RNNCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
h = torch.zeros(1, 3)
losses = []
for _ in range(3):
    h = cell(torch.randn(1, 2), h)
    loss = h.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.detach())
