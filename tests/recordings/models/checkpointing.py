import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(16, 32)
        self.b = nn.Linear(32, 16)
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        return x + self.drop(self.b(nn.functional.gelu(self.a(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        for i, block in enumerate(self.blocks):
            x = checkpoint(block, x, use_reentrant=i % 2 == 0)
        return self.head(x)


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
for _ in range(3):
    x = torch.randn(8, 16, requires_grad=True)
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
print(loss.item())
