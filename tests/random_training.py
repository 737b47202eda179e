"""Training loops put together at random, of what programs write in them."""

from __future__ import annotations

from random import Random

HEAD = """
import torch.nn as nn
import torch.nn.functional as F
torch.manual_seed({seed})
data = torch.randn(24, 4)
target = torch.randn(24, 3)
labels = torch.arange(24) % 3
w = torch.randn(4, 3, requires_grad=True)
b = torch.zeros(3, requires_grad=True)
s = torch.tensor(0.5, requires_grad=True)
scale = torch.tensor([0.5, 1.5, 2.])
losses = []
total = 0.
count = 0
lr = 0.05
loss = None
"""

# What makes predictions: what defines it, its parameters, and the predictions.
MODELS = [
    ("", "[w, b, s]", "(xb @ w + b) * s"),
    ("", "[w, b, s]", "torch.tanh(xb @ w) * s + b"),
    ("", "[w, b, s]", "F.linear(xb, w.t(), b) - s"),
    (
        """
def model(x):
    h = x @ w + b
    return torch.tanh(h) * s
""",
        "[w, b, s]",
        "model(xb)",
    ),
    (
        "model = nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.Linear(5, 3))\n",
        "list(model.parameters())",
        "model(xb)",
    ),
    (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.second = nn.Linear(6, 3)
        self.scale = 1.5
    def forward(self, x):
        h = torch.relu(self.first(x))
        return self.second(h) * self.scale
model = Net()
""",
        "list(model.parameters())",
        "model(xb)",
    ),
]

# What a round is given: what comes before the loop, its first line, what the round begins with.
DATA = [
    ("xb, yb, lb = data, target, labels\n", "for n in range(30):", []),
    ("xb, yb, lb = data, target, labels\nn = 0\n", "while n < 30:", ["n += 1"]),
    (
        "",
        "for n in range(0, 24, 2):",
        ["xb = data[n:n + 2]", "yb = target[n:n + 2]", "lb = labels[n:n + 2]"],
    ),
    (
        "",
        "for n in range(20):",
        [
            "index = torch.randint(0, 24, (6,))",
            "xb = data[index]",
            "yb, lb = target[index], labels[index]",
        ],
    ),
    (
        "",
        "for n in range(20):",
        ["start = n * 2 % 18", "xb = data[start:start + 6]", "yb, lb = target[:6], labels[:6]"],
    ),
    (
        "batches = [(data[i:i + 4], target[i:i + 4], labels[i:i + 4]) for i in range(0, 22, 4)]\n",
        "for xb, yb, lb in batches * 4:",
        [],
    ),
]

LOSSES = [
    "F.mse_loss(out, yb)",
    "((out - yb) ** 2).mean()",
    "F.cross_entropy(out, lb)",
    "(out - yb).abs().sum() / lr",
    "((out - yb * scale ** 2) ** 2).mean()",
    "F.mse_loss(out * scale.exp(), scale.sin() + yb.view(yb.shape).sin())",
]

OPTIMIZERS = [
    "SGD(parameters, lr=0.05, momentum=0.9)",
    "SGD(parameters, lr=lr)",
    "Adam(parameters)",
]

CLEARED = ["for p in parameters:", "    p.grad = None"]
STEP = ["with torch.no_grad():", "    for p in parameters:", "        p -= lr * p.grad"]

NOTES = ["total += loss.item()", "losses.append(loss.item())", "total = total + float(loss) * 2"]

REPORTS = [
    "print(n, loss)",
    "print(total, parameters[0].grad)",
    "lr = lr * 0.5",
    "losses.append(loss)",
    "print(loss.grad_fn.next_functions)",
    "print(parameters[-1]._version)",
    "scale.mul_(0.9)",
    "scale = scale + 0.1",
    "target.data.mul_(0.5)",
]

# What few rounds do, and when.
TESTS = [
    "loss.item() < 0.4",
    "loss > 3",
    "loss < 0.5 or torch.isnan(loss)",
    "not loss < 2",
    "abs(total - loss.item()) < 0.3",
]
DEPARTURES = [
    "break",
    "continue",
    "print(loss)",
    "lr = lr * 0.5",
    "total = 0.",
    "losses = []",
    "scale *= 2",
]


def random_training(seed: int) -> str:
    """A program with a training loop."""
    random = Random(seed)
    model, parameters, predictions = random.choice(MODELS)
    before, head, given = random.choice(DATA)
    optimizer = random.choice(["", *OPTIMIZERS])
    program = HEAD.format(seed=seed) + model + before + f"parameters = {parameters}\n"
    program += "first = parameters[0]\n"
    if optimizer:
        program += f"optimizer = torch.optim.{optimizer}\n"
        clear = random.choice([["optimizer.zero_grad()"], CLEARED])
        step = ["optimizer.step()"]
    else:
        clear, step = CLEARED, STEP
    forward = [f"out = {predictions}", f"loss = {random.choice(LOSSES)}"]
    if random.random() < 0.2:
        slope = "g, = torch.autograd.grad(out.square().sum(), first, create_graph=True)"
        forward = [forward[0], slope, f"{forward[1]} + 0.01 * (g * g).mean()"]
    note = [random.choice(NOTES)] if random.random() < 0.4 else []
    backward = ["loss.backward()", *note, *step]
    when = random.randrange(4)
    if when == 0:
        body = [*clear, *given, *forward, *backward]
    elif when == 1:
        body = [*given, *forward, *clear, *backward]
    elif when == 2 or optimizer:
        body = [*given, *forward, *backward, *clear]
    else:
        body = [*given, *forward, *backward, "        p.grad.zero_()"]
    if " n " in head and random.random() < 0.5:
        report = [f"if n % 4 == {random.randrange(4)}:", f"    {random.choice(REPORTS)}"]
        body = random.choice([[*report, *body], [*body, *report]])
    if random.random() < 0.4:
        departure = [f"if {random.choice(TESTS)}:", f"    {random.choice(DEPARTURES)}"]
        place = random.choice([body.index(forward[-1]) + 1, len(body)])
        body[place:place] = departure
    loop = [head, *[f"    {line}" for line in body]]
    around = random.randrange(6)
    if around == 0:
        loop = [
            "for epoch in range(3):",
            *[f"    {line}" for line in [*loop, "print(epoch, loss)"]],
        ]
    elif around == 1:
        outside = "global total, lr, loss, losses, scale"
        loop = ["def train():", *[f"    {line}" for line in [outside, *loop]], "train()", "train()"]
    elif around == 2:
        loop = ["try:", *[f"    {line}" for line in loop], "except Exception as e:", "    print(e)"]
    end = "print(loss, total, losses, parameters[0].grad, [p._version for p in parameters])\n"
    return program + "\n".join(loop) + "\n" + end
