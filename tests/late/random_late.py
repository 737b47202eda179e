"""Random loops with a late event: ordinary statements, and among them something that changes, fails
or leaves after many iterations, perhaps within `try`, a function or another loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from tests.late.loop import Late

HEAD = """\
import math
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed({seed})
w = torch.tensor([0.5, -1.5, 2.], requires_grad=True)
buf, a, m = torch.zeros(4), torch.tensor([7, -8]), torch.tensor([[2., 1.], [1., 3.]])
t, q, x, view, r, y = torch.zeros(()), None, None, None, None, None
n, f, c, p, k, hi, size, s, ok, last, previous = 3, 0.5, 1.5, 0.25, 2, 4, 2, 'a', True, 0, 0
mode, dim, flag, unit = 'mean', 0, False, torch.tensor(1.)
items, config, parts = [1.], {{'k': 1., 'j': 2., 't': t}}, [torch.ones(2), torch.zeros(3)]
class Box:
    k = 2.
    def __init__(self): self.n, self.x = 0, 1.
    def times(self, v): return v * self.x
box = Box()
def double(v): return v * 2
def shifted(v, by=1.): return v + by * c
def both(v, number): return v * c, number * 0.5 + 1
def tick():
    global last
    last += 1
def counter():
    number = 0
    def count():
        nonlocal number
        number += 1
        return number
    return count
def checked(v):
    if v < 0: raise ValueError('negative', v)
    return v
def tried(v):
    try:
        return 10 / v
    except ZeroDivisionError:
        return -1.
count, step = counter(), double
model = nn.Sequential(nn.Linear(3, 2), {layer})
optimizer = torch.optim.{optimizer}
batches = [torch.arange(3.) * (j % 5) - 1 for j in range({rounds})]
numbers = [j % 4 + 1 for j in range({rounds})]
own = torch.Generator().manual_seed({seed})
fns, table = [torch.tanh, double, lambda v: v * c], {{'tanh': torch.tanh, 'double': double}}
rows, row, name, state = [], None, 'double', None
keep = torch.tensor([True, False, True])
"""

LAYERS = [
    "nn.Tanh()",
    "nn.Dropout(0.3)",
    "nn.BatchNorm1d(2)",
    "nn.LeakyReLU(0.1)",
    "nn.Softmax(-1)",
]

OPTIMIZERS = [
    "SGD([w, *model.parameters()], lr=0.01, momentum=0.9)",
    "Adam([w], lr=0.01)",
    "SGD(model.parameters(), lr=0.05)",
    "AdamW([w, *model.parameters()])",
]

ORDINARY = [
    ["t = t * 0.9 + (w * 0.1).sum().detach()"],
    ["t = t + batch.sum() * 0.1"],
    ["t = t * c - buf.mean()", "t = t.tanh()"],
    ["n += 1"],
    ["n = (n * 3 + i) % 17"],
    ["f = f * 0.99 + n"],
    ["f = min(f, 50.) + tried(n + 1)"],
    ["s = str(n)"],
    ["s = (s + 'ab'[n % 2])[-5:]"],
    ["ok = n > 5"],
    ["ok = not ok"],
    ["items.append(n)"],
    ["items.append(t.item())"],
    ["items.append(batch * 2)"],
    ["items[-1] = f"],
    ["config['k'] = f"],
    ["config['t'] = t"],
    ["config['j'] += 1"],
    ["box.n += 1"],
    ["box.x = box.x * 0.9 + 0.1"],
    ["q = box.times(batch)"],
    ["(w * c).sum().backward()"],
    ["w.grad = None", "(w * batch).sum().backward()"],
    ["optimizer.zero_grad()", "y = ((model(torch.stack([batch, batch * 2])) - c) ** 2).mean()",
     "y = y + (w * w).sum()", "y.backward()", "optimizer.step()"],
    ["with torch.no_grad():", "    w -= 0.01 * w"],
    ["w.data.mul_(0.99)"],
    ["buf += 1"],
    ["buf[n % 4] = f"],
    ["view = buf[1:3]", "view.mul_(0.9)"],
    ["parts[0].add_(0.5)"],
    ["parts[n % 2] = parts[n % 2] * 0.5"],
    ["r = torch.rand(2)"],
    ["r = torch.randint(0, hi, (2,))"],
    ["q = F.dropout(batch, p)"],
    ["q = F.dropout(batch, p)", "t = t + q.mean()"],
    ["q = buf * c"],
    ["q = batch * 2"],
    ["q = step(batch)"],
    ["q = shifted(batch)"],
    ["q, f = both(batch, f)"],
    ["q = torch.sum(m, dim)"],
    ["q = m.sum(0, keepdim=flag)"],
    ["q = a // n if n else a"],
    ["q = buf[k]"],
    ["q = torch.zeros(size) + f"],
    ["q = buf.view(size, -1)"],
    ["q = torch.linalg.inv(m)"],
    ["q = unit / c"],
    ["q = F.mse_loss(buf, buf * 2, reduction=mode)"],
    ["q = 10 // numbers[i]"],
    ["q = torch.tensor([1]) + 2 ** n"],
    ["q = math.sqrt(f) * batch"],
    ["q = checked(f) * unit"],
    ["q = {2: 'a', 3: 'b'}.get(n)"],
    ["if n % 2: q = buf + 1", "else: q = buf - 1"],
    ["if f > 30:", "    f -= 30"],
    ["if ok:", "    t = t + 0.5"],
    ["if t > 3: t = t - 3"],
    ["for j in range(3): t = t + j * 0.1"],
    ["for part in parts: t = t + part.sum() * 0.01"],
    ["j = 0", "while j < 3:", "    t = t * 0.99", "    j += 1"],
    ["if i % 10 == 3: print(i, t)"],
    ["if i % 7 == 3: print(f'{n} {f:.3f} {s}')"],
    ["print(n, end=' ')"],
    ["x = batch", "x = x * c", "t = t + x.mean()"],
    ["c = c * 1.01"],
    ["tick()"],
    ["n = count() % 9"],
    ["last, previous = n, last"],
    ["x = [each * 2 for each in batch.tolist()]"],
    ["if q is not None: previous = q"],
    ["q = w * 2", "q = q.detach()"],
    ["y = (w * batch).sum()", "t = t + y.item() * 0.01"],
    ["r = torch.randn(20, generator=own)", "t = t + r.mean()"],
    ["r = torch.randn(2, generator=own)"],
    ["r = torch.randperm(5, generator=own)", "q = torch.randint(0, hi, (3,), generator=own)"],
    ["rows.append({'n': n, 'f': f, 't': t, 'of': [i, (n, f)]})"],
    ["row = {'i': i, 'n': [n, f], 'q': buf}", "rows.append(row)"],
    ["row = [n, {'f': f}]", "rows.append(row)", "rows.append(row[1])"],
    ["row = {'n': n}", "row['f'] = f", "f = row['n'] * 0.5", "items.append(row['f'])"],
    ["row = {'n': n}", "rows.append(row)", "row['n'] = 0"],
    ["row = {'f': f, 'n': n}", "print(row, f'{row}', len(row))"],
    ["row = {'n': n, 'f': f}", "f = sum(row.values()) * 0.1"],
    ["q = batch", "for fn in fns: q = fn(q)"],
    ["q = table['double'](buf)"],
    ["q = table[name](batch)"],
    ["q = fns[n % 2](batch)"],
    ["try: q = 10 // numbers[i]", "except ZeroDivisionError: q = 0"],
    ["try:", "    q = checked(f) * unit", "except ValueError as error:", "    f = -f",
     "finally:", "    n += 1"],
    ["try:", "    (w * c).sum().backward()", "    items.append(10 // numbers[i])",
     "except (ZeroDivisionError, RuntimeError): last = i", "else: previous = i"],
    ["optimizer.zero_grad(set_to_none=False)", "(w * batch).sum().backward()", "optimizer.step()"],
    ["nn.utils.clip_grad_value_([w], p)"],
    ["y = (w[keep] * 2).sum()", "y.backward()"],
    ["y = (w * c)[keep].mean() + w[w > 0].sum()", "y.backward()"],
    ["q = batch[keep]", "t = t + q.sum() * 0.1"],
    ["state = model.state_dict()", "t = t + state['0.weight'].sum()"],
    ["row = {each: v.clone() for each, v in model.state_dict().items()}"],
    ["model.train()", "q = model(torch.stack([batch, batch * 2])).detach()",
     "if i % 3 == 1:", "    model.eval()"],
    ["if i % 4 == 3: model.eval()", "q = model(torch.stack([batch, batch * 2])).detach()",
     "if i % 5 == 2: model.train()"],
    ["y = (w.double() * c).sum()", "y.backward()"],
    ["y = (w * c * (batch > 0)).sum() / (1 + (batch > 1).sum())", "y.backward()"],
    ["q = torch.where(batch > 0, batch, c)", "t = t + q.clamp(-1, 1).mean()"],
]  # fmt: skip

EVENTS = [
    ["raise ValueError('late', i)"],
    ["break"],
    ["continue"],
    ["c = 2"],
    ["c = torch.tensor(3.)"],
    ["c = 'c'"],
    ["c = None"],
    ["c = True"],
    ["c = 0"],
    ["c = w"],
    ["c = torch.ones(3)"],
    ["f = float('inf')"],
    ["f = math.nan"],
    ["f = -4."],
    ["f = 3"],
    ["n = 10 ** 30"],
    ["n = -1"],
    ["n = 2.5"],
    ["n = 0"],
    ["n = 62"],
    ["s = 7"],
    ["p = 0.0"],
    ["p = 0.9"],
    ["p = 1.5"],
    ["k = 9"],
    ["k = 0"],
    ["k = slice(0, 2)"],
    ["hi = 0"],
    ["hi = 9"],
    ["size = 3"],
    ["size = 0"],
    ["size = 4"],
    ["dim = 1"],
    ["dim = 2"],
    ["dim = None"],
    ["flag = True"],
    ["mode = 'sum'"],
    ["mode = 'none'"],
    ["mode = 'other'"],
    ["t = t.double()"],
    ["t = torch.zeros(3)"],
    ["t = t + w.sum()"],
    ["buf = torch.zeros(6)"],
    ["buf = buf.double()"],
    ["buf = m"],
    ["m = torch.ones(2, 2)"],
    ["m[1] = m[0]"],
    ["a = torch.tensor([7, 0])"],
    ["w = torch.ones(3, requires_grad=True)"],
    ["w = w.detach()"],
    ["w.requires_grad_(False)"],
    ["w.register_hook(lambda g: g * 2)"],
    ["w.grad = torch.ones(3)"],
    ["torch.set_grad_enabled(False)"],
    ["torch.set_default_dtype(torch.float64)"],
    ["torch.manual_seed(i)"],
    ["model.eval()"],
    ["model[0].weight.data.zero_()"],
    ["model[0] = nn.Linear(3, 2)"],
    ["model[0].bias = None"],
    ["optimizer.param_groups[0]['lr'] = 0.5"],
    ["optimizer.state.clear()"],
    ["config = {'k': 5., 't': t}"],
    ["del config['j']"],
    ["items.clear()"],
    ["items = (1, 2)"],
    ["parts.append(torch.ones(1))"],
    ["parts[0] = torch.ones(5)"],
    ["parts.pop()"],
    ["batch = torch.ones(2)"],
    ["batch = batch.double()"],
    ["batch = w"],
    ["batch = None"],
    ["keep[1] = True"],
    ["keep = ~keep"],
    ["keep = keep[:2]"],
    ["own = torch.Generator()"],
    ["own.manual_seed(7)"],
    ["fns.append(shifted)"],
    ["fns[1] = shifted"],
    ["table['double'] = torch.relu"],
    ["name = 'tanh'"],
    ["name = 'none'"],
    ["rows.clear()"],
    ["rows = []"],
    ["batches[i + 1] = torch.ones(5)"],
    ["batches[-1] = torch.ones(1)"],
    ["numbers[i] = 0"],
    ["numbers[i + 2] = 0"],
    ["numbers[-1] = 0"],
    ["step = torch.relu"],
    ["step = shifted"],
    ["step = math.sqrt"],
    ["box = Box()"],
    ["box.x = torch.ones(3)"],
    ["Box.times = lambda self, v: v - 1"],
    ["del box.n"],
    ["unit = torch.tensor(1)"],
    ["unit = w[0]"],
    ["view = None"],
    ["ok = None"],
    ["count = counter()"],
    ["q = 1 / 0"],
    ["q = items[99]"],
    ["q = buf + torch.ones(9)"],
    ["q = undefined"],
    ["assert n < 0, f'n is {n}'"],
    ["print('late', i, t)"],
    ["w.data = torch.ones(3)"],
    ["w.data[0] = float('nan')"],
    ["buf.resize_(6) if False else buf.fill_(2.)"],
    ["(w * 2).sum().backward()", "w.grad.mul_(3)"],
]
"""What happens once, late."""

NAMES = (
    "w, buf, a, m, t, q, x, view, r, y, n, f, c, p, k, hi, size, s, ok, last, previous, mode, dim,"
    " flag, unit, items, config, parts, box, count, step, i, j, batch, part,"
    " own, fns, table, rows, row, name, fn, state, keep"
)

HANDLERS = ["Exception as e", "(ValueError, RuntimeError) as e", "RuntimeError as e",
            "(TypeError, IndexError, ZeroDivisionError) as e"]  # fmt: skip


def random_late(seed: int) -> str:
    """A program with a loop in which something happens late."""
    random = Random(seed)
    rounds = random.choice([100, 120, 120, 140])
    late = random.choice([75, 80, 90, 95, rounds - 3, rounds - 2, rounds - 1])
    head = HEAD.format(
        seed=seed, rounds=rounds, layer=random.choice(LAYERS), optimizer=random.choice(OPTIMIZERS)
    )
    body = _body(random, late, rounds)
    loop = _loop(random, body, rounds)
    around = random.randrange(8)
    if around == 0:
        loop = ["try:", *_in(loop), f"except {random.choice(HANDLERS)}:"]
        loop += ["    print('caught', i, type(e).__name__, e)"]
    elif around == 1:
        ends = random.choice(["return i", "return t", "return"])
        loop = [line.replace("break", ends) for line in loop]
        loop = [
            "def main():",
            f"    global {NAMES}",
            *_in(loop),
            "    return 'all'",
            "print(main())",
        ]
    elif around == 2:
        loop = ["def main():", f"    global {NAMES}", *_in(loop), "main()"]
    elif around == 3 and rounds <= 120:
        loop = ["for epoch in range(2):", *_in(loop)]
    elif around == 4:
        loop = ["try:", *_in(loop), "finally:", "    print('finally', i, n)"]
    return head + "batch, i = batches[0], 0\n" + "\n".join(loop) + "\nprint(i, n, f, t)\n"


def _body(random: Random, late: int, rounds: int) -> list[str]:
    """The lines of an iteration."""
    parts = [list(each) for each in random.sample(ORDINARY, random.randrange(2, 6))]
    event = random.choice(EVENTS)
    name = re.split(r"\W", event[0].removeprefix("del "))[0]
    reading = [each for each in ORDINARY if re.search(rf"\b{name}\b", "\n".join(each))]
    if reading:
        parts.insert(random.randrange(len(parts) + 1), list(random.choice(reading)))
    when = random.choice(
        [f"i == {late}", f"i == {late}", f"i >= {late}", f"i % {late} == {late} - 1"]
    )
    if random.random() < 0.15:  # an event that the loop's own values bring about
        when = random.choice([f"n > {late}", f"len(items) == {late}", f"last == {late}"])
    lines = [f"if {when}: {event[0]}", *(f"if {when}: {each}" for each in event[1:])]
    parts.insert(random.randrange(len(parts) + 1), lines)
    if random.random() < 0.25:
        start = random.randrange(len(parts))
        end = random.randrange(start, len(parts)) + 1
        inner = [line for part in parts[start:end] for line in part]
        ends = random.choice(
            [
                [f"except {random.choice(HANDLERS)}:", "    print(i, type(e).__name__, e)"],
                [f"except {random.choice(HANDLERS)}:", "    last = str(e)", "    break"],
                [f"except {random.choice(HANDLERS)}:", "    n = 1", "    continue"],
                ["finally:", "    last = i"],
            ]
        )
        parts[start:end] = [["try:", *_in(inner), *ends]]
    return [line for part in parts for line in part]


def _loop(random: Random, body: list[str], rounds: int) -> list[str]:
    """A loop with the lines."""
    kind = random.randrange(6)
    if kind == 0:
        return ["for i, batch in enumerate(batches):", *_in(body)]
    if kind == 1:
        lines = ["batch = batches[i]", *body]
        lines = [line.replace("continue", "i += 1; continue") for line in lines]
        return ["i = 0", f"while i < {rounds}:", *_in([*lines, "i += 1"])]
    if kind == 2:
        return ["for i, (batch, number) in enumerate(zip(batches, numbers)):", *_in(body)]
    if kind == 3:
        return ["i = -1", "for batch in batches:", *_in(["i += 1", *body])]
    return [f"for i in range({rounds}):", *_in(["batch = batches[i]", *body])]


def _in(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def lates(seed: int, count: int) -> Iterator[Late]:
    """So many programs, from a seed on."""
    for number in range(seed, seed + count):
        yield Late(f"random {number}", random_late(number))
