import torch
from torch import nn

torch.manual_seed(2)
net = nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.tensor([[1.0, 2.0], [0.0, 0.0]])
for _ in range(3):
    h = net(x)
    loss = (h / x).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
