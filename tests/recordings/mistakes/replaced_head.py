"""The head is replaced behind the optimizer that holds the former one."""

import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 12)
        self.fc = nn.Linear(12, 1000)

    def forward(self, x):
        return self.fc(torch.relu(self.body(x)))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
model.fc = nn.Linear(12, 5)  # fine-tune with five classes
for _ in range(3):
    x, y = torch.randn(16, 6), torch.randint(0, 5, (16,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
