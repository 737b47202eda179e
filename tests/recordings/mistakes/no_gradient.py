"""Five layers, of which four get no gradient, each for another reason."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)
        self.gate = nn.Linear(8, 1)
        self.spare = nn.Linear(8, 8)

    def forward(self, tokens):
        h = self.embed(tokens).mean(1)
        with torch.no_grad():
            h = F.relu(self.body(h))
        g = (self.gate(h) > -0.5).float()
        return self.head(h * g)


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(3):
    tokens, target = torch.randint(0, 10, (4, 5)), torch.randint(0, 3, (4,))
    loss = F.cross_entropy(net(tokens), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
