"""Training loops put together at random, of the constructs that programs put around their steps:
functions, classes, counters, lists, output, branches, modes, schedules, random numbers.
"""

from __future__ import annotations

from random import Random

HEAD = """
import math
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed({seed})
data = torch.randn(24, 4)
target = torch.randn(24, 3)
labels = torch.arange(24) % 3
scale = torch.tensor([0.5, 1.5, 2.])
history, seen, record = [], [], {{"loss": 0.0, "count": 0}}
best, wait, total, count, rate, average = 1e9, 0, 0.0, 0, 0.1, None
ema = torch.zeros(3)
marks, parts, tracks = torch.zeros(8), [torch.zeros(3), torch.ones(3)], [[], [0.5]]
"""

MODELS = [
    "model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))\n",
    "model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3))\n",
    "model = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.3), nn.Linear(6, 3))\n",
    """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 5), nn.Linear(5, 5)])
        self.head = nn.Linear(5, 3)
        self.calls = 0
        self.scale = 0.5
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = torch.relu(layer(x)) if i else torch.tanh(layer(x))
        self.calls += 1
        return self.head(x) * self.scale
model = Net()
""",
    """
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        gate = torch.sigmoid(beta * x)
        ctx.save_for_backward(x, gate)
        ctx.beta = beta
        return x * gate
    @staticmethod
    def backward(ctx, grad):
        x, gate = ctx.saved_tensors
        slope = gate + ctx.beta * x * gate * (1 - gate)
        slope[x > 3] = 1
        return grad * slope, None
class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 5), nn.Linear(5, 3)
    def forward(self, x):
        return self.second(Swish.apply(self.first(x), 1.5))
model = Gated()
""",
]

OPTIMIZERS = [
    "torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)",
    "torch.optim.Adam(model.parameters(), lr=0.01)",
    "torch.optim.RMSprop(model.parameters())",
]

SCHEDULES = [
    "torch.optim.lr_scheduler.StepLR(optimizer, 7, gamma=0.5)",
    "torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.97)",
    "torch.optim.lr_scheduler.LambdaLR(optimizer, lambda e: 1 / (1 + e))",
    "torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)",
]

DEFINITIONS = """
def objective(out, y, weight=1.0):
    error = out - y
    return (error * error).mean() * weight

def train_step(x, y, l):
    global count
    optimizer.zero_grad()
    out = model(x)
    loss = {loss}
    loss.backward()
    count += 1
    return loss, out

class Trainer:
    def __init__(self, model):
        self.model = model
        self.steps = 0
        self.losses = []
        self.last = None
    def step(self, x, y, l):
        optimizer.zero_grad()
        out = self.model(x)
        loss = {loss}
        loss.backward()
        self.steps += 1
        self.last = loss.item()
        return loss, out

trainer = Trainer(model)

def closure_over(k):
    inner = [0.0]
    def add(value):
        inner[0] = inner[0] * k + value
        return inner[0]
    return add

smooth = closure_over(0.9)
"""

LOSSES = [
    "objective(out, y)",
    "F.cross_entropy(out, l)",
    "objective(out, y, weight=rate) + 0.01 * sum(p.pow(2).sum() for p in model.parameters())",
    "F.mse_loss(out * scale, y) / 2",
    "objective(out, y) * (1 + n % 3)",
]

DATA = [
    ("for n in range(40):", ["x, y, l = data, target, labels"]),
    (
        "for n in range(40):",
        ["i = n * 4 % 20", "x, y, l = data[i:i + 4], target[i:i + 4], labels[i:i + 4]"],
    ),
    (
        "for n in range(40):",
        ["pick = torch.randperm(24)[:6]", "x, y, l = data[pick], target[pick], labels[pick]"],
    ),
    ("for n, (x, y, l) in enumerate(batches * 7):", []),
    (
        "n = 0\nwhile n < 40:",
        ["n += 1", "x, y, l = data + 0.1 * torch.randn(24, 4), target, labels"],
    ),
]

STEPS = [
    ["optimizer.step()"],
    ["nn.utils.clip_grad_norm_(model.parameters(), 0.5)", "optimizer.step()"],
    ["with torch.no_grad():", "    for p in model.parameters():", "        p -= rate * p.grad"],
    ["for g in optimizer.param_groups:", "    g['lr'] = rate", "optimizer.step()"],
    ["optimizer.step()", "schedule.step()"],
    ["if n % 2:", "    optimizer.step()", "    optimizer.zero_grad()"],
    ["optimizer.step()", "for p in model.parameters():", "    p.grad = None"],
]

NOTES = [
    ["total += loss.item()"],
    ["history.append(loss.item())"],
    ["history.append(loss.detach())"],
    ["seen.append((n, round(loss.item(), 3)))"],
    ["print(n, loss.item())"],
    ["print(f'{n:3d} {loss:.4f} {total / (n + 1):8.3f}')"],
    ["print(loss, end=' ')"],
    ["rate *= 0.99"],
    ["rate = max(rate * 0.9, 0.01)"],
    ["average = loss.item() if average is None else 0.9 * average + 0.1 * loss.item()"],
    ["record['loss'] += loss.item()", "record['count'] = n"],
    ["value = smooth(loss.item())"],
    ["hits = (out.argmax(1) == l).sum().item()", "total += hits / len(l)"],
    ["ema = 0.9 * ema + 0.1 * out.detach().mean(0)"],
    ["print(sum(p.abs().sum().item() for p in model.parameters()))"],
    ["norm = sum([0 if p.grad is None else p.grad.sum().item() for p in model.parameters()])"],
    ["model.eval()", "with torch.no_grad():", "    val = model(data[:5]).sum()", "model.train()"],
    ["if loss.item() < best:", "    best, wait = loss.item(), 0", "else:", "    wait += 1"],
    ["if n % 5 == 0:", "    print('every', n, loss.item())"],
    ["if n % 7 == 3:", "    seen.append(loss.item())", "elif loss > 2:", "    total -= 1"],
    ["if math.isnan(loss.item()):", "    break"],
    ["if wait > 12:", "    break"],
    ["if n == 21:", "    scale = scale * 0.5"],
    ["if next(model.parameters()).sum() < 0:", "    total += 1"],
    [
        "if next(model.parameters()).abs().max() > 0.6:",
        "    with torch.no_grad():",
        "        next(model.parameters()).mul_(0.7)",
    ],
    ["F.binary_cross_entropy(next(model.parameters()).abs().mean().tanh(), torch.tensor(0.5))"],
    ["worst = max([float(p.abs().max()) for p in model.parameters()])"],
    ["shown = ', '.join([str(n), '%.2f' % loss.item()])"],
    ["part = marks[n % 6:n % 6 + 2]", "part += loss.detach()"],
    ["part = parts[n % 2]", "part.mul_(0.5)", "part += out.detach().mean(0)"],
    ["marks[n % 8] = loss.item()"],
    ["marks[marks > 1] = 0.5", "shown = out.detach() * 2", "shown[shown < 0] = n"],
    ["size = 0", "for p in model.parameters():", "    size += p.detach().abs().sum()"],
    ["print('%d %.4f' % (n, loss))", "seen.append(n in {3, 5, 8})"],
    ["with torch.inference_mode():", "    val = model(data[:5]).sum().item()", "total += val"],
    ["for p, track in zip(model.parameters(), tracks):", "    track.append(p.abs().max().item())"],
]

END = """
print(n, loss, total, count, rate, best, wait, average)
print(history[-3:], len(history), seen[-3:], record, ema, trainer.steps, trainer.last)
print([p.grad for p in model.parameters()], torch.rand(2), smooth(0.0), model.training)
print(optimizer.state_dict())
print(marks, marks._version, parts, tracks)
"""


def random_loop(seed: int) -> str:
    """A program with a training loop."""
    random = Random(seed)
    loss = random.choice(LOSSES)
    program = HEAD.format(seed=seed) + random.choice(MODELS)
    program += f"optimizer = {random.choice(OPTIMIZERS)}\n"
    program += f"schedule = {random.choice(SCHEDULES)}\n" + DEFINITIONS.format(loss=loss)
    program += (
        "batches = [(data[i:i + 4], target[i:i + 4], labels[i:i + 4]) for i in range(0, 24, 4)]\n"
    )
    head, given = random.choice(DATA)
    run = random.choice(
        [
            ["loss, out = train_step(x, y, l)"],
            ["loss, out = trainer.step(x, y, l)"],
            ["optimizer.zero_grad()", "out = model(x)", f"loss = {loss}", "loss.backward()"],
            ["out = model(x)", f"loss = {loss}", "optimizer.zero_grad()", "loss.backward()"],
            [
                "optimizer.zero_grad()",
                "out = model(x)",
                "loss = 0",
                "for row, goal in zip(out, y):",
                "    loss += (row - goal).pow(2).mean()",
                "loss.backward()",
            ],
            [
                "if n % 3 == 0:",
                "    optimizer.zero_grad()",
                "out = model(x)",
                f"loss = {loss} / 3",
                "loss.backward()",
            ],
            [
                "for p in model.parameters():",
                "    if p.grad is not None:",
                "        p.grad.zero_()",
                "out = model(x)",
                f"loss = {loss}",
                "loss.backward()",
            ],
        ]
    )
    step = random.choice(STEPS)
    notes = [line for note in random.sample(NOTES, random.randrange(5)) for line in note]
    body = [*given, *run, *step, *notes] if random.random() < 0.7 else [*given, *run, *notes, *step]
    loop = [head, *[f"    {line}" for line in body]]
    around = random.randrange(5)
    if around == 0:
        loop = [
            "for epoch in range(3):",
            *[f"    {row}" for line in loop for row in line.split("\n")],
        ]
    elif around == 1:
        names = "total, rate, average, best, wait, scale, ema, n, loss, value, val, out"
        rows = [row for line in [f"global {names}", *loop] for row in line.split("\n")]
        loop = ["def main():", *[f"    {row}" for row in rows], "main()"]
    return program + "\n".join(loop) + END
