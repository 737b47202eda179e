"""A sequence without a word: its row of attention is masked whole."""

import torch
from torch import nn

torch.manual_seed(0)
att = nn.MultiheadAttention(8, 2, batch_first=True)
x = torch.randn(3, 5, 8)
lengths = torch.tensor([5, 0, 3])
padding = torch.arange(5)[None, :] >= lengths[:, None]
out, weights = att(x, x, x, key_padding_mask=padding)
loss = out[~padding].square().mean()
loss.backward()
print(loss.item(), att.in_proj_weight.grad.isnan().any().item())
