"""An encoder that runs where gradients were switched off, in two ways."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, body, head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)
x = torch.randn(3, 4)

torch.set_grad_enabled(False)
h = encoder(x)
torch.set_grad_enabled(True)
with torch.inference_mode():
    g = body(x)
    g.add_(1)
loss = head(h + g.clone()).pow(2).mean()
loss.backward()
