"""What programs do behind a step: averages of the parameters, a second network that follows, and
what they print of a pass that is over.
"""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
average, target = copy.deepcopy(net), copy.deepcopy(net)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(3):
    s, later = torch.randn(16, 4), torch.randn(16, 4)
    with torch.no_grad():
        y = 0.9 * target(later)
    hidden = net[:2](s)
    q = net[2](hidden)
    loss = F.smooth_l1_loss(q, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for kept, p in zip(average.parameters(), net.parameters(), strict=True):
            kept.mul_(0.99).add_(p, alpha=0.01)
    for held, p in zip(target.parameters(), net.parameters(), strict=True):
        held.data.copy_(0.05 * p.data + 0.95 * held.data)
    print(q.mean().item(), hidden.std().item(), loss.mean().item())
