"""A part of the loss is a number, beside another that is detached on purpose."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
value = nn.Linear(4, 1)
opt = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=1e-2)
for _ in range(3):
    s = torch.randn(8, 4)
    logp = policy(s).log_softmax(-1)
    a = torch.randint(0, 2, (8,))
    ret = torch.randn(8)
    v = value(s).squeeze(-1)
    adv = ret - v
    pg = -(logp[torch.arange(8), a] * adv.detach()).mean()
    vloss = adv.pow(2).mean().item()
    loss = pg + 0.5 * vloss
    opt.zero_grad()
    loss.backward()
    opt.step()
