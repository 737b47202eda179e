"""A gradient that is not finite at step 900 of 1,000: one that is 0 goes into a root."""

import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1))
head = nn.Linear(16, 3)
optimizer = torch.optim.AdamW([*net.parameters(), *head.parameters()], lr=1e-3)
for step in range(1, 1001):
    x = torch.randn(32, 8)
    y = torch.randint(0, 3, (32,))
    hidden = net(x)
    loss = F.cross_entropy(head(hidden), y)
    if step == 900:
        loss = loss + torch.sqrt(hidden[3] * 0.0).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("trained")
