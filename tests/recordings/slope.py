import torch
from torch import nn

torch.manual_seed(5)


class Distances(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.last = nn.Linear(4, 4)

    def forward(self, x):
        h = self.last(torch.relu(self.first(x)))
        squares = (h[:, None] - h[None]).square().sum(-1)
        return torch.where(squares > 0, squares.sqrt(), torch.zeros_like(squares))


net = Distances()
x = torch.randn(3, 3)
seen = torch.tensor([1.0, 0.0, 1.0])
weights = torch.softmax(torch.randn(3, 3) + seen.log(), dim=-1)
loss = (net(x) * weights).mean()
loss.backward()
