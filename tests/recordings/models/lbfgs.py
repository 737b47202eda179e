import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(20, 3)
y = x.sum(1, keepdim=True).sin()
optimizer = torch.optim.LBFGS(net.parameters(), max_iter=5, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    return loss


for _ in range(2):
    loss = optimizer.step(closure)
print(loss.item())
