"""Rounds that are traced and written out do what ordinary rounds do, and leave what they leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradcli.autograd.node import reachable
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.compiler.statements import blocks
from gradcli.limits import Limits
from gradcli.loops import hot_loop as hot
from gradcli.loops.compiled import CompiledIteration
from gradcli.session import Session
from gradcli.state import active
from gradcli.trace import codegen
from tests.random_loops import random_loop
from tests.random_training import random_training
from tests.rows import sampled
from tests.running import Outcome, run
from tests.test_compiled_backward import TENSORS

SETUP = f"""
import torch.nn.functional as F
{TENSORS}
classes = torch.tensor([2, 0, 1])
parameters = [w, b, s]
losses = []
total = 0.
lr = 0.1
"""

TRAINING = """
for n in range(9):
    loss = {}
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.1 * p.grad
            p.grad = None
"""

# Each is a loss of the parameters w (2, 3), b (3) and s (); all of them must be reached.
LOSSES = [
    "((torch.tanh(x @ w + b) ** 2).mean() * s)",
    "F.mse_loss(F.linear(x, w.t(), b) * s, x @ torch.relu(w))",
    "F.cross_entropy(x @ w + b, classes) * s",
    "F.cross_entropy(x @ w * s, classes, reduction='sum') + b.sum()",
    "F.nll_loss(F.log_softmax(x @ w + b, dim=1), classes) / s",
    "torch.softmax(x @ w + b, -1).pow(2).sum() - s",
    "F.smooth_l1_loss(torch.sigmoid(x @ w) * b, v * s + x @ w)",
    "F.binary_cross_entropy_with_logits(x @ w + b, torch.sigmoid(v * s + x @ w))",
    "(torch.exp(-(x @ w + b) ** 2) / (1 + s * s)).sum()",
    "torch.logsumexp(x @ w + b, 1).mean() * s + w.norm() + b.std()",
    "(x @ w).var(0).dot(b) + s.abs().sqrt()",
    "((x @ w).unsqueeze(1) * b).sum((0, 1)).dot(v) * s",
    "(w.T @ w).diagonal().sum() * s + b.sum()",
    "torch.where(x @ w > 0, x @ w, b * s).sum()",
    "torch.maximum(x @ w, b).clamp(max=1.5).sum() + s",
    "(F.gelu(x @ w) + F.silu(x @ w) + F.elu(b) + F.softplus(b) + F.leaky_relu(b, 0.2)).mean() * s",
    "F.layer_norm(x @ w + b, [3]).pow(3).mean() + s ** 2",
    "w.reshape(3, 2).transpose(0, 1).flatten().dot(w.view(6)) + (b.permute(0) * s).sum()",
    "(w[0] * w[1, 1:2] * b[:1] + s).sum() + w[:, ::2].prod()",
    "torch.outer(b, v).mm(w.t()).sum() * s",
    "F.conv2d(w.reshape(1, 1, 2, 3), b.reshape(1, 1, 1, 3), padding=1).square().mean() * s",
    "F.max_pool2d(torch.relu(torch.outer(b, v) * s + x @ w).reshape(1, 1, 3, 3), 2).sum()",
    "F.avg_pool2d((x @ w * b * s).reshape(1, 1, 3, 3), 2).square().sum()",
    "(w.sum() + b.sum()) * s + w.sum() * 2",
    "(b + b).sum() * s * s + (w - w.mean()).square().sum()",
    "w.square().sum() + b.mean() + s",
    "torch.log(b).sum() + w.sum() / (s - s) + (w * 1e30).exp().mean()",
    "(torch.outer(b, torch.linspace(0, 1, 2000)).exp().tanh() * s).sum() + w.sum()",
]

_KEEPS_GRAPH = """
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x ** 3
    @staticmethod
    def backward(ctx, grad):
        return 3 * ctx.x ** 2 * grad
{}
    kept = Cube.apply(b * (1 + n))
    loss = Cube.apply(w).sum() + kept.detach().sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
        w.grad = None
kept.sum().backward()
print(loss, w, b.grad)
"""

# Each is a program, and how often it finds a round that can be written; all print what they leave.
PROGRAMS = {
    "all names in use": (
        """
total = x.sum()
def count(values):
    return len(locals()), len(vars())
for n in range(12):
    total = total + x.mean()
    print(len(dir()) > 3, "n" in globals(), count(n), total)
""",
        0,
    ),
    "a star in a target": (
        """
values, total = [1.5, 2.5, 3.5], x.sum()
for n in range(12):
    first, *others = values
    total = total + first * x.mean() + others[1]
print(total, others)
""",
        0,
    ),
    "a set of what is in a list": (
        """
values, total = [1, 2, 3, 2], x.sum()
for n in range(12):
    total = total + x.mean() * len({*values, 7}) + (8 in {*values})
print(total)
""",
        1,
    ),
    "a round given a parameter's memory": (
        """
given = [v] * 6 + [b.detach()] + [v] * 2
for n, each in enumerate(given):
    if n == 7:
        print(seen, loss)
    loss = (x @ w + b).exp().sum() * s
    seen = (each * 3 + 1).sum()
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.001 * p.grad
            p.grad = None
""",
        1,
    ),
    "what is the same until an ordinary round changes it": (
        """
seen = []
for n in range(30):
    weights = v ** 2 + x.mean()
    loss = (((x @ w + b) * x.sin().sum() - weights) ** 2).mean() * s
    loss.backward()
    with torch.no_grad():
        for p in (w, b, s):
            p -= 0.001 * p.grad
            p.grad = None
    if n % 5 == 3:
        x.data.mul_(1.1)
        seen.append(weights)
        weights.mul_(2)
        print(n, loss, weights)
""",
        1,
    ),
    "a gradient that is the same in every round": (
        """
optimizer = torch.optim.SGD([w, s], lr=0.01, weight_decay=0.1, momentum=0.5)
for n in range(30):
    loss = (w * x[0, 0]).sum() + s * 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(w, w.grad, s.grad, loss)
""",
        1,
    ),
    "rows by positions drawn anew": (
        """
torch.manual_seed(0)
table = torch.randint(0, 3, (7, 2))
for n in range(9):
    rows = torch.randint(-7, 7, (4,))
    loss = (w.t()[table[rows]] * s).exp().sum() + b[[0, 2]].sum() + b[classes].prod()
    for p in parameters:
        p.grad = None
    loss.backward()
    for p in parameters:
        p.data += -0.01 * p.grad
print(loss, table[rows, 1], torch.rand(1))
""",
        1,
    ),
    "gradients of each sample": (
        """
def loss_of(w, b, row, y):
    return (torch.tanh(row @ w + b) @ v - y) ** 2
each = torch.func.vmap(torch.func.grad(loss_of, argnums=(0, 1)), in_dims=(None, None, 0, 0))
w, b = w.detach(), b.detach()
for n in range(20):
    found, shift = each(w, b, x, classes.float() * n)
    w = w - 0.05 * found.mean(0)
    b = b - 0.05 * (shift / shift.norm(dim=1, keepdim=True).clamp(min=1.)).mean(0)
print(w, b, found)
""",
        1,
    ),
    "transforms made anew, sums by index, a product's transpose": (
        """
def loss_of(w, row):
    return (torch.tanh(row @ w) @ v) ** 2
for n in range(20):
    found = torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0))(w.detach(), x)
    spread = torch.zeros(3, 3).index_add(0, classes, found[:, 0])
    logits = x @ (w * s) + spread.sum()
    loss = torch.log_softmax(logits.T, 1).mean() + torch.func.jacrev(torch.sin)(b.detach()).sum()
    for p in (w, s):
        p.grad = None
    loss.backward()
    with torch.no_grad():
        w -= 0.05 * w.grad
print(w, s.grad, found, loss)
""",
        1,
    ),
    "steps through gradients in lists and tuples": (
        """
def net(x, p):
    return torch.tanh(x @ p[0] + p[1])
params = [w, b]
for n in range(20):
    inner = (net(x, params) ** 2).mean()
    grads = torch.autograd.grad(inner, params, create_graph=True)
    fast = [p - 0.5 * g for p, g in zip(params, grads)]
    loss = ((net(x, fast) - v) ** 2).mean()
    for p in params:
        p.grad = None
    loss.backward()
    with torch.no_grad():
        for p in params:
            p -= 0.1 * p.grad
    if n % 8 == 7:
        print(grads, fast, b.grad)
print(w, grads, fast, fast[0].grad_fn, loss)
""",
        1,
    ),
    "gradients of functions, which share what comes in and are written to": (
        """
def loss_of(w, b):
    return ((x @ (w * s.detach()) + b) * v).sum() + (b * b).sum()
w, b, total = w.detach(), b.detach(), torch.zeros(3)
for n in range(20):
    both = torch.func.grad_and_value(loss_of, argnums=(0, 1))(w, b)[0]
    one, other = torch.func.grad(lambda a, b: ((a + b) * v).sum(), argnums=(0, 1))(b, total)
    slope = torch.func.grad(torch.sin)(total[0])
    one *= 2
    both[0].mul_(0.5)
    rows = torch.autograd.functional.jacobian(lambda b: b * v, b)
    w = w - 0.01 * both[0]
    b = b - 0.01 * both[1] - 0.001 * one + 0.002 * other
    total = total + rows.sum(0) * slope
    if n % 8 == 7:
        print(one, other)
print(w, b, total, both)
""",
        1,
    ),
    "a custom function that writes to its gradient": (
        """
class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.clamp(min=0)
    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input < 0] = 0
        return grad_input
for n in range(12):
    loss = (Clipped.apply(x @ w + b) * s).square().mean()
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.1 * p.grad
            p.grad.zero_()
print(loss, loss.grad_fn.next_functions, w, b.grad)
""",
        1,
    ),
    "custom functions with settings, several results and output": (
        """
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(a, b, power):
        return a * b ** power, a + b
    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b, ctx.power = inputs
        ctx.save_for_backward(a, b)
        ctx.set_materialize_grads(False)
    @staticmethod
    def backward(ctx, of_product, of_sum):
        a, b = ctx.saved_tensors
        calls.append(ctx.needs_input_grad)
        first = of_sum
        if of_product is not None:
            first = of_product * b ** ctx.power + (0 if of_sum is None else of_sum)
        second = None
        if ctx.needs_input_grad[1]:
            second = of_product * a * ctx.power * b ** (ctx.power - 1)
        if ctx.power > 2:
            print('cubed', first.sum().item())
        return first, second, None
calls = []
optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.5)
for n in range(16):
    optimizer.zero_grad()
    product, total = Scaled.apply(w.sum(0), b, 2)
    other = Scaled.apply(b * s, v, 3)[0]
    loss = product.sum() + total.square().sum() + other.mean()
    loss.backward(retain_graph=n % 2 == 0)
    optimizer.step()
print(loss, w, b, s, len(calls), calls[-1])
""",
        1,
    ),
    "a custom function whose graph is kept": (
        _KEEPS_GRAPH.format("n = 0\nwhile n < 12:\n    n += 1"),
        0,
    ),
    "a custom function whose graph is kept by the last iteration": (
        _KEEPS_GRAPH.format("for n in range(12):"),
        1,
    ),
    "a new leaf in every iteration, of which some stay": (
        """
first, leaves = w, []
for n in range(20):
    loss = ((x @ w + b) * v).square().mean()
    loss.backward()
    if n % 6 == 5:
        leaves.append(w)
    w = (w - 0.1 * w.grad).detach().requires_grad_()
    with torch.no_grad():
        b -= 0.1 * b.grad
        b.grad = None
print(first.grad, [leaf.grad for leaf in leaves], w, w.grad, w.is_leaf, b, loss)
""",
        2,
    ),
    "new leaves in a function": (
        """
def descend(w, b, lr=0.05):
    former = None
    for n in range(20):
        loss = ((x @ w + b).tanh() * v).mean() + w.square().sum()
        of_w, of_b = torch.autograd.grad(loss, [w, b])
        former = w
        w, b = (w - lr * of_w).detach().requires_grad_(True), (b - lr * of_b).detach().clone()
        b.requires_grad = True
    return former, w, b, loss
former, w, b, loss = descend(w, b)
loss.sum()
print(former, former.grad, w, b)
""",
        1,
    ),
    "a new leaf with a hook": (
        """
seen = []
for n in range(12):
    loss = (w * w).sum() * s
    loss.backward()
    w = (w - 0.1 * w.grad).detach().requires_grad_()
    w.register_hook(lambda g: seen.append(g.sum().item()))
print(seen, w, s.grad)
""",
        0,
    ),
    "distributions from outside and made in the iteration": (
        """
from torch.distributions import Independent, Normal, kl_divergence
base = Normal(torch.zeros(3), torch.tensor([1., 2., 0.5]))
joint = Independent(Normal(v, torch.ones(3)), 1)
optimizer = torch.optim.SGD(parameters, lr=0.01)
def bound():
    made = Normal(x @ w + b, F.softplus(b))
    loss = -base.log_prob(made.mean * s).sum() - joint.log_prob(made.loc).mean()
    return loss + kl_divergence(made, base).mean() + made.entropy().sum() * 0.1 + base.stddev.sum()
for n in range(20):
    loss = bound()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss, w, b)
""",
        1,
    ),
    "inner steps through which a gradient goes": (
        """
slope = torch.linspace(-1, 1, 10).requires_grad_()
data = torch.sin(torch.arange(160.)).reshape(16, 10)
for n in range(20):
    y = data.sum(1) * n / 7
    g, = torch.autograd.grad(((data @ slope - y) ** 2).mean(), slope, create_graph=True)
    loss = ((data @ (slope - 0.1 * g) - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        slope -= 0.01 * slope.grad
        slope.grad = None
print(loss, slope, y, g)
""",
        1,
    ),
    "forward mode, alone and inside out": (
        """
def field(b):
    return torch.tanh(w.detach().T @ v[:2] * b) + 0.1 * b ** 2
def energy(b):
    return (field(b) ** 2).sum() + (b ** 4).sum() * s.detach()
b, values = b.detach(), []
for n in range(20):
    moved = torch.func.jvp(field, (b,), (v,))[1]
    columns, seen = torch.func.jacfwd(lambda b: (field(b), b.sum()), has_aux=True)(b)
    curved = torch.func.hessian(energy)(b)
    twice = torch.func.jacfwd(torch.func.jacfwd(energy))(b)
    along = torch.autograd.functional.hvp(energy, b, v)[1]
    slope, value = torch.func.grad_and_value(energy)(b)
    values.append(value)
    b = b - 0.01 * (moved + columns @ v + curved @ v - twice.sum(1) + along + slope) / (1 + seen)
    if n % 8 == 7:
        print(columns, twice)
print(b, values, curved, along)
""",
        1,
    ),
    "numbers that functions inside others read": (
        """
from functools import partial
rate = 1.
def scaled(scale, given):
    return (given * scale).sum() * rate
twice = partial(scaled, 2.)
each = torch.func.vmap(torch.func.grad(lambda row: (row * row).sum() * rate))
rows = torch.func.jacrev(lambda given: given * rate)
for n in range(40):
    loss = twice(b * s) + each(x).sum() + rows(v).sum()
    for p in (b, s):
        p.grad = None
    loss.backward()
    with torch.no_grad():
        b -= 0.001 * b.grad
    if n % 15 == 14:
        rate = rate + 1
        print(n, loss)
print(b, loss)
""",
        1,
    ),
    "functions of each sample, in place and by chance": (
        """
def moved(row):
    row = row.clone()
    row[0] = 3.
    row.mul_(s)
    return torch.where(row > 0, row, torch.relu(b[:2])).sum() * n
draws = torch.func.vmap(lambda row: row + torch.rand(2), randomness="different")
for n in range(9):
    loss = torch.func.vmap(moved)(x).sum() + draws(x).sum()
    if n == 4:
        loss.backward()
print(loss, s.grad, torch.rand(1))
""",
        0,
    ),
    "a report every few rounds": (
        """
for n in range(20):
    loss = ((x @ w + b) ** 2).mean() * s
    loss.backward()
    with torch.no_grad():
        for p in (w, b, s):
            p -= lr * p.grad
            p.grad = None
    if n % 6 == 5:
        print(n, loss, b._version)
""",
        1,
    ),
    "a report on the round before": (
        """
loss = None
for n in range(20):
    if n % 5 == 0:
        print(n, loss, w.grad)
    loss = ((x @ w + b) ** 2).mean() * s
    for p in parameters:
        p.grad = None
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.1 * p.grad
""",
        2,
    ),
    "a report on the step before": (
        """
optimizer = torch.optim.SGD(parameters, lr=0.1)
for n in range(20):
    if n % 5 == 4:
        print(n, loss, loss.grad_fn.next_functions, [p.grad for p in parameters])
    optimizer.zero_grad()
    loss = ((x @ w + b) ** 2).mean() * s
    loss.backward()
    optimizer.step()
""",
        1,
    ),
    "settings that a report changes": (
        """
for n in range(30):
    loss = ((x @ w + b) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        b -= lr * b.grad
    w.grad = None
    b.grad = None
    if n == 10:
        lr = lr / 2
    if n == 20:
        b = b.detach().requires_grad_()
""",
        2,
    ),
    "numbers and lists": (
        """
count = 0
for n in range(9):
    loss = ((w * s) ** 2).sum() + b.sum()
    loss.backward()
    total = total + loss.item() * 2 - 1
    count += 1
    total += float(s) / 3
    losses.append(loss.item())
    losses.append(-w.grad[0, 1].item())
    w.grad = None
    b.grad = None
    s.grad = None
print(total, losses, count)
""",
        1,
    ),
    "a loop inside": (
        """
for n in range(7):
    y = s
    for k in range(3):
        y = y * b + s
    loss = y.sum()
    loss.backward()
    b.grad = None
    s.grad = None
print(k)
""",
        1,
    ),
    "batches inside": (
        """
data = torch.linspace(0, 1, 12).reshape(6, 2)
for epoch in range(6):
    for i in range(0, 6, 2):
        batch = data[i:i + 2]
        loss = (batch @ w + b).square().mean() * (i + 1)
        loss.backward()
        with torch.no_grad():
            w -= 0.05 * w.grad
            b -= 0.05 * b.grad
            w.grad.zero_()
            b.grad.zero_()
print(batch, i)
""",
        2,
    ),
    "a number that is bound twice": (
        """
for n in range(6):
    for i in range(3):
        pass
    i = i + n
    loss = (b * i).sum()
    loss.backward()
    b.grad = None
print(i)
""",
        1,
    ),
    "gradients cleared at the beginning": (
        """
for n in range(7):
    for p in parameters:
        p.grad = None
    loss = (x @ w * b).square().mean() * s
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.1 * p.grad
""",
        1,
    ),
    "gradients that add up": (
        """
for n in range(7):
    loss = (w * b).sum() + b.sum()
    loss.backward()
""",
        1,
    ),
    "gradients that are zeroed": (
        """
for n in range(9):
    loss = (x @ w + b).square().mean() * s
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.1 * p.grad
            p.grad.zero_()
""",
        1,
    ),
    "gradients that are zeroed first": (
        """
loss = (x @ w + b).square().mean() * s
loss.backward()
for n in range(9):
    w.grad.zero_()
    b.grad.zero_()
    s.grad = None
    loss = (x @ w + b).square().mean() * s
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
    total += s.grad.item()
""",
        1,
    ),
    "torch.autograd.grad": (
        """
for n in range(9):
    loss = (x @ w + b).square().mean() * s
    gw, gb = torch.autograd.grad(loss, (w, b))
    with torch.no_grad():
        w -= 0.1 * gw
        b -= 0.1 * gb
""",
        1,
    ),
    "one gradient": (
        """
for n in range(9):
    loss = (1 - b[0]) ** 2 + 100 * (b[1] - b[0] ** 2) ** 2
    g, = torch.autograd.grad(loss, b)
    with torch.no_grad():
        b -= 0.001 * g
""",
        1,
    ),
    "a state that is handed on with its graph, and detached": (
        """
def step(x, h):
    return torch.tanh(x @ w + h), h.mean()
h = torch.zeros(3, 3)
mean = 0.1 * s
for n in range(12):
    h, level = step(x * (n + 1), h.detach())
    mean = 0.9 * mean.data + 0.1 * h.sum() * s
    loss = (h - b).square().mean() + mean + level * s
    loss.backward()
    total += loss.item() + h.size(0)
    with torch.no_grad():
        for p in parameters:
            p -= 0.01 * p.grad
            p.grad = None
print(h, mean, level, loss, total)
try:
    h.sum().backward()
except RuntimeError as error:
    print(error)
""",
        1,
    ),
    "a state that begins anew, and whose graph is looked at": (
        """
for epoch in range(4):
    h = torch.zeros(3, 3)
    for n in range(12):
        if n % 4 == 3:
            total += h.requires_grad * 1.
            h = torch.ones(3, 3)
        h = torch.tanh(x @ w + h.detach())
        loss = (h * b).sum() * s
        loss.backward()
        with torch.no_grad():
            w -= 0.01 * w.grad
            w.grad = b.grad = s.grad = None
    print(h, loss)
""",
        2,
    ),
    "a state whose graph goes back by two iterations": (
        """
h = torch.zeros(3, 3)
for n in range(9):
    h = torch.tanh(x @ w + h.detach()) + 0.1 * h * b
    if n % 3 == 2:
        h.sum().backward()
        w.grad = b.grad = None
        h = h.detach()
print(h)
""",
        0,
    ),
    "a state whose graph no pass frees": (
        """
h = torch.zeros(3, 3)
for n in range(9):
    h = torch.tanh(x @ w + h.detach())
    loss = (h.detach() * b).sum()
    loss.backward()
    b.grad = None
h.sum().backward()
print(h, w.grad)
""",
        0,
    ),
    "states in a tuple and in an attribute": (
        """
import torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(2, 3)
        self.level = torch.zeros(3)
    def forward(self, x, state):
        state = self.cell(x, state)
        self.level = 0.5 * self.level.detach() + state[0].mean(0)
        return self.level * b, state
def detached(state):
    if isinstance(state, torch.Tensor):
        return state.detach()
    return tuple(detached(each) for each in state)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
state = None
for n in range(14):
    if state is not None:
        state = detached(state)
    optimizer.zero_grad()
    out, state = net(x, state)
    loss = (out - v).square().sum() + state[1].sum() * s
    loss.backward()
    optimizer.step()
    b.grad = s.grad = None
    total += loss.item()
h, c = state
print(total, net.level, h, c)
""",
        1,
    ),
    "a state under two names": (
        """
h = g = torch.zeros(3, 3)
for n in range(12):
    y = torch.tanh(x @ w + h.detach() - g.detach())
    y.sum().backward()
    w.grad = None
    h, g = (y, y) if n < 8 else (y, g)
print(y)
""",
        0,
    ),
    "integers beside numbers": (
        """
for n in range(9):
    at = torch.randint(0, 9, (4,))
    following = (at + 1) % 3
    half = (7 - at) // 2 + torch.fmod(at, 4).clamp(1, 2)
    many = (2 ** at + at ** 2 + at.sum() % 5).masked_fill(at > 5, 7)
    small = at.to(torch.uint8) % 4 - at.int().clamp(max=3)
    loss = (b[following] * (half + many + small).float()).sum() * s + b[(at - n) % 3].sum()
    loss.backward()
    total += loss.item()
    with torch.no_grad():
        b -= 0.001 * b.grad
    b.grad = None
    s.grad = None
print(total, half, many, small)
""",
        1,
    ),
    "slices of data": (
        """
data = torch.linspace(0, 1, 40).reshape(20, 2)
for i in range(0, 20, 2):
    start = i * 1
    batch = data[start:i + 3]
    weights = torch.ones(len(batch))
    loss = (batch @ w + b).square().sum(1).dot(weights) * s
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.01 * p.grad
            p.grad = None
print(batch, start)
""",
        1,
    ),
    "slices of data, the last one shorter": (
        """
data = torch.linspace(0, 1, 46).reshape(23, 2)
for epoch in range(2):
    for i in range(0, 23, 3):
        start = i * 1
        batch = data[start:i + 3]
        loss = (batch @ w + b).square().mean() * s
        loss.backward()
        with torch.no_grad():
            for p in parameters:
                p -= 0.01 * p.grad
                p.grad = None
print(batch, start)
""",
        1,
    ),
    "data drawn at random": (
        """
torch.manual_seed(0)
for n in range(9):
    index = torch.randint(0, 3, (2,))
    noise = torch.randn(2, 3) * 0.1
    loss = (x[index] @ w + b + noise).square().mean() * s
    loss.backward()
    for p in parameters:
        p.grad = None
print(index, noise, torch.rand(1))
""",
        1,
    ),
    "data picked at random": (
        """
torch.manual_seed(0)
for n in range(9):
    index = torch.randint(0, 3, (2,))
    batch = x[index]
    target = classes[index]
    loss = F.cross_entropy(batch @ w + b, target) * s
    loss.backward()
    for p in parameters:
        p.grad = None
print(index, batch, torch.rand(1))
""",
        1,
    ),
    "data that a function makes": (
        """
made = []
def draw(i):
    made.append(i)
    return x * i
for n in range(9):
    batch = draw(n)
    loss = (batch @ w).sum()
    loss.backward()
    w.grad = None
print(made)
""",
        1,
    ),
    "elements that values choose": (
        """
for n in range(9):
    loss = (x @ w)[x @ w > 0].sum() + w.flatten().dot(w.flatten()) * len(torch.where(b > 0)[0])
    loss.backward()
    with torch.no_grad():
        w -= 0.2 * w.grad
    w.grad = None
""",
        0,
    ),
    "shapes that values choose": (
        """
for n in range(9):
    chosen = torch.where(w > -0.4)[0]
    loss = (w * w).sum() * chosen.sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
print(chosen)
""",
        0,
    ),
    "data of a list": (
        """
pairs = [(x * k, classes) for k in range(9)]
for inputs, target in pairs:
    loss = F.cross_entropy(inputs @ w + b, target) * s
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.1 * p.grad
            p.grad = None
""",
        1,
    ),
    "two losses": (
        """
for n in range(7):
    y = torch.tanh(x @ w + b)
    first = y.square().mean()
    second = (s * v).sum() * 3
    first.backward()
    second.backward()
    with torch.no_grad():
        w *= 0.9
        s /= 1.5
        b += b.grad
    w.grad = None
    b.grad = None
    s.grad = None
""",
        1,
    ),
    "in a function, called again": (
        """
def train(count):
    for n in range(count):
        loss = (x @ w + b).square().mean() * s
        loss.backward()
        with torch.no_grad():
            for p in parameters:
                p -= 0.1 * p.grad
                p.grad = None
    return loss
print(train(7), train(7))
""",
        1,
    ),
    "an outer loop": (
        """
for epoch in range(3):
    for n in range(6):
        loss = (x @ w + b).square().mean() * s
        loss.backward()
        with torch.no_grad():
            for p in parameters:
                p -= 0.1 * p.grad
                p.grad = None
    print(epoch, loss)
""",
        2,
    ),
    "batches": (
        """
batches = [x[:2], x[1:], x[:1], x, x]
for batch in batches:
    loss = (batch @ w + b).square().mean() * s
    loss.backward()
    for p in parameters:
        p.grad = None
""",
        1,
    ),
    "a scalar's history": (
        """
for n in range(8):
    loss = (s * 3 - 1) ** 2
    loss.backward()
    with torch.no_grad():
        s -= 0.05 * s.grad
    s.grad = None
    print(n, s, s._version) if n % 3 == 0 else None
""",
        1,
    ),
    "hooks": (
        """
seen = []
for n in range(12):
    loss = (b * s).sum()
    loss.backward()
    b.grad = None
    s.grad = None
    if n == 5:
        handle = b.register_hook(lambda g: seen.append(g) or g * 2)
    if n == 7:
        handle.remove()
print(seen)
""",
        2,
    ),
    "functions of the program": (
        """
def layer(x, scale=2):
    \"\"\"A layer.\"\"\"
    hidden = F.linear(x, w.t(), b)
    return torch.tanh(hidden) * scale

def loss_of(out, target=v):
    return ((out - target) ** 2).mean() + penalty(s)

penalty = lambda t: 0.1 * t * t

for n in range(7):
    loss = loss_of(layer(x, 3))
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.1 * p.grad
            p.grad = None
""",
        1,
    ),
    "a function that changes": (
        """
scale = 2.
def f(x):
    return (x * scale).sum()
for n in range(20):
    loss = f(b)
    loss.backward()
    b.grad = None
    if n == 6:
        scale = 3.
    if n == 14:
        f = lambda x: x.square().sum()
print(loss)
""",
        1,
    ),
    "a function with effects": (
        """
calls = []
def f(x):
    calls.append(len(calls))
    return x.sum()
for n in range(7):
    loss = f(b)
    loss.backward()
    b.grad = None
print(calls)
""",
        0,
    ),
    "a function of a class": (
        """
class Times:
    def __init__(self):
        self.count = 0
    def mul(self, x):
        self.count += 1
        return x * self.count
    def __call__(self, x):
        return self.mul(x)
times = Times()
for n in range(7):
    loss = times.mul(b).sum() + times(b).sum()
    loss.backward()
    b.grad = None
print(loss, times.count)
""",
        1,
    ),
    "layers and an optimizer": (
        """
import torch.nn as nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3), nn.LogSoftmax(1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.NLLLoss()
for n in range(9):
    optimizer.zero_grad()
    loss = criterion(model(x), classes)
    loss.backward()
    optimizer.step()
print(loss, model[0].weight, model[0].weight.grad, model[2].bias._version)
""",
        1,
    ),
    "a module of the program": (
        """
import torch.nn as nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 4)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(4, 3))
        self.scale = nn.Parameter(torch.tensor([0.5, 1., 2.]))
        self.shift = 0.25
    def scaled(self, t):
        return t * self.scale + self.shift
    def forward(self, t):
        hidden = F.relu(self.first(t))
        return self.scaled(self.rest(hidden))
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
for n in range(12):
    loss = F.cross_entropy(net(x), classes)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if n == 6:
        print(n, loss, net.scale.grad)
        net.shift = 0.5
print(losses, net.scale, net.first.bias.grad, optimizer.state_dict())
""",
        2,
    ),
    "optimizers that remember": (
        """
one = torch.optim.SGD([w], lr=0.1, momentum=0.9, weight_decay=0.01)
two = torch.optim.RMSprop([{'params': [b]}, {'params': [s], 'lr': 0.001}], lr=0.01)
for n in range(9):
    one.zero_grad()
    two.zero_grad()
    loss = (x @ w + b).square().mean() * s
    loss.backward()
    one.step()
    two.step()
print(one.state_dict(), two.state_dict())
""",
        1,
    ),
    "a rate that changes": (
        """
optimizer = torch.optim.SGD(parameters, lr=0.1)
for n in range(12):
    optimizer.zero_grad()
    loss = (x @ w + b).square().mean() * s
    loss.backward()
    optimizer.step()
    if n == 5:
        for group in optimizer.param_groups:
            group['lr'] = 0.01
print(optimizer.param_groups[0]['lr'])
""",
        1,
    ),
    "a parameter that gets no gradient": (
        """
optimizer = torch.optim.SGD(parameters, lr=0.1)
for n in range(9):
    optimizer.zero_grad()
    loss = (x @ w).square().mean() * s
    loss.backward()
    optimizer.step()
print(b.grad)
""",
        1,
    ),
    "dropout in a module": (
        """
import torch.nn as nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 4), nn.Dropout(0.5), nn.Linear(4, 3))
for n in range(9):
    loss = model(x).square().mean()
    loss.backward()
    model.zero_grad()
print(loss)
""",
        1,
    ),
    "a module that remembers": (
        """
import torch.nn as nn
class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0
    def forward(self, t):
        self.count += 1
        return t * self.count
counting = Counting()
for n in range(9):
    loss = counting(b).sum()
    loss.backward()
    b.grad = None
print(loss, counting.count)
""",
        1,
    ),
    "a class that changes": (
        """
import torch.nn as nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 3)
    def forward(self, t):
        return self.layer(t)
def twice(self, t):
    return self.layer(t) * 2
net = Net()
for n in range(12):
    net.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    if n == 6:
        Net.forward = twice
print(loss)
""",
        2,
    ),
    "names that are deleted": (
        """
extra = torch.ones(3)
for n in range(9):
    loss = (b * extra).sum()
    loss.backward()
    b.grad = None
    if n == 8:
        del extra
print(loss)
""",
        1,
    ),
    "two names of one tensor": (
        """
for n in range(12):
    if n > 7:
        print(out is hidden, same is w, same.grad is None, hidden)
    hidden = torch.tanh(x @ w)
    out = hidden
    same = w
    loss = out.sum()
    w.grad = None
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
""",
        1,
    ),
    "hooks of modules and optimizers": (
        """
import torch.nn as nn
torch.manual_seed(0)
layer = nn.Linear(2, 3)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
seen = []
for n in range(16):
    optimizer.zero_grad()
    loss = layer(x).square().mean()
    loss.backward()
    optimizer.step()
    if n == 6:
        layer.register_forward_hook(lambda module, given, out: seen.append(out.shape))
    if n == 10:
        optimizer.register_step_post_hook(lambda *_: seen.append(n))
print(seen, loss)
""",
        2,
    ),
    "an update that cannot be written": (
        """
for n in range(7):
    loss = (w * w * s).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad * (w.grad > -1)
        s -= 0.1 * s.grad
    w.grad = None
    s.grad = None
print(w._version)
""",
        1,
    ),
    "numbers that come from shapes": (
        """
for n in range(7):
    rows = x.shape[0]
    columns = w.size(1)
    loss = (x @ w).sum() / (rows * columns) + b.reshape(1, columns).sum()
    loss.backward()
    w.grad = None
    b.grad = None
print(rows, columns)
""",
        1,
    ),
    "an integer that grows": (
        """
count = 1
for n in range(7):
    count = count * 3
    loss = b.sum()
    loss.backward()
    b.grad = None
print(count)
""",
        1,
    ),
    "enumerated data": (
        """
pairs = [(x * k, classes) for k in range(9)]
for n, (inputs, target) in enumerate(pairs):
    loss = F.cross_entropy(inputs @ w + b, target) * s
    loss.backward()
    for p in parameters:
        p.grad = None
    if n % 4 == 3:
        print(n, loss)
print(n, inputs)
""",
        1,
    ),
    "zipped data": (
        """
images = [x * k for k in range(9)]
labels = [classes] * 8
for inputs, target in zip(images, labels):
    loss = F.cross_entropy(inputs @ w + b, target) * s
    loss.backward()
    for p in parameters:
        p.grad = None
print(inputs, loss)
""",
        1,
    ),
    "data of a generator": (
        """
for inputs in (x * k for k in range(9)):
    loss = (inputs @ w + b).sum() * s
    loss.backward()
    for p in parameters:
        p.grad = None
print(inputs, loss)
""",
        1,
    ),
    "a zip of the program's": (
        """
def zip(a, b):
    return [(a[0], b[0])] * 7
for inputs, target in zip([x], [classes]):
    loss = F.cross_entropy(inputs @ w + b, target) * s
    loss.backward()
    for p in parameters:
        p.grad = None
print(inputs, loss)
""",
        1,
    ),
    "a list that grows": (
        """
items = [x] * 9
for n, inputs in enumerate(items):
    loss = (inputs @ w + b).sum() * s
    loss.backward()
    for p in parameters:
        p.grad = None
    if n % 4 == 3 and n < 9:
        items.append(x * 2)
print(n, inputs, loss)
""",
        1,
    ),
    "updates of data": (
        """
for n in range(9):
    loss = (x @ w + b).square().mean() * s
    loss.backward()
    w.data -= 0.1 * w.grad
    for p in (b, s):
        p.data.sub_(p.grad * 0.1)
    w.grad = None
    b.grad = None
    s.grad.zero_()
print(w._version, b._version)
""",
        1,
    ),
    "updates by methods": (
        """
for n in range(9):
    loss = (x @ w + b).square().mean() * s
    loss.backward()
    with torch.no_grad():
        w.sub_(0.1 * w.grad)
        b.add_(-0.1 * b.grad)
        s.mul_(0.9)
    for p in parameters:
        p.grad = None
print(w._version, b._version)
""",
        1,
    ),
    "a write that is recorded": (
        """
for n in range(7):
    y = b * 2
    y.mul_(3.)
    loss = y.sum()
    loss.backward()
    b.grad = None
print(loss)
""",
        1,
    ),
    "a sum of losses that is written to": (
        """
for n in range(9):
    loss = 0
    for row, goal in zip(x, classes):
        loss += F.cross_entropy((row @ w + b).unsqueeze(0) * s, goal.unsqueeze(0))
    loss *= 0.5
    losses.append(loss.item())
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.1 * p.grad
            p.grad = None
print(loss, loss._version)
""",
        1,
    ),
    "a parameter taken apart by a call": (
        """
def model(x, slope, shift, last):
    return slope * x + shift * last
for n in range(16):
    if b.grad is not None:
        b.grad.zero_()
    loss = (model(v, *b) - v * 2).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        b -= 0.1 * b.grad
    if n % 3 == 1:
        losses.append(loss.item())
print(loss, losses)
""",
        2,
    ),
    "what a call draws from an iterator": (
        """
def total(first, second, *rest):
    return first * second + sum(rest)
for n in range(8):
    loss = total(*map(lambda p: p * 2, b)) + total(*(p + 1 for p in b)) * s
    loss.backward()
    b.grad = s.grad = None
print(loss)
""",
        1,
    ),
    "numbers that are in a collection": (
        """
marks, names = {3, 5, 10}, {4: "a", 9: "b"}
for n in range(12):
    total += (x * n).sum().item() * (n in {2, 3, 11}) + (n not in (1, 2)) - (n in [0, 7])
    total += (n in marks) + (n in names) + (str(n) in "10, 11") + (n % 4 in range(2))
print(total)
""",
        1,
    ),
    "a large array that is only read": (
        """
data = torch.arange(1_100_000) % 5
for n in range(9):
    loss = (F.one_hot(data[n * 10:n * 10 + 3], 5)[:, :3].float() * b).sum() * s
    loss.backward()
    b.grad = s.grad = None
print(loss)
""",
        1,
    ),
    "a part at a place that varies, written to": (
        """
table = torch.zeros(12, 3)
for n in range(9):
    part = table[n:n + 2]
    part += v
    row = table[n]
    row *= 2.
print(table)
""",
        0,
    ),
    "rows between places that vary": (
        """
table = torch.arange(24.).reshape(12, 2).t()
places = torch.tensor([3, 0, 5, 2, 1, 4, 0, 3, 6])
for n in range(9):
    rows = [table.t()[at:at + 2] for at in places[n:n + 2]]
    rows += [x[-2:n - 9 + 3], table[:, n:n + 2].t()]
    total += torch.cat(rows).sum().item()
print(total, rows)
""",
        1,
    ),
    "numbers that are put where a mask is true": (
        """
table, rate = torch.zeros(3), 0.5
for n in range(9):
    above = v * (n % 4 - 1.5)
    slope = above * 2
    slope[above < 0] = 0
    slope[slope > 1] = n * rate
    table[above > 0.5] = 2
    total += slope.sum().item()
print(total, slope, slope._version, table, table._version)
""",
        1,
    ),
    "texts that `%` writes": (
        """
for n in range(9):
    loss = ((v * s * n) ** 2).sum()
    if n % 3 == 1:
        print('%d: %.3f %s' % (n, loss.item(), n % 2), '%5.2f|' % loss, '%s' % [n])
    loss.backward()
    s.grad = None
print('%d' % n)
""",
        2,
    ),
    "inference mode": (
        """
for n in range(9):
    loss = ((v * s) ** 2).sum()
    loss.backward()
    with torch.no_grad():
        s -= 0.01 * s.grad
        s.grad = None
    with torch.inference_mode():
        guess = v * s
        part = guess[1:]
        error = (guess - 1).abs().mean()
    losses.append(error.item())
print(losses, error, error.is_inference(), guess.is_inference(), part.is_inference())
del guess, part, error
""",
        1,
    ),
    "lists of another list that names go through": (
        """
tracks, notes = [[], [1.5]], {"last": [0]}
n = 0
while n < 9:
    for part, track in zip((w, b), tracks):
        loss = (part * part).sum()
        loss.backward()
        part.grad = None
        track.append(loss.item())
    other = notes["last"]
    n += 1
track.append("end")
other.append(n)
print(tracks, notes, track is tracks[1])
""",
        1,
    ),
    "a part that a function cut, written to": (
        """
table = torch.zeros(12)
for n in range(9):
    torch.narrow(table, 0, n, 3).add_(v)
print(table)
""",
        0,
    ),
    "a tensor of a list at a place that varies, written to": (
        """
tables = [torch.zeros(3), torch.ones(3)]
for n in range(9):
    table = tables[n % 2]
    table += v
print(tables)
""",
        0,
    ),
    "elements that are set at a place that varies": (
        """
table, means = torch.zeros(12, 2), torch.zeros(3)
for n in range(9):
    loss = (x * (n + 1)).mean()
    means[n % 3] = loss.item()
    means[n % 2 - 3] = n
    table[n] = x[0]
    table[n + 1] = x[1] * loss
print(table, table._version, means, means.sum())
""",
        1,
    ),
    "functions of the program that are called again, with other tensors": (
        """
def train(rate, kind):
    u = torch.zeros(3, requires_grad=True)
    kept = torch.zeros(9)
    for n in range(9):
        loss = ((u - v) ** 2).sum() if kind == "square" else (u - v).abs().sum()
        loss.backward()
        kept[n] = loss.item()
        with torch.no_grad():
            u -= rate * u.grad
            u.grad = None
    return kept
for rate in (0.1, 0.2):
    for kind in ("square", "absolute"):
        losses.append(train(rate, kind))
print(losses)
""",
        3,
    ),
    "a carried tensor": (
        """
m = torch.zeros(3)
for n in range(7):
    loss = (b * v).sum()
    loss.backward()
    m = 0.9 * m + b.grad
    b.grad = None
print(m)
""",
        1,
    ),
    "the number of the round": (
        """
for n in range(7):
    loss = (b * n).sum()
    loss.backward()
print(b.grad)
""",
        1,
    ),
    "a number that changes": (
        """
for n in range(7):
    lr = lr * 0.9
    loss = (b * lr).sum()
    loss.backward()
    b.grad = None
print(lr, loss)
""",
        1,
    ),
    "a leaf of another dtype": (
        """
d = torch.tensor([1., 2., 3.], dtype=torch.float64, requires_grad=True)
for n in range(7):
    loss = (d * d).sum() / 3
    loss.backward()
    with torch.no_grad():
        d -= 0.1 * d.grad
    d.grad = None
print(d)
""",
        1,
    ),
    "dtypes that meet": (
        """
d = torch.tensor([1., 2., 3.], dtype=torch.float64, requires_grad=True)
for n in range(7):
    loss = (d * b).sum()
    loss.backward()
    d.grad = None
    b.grad = None
print(loss)
""",
        1,
    ),
    "a loss with arrays of its own": (
        """
for n in range(9):
    each = classes[torch.randperm(3)]
    loss = F.cross_entropy(x @ w, each, label_smoothing=0.1)
    scores = x @ w * s
    loss += F.cross_entropy(scores, each, weight=v.abs(), ignore_index=1, label_smoothing=0.2)
    loss += F.cross_entropy(x + s, (each > 0).long(), label_smoothing=0.5, reduction='sum')
    loss.backward()
    total += loss.item()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
    s.grad = None
print(total)
""",
        1,
    ),
    "a graph from outside": (
        """
y = b * 2
for n in range(7):
    loss = (y * s).sum()
    loss.backward(retain_graph=True)
print(b.grad)
""",
        0,
    ),
    "a view of a parameter": (
        """
rows = w.detach()
for n in range(7):
    loss = (w * s).square().sum() + rows.sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
    s.grad = None
print(rows, rows._version)
""",
        1,
    ),
    "one that is left at a round": (
        """
for n in range(9):
    loss = (b * s).sum()
    loss.backward()
    b.grad = None
    s.grad = None
    if n == 5:
        break
print(n)
""",
        1,
    ),
    "one that is left when it is good enough": (
        """
for n in range(30):
    loss = ((x @ w + b) * s).square().mean()
    if loss.item() < 0.05:
        print("enough", n, loss)
        break
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.03 * p.grad
            p.grad = None
else:
    print("never")
""",
        1,
    ),
    "one that is left after an update": (
        """
for n in range(30):
    loss = ((x @ w + b) * s).square().mean()
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.03 * p.grad
            p.grad = None
    now = loss.item()
    losses.append(now)
    total += now
    if now < 0.05 or total > 100:
        break
print(n, loss, now, total)
""",
        1,
    ),
    "one that is left when little changes": (
        """
former = 0.
for n in range(40):
    loss = ((x @ w + b) * s).square().mean()
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.03 * p.grad
            p.grad = None
    if abs(former - loss.item()) < 0.02:
        break
    former = loss.item()
print(n, loss, former)
""",
        1,
    ),
    "one that is left when a gradient is small": (
        """
for n in range(40):
    loss = ((x @ w + b) * s).square().mean()
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.03 * p.grad
    if w.grad.norm() < 0.05 and not torch.isnan(loss):
        break
    for p in parameters:
        p.grad = None
print(n, loss, w.grad)
""",
        1,
    ),
    "rounds that stop half-way": (
        """
given = [x] * 5 + [x * 9, x, x / 0] + [x] * 9
for n, each in enumerate(given):
    loss = ((each @ w + b) * s).square().mean()
    if torch.isnan(loss) or loss > 20:
        print("left out", n)
        continue
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.01 * p.grad
            p.grad = None
print(loss)
""",
        1,
    ),
    "a function that returns from a round": (
        """
def solve(enough):
    for n in range(30):
        loss = ((x @ w + b) * s).square().mean()
        loss.backward()
        with torch.no_grad():
            for p in parameters:
                p -= 0.03 * p.grad
                p.grad = None
        if loss < enough:
            return n, loss
print(solve(0.1), solve(0.001), solve(-1.))
""",
        2,
    ),
    "the best so far": (
        """
best = 1e9
for n in range(30):
    loss = ((x @ w + b) * s).square().mean()
    if loss.item() < best:
        best = loss.item()
        kept = w.detach().clone()
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.03 * p.grad
            p.grad = None
print(best, kept)
""",
        1,
    ),
    "a departure that changes what is taken for constant": (
        """
rate = 0.03
for n in range(30):
    loss = ((x @ w + b) * s).square().mean()
    if loss < 0.1 and rate > 0.02:
        rate = 0.001
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= rate * p.grad
            p.grad = None
print(loss, rate)
""",
        2,
    ),
    "while there are rounds left": (
        """
n = 0
while n < 30:
    loss = ((x @ w + b) * s).square().mean()
    if n % 8 == 7:
        print(n, loss, w.grad)
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.03 * p.grad
            p.grad.zero_()
    n += 1
else:
    print("ended", n, loss, loss.grad_fn, w.grad)
""",
        2,
    ),
    "while the loss is large": (
        """
size, n = 10., 0
while size > 0.05 and n < 100:
    loss = ((x @ w + b) * s).square().mean()
    for p in parameters:
        p.grad = None
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.03 * p.grad
    size = loss.item()
    n += 1
print(n, loss, size, w.grad, b.grad)
""",
        1,
    ),
    "for ever": (
        """
while True:
    loss = ((x @ w + b) * s).square().mean()
    if loss < 0.05:
        break
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.03 * p.grad
            p.grad = None
print(loss)
""",
        1,
    ),
    "while a tensor is large": (
        """
loss = torch.tensor(9.)
while loss > 0.05:
    loss = ((x @ w + b) * s).square().mean()
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.03 * p.grad
            p.grad = None
print(loss)
""",
        0,
    ),
    "gradients of gradients": (
        """
z = torch.linspace(0, 1, 5).reshape(5, 1).requires_grad_()
def net(z):
    return torch.tanh(z @ w[:1] + b).sum(1, keepdim=True) * s
for n in range(12):
    u = net(z)
    du, = torch.autograd.grad(u, z, torch.ones_like(u), create_graph=True)
    d2u = torch.autograd.grad(du, z, grad_outputs=torch.ones_like(du), create_graph=True)[0]
    loss = ((d2u + u) ** 2).mean() + (du[0] - 1).square().sum()
    if n % 5 == 4:
        print(n, loss, du, z.grad)
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.01 * p.grad
            p.grad = None
        z.grad = None
print(loss, d2u, w, b, s)
""",
        1,
    ),
    "a penalty on a gradient": (
        """
optimizer = torch.optim.Adam(parameters, lr=0.01)
mixed = x.clone().requires_grad_()
for n in range(12):
    optimizer.zero_grad()
    out = torch.relu(mixed @ w + b) * s
    slope, = torch.autograd.grad(out.sum() * 2, mixed, create_graph=True)
    loss = out.mean() + ((slope.norm(2, 1) - 1) ** 2).mean()
    loss.backward()
    optimizer.step()
print(loss, slope, mixed.grad, mixed.grad._version, optimizer.state_dict())
""",
        1,
    ),
    "a step through a step": (
        """
for n in range(12):
    inner = ((x @ w + b) ** 2).mean() * s
    gw, gb = torch.autograd.grad(inner, [w, b], create_graph=True)
    loss = ((x @ (w - 0.1 * gw) + b - lr * gb) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.03 * p.grad
            p.grad = None
print(loss, gw, gb)
""",
        1,
    ),
    "gradients whose graph stays": (
        """
for n in range(9):
    loss = ((x @ w + b) ** 3).mean() * s
    g, = torch.autograd.grad(loss, b, create_graph=True)
    b.data -= 0.01 * g
print(torch.autograd.grad(g.sum(), b))
""",
        1,
    ),
    "as many random numbers as the iteration's number says": (
        """
torch.manual_seed(0)
for n in range(30):
    noise = torch.randn(2 + n // 10)
    loss = (b * s).sum() + noise.sum()
    loss.backward()
    b.grad = None
    s.grad = None
print(loss, torch.rand(2))
""",
        3,
    ),
    "a gradient that some iterations look at as they find it": (
        """
optimizer = torch.optim.Adam(parameters)
for n in range(30):
    if n % 4 < 2:
        print(total, w.grad)
    loss = ((x @ w + b) * s).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        2,
    ),
    "gradients whose graph stays and is looked at": (
        """
for n in range(9):
    loss = ((x @ w + b) ** 3).mean() * s
    g, = torch.autograd.grad(loss, b, create_graph=True)
    b.data -= 0.01 * g
    if n % 3 == 2:
        print(torch.autograd.grad(g.sum(), b))
""",
        1,
    ),
    "a product's gradient goes by its values": (
        """
z = torch.tensor([1., 2., 3.], requires_grad=True)
given = [v] * 5 + [v * 0] + [v] * 3
for each in given:
    y = (z * each).prod() + (z * z).sum()
    g, = torch.autograd.grad(y, z, create_graph=True)
    loss = (g * g).sum()
    loss.backward()
    z.data -= 0.001 * z.grad
    z.grad = None
print(z)
""",
        0,
    ),
    "the first of some gradients": (
        """
for n in range(9):
    loss = ((x @ w + b) ** 3).mean() * s
    g = torch.autograd.grad(loss, [b, w, s])[0]
    b.data -= 0.01 * g
print(loss, g)
""",
        1,
    ),
    "classes that a report changes": (
        """
try:
    for n in range(12):
        loss = F.cross_entropy(x @ w + b, classes) * s
        loss.backward()
        with torch.no_grad():
            for p in parameters:
                p -= 0.03 * p.grad
                p.grad = None
        if n == 6:
            classes[1] = -2
except Exception as error:
    print(n, error)
""",
        1,
    ),
    "a number that a report changes": (
        """
slope = torch.tensor(0.1)
for n in range(12):
    loss = F.leaky_relu(x @ w + b, slope).sum() * s
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.03 * p.grad
            p.grad = None
    if n == 6:
        slope.data += 0.3
print(loss, slope)
""",
        2,
    ),
    "a number that the rounds change": (
        """
slope = torch.tensor(0.1)
for n in range(12):
    loss = F.leaky_relu(x @ w + b, slope).sum() * s
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.03 * p.grad
            p.grad = None
        slope += 0.01
print(loss, slope)
""",
        0,
    ),
    "a test of what was updated": (
        """
for n in range(9):
    loss = ((x @ w + b) * s).square().mean()
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.03 * p.grad
            p.grad = None
    if b.sum() > 5:
        break
print(loss)
""",
        1,
    ),
    "a test of what was updated, which goes both ways": (
        """
optimizer = torch.optim.Adam(parameters, lr=0.05)
losses, scaled = [], 0
for n in range(60):
    optimizer.zero_grad()
    loss = ((x @ w + b) * s + 0.1 * torch.randn(3)).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if (x @ w + b).abs().max() < 0.8:
        scaled += 1
        with torch.no_grad():
            b.mul_(4)
print(losses, scaled, w, b, w.grad, optimizer.state[w]['exp_avg'], w._version)
""",
        1,
    ),
    "an error over what was updated": (
        """
optimizer = torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
seen = []
try:
    for n in range(60):
        optimizer.zero_grad()
        loss = ((x @ w + b) * s).sin().mean()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
        other = F.binary_cross_entropy(0.2 + 0.1 * n * torch.sigmoid(b), torch.ones(3))
except RuntimeError as error:
    print(error, n, seen, other, w, b.grad, optimizer.state[w])
""",
        1,
    ),
    "two ways": (
        """
for n in range(9):
    loss = (b * s).sum() if n % 2 else (b - s).sum()
    loss.backward()
    b.grad = None
    s.grad = None
print(loss)
""",
        2,
    ),
    "randomness": (
        """
torch.manual_seed(0)
for n in range(7):
    loss = (b * torch.randn(3)).sum()
    loss.backward()
    b.grad = None
print(loss)
""",
        1,
    ),
    "dropout": (
        """
torch.manual_seed(0)
for n in range(7):
    loss = F.dropout(b * s, 0.5).sum()
    loss.backward()
    b.grad = None
    s.grad = None
print(loss)
""",
        1,
    ),
}


OPTIMIZERS = [
    "SGD(parameters, lr=0.1)",
    "SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)",
    "SGD(parameters, lr=0.1, momentum=0.5, dampening=0.1)",
    "Adam(parameters, lr=0.01)",
    "Adam(parameters, lr=0.01, amsgrad=True, weight_decay=0.1)",
    "AdamW(parameters, lr=0.01)",
    "Adamax(parameters, lr=0.01)",
    "NAdam(parameters, lr=0.01)",
    "RAdam(parameters, lr=0.01)",
    "Adagrad(parameters, lr=0.01)",
    "Adadelta(parameters, lr=0.5)",
    "RMSprop(parameters, lr=0.01, momentum=0.5, centered=True)",
    "Rprop(parameters, lr=0.01)",
    "ASGD(parameters, lr=0.01)",
]

# Layers from (N, 2) to (N, 3), and what they end with.
LAYERS = [
    "nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 3), nn.Softplus()",
    "nn.Linear(2, 3, bias=False), nn.LayerNorm(3), nn.GELU(), nn.PReLU()",
    "nn.Linear(2, 6), nn.GroupNorm(2, 6), nn.SiLU(), nn.Linear(6, 3), nn.LeakyReLU(0.3)",
    "nn.Linear(2, 16), nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 3, 2), nn.ELU(), nn.MaxPool2d(3),"
    " nn.Flatten()",
    "nn.Linear(2, 8), nn.Unflatten(1, (2, 4)), nn.Conv1d(2, 3, 2), nn.AvgPool1d(3), nn.Flatten()",
    "nn.Linear(2, 3), nn.Hardtanh(), nn.Identity(), nn.Softmax(1), nn.LogSigmoid()",
    "nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Tanh(), nn.Sigmoid())), nn.Mish()",
]

# What they are compared with, and how.
CRITERIA = [
    ("nn.MSELoss()", "x @ torch.ones(2, 3)"),
    ("nn.CrossEntropyLoss()", "classes"),
    ("nn.SmoothL1Loss(reduction='sum')", "torch.ones(3, 3)"),
    ("nn.BCEWithLogitsLoss()", "torch.ones(3, 3)"),
    ("nn.NLLLoss()", "classes"),
    ("nn.HuberLoss()", "torch.zeros(3, 3)"),
    ("nn.L1Loss()", "torch.zeros(3, 3)"),
]


# What rounds are given, what the seventh of them is given, and a loss that looks at its values.
LOOKS = [
    ("classes", "classes - 3", "F.cross_entropy(x @ w, each)"),
    ("classes", "classes - 3", "F.nll_loss((x @ w).log_softmax(1), each)"),
    ("classes", "classes - 3", "(x @ w).index_select(1, each).sum()"),
    ("classes", "classes - 3", "(x @ w)[each].sum()"),
    ("classes", "classes - 3", "(x @ w)[:2, each].exp().sum()"),
    ("classes", "classes - 3", "(x @ w)[each[:2], each[1:]].sum()"),
    ("classes", "classes + 3", "(x @ w)[each].sum()"),
    ("classes[:, None]", "classes[:, None] - 3", "(x @ w).gather(1, each).sum()"),
    ("torch.tensor(1.)", "torch.tensor(3.)", "F.binary_cross_entropy(each * b.sigmoid(), v * v)"),
    ("torch.tensor(0.1)", "torch.tensor(0.3)", "F.leaky_relu(x @ w, each).sum()"),
    ("torch.tensor(0.1)", "torch.tensor(0.3)", "(x @ w).clamp(-1., each).sum()"),
    ("torch.tensor(0.1)", "torch.tensor(0.3)", "(x @ w).add(1, alpha=each).sum()"),
    ("torch.tensor(1)", "torch.tensor(0)", "(x @ w).narrow(1, each, 1).sum()"),
    ("torch.tensor(1)", "torch.tensor(0)", "(x @ w)[:, each].sum()"),
    ("torch.tensor(1)", "torch.tensor(0)", "(x @ w)[each:].sum()"),
    ("torch.tensor(1)", "torch.tensor(0)", "(x @ w).select(0, each).sum()"),
    ("torch.tensor(1)", "torch.tensor(0)", "(x @ w).sum(each).sum()"),
    ("torch.tensor(2)", "torch.tensor(0)", "((x @ w).sum(1) ** each).sum()"),
]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds are traced as early as they can be, and none for what it takes."""
    monkeypatch.setattr(blocks, "_MANY", 2)
    monkeypatch.setattr(blocks, "may_pay", lambda *_: False)
    monkeypatch.setattr(hot, "HOT_AFTER", 1)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The iterations that were compiled and found to do the same as interpreted ones."""
    found = []
    verify = hot.HotLoop._verify

    def listen(self: hot.HotLoop, path: CompiledIteration, variables: Any) -> bool:
        ran = verify(self, path, variables)
        assert path.verified or not ran, "a compiled iteration differs from an interpreted one"
        if path.verified:
            found.append(path)
        return ran

    monkeypatch.setattr(hot.HotLoop, "_verify", listen)
    return found


def in_both_ways(program: str, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Outcome:
    """Run a program with and without tracing; what it leaves must be the same."""
    outcome = run(SETUP + program, **settings)
    with monkeypatch.context() as context:
        context.setattr(blocks, "_MANY", 1 << 60)
        ordinary = run(SETUP + program, **settings)
    assert _shown(outcome) == _shown(ordinary), program
    return outcome


def _place(error: GradcliError) -> Any:
    return error.span and (error.span.start, error.span.end)


def _shown(outcome: Outcome) -> dict[str, Any]:
    """All that a program can see of what another one left."""
    shown: dict[str, Any] = {
        "printed": outcome.masked,
        "error": outcome.error and (outcome.error.message, _place(outcome.error)),
        "counts": (outcome.session.state.sequence_nr, outcome.session.state.steps.left),
    }
    for name, value in outcome.session.values.items():
        if isinstance(value, Tensor):
            nodes = [] if value.grad_fn is None else list(reachable([value.grad_fn]))
            shown[name] = (
                value.array.tobytes(),
                repr(value),
                value.version,
                value.name,
                repr(value.grad),
                [node.node_name for node in nodes],
            )
        elif isinstance(value, (int, float, list)):
            shown[name] = repr(value)
    return shown


@pytest.mark.parametrize("loss", LOSSES)
def test_losses(loss: str, written: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    in_both_ways(TRAINING.format(loss), monkeypatch)
    assert len(written) == 1


@pytest.mark.parametrize("loss", LOSSES[::3])
def test_a_long_round_is_written_in_pieces(
    loss: str, written: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codegen, "_PIECE", 2)
    in_both_ways(TRAINING.format(loss), monkeypatch)
    assert len(written) == 1
    assert "piece1" in written[0].namespace


@pytest.mark.parametrize("name", sampled(PROGRAMS, 2))
def test_programs(name: str, written: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    program, count = PROGRAMS[name]
    outcome = in_both_ways(program, monkeypatch)
    assert outcome.error is None
    assert len(written) == count


@pytest.mark.parametrize("program", [random_training, random_loop])
@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 6), *(pytest.param(first, 18, marks=pytest.mark.sweep) for first in range(6, 60, 18))],
)
def test_loops_at_random(
    program: Callable[[int], str],
    first: int,
    count: int,
    written: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Most of the programs are compiled."""
    for seed in range(first, first + count):
        in_both_ways(program(seed), monkeypatch)
    assert len(written) > count // 2


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers(optimizer: str, written: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    program = f"""
optimizer = torch.optim.{optimizer}
for n in range(12):
    loss = (torch.tanh(x @ w + b) ** 2).mean() * s
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(optimizer.state_dict())
"""
    in_both_ways(program, monkeypatch)
    assert len(written) == 1


@pytest.mark.parametrize("number", range(len(LAYERS)))
def test_layers(number: int, written: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    layers, (criterion, target) = LAYERS[number], CRITERIA[number]
    program = f"""
import torch.nn as nn
torch.manual_seed(3)
model = nn.Sequential({layers})
criterion = {criterion}
target = {target}
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for n in range(9):
    out = model(x)
    loss = criterion(out, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(list(model.parameters()), [p.grad for p in model.parameters()], optimizer.state_dict())
"""
    in_both_ways(program, monkeypatch)
    assert len(written) == 1


@pytest.mark.parametrize(("usual", "odd", "loss"), LOOKS)
def test_values_that_are_looked_at(
    usual: str, odd: str, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a function checks, or takes a number from, may be another in a later round."""
    given = f"[{usual}] * 6 + [{odd}] + [{usual}] * 2"
    program = TRAINING.replace("n in range(9)", f"each in {given}").format(
        f"{loss} + s * b.sum() * w.sum()"
    )
    outcome = in_both_ways(program, monkeypatch)
    assert outcome.error is None or outcome.error.code in ("E204", "E302")


@pytest.mark.parametrize(("place", "count"), [("after", 1), ("before", 1)])
def test_a_check_and_an_effect(
    place: str, count: int, written: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An iteration that fails is run again, so a check stands ahead of all effects."""
    effect = "    with torch.no_grad():\n        w += 0.1\n"
    loss = "    loss = F.cross_entropy(x @ w.detach(), each)\n"
    body = effect + loss if place == "before" else loss + effect
    given = "[classes] * 6 + [classes - 3] + [classes]"
    in_both_ways(f"for each in {given}:\n{body}", monkeypatch)
    assert len(written) == count


def test_an_error_in_a_later_round(written: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
pairs = [(x * k, classes + k // 7) for k in range(9)]
for inputs, target in pairs:
    out = inputs @ w
    loss = F.cross_entropy(out, target)
    loss.backward()
    w.grad = None
"""
    outcome = in_both_ways(program, monkeypatch)
    assert len(written) == 1
    assert outcome.error is not None
    assert outcome.error.span is not None
    assert outcome.error.span.text == "F.cross_entropy(out, target)"


def test_an_error_that_is_caught(written: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
optimizer = torch.optim.SGD([w], lr=0.1)
count = 0
try:
    for n in range(9):
        optimizer.zero_grad()
        batch = x[n // 7 * 3:][:3]
        out = batch @ w
        count += 1
        loss = F.cross_entropy(out, classes)
        loss.backward()
        optimizer.step()
except Exception as error:
    print(error, loss, out, w.grad, w._version)
"""
    in_both_ways(program, monkeypatch)
    assert len(written) == 1


@pytest.mark.parametrize("rounds", [9, 80])
def test_how_often_a_loop_is_compiled(
    rounds: int, written: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once: the compiled iteration is given the variables of each call."""
    program = f"""
def train():
    for n in range({rounds}):
        loss = (x @ w + b).square().mean() * s
        loss.backward()
        with torch.no_grad():
            for p in parameters:
                p -= 0.01 * p.grad
                p.grad = None
    return loss
print([train() for _ in range(7)])
"""
    in_both_ways(program, monkeypatch)
    assert len({id(path) for path in written}) == 1


@pytest.mark.parametrize("head", ["for n in range(1000):", "n = 0\nwhile n < 1000:\n    n += 1"])
@pytest.mark.parametrize("end", ["b.grad = None", "for p in parameters: p.grad = None"])
@pytest.mark.parametrize("steps", [90, 91, 92, 93])
def test_the_limit_of_steps(
    head: str, end: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"""
{head}
    loss = (b * b).sum()
    loss.backward()
    b.data -= 0.1 * b.grad
    {end}
"""
    outcome = in_both_ways(program, monkeypatch, limits=Limits(steps=steps))
    assert outcome.error is not None
    assert outcome.error.code == "E605"


def test_a_loop_inside_one_that_cannot_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts at the outer loop leave the inner one compiled."""
    program = """
for n in range(12):
    globals()
    for each in range(20):
        loss = ((x @ w + b) ** 2).mean() * s
        loss.backward()
        with torch.no_grad():
            for p in parameters:
                p -= 0.001 * p.grad
                p.grad = None
print(loss)
"""
    monkeypatch.setattr(blocks, "_MANY", 8)
    outcome = in_both_ways(program, monkeypatch)
    found = outcome.session.interpreter.hot_loops.values()
    outer, inner, _ = sorted(found, key=lambda each: each.node.span.start)
    assert outer.compiled_count == 0
    assert outer.broken is not None
    assert inner.compiled_count > 200


def test_what_went_through_a_graph_that_is_gone_says_so() -> None:
    """An error ends a loop, and a later statement calls what a compiled iteration made."""
    session = Session(lambda event: None)
    program = """
import torch
x = torch.ones(3)
for n in range(100):
    rest = torch.tensor(7) // torch.tensor(90 - n)
    out, pull = torch.func.vjp(torch.tanh, x)
    x = x - 0.01 * pull(out)[0]
"""
    errors = []
    for each in (program, "pull(out)"):
        with pytest.raises(GradcliError) as caught:
            list(session.run(each, "program"))
        errors.append(caught.value)
    assert [each.code for each in errors] == ["E206", "E403"]
    assert errors[1].help == "run the program with --no-compiled-loops"


def test_an_interruption_among_effects_that_are_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It came while an iteration ran to be compared, which then failed: it is not lost."""

    def execute(path: CompiledIteration) -> Any:
        active.state.is_in_effects = True
        active.state.interruption = KeyboardInterrupt()
        raise ValueError

    monkeypatch.setattr(CompiledIteration, "execute", execute)
    with pytest.raises(KeyboardInterrupt):
        run("w = ones(2)\nfor step in range(500):\n    w = w * 0.99")
