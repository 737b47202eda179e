import torch
from torch import nn

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True, norm_first=True)
net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
head = nn.Linear(16, 3)
optimizer = torch.optim.AdamW([*net.parameters(), *head.parameters()], lr=1e-3)
for _ in range(3):
    x, y = torch.randn(4, 7, 16), torch.randint(0, 3, (4,))
    pad = torch.zeros(4, 7, dtype=torch.bool)
    pad[0, 4:] = True
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(head(net(x, src_key_padding_mask=pad).mean(1)), y)
    loss.backward()
    optimizer.step()
print(loss.item())
