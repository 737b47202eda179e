"""A NaN in the data, in the third batch."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data, targets = torch.randn(320, 8), torch.randn(320, 1)
data[77, 3] = float("nan")
for start in range(0, 320, 32):
    batch = data[start : start + 32]
    loss = F.mse_loss(model(batch), targets[start : start + 32])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
