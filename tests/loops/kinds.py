"""Kinds of training loops that people write: each a small program that prints what it found.

Every one has a loop that runs `STEPS` times or more in all.
"""

from __future__ import annotations

STEPS = 400

_HEAD = """
import math
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
X = torch.randn(32, 4)
Y = X @ torch.tensor([[1.0], [-2.0], [0.5], [3.0]]) + 0.1 * torch.randn(32, 1)
labels = (Y[:, 0] > 0).long()
w = torch.zeros(4, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
lr = 0.05
"""

_MODEL = """
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
criterion = nn.MSELoss()
"""

_SGD = _MODEL + "optimizer = torch.optim.SGD(model.parameters(), lr=0.05)\n"

_CLASSES = """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
"""

KINDS: dict[str, str] = {}
"""The programs by name."""


def _kind(name: str, program: str, before: str = "") -> None:
    KINDS[name] = _HEAD + before + program.strip("\n") + "\n"


# --- steps by hand --------------------------------------------------------------------------------

_kind(
    "w.data -= lr * w.grad",
    """
for step in range(400):
    loss = ((X @ w + b - Y) ** 2).mean()
    loss.backward()
    w.data -= lr * w.grad.data
    b.data -= lr * b.grad.data
    w.grad.zero_()
    b.grad.zero_()
print(loss.item(), w.flatten().tolist(), b.item())
""",
)
_kind(
    "with no_grad: w -= lr * w.grad",
    """
for step in range(400):
    loss = ((X @ w + b - Y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        b -= lr * b.grad
        w.grad = None
        b.grad = None
print(loss.item(), w.flatten().tolist(), b.item())
""",
)
_kind(
    "w = (w - lr * w.grad).detach().requires_grad_()",
    """
for step in range(400):
    loss = ((X @ w + b - Y) ** 2).mean()
    loss.backward()
    w = (w - lr * w.grad).detach().requires_grad_()
    b = (b - lr * b.grad).detach().requires_grad_()
print(loss.item(), w.flatten().tolist(), b.item())
""",
)
_kind(
    "for p in params",
    """
params = [w, b]
for step in range(400):
    loss = F.mse_loss(X @ w + b, Y)
    for p in params:
        if p.grad is not None:
            p.grad.zero_()
    loss.backward()
    with torch.no_grad():
        for p in params:
            p.sub_(lr * p.grad)
print(loss.item(), w.flatten().tolist(), b.item())
""",
)
_kind(
    "for p in model.parameters()",
    """
for step in range(400):
    loss = criterion(model(X), Y)
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= lr * p.grad
print(loss.item(), sum(p.sum().item() for p in model.parameters()))
""",
    _MODEL,
)
_kind(
    "a dict of parameters",
    """
params = {"w": w, "b": b}
for step in range(400):
    loss = ((X @ params["w"] + params["b"] - Y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for name, p in params.items():
            p -= lr * p.grad
            p.grad.zero_()
print(loss.item(), w.flatten().tolist(), b.item())
""",
)
_kind(
    "momentum by hand",
    """
params = [w, b]
velocity = [torch.zeros_like(p) for p in params]
for step in range(400):
    loss = ((X @ w + b - Y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p, v in zip(params, velocity):
            v.mul_(0.9).add_(p.grad)
            p -= 0.01 * v
            p.grad.zero_()
print(loss.item(), w.flatten().tolist(), b.item())
""",
)
_kind(
    "a decaying rate",
    """
rate = 0.1
for step in range(400):
    loss = ((X @ w + b - Y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= rate * p.grad
            p.grad = None
    rate *= 0.995
print(loss.item(), rate, w.flatten().tolist())
""",
)

# --- functions and classes ------------------------------------------------------------------------

_kind(
    "train_step(x, y)",
    """
def train_step(x, y):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()

for step in range(400):
    value = train_step(X, Y)
print(value)
""",
    _SGD,
)
_kind(
    "a Trainer class",
    """
class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.steps = 0
        self.history = []

    def loss(self, x, y):
        return F.mse_loss(self.model(x), y)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss(x, y)
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        self.history.append(loss.item())

trainer = Trainer(model, 0.05)
for epoch in range(400):
    trainer.step(X, Y)
print(trainer.steps, trainer.history[-1], len(trainer.history))
""",
    _MODEL,
)
_kind(
    "nested functions and closures",
    """
def make_step(scale):
    def predict(x):
        return torch.tanh(x @ w) * scale + b
    def step(x, y):
        loss = (predict(x) - y).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            for p in (w, b):
                p -= lr * p.grad
                p.grad = None
        return loss
    return step

step = make_step(2.0)
for n in range(400):
    loss = step(X, Y)
print(loss.item(), w.flatten().tolist())
""",
)
_kind(
    "a loop inside a function",
    """
def train(model, optimizer, epochs):
    for epoch in range(epochs):
        optimizer.zero_grad()
        loss = F.mse_loss(model(X), Y)
        loss.backward()
        optimizer.step()
    return loss.item()

print(train(model, optimizer, 400))
""",
    _SGD,
)
_kind(
    "a lambda for the loss",
    """
square = lambda x: x * x
objective = lambda prediction, target: square(prediction - target).mean()
for step in range(400):
    loss = objective(X @ w + b, Y)
    loss.backward()
    w.data -= lr * w.grad
    b.data -= lr * b.grad
    w.grad, b.grad = None, None
print(loss.item(), w.flatten().tolist())
""",
)

# --- modules --------------------------------------------------------------------------------------

_kind(
    "model.train() and model.eval()",
    """
for epoch in range(400):
    model.train()
    optimizer.zero_grad()
    loss = criterion(model(X), Y)
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        validation = criterion(model(X[:8]), Y[:8])
print(loss.item(), validation.item())
""",
    _SGD,
)
_kind(
    "a module of its own with ModuleList",
    """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 8), nn.Linear(8, 8)])
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x)

model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(400):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), Y)
    loss.backward()
    optimizer.step()
print(loss.item())
""",
)
_kind(
    "dropout",
    """
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(400):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), Y)
    loss.backward()
    optimizer.step()
model.eval()
print(loss.item(), F.mse_loss(model(X), Y).item())
""",
)
_kind(
    "batch norm",
    """
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(400):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), Y)
    loss.backward()
    optimizer.step()
print(loss.item(), model[1].running_mean.tolist(), model[1].num_batches_tracked)
""",
)
_kind(
    "embedding",
    """
tokens = torch.randint(0, 10, (16, 3))
targets = tokens.sum(1) % 2
embedding = nn.Embedding(10, 6)
head = nn.Linear(6, 2)
optimizer = torch.optim.Adam([*embedding.parameters(), *head.parameters()], lr=0.01)
for step in range(400):
    logits = head(embedding(tokens).mean(1))
    loss = F.cross_entropy(logits, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
""",
)
_kind(
    "nn.RNN",
    """
inputs = torch.randn(5, 8, 3)
targets = inputs.sum(0)[:, :1]
rnn = nn.RNN(3, 6)
head = nn.Linear(6, 1)
optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=0.01)
for step in range(400):
    outputs, hidden = rnn(inputs)
    loss = F.mse_loss(head(outputs[-1]), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
""",
)
_kind(
    "nn.LSTM",
    """
inputs = torch.randn(5, 8, 3)
targets = inputs.sum(0)[:, :1]
lstm = nn.LSTM(3, 6)
head = nn.Linear(6, 1)
optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=0.01)
for step in range(400):
    outputs, (hidden, cell) = lstm(inputs)
    loss = F.mse_loss(head(hidden[-1]), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
""",
)

_kind(
    "attention written out",
    """
project = nn.Linear(4, 12)
optimizer = torch.optim.AdamW(project.parameters(), lr=0.01)
for step in range(400):
    q, k, v = project(X.view(8, 4, 4)).split(4, dim=2)
    scores = (q @ k.transpose(-2, -1)) / 4 ** 0.5
    scores = scores.masked_fill(torch.triu(torch.ones(4, 4), 1).bool(), float("-inf"))
    loss = F.mse_loss(F.softmax(scores, dim=-1) @ v, Y.view(8, 4, 1).expand(8, 4, 4))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print(loss.item())
""",
)

# --- optimizers -----------------------------------------------------------------------------------

_kind(
    "SGD with momentum",
    """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for step in range(400):
    optimizer.zero_grad()
    loss = criterion(model(X), Y)
    loss.backward()
    optimizer.step()
print(f"{loss.item():.6f}")
""",
    _MODEL,
)
_kind(
    "AdamW on classes, accuracy by argmax",
    """
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01)
correct = 0
for step in range(400):
    logits = model(X)
    loss = criterion(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    accuracy = (logits.argmax(dim=1) == labels).float().mean().item()
    correct += (logits.argmax(1) == labels).sum().item()
print(loss.item(), accuracy, correct)
""",
    _CLASSES,
)
_kind(
    "scheduler.step()",
    """
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=100, gamma=0.5)
for step in range(400):
    optimizer.zero_grad()
    loss = criterion(model(X), Y)
    loss.backward()
    optimizer.step()
    scheduler.step()
print(loss.item(), scheduler.get_last_lr())
""",
    _SGD,
)
_kind(
    "clip_grad_norm_",
    """
for step in range(400):
    optimizer.zero_grad()
    loss = criterion(model(X), Y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()
print(loss.item())
""",
    _SGD,
)
_kind(
    "gradient accumulation",
    """
accumulation = 4
optimizer.zero_grad()
for step in range(400):
    i = step % 4
    loss = criterion(model(X[i * 8:(i + 1) * 8]), Y[i * 8:(i + 1) * 8]) / accumulation
    loss.backward()
    if (step + 1) % accumulation == 0:
        optimizer.step()
        optimizer.zero_grad()
print(loss.item())
""",
    _SGD,
)
_kind(
    "LBFGS with a closure",
    """
optimizer = torch.optim.LBFGS([w, b], lr=0.1, max_iter=2)

def closure():
    optimizer.zero_grad()
    loss = ((X @ w + b - Y) ** 2).mean()
    loss.backward()
    return loss

for step in range(400):
    loss = optimizer.step(closure)
print(loss.item(), w.flatten().tolist())
""",
)

# --- data -----------------------------------------------------------------------------------------

_kind(
    "minibatches by slices",
    """
for epoch in range(250):
    for i in range(0, 32, 8):
        x, y = X[i:i + 8], Y[i:i + 8]
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
print(loss.item())
""",
    _SGD,
)
_kind(
    "windows from places that are drawn",
    """
text = torch.arange(64) % 7
for step in range(400):
    ix = torch.randint(len(text) - 4, (8,))
    x = torch.stack([text[i:i + 4] for i in ix])
    y = torch.stack([text[i + 1:i + 5] for i in ix])
    loss = ((x.float() @ w + b - y.float()) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.001 * w.grad
        w.grad = None
    if step % 20 == 0: print(x.sum().item(), y[0].tolist())
print(w.flatten().tolist())
""",
)
_kind(
    "permuted minibatches",
    """
for epoch in range(100):
    order = torch.randperm(32)
    total = 0.0
    for i in range(0, 32, 8):
        index = order[i:i + 8]
        optimizer.zero_grad()
        loss = criterion(model(X[index]), Y[index])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(index)
print(loss.item(), total)
""",
    _SGD,
)
_kind(
    "one random sample",
    """
for step in range(400):
    i = torch.randint(0, 32, (8,))
    loss = ((X[i] @ w + b - Y[i]) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        b -= lr * b.grad
        w.grad.zero_()
        b.grad.zero_()
print(loss.item(), w.flatten().tolist())
""",
)
_kind(
    "DataLoader and TensorDataset",
    """
loader = DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True)
for epoch in range(100):
    running = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        running += loss.item()
    if epoch % 25 == 0:
        print(f"epoch {epoch}: {running / len(loader):.4f}")
""",
    _SGD,
)
_kind(
    "enumerate over a DataLoader",
    """
loader = DataLoader(TensorDataset(X, labels), batch_size=8)
for epoch in range(100):
    model.train()
    correct, seen = 0, 0
    for i, (inputs, targets) in enumerate(loader):
        logits = model(inputs)
        loss = criterion(logits, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct += (logits.argmax(1) == targets).sum().item()
        seen += targets.size(0)
        if i == 3 and epoch % 50 == 0:
            print(epoch, correct / seen)
print(loss.item())
""",
    _CLASSES,
)
_kind(
    "noise in every round",
    """
for step in range(400):
    noisy = X + 0.1 * torch.randn_like(X)
    optimizer.zero_grad()
    loss = criterion(model(noisy), Y)
    loss.backward()
    optimizer.step()
print(loss.item())
""",
    _SGD,
)

# --- looking at it --------------------------------------------------------------------------------

_kind(
    "if step % 100 == 0: print",
    """
for step in range(400):
    optimizer.zero_grad()
    loss = criterion(model(X), Y)
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}: loss = {loss.item():.4f}")
""",
    _SGD,
)
_kind(
    "printing every round",
    """
for step in range(400):
    optimizer.zero_grad()
    loss = criterion(model(X), Y)
    loss.backward()
    optimizer.step()
    print(f"{step:4d} {loss.item():.6f}")
    print("loss", loss, step)
""",
    _SGD,
)
_kind(
    "losses.append(loss.detach())",
    """
losses = []
norms = []
for step in range(400):
    optimizer.zero_grad()
    loss = criterion(model(X), Y)
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
    norms.append(model[0].weight.grad.norm().item())
print(torch.stack(losses).mean().item(), sum(norms) / len(norms), losses[-1])
""",
    _SGD,
)
_kind(
    "a running average",
    """
average = None
smooth = 0.0
for step in range(400):
    optimizer.zero_grad()
    loss = criterion(model(X), Y)
    loss.backward()
    optimizer.step()
    average = loss.item() if average is None else 0.9 * average + 0.1 * loss.item()
    smooth = (smooth * step + loss.item()) / (step + 1)
print(average, smooth)
""",
    _SGD,
)
_kind(
    "early stopping with best",
    """
best, wait = float("inf"), 0
for epoch in range(400):
    optimizer.zero_grad()
    loss = criterion(model(X), Y)
    loss.backward()
    optimizer.step()
    if loss.item() < best - 1e-9:
        best = loss.item()
        wait = 0
    else:
        wait += 1
        if wait >= 20:
            break
print(epoch, best)
""",
    _SGD,
)
_kind(
    "if and else on a value",
    """
for step in range(400):
    out = X @ w + b
    error = (out - Y).abs().mean()
    if error > 0.5:
        loss = error
    else:
        loss = ((out - Y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.01 * p.grad
            p.grad = None
print(loss.item(), w.flatten().tolist())
""",
)
_kind(
    "while the loss is large",
    """
step, value = 0, float("inf")
while value > 1e-12 and step < 400:
    loss = ((X @ w + b - Y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
        b -= 0.01 * b.grad
    w.grad.zero_()
    b.grad.zero_()
    value = loss.item()
    step += 1
print(step, value)
""",
)

# --- gradients of gradients, and functions of one's own -------------------------------------------

_kind(
    "Newton's method with create_graph",
    """
x = torch.tensor(3.0, requires_grad=True)
for step in range(400):
    y = x ** 4 / 4 + x.exp() - 2 * x
    g, = torch.autograd.grad(y, x, create_graph=True)
    h, = torch.autograd.grad(g, x)
    with torch.no_grad():
        x -= 0.1 * g / h
print(x.item(), y.item())
""",
)
_kind(
    "a gradient penalty",
    """
for step in range(400):
    mixed = X.clone().requires_grad_(True)
    score = model(mixed)
    slope = torch.autograd.grad(score.sum(), mixed, create_graph=True)[0]
    penalty = ((slope.norm(2, dim=1) - 1) ** 2).mean()
    loss = criterion(score, Y) + 0.1 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), penalty.item())
""",
    _SGD,
)
_kind(
    "comprehension sums over layers",
    """
decay = 1e-3
for step in range(400):
    optimizer.zero_grad()
    penalty = sum(p.pow(2).sum() for p in model.parameters())
    size = sum([p.abs().mean() for p in model.parameters() if p.dim() > 1])
    loss = criterion(model(X), Y) + decay * penalty + decay * size
    loss.backward()
    optimizer.step()
print(loss.item(), penalty.item())
""",
    _SGD,
)
_kind(
    "a custom autograd.Function",
    """
class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * (x > 0)

for step in range(400):
    loss = ((Clipped.apply(X @ w + 2) + b - Y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.01 * p.grad
            p.grad = None
print(loss.item(), w.flatten().tolist())
""",
)
_kind(
    "a generator of the program's own",
    """
g = torch.Generator().manual_seed(3)
for step in range(400):
    i = torch.randint(0, 32, (8,), generator=g)
    noise = 0.01 * torch.randn(8, 1, generator=g)
    loss = ((X[i] @ w + b + noise - Y[i]) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        b -= lr * b.grad
        w.grad = b.grad = None
print(loss.item(), torch.randperm(5, generator=g).tolist())
""",
)
_kind(
    "zero_grad(set_to_none=False)",
    """
for step in range(400):
    optimizer.zero_grad(set_to_none=False)
    loss = criterion(model(X), Y)
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.5)
    optimizer.step()
print(loss.item(), optimizer.param_groups[0]["params"][0].grad.sum().item())
""",
    _SGD,
)
_kind(
    "try in an iteration",
    """
failed = 0
for step in range(400):
    try:
        optimizer.zero_grad()
        loss = criterion(model(X), Y)
        if step % 150 == 120:
            raise ValueError(step)
        loss.backward()
        optimizer.step()
    except ValueError as error:
        failed += error.args[0]
    finally:
        last = step
print(loss.item(), failed, last)
""",
    _SGD,
)
_kind(
    "functions in a list and a dict",
    """
layers = [lambda x: x @ w, torch.tanh, lambda x: x + b]
losses = {"mse": F.mse_loss, "l1": lambda p, y: (p - y).abs().mean()}
for step in range(400):
    x = X
    for layer in layers:
        x = layer(x)
    loss = sum(each(x, Y) for each in losses.values()) + losses["mse"](x, Y)
    loss.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= lr * p.grad
            p.grad = None
print(loss.item(), x.sum().item())
""",
)
_kind(
    "rows of a log",
    """
log, history = [], {"loss": [], "step": []}
for step in range(400):
    optimizer.zero_grad()
    loss = criterion(model(X), Y)
    loss.backward()
    optimizer.step()
    metrics = {"step": step, "loss": loss.item()}
    metrics["root"] = math.sqrt(metrics["loss"])
    log.append(metrics)
    history["loss"].append(metrics["loss"])
    history["step"].append(metrics["step"] + 1)
print(log[7], log[-1] is metrics, len(log), sum(history["step"]), history["loss"][-1])
""",
    _SGD,
)
_kind(
    "a schedule's function with the program's numbers",
    """
warmup, total = 20, 400
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda k: min(1.0, (k + 1) / warmup) * (1 + math.cos(math.pi * k / total)) / 2
)
for step in range(400):
    optimizer.zero_grad()
    loss = criterion(model(X), Y)
    loss.backward()
    optimizer.step()
    schedule.step()
print(loss.item(), schedule.get_last_lr())
""",
    _SGD,
)
_kind(
    "schedules in a schedule",
    """
rates = torch.optim.lr_scheduler
warm = rates.LinearLR(optimizer, 0.1, total_iters=30)
wave = rates.CosineAnnealingLR(optimizer, 370)
schedule = rates.SequentialLR(optimizer, [warm, wave], milestones=[30])
for step in range(400):
    optimizer.zero_grad()
    loss = criterion(model(X), Y)
    loss.backward()
    optimizer.step()
    schedule.step()
print(loss.item(), schedule.get_last_lr(), warm.last_epoch, wave.last_epoch)
""",
    _SGD,
)
_kind(
    "vjp of a loss, and a loss of float64",
    """
v = torch.zeros(4, 1)
for step in range(400):
    out, pull = torch.func.vjp(lambda u: ((X @ u - Y) ** 2).mean(), v)
    (slope,) = pull(torch.ones_like(out))
    v = v - 0.01 * slope
    loss = ((X @ w).double() - Y.double()).abs().mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
        w.grad = None
print(out.item(), loss.item(), v.flatten().tolist(), w.flatten().tolist())
""",
)
_kind(
    "values that come one by one",
    """
def drawn():
    for k in range(400):
        yield X[k % 30 : k % 30 + 2], Y[k % 30 : k % 30 + 2]

for x, y in drawn():
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
""",
    _SGD,
)
_kind(
    "masks in a loss",
    """
present = X[:, :1] > -0.5
for step in range(400):
    optimizer.zero_grad()
    error = (model(X) - Y) ** 2
    loss = (error * present).sum() / present.sum() + ((error > 1) * error).mean()
    loss.backward()
    optimizer.step()
print(loss.item())
""",
    _SGD,
)
_kind(
    "tqdm with words",
    """
from tqdm import tqdm
bar = tqdm(range(400), desc="train")
for step in bar:
    optimizer.zero_grad()
    loss = criterion(model(X), Y)
    loss.backward()
    optimizer.step()
    bar.set_postfix(loss=loss.item(), step=step)
print(loss.item(), bar.n, bar.postfix)
""",
    _SGD,
)
_kind(
    "validation every few iterations, with the best state",
    """
best, state = math.inf, None
for step in range(400):
    model.train()
    optimizer.zero_grad()
    loss = criterion(model(X[:24]), Y[:24])
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        model.eval()
        with torch.no_grad():
            found = criterion(model(X[24:]), Y[24:]).item()
        if found < best:
            best = found
            state = {name: value.clone() for name, value in model.state_dict().items()}
print(best, model.training, state["0.weight"].sum().item())
""",
    _SGD,
)
_kind(
    "an average of parameters by state_dict",
    """
import copy
average = copy.deepcopy(model)
for step in range(400):
    optimizer.zero_grad()
    loss = criterion(model(X), Y)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        state = model.state_dict()
        for name, value in average.state_dict().items():
            value.copy_(value * 0.9 + state[name] * 0.1)
print(loss.item(), average[0].weight.sum().item(), list(state))
""",
    _SGD,
)
_kind(
    "elements picked by a mask from before the loop",
    """
seen = X[:, 0] > 0
unseen = ~seen
for step in range(400):
    optimizer.zero_grad()
    found = model(X)
    loss = criterion(found[seen], Y[seen]) + 0.1 * found[unseen].pow(2).mean()
    loss.backward()
    optimizer.step()
print(loss.item(), found[seen].shape)
""",
    _SGD,
)
_kind(
    "what attention gives, in the order of its memory",
    """
norm = nn.LayerNorm(8)
x = torch.randn(2, 5, 8)
for step in range(400):
    out, _ = attention(x, x, x)
    loss = norm(out + x).pow(2).mean() + (out * out.stride(0)).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), out.stride(), (out + x).stride())
""",
    """
attention = nn.MultiheadAttention(8, 2, batch_first=True)
optimizer = torch.optim.SGD(attention.parameters(), lr=0.01)
""",
)


# --- objects of several of the library's classes --------------------------------------------------

_kind(
    "a transform that is a module",
    """
for step in range(400):
    optimizer.zero_grad()
    loss = -flowing.log_prob(X).mean()
    loss.backward()
    optimizer.step()
print(loss.item(), flow.shift.tolist(), flow.scale.tolist())
""",
    """
D = torch.distributions


class Flow(D.Transform, nn.Module):
    domain = codomain = D.constraints.real
    bijective = True
    __hash__ = nn.Module.__hash__

    def __init__(self, size):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(size))
        self.scale = nn.Parameter(torch.zeros(size))

    def _call(self, x):
        return x * self.scale.exp() + self.shift

    def _inverse(self, y):
        return (y - self.shift) * (-self.scale).exp()

    def log_abs_det_jacobian(self, x, y):
        return self.scale.expand(x.shape)


flow = Flow(4)
flowing = D.TransformedDistribution(D.Normal(torch.zeros(4), torch.ones(4)), [flow])
optimizer = torch.optim.Adam(flow.parameters(), lr=0.02)
""",
)

_kind(
    "a field of a transform that changes late",
    """
for step in range(400):
    loss = (shift(X @ w) ** 2).mean() - (around.log_prob(w) + inner.log_prob(w).sum()).mean()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        w.grad = None
    if step == 200:
        shift.loc = 3.0
    if step == 300:
        around.base_dist = D.Normal(2.0, 1.0, False)
        inner.loc = torch.tensor(-1.0)
print(loss.item(), w.tolist(), shift.loc)
""",
    """
D = torch.distributions
shift = D.AffineTransform(1.0, 0.5)
around = D.Independent(D.Normal(0.0, torch.ones(1), False), 1, False)
inner = D.Normal(0.0, 3.0, False)
""",
)
