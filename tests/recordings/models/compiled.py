import torch
from torch import nn


@torch.compile
def act(x):
    return torch.sin(x) * x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 16)
        self.b = nn.Linear(16, 1)

    def forward(self, x):
        return self.b(act(self.a(x)))


torch.manual_seed(0)
net = Net()
model = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(4, 8)
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
print(loss.item())
