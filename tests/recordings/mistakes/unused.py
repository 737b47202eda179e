"""A layer and a parameter that forward() does not read."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.lin1 = nn.Linear(d, d)
        self.lin2 = nn.Linear(d, d)
        self.scale = nn.Parameter(torch.ones(d))

    def forward(self, x):
        h = F.relu(self.lin1(x))
        return self.lin1(h)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.encoder(x))


torch.manual_seed(1)
model = Model()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(4):
    x = torch.randn(16, 8)
    y = torch.randint(0, 3, (16,))
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
