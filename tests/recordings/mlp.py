import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.drop = nn.Dropout(0.2)
        self.fc2 = nn.Linear(8, 3)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        h = self.drop(h)
        return self.fc2(h)


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
data = torch.randn(16, 4)
target = torch.randint(0, 3, (16,))
for _ in range(3):
    logits = net(data)
    loss = F.cross_entropy(logits, target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"{loss.item():.4f}")
