"""A transformer, with a batch in which one row is padding only, and a layer that nothing calls."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(mask[:, None, :], float("-inf"))
        return self.out(F.softmax(scores, dim=-1) @ v)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.att = Attention(width)
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x, mask):
        return x + self.drop(self.att(self.norm(x), mask))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 16)
        self.blocks = nn.ModuleList(Block(16) for _ in range(2))
        self.head = nn.Linear(16, 50)
        self.unused = nn.Linear(4, 4)

    def forward(self, ids, *, mask):
        x = self.emb(ids)
        for block in self.blocks:
            x = block(x, mask)
        return {"logits": self.head(x)}


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(1, 31):
    ids = torch.randint(0, 50, (4, 10))
    lengths = torch.randint(1, 11, (4,))
    if step == 21:
        lengths[2] = 0
    mask = torch.arange(10)[None, :] >= lengths[:, None]
    logits = net(ids, mask=mask)["logits"]
    loss = F.cross_entropy(logits.flatten(0, 1), ids.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
