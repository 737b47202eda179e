"""Warns and fails in all the ways in which a place is found out by frames."""

import sys
import traceback
import warnings

import torch
import torch.nn.functional as F
from torch import nn


def warned(level):
    warnings.warn(f"at level {level}", stacklevel=level)


class Net(nn.Module):
    def __init__(self, inner=None):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.inner = inner

    def forward(self, x, level=1):
        warned(level)
        return self.layer(x if self.inner is None else self.inner(x, level))


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, fails):
        ctx.fails = fails
        warned(4)
        if fails == 1:
            raise ValueError("in forward")
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        warned(2)
        if ctx.fails == 2:
            raise ValueError("in backward")
        return 2 * grad, None


def failing(what, *args):
    try:
        what(*args)
    except Exception:
        traceback.print_exc()


def closure():
    warned(3)
    raise ValueError("in a closure")


warnings.simplefilter("always")
torch.manual_seed(0)
x = torch.randn(2, 3)
w = torch.randn(3, requires_grad=True)
net = Net(Net(Net()))
for level in range(1, 12):
    loss = net(x, level).sum()

# In C.
torch.tensor(x)
print((w * 2).grad)
for _ in range(2):
    y = torch.ones(2, 3, 4).T
    z = torch.nn.utils.clip_grad_norm_([w], 1.0, foreach=None)

# In Python, at levels of PyTorch's own.
F.softmax(x)
nn.Softmax()(x)
nn.Sequential(nn.Softmax(), nn.LogSoftmax())(x)
F.mse_loss(x, x[:1])
F.l1_loss(x, x[:1])
F.sigmoid(x)
F.kl_div(x, x)
nn.init.uniform(torch.empty(2))
Double.apply(w, 0).sum().backward()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
scheduler.step()
net(x, 5).sum().backward()
optimizer.step()

failing(net, torch.ones(2, 4))
failing(torch.matmul, x, x)
failing(lambda: x @ x)
failing(lambda: torch.ones(2).backward())
failing(Double.apply, w, 1)
failing(Double.apply(w, 2).sum().backward)
failing(optimizer.step, closure)
failing(nn.Linear, 2, "three")
failing(torch.autograd.backward, x.sum())
failing(torch.nn.utils.clip_grad_norm_, 5, 1.0)
failing(torch.func.grad(lambda x: 1 / 0), x)
(w * 1).register_hook(lambda grad: 1 / 0)
hooked = w * 3
hooked.register_hook(lambda grad: 1 / 0)
failing(hooked.sum().backward)
with warnings.catch_warnings(record=True) as caught:
    warned(2)
    print([(each.filename == __file__, each.lineno, str(each.message)) for each in caught])
warnings.simplefilter("error")
failing(warned, 2)
failing(lambda: torch.ones(2, 3, 4).T)
F.softmax(x) if sys.argv[1:] else F.cross_entropy(x, x[0])
