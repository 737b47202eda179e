import torch
from torch import nn

torch.manual_seed(7)
D = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(D.parameters(), lr=0.1, momentum=0.9)
for _ in range(2):
    real = torch.randn(8, 2)
    fake = torch.randn(8, 2) + 2
    alpha = torch.rand(8, 1)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    out = D(mixed)
    grads = torch.autograd.grad(out, mixed, torch.ones_like(out), create_graph=True)[0]
    penalty = ((grads.norm(2, dim=1) - 1) ** 2).mean()
    loss = D(fake).mean() - D(real).mean() + 10 * penalty
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(D.parameters(), 1.0)
    opt.step()
