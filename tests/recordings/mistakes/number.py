"""A loss that is made of numbers."""

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
x = torch.tensor([3.0, 4.0])

total = 0.0
for i in range(2):
    total += (w[i] * x[i]).item()
loss = torch.tensor(total, requires_grad=True)
loss.backward()
