"""Loops whose iterations change what objects of the library, or of the program, keep to themselves.

Each trains a small model, does something with the state in every iteration, and prints all of it:
run in both ways, it prints the same, whether it is compiled or not.
"""

from __future__ import annotations

_HEAD = """
import csv, io, math, random, functools, itertools
from collections import Counter, OrderedDict, defaultdict, deque
import torch
from torch import nn
import torch.nn.functional as F
rates = torch.optim.lr_scheduler
torch.manual_seed(0)
X, Y = torch.randn(16, 3), torch.randn(16, 1)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
{before}
for step in range({count}):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), Y)
    loss.backward()
    optimizer.step()
    {every}
print({last}, loss.item(), [p.sum().item() for p in model.parameters()])
"""

STATES: dict[str, tuple[str, bool]] = {}
"""The programs by name, each with whether its loop is compiled."""


def _state(name: str, before: str, every: str, last: str, compiled: bool = False) -> None:
    every = every.strip().replace("\n", "\n    ")
    program = _HEAD.format(before=before.strip(), every=every, last=last, count=200)
    STATES[name] = program, compiled


# --- schedules ------------------------------------------------------------------------------------

_state(
    "an object of the program is a schedule's function",
    """
class Warm:
    def __init__(self):
        self.calls = 0
    def __call__(self, epoch):
        self.calls += 1
        return 1 / (1 + 0.01 * self.calls)
warm = Warm()
schedule = rates.LambdaLR(optimizer, warm)
""",
    "schedule.step()",
    "warm.calls, schedule.get_last_lr()",
)
_state(
    "a schedule's function reads what the loop sets",
    """
class Rate:
    def of(self, epoch):
        return 1 / (1 + scale)
scale = 0.0
schedule = rates.LambdaLR(optimizer, Rate().of)
""",
    "scale = step * 0.1\nschedule.step()",
    "schedule.get_last_lr()",
)
_state(
    "schedules in schedules in a schedule",
    """
inner = rates.SequentialLR(
    optimizer,
    [rates.ConstantLR(optimizer, 0.5, 10), rates.LambdaLR(optimizer, lambda k: 0.99 ** k)],
    milestones=[40],
)
schedule = rates.ChainedScheduler([inner, rates.ExponentialLR(optimizer, 0.999)])
""",
    "schedule.step()",
    "schedule.get_last_lr(), inner.last_epoch",
    compiled=True,
)
_state(
    "a schedule that counts what does not improve",
    "schedule = rates.ReduceLROnPlateau(optimizer, patience=20, threshold=0.01)",
    "schedule.step(loss.item())",
    "schedule.num_bad_epochs, schedule.last_epoch, optimizer.param_groups[0]['lr']",
    compiled=True,
)
_state(
    "a schedule that goes up and down, and begins again",
    "schedule = rates.CosineAnnealingWarmRestarts(optimizer, 30, 2)",
    "schedule.step()",
    "schedule.get_last_lr(), schedule.T_cur, schedule.T_i",
    compiled=True,
)

# --- collections and functions that remember ------------------------------------------------------

_state(
    "a function that remembers what it gave",
    """
@functools.lru_cache(maxsize=None)
def double(value):
    return 2 * value
""",
    "value = double(3)",
    "value, double.cache_info().hits",
)
_state("deque.append", "last = deque(maxlen=50)", "last.append(1)", "len(last)")
_state("deque.rotate", "last = deque(range(7))", "last.rotate(1)", "list(last)")
_state("Counter.update", "seen = Counter()", 'seen.update("ab")', "dict(seen)")
_state("defaultdict", "seen = defaultdict(list)", 'seen["k"].append(1)', 'len(seen["k"])')
_state("set.add", "seen = set()", "seen.add(4)", "seen")
_state("OrderedDict.move_to_end", "d = OrderedDict(a=1, b=2)", "d.move_to_end('a')", "list(d)")
_state("OrderedDict.setdefault", "d = OrderedDict(a=1)", "d.setdefault('n', 5)", "list(d)")
_state(
    "what partial and a bound method append to",
    "one, other = [], []\nadd, also = functools.partial(one.append), other.append",
    "add(1)\nalso(2)",
    "len(one), len(other)",
)
_state(
    "a key of sorted that appends",
    "seen = []\ndef key(value):\n    seen.append(value)\n    return value",
    "found = sorted([3, 1], key=key)",
    "len(seen), found",
    compiled=True,
)
_state("a StringIO that is written to", "out = io.StringIO()", "out.write('x')", "out.getvalue()")
_state("a print into a StringIO", "out = io.StringIO()", "print(1, file=out)", "out.getvalue()")
_state(
    "rows of a csv writer",
    "out = io.StringIO()\nwriter = csv.writer(out)",
    "writer.writerow(['a', 1])",
    "len(out.getvalue())",
)
_state(
    "an iterator that goes on",
    "pairs = zip(itertools.cycle([1, 2, 3]), itertools.count(5))",
    "pair = next(pairs)",
    "pair",
)

# --- random numbers -------------------------------------------------------------------------------

_state(
    "random.shuffle", "random.seed(1)\nq = [1, 2, 3, 4]", "random.shuffle(q)", "q, random.random()"
)
_state("random.random", "random.seed(1)", "random.random()", "random.random()")
_state("manual_seed in every iteration", "", "torch.manual_seed(4)\nz = torch.rand(3)", "z")
_state(
    "manual_seed of a generator",
    "g = torch.Generator()",
    "g.manual_seed(4)\nz = torch.rand(3, generator=g)",
    "z, torch.rand(1, generator=g)",
)
_state(
    "set_rng_state",
    "stands = torch.get_rng_state()",
    "torch.set_rng_state(stands)\nz = torch.rand(3)",
    "z, torch.rand(1)",
)
_state(
    "manual_seed late",
    "",
    "z = torch.rand(3)\nif step == 150:\n    torch.manual_seed(4)",
    "z, torch.rand(1)",
    compiled=True,
)

# --- models and their averages --------------------------------------------------------------------

_state(
    "an average of a model",
    "from torch.optim.swa_utils import AveragedModel\naverage = AveragedModel(model)",
    "average.update_parameters(model)",
    "average.n_averaged, [p.sum().item() for p in average.parameters()]",
)
_state(
    "parameters of more than a megabyte",
    "large = [torch.full((500, n), 0.5, requires_grad=True) for n in (600, 20, 600)]",
    """
sum((p * p).sum() for p in large).backward()
with torch.no_grad():
    for p in large:
        p -= 0.01 * p.grad
        p.grad = None
""",
    "[p.mean().item() for p in large]",
    compiled=True,
)
_state(
    "an average of a model from the hundredth iteration on",
    """
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
""",
    "if step > 100:\n    average.update_parameters(model)",
    "average.n_averaged, [p.sum().item() for p in average.parameters()]",
    compiled=True,
)
_state(
    "a module that counts its calls",
    """
class Count(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(()))
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        self.n += 1
        return x
counted = Count()
""",
    "counted(X)",
    "counted.n, counted.calls",
)
_state(
    "a mean over all batches so far",
    "norm = nn.BatchNorm1d(3, momentum=None)",
    "norm(X)",
    "norm.num_batches_tracked, norm.running_mean",
)
_state(
    "a leaf that is made with requires_grad in every iteration",
    "xs = []",
    """
x = torch.rand(5, 3, requires_grad=True)
u = model(x).sum()
(du,) = torch.autograd.grad(u, x, create_graph=True)
(du ** 2).mean().backward()
xs.append(x.grad.sum().item())
""",
    "xs[-1], x, x.grad, x.is_leaf, x.requires_grad",
    compiled=True,
)
_state(
    "a clock is read and kept in every iteration",
    "import time\nmoments = [time.perf_counter()]",
    "moments.append(time.perf_counter())",
    "len(moments), moments == sorted(moments), moments[-1] < time.perf_counter()",
    compiled=True,
)
_state(
    "a duration is printed, and limits what is done",
    "import time\nlengths, began = [], time.time()",
    """
now = time.time()
lengths.append(now - began)
began = now
if now - began > 60:
    break
if step % 10 == 0:
    lengths.append(f"{now - began:.4f}")
""",
    "len(lengths), min(each for each in lengths if type(each) is float) >= 0",
    compiled=True,
)
_state(
    "what is computed lies between the readings around it",
    "import time\nbig = torch.randn(300, 300)\ninside, began = 0.0, time.perf_counter()",
    """
t = time.perf_counter()
held = torch.linalg.inv(big + step).sum().item()
inside += time.perf_counter() - t
""",
    "inside > 0.5 * (time.perf_counter() - began)",
    compiled=True,
)
