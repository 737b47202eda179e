"""A step that makes another tensor of the name, and no leaf."""

import torch

x, y = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 2.0])
w = torch.zeros(2, requires_grad=True)

for _ in range(2):
    loss = ((x @ w - y) ** 2).mean()
    loss.backward()
    if w.grad is not None:
        w = w - 0.1 * w.grad
