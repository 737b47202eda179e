import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.SiLU(), nn.Linear(12, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
for _ in range(3):
    optimizer.zero_grad()
    for _ in range(4):
        x = torch.randn(8, 6)
        loss = net(x).square().mean() / 4
        loss.backward()
    optimizer.step()
    scheduler.step()
print(loss.item())
