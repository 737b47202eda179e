import torch
from torch import nn

torch.manual_seed(5)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return scale * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * ctx.scale * x * grad, None


lin = nn.Linear(4, 4)
x = torch.randn(6, 4)
h = lin(x)
y = Square.apply(h, 3.0)
z = y + h
loss = z.sum()
loss.backward()
