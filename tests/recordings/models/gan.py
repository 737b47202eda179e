import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 6))
D = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(16, 1))
optG = torch.optim.Adam(G.parameters(), lr=1e-3)
optD = torch.optim.Adam(D.parameters(), lr=1e-3)
criterion = nn.BCEWithLogitsLoss()
for _ in range(3):
    real = torch.randn(8, 6)
    fake = G(torch.randn(8, 4))
    optD.zero_grad()
    lossD = criterion(D(real), torch.ones(8, 1)) + criterion(D(fake.detach()), torch.zeros(8, 1))
    lossD.backward()
    optD.step()
    optG.zero_grad()
    lossG = criterion(D(fake), torch.ones(8, 1))
    lossG.backward()
    optG.step()
print(lossD.item(), lossG.item())
