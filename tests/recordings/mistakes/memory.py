"""Two blocks and a head: what is kept for the backward pass?"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


net = nn.Sequential(Block(32), Block(32), nn.Linear(32, 4))
x = torch.randn(16, 20, 32)
loss = net(x).square().mean()
loss.backward()
