import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(5, 6)
weights = {name: each.detach().clone().requires_grad_() for name, each in net.named_parameters()}
loss = functional_call(net, weights, (x,)).square().mean()
grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
fast = {name: each - 0.1 * grad for (name, each), grad in zip(weights.items(), grads, strict=True)}
outer = functional_call(net, fast, (x,)).square().mean()
outer.backward()
print(outer.item())
