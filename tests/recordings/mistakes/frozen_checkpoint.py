"""A frozen embedding in front of checkpointed layers."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.head = nn.Linear(8, 2)

    def forward(self, tokens):
        h = self.embed(tokens)
        for layer in self.layers:
            h = torch.relu(checkpoint(layer, h, use_reentrant=True))
        return self.head(h.mean(1))


model = Model()
for p in model.embed.parameters():
    p.requires_grad = False
opt = torch.optim.SGD(model.parameters(), 0.1)
tokens = torch.randint(0, 20, (4, 6))
loss = nn.functional.cross_entropy(model(tokens), torch.tensor([0, 1, 0, 1]))
loss.backward()
opt.step()
