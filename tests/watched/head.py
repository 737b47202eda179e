"""A head that is replaced once the optimizer has the parameters of the one before."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.ModuleDict({"body": nn.Linear(8, 16), "fc": nn.Linear(16, 10)})
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
net["fc"] = nn.Linear(16, 4)
for _ in range(3):
    x, y = torch.randn(16, 8), torch.randint(0, 4, (16,))
    loss = F.cross_entropy(net["fc"](F.relu(net["body"](x))), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
