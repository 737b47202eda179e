import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(4, 4)
        self.key = nn.Linear(4, 4)

    def forward(self, x, mask):
        scores = self.query(x) @ self.key(x).transpose(-2, -1) / math.sqrt(4)
        scores = scores.masked_fill(mask, float("-inf"))
        return F.softmax(scores, dim=-1) @ x


att = Attention()
x = torch.randn(2, 3, 4)
mask = torch.zeros(2, 3, 3, dtype=torch.bool)
mask[1, 2] = True
out = att(x, mask)
loss = out.pow(2).mean()
loss.backward()
