import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
a = nn.Linear(6, 8)
b = nn.Conv1d(1, 4, 3, padding=1)
lstm = nn.LSTM(8, 6, num_layers=2, proj_size=3, dropout=0.3, batch_first=True)
x = torch.randn(5, 6)
h = F.dropout(a(x), 0.4, inplace=True)
h = nn.Dropout1d(0.5)(b(h.unsqueeze(1)))
q = h.reshape(5, 2, 2, 8)
att = F.scaled_dot_product_attention(q, q, q, dropout_p=0.2, is_causal=True)
att = F.scaled_dot_product_attention(att, q, q, torch.tensor([[True, False], [True, True]]), 0.2)
k = q[:, :1]
att = att + F.scaled_dot_product_attention(att, k, k, dropout_p=0.2, enable_gqa=True)
att = att + F.scaled_dot_product_attention(att, k, k, enable_gqa=True)
out, _ = lstm(att.reshape(5, 4, 8))
y = F.alpha_dropout(out, 0.2)
z = F.rrelu(y, training=True)
n = z + torch.randn_like(z)
g = F.gumbel_softmax(n, dim=-1)
loss = g.square().sum() + n.sum()
loss.backward()
print(loss.item())
