"""What an iteration reads without being told that it changes: each kind of state, changed between
two iterations or within one by something that the loop does not name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.late.loop import LATE, ROUNDS, Late


class Read(NamedTuple):
    """A kind of state: what makes it, what an iteration does with it, and how it changes."""

    before: str
    body: str
    change: str


_NET = """\
class Net(nn.Module):
    k = 2.
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.scale = 0.5
        self.register_buffer('mean', torch.ones(2))
    def forward(self, v):
        return self.inner(v) * self.scale + self.mean * self.k
    def helped(self, v):
        return v * 2
net = Net()
"""

_TRAINED = """\
v = torch.tensor([1., -2.], requires_grad=True)
optimizer = torch.optim.SGD([v], lr=0.01, momentum=0.5)
"""

_STEP = "optimizer.zero_grad(); (v * v).sum().backward(); optimizer.step()"

_CLASSES = """\
class Held:
    rate = 2.
    def __init__(self): self.k, self.items, self.f = 2., [1., 2.], torch.relu
    def value(self): return self.k
    def call(self, v): return self.f(v) * self.value()
    @property
    def double(self): return self.k * 2
    @staticmethod
    def fixed(v): return v + 1
held = Held()
"""

_FUNCTIONS = """\
factor, name, function = 2., 'a', torch.relu
def scaled(v): return v * factor
def tripled(v): return v * 3
def chosen(v, by=2.): return v * by
def made():
    by = 2.
    def read(v): return v * by
    def write(value):
        nonlocal by
        by = value
    return read, write
read, write = made()
apply = functools.partial(chosen, by=4.)
"""

_SUM = "t = t + {}.sum()"

READS = {
    "grad mode": Read("v = torch.ones(2, requires_grad=True)\nflags = []\n",
                      "q = (v * 2).sum(); flags.append(q.requires_grad)", "torch.set_grad_enabled(False)"),
    "grad mode of a graph": Read("v = torch.ones(2, requires_grad=True)\n", "q = (v * 2).sum()", "torch.set_grad_enabled(False)"),
    "grad mode of a backward pass": Read("v = torch.ones(2, requires_grad=True)\n", "(v * 2).sum().backward()", "torch.set_grad_enabled(False)"),
    "default dtype": Read("", "q = torch.ones(2) * 1.1; t = t + q.sum()", "torch.set_default_dtype(torch.float64)"),
    "default dtype of numbers": Read("", "q = torch.tensor(1.1); t = t + q", "torch.set_default_dtype(torch.float64)"),
    "print options": Read("", "t = t + w.sum()\n    if i % 10 == 1: print(t / 3)", "torch.set_printoptions(precision=2)"),
    "seed": Read("", "t = t + torch.rand(2).sum()", "torch.manual_seed(5)"),
    "draws elsewhere": Read("", "t = t + torch.rand(2).sum()", "torch.rand(3)"),
    "seed of Python": Read("", "t = t + w.sum() * random.random()", "random.seed(3)"),
    "training of dropout": Read("layer = nn.Dropout(0.5)\n", _SUM.format("layer(w)"), "layer.eval()"),
    "evaluation of dropout": Read("layer = nn.Dropout(0.5).eval()\n", _SUM.format("layer(w)"), "layer.train()"),
    "training of batch norm": Read("layer = nn.BatchNorm1d(2)\n", _SUM.format("layer(x)"), "layer.eval()"),
    "training of a container": Read("layer = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))\n", _SUM.format("layer(x)"), "layer.eval()"),
    "training, unread": Read("layer = nn.BatchNorm1d(2).eval()\n", "q = layer(x)", "layer.train()"),
    "attribute of a layer": Read("layer = nn.Dropout(0.5)\n", _SUM.format("layer(w)"), "layer.p = 0.1"),
    "momentum of a layer": Read("layer = nn.BatchNorm1d(2)\n", "q = layer(x)", "layer.momentum = 0.5"),
    "slope of a layer": Read("layer = nn.LeakyReLU(0.1)\n", _SUM.format("layer(w)"), "layer.negative_slope = 0.3"),
    "parameter replaced": Read(_NET, _SUM.format("net(x)"), "net.inner.weight = nn.Parameter(torch.ones(2, 2))"),
    "layer replaced": Read(_NET, _SUM.format("net(x)"), "net.inner = nn.Linear(2, 2, bias=False)"),
    "parameter's data replaced": Read(_NET, "net(x).sum().backward()", "net.inner.weight.data = torch.ones(2, 2)"),
    "data of another shape": Read("v = torch.ones(2)\n", _SUM.format("(v * 2)"), "v.data = torch.ones(3)"),
    "parameter written": Read(_NET, _SUM.format("net(x)"), "net.inner.weight.data.mul_(2)"),
    "parameter of another dtype": Read(_NET, "q = net(x.to(net.mean.dtype)); t = t + q.sum()", "net.double()"),
    "buffer replaced": Read(_NET, _SUM.format("net(x)"), "net.mean = torch.ones(2) * 3"),
    "buffer written": Read(_NET, _SUM.format("net(x)"), "net.mean.add_(1)"),
    "state loaded": Read(_NET, _SUM.format("net(x)"), "net.load_state_dict({k: e * 2 for k, e in net.state_dict().items()})"),
    "number of a module": Read(_NET, _SUM.format("net(x)"), "net.scale = 3."),
    "attribute of a class of modules": Read(_NET, _SUM.format("net(x)"), "Net.k = 5."),
    "attribute that hides the class's": Read(_NET, _SUM.format("net(x)"), "net.k = 5."),
    "method of a class replaced": Read(_NET, _SUM.format("net.helped(x)"), "Net.helped = lambda self, v: v * 7"),
    "forward replaced": Read(_NET, _SUM.format("net(x)"), "net.forward = lambda v: v * 7"),
    "forward hook": Read(_NET, _SUM.format("net(x)"), "net.register_forward_hook(lambda m, a, out: out * 2)"),
    "forward hook of an inner layer": Read(_NET, _SUM.format("net(x)"), "net.inner.register_forward_hook(lambda m, a, out: out * 2)"),
    "forward pre-hook": Read(_NET, _SUM.format("net(x)"), "net.register_forward_pre_hook(lambda m, a: (a[0] * 2,))"),
    "hook of a leaf": Read("v = torch.ones(2, requires_grad=True)\n", "(v * 2).sum().backward()", "v.register_hook(lambda g: g * 2)"),
    "hook of a parameter": Read(_NET, "net(x).sum().backward()", "net.inner.bias.register_hook(lambda g: g * 2)"),
    "hook removed": Read("v = torch.ones(2, requires_grad=True)\nhandle = v.register_hook(lambda g: g * 2)\n", "(v * 2).sum().backward()", "handle.remove()"),
    "hook after accumulation": Read("v = torch.ones(2, requires_grad=True)\n", "(v * 2).sum().backward()",
                                    "v.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5))"),
    "hook of a module's backward pass": Read(_NET, "net(x).sum().backward()", "net.inner.register_full_backward_hook(lambda m, a, b: print('back'))"),
    "hook of an optimizer": Read(_TRAINED, _STEP, "optimizer.register_step_post_hook(lambda o, a, k: print('step'))"),
    "requires_grad": Read("v = torch.ones(2)\nflags = []\n", "q = v * 2; flags.append(q.requires_grad)", "v.requires_grad_()"),
    "requires_grad of what is differentiated": Read("v, u = torch.ones(2, requires_grad=True), torch.ones(2)\n", "(v * u).sum().backward()", "u.requires_grad_()"),
    "a frozen parameter": Read(_NET, "net(x).sum().backward()", "net.inner.weight.requires_grad_(False)"),
    "everything frozen": Read("v = torch.ones(2, requires_grad=True)\n", "(v * 2).sum().backward()", "v.requires_grad = False"),
    "gradient set to None": Read("v = torch.ones(2, requires_grad=True)\n", "(v * 2).sum().backward()", "v.grad = None"),
    "gradient replaced": Read("v = torch.ones(2, requires_grad=True)\n", "(v * 2).sum().backward()", "v.grad = torch.ones(2) * 5"),
    "gradient written": Read("v = torch.ones(2, requires_grad=True)\n", "(v * 2).sum().backward()", "v.grad.zero_()"),
    "global number": Read(_FUNCTIONS, _SUM.format("scaled(w)"), "factor = 3.5"),
    "global number of another type": Read(_FUNCTIONS, _SUM.format("scaled(w)"), "factor = torch.ones(2)"),
    "global text": Read(_FUNCTIONS, "t = t + w.sum() * len(name)", "name = 'abc'"),
    "global tensor": Read("g = torch.ones(2)\ndef used(v): return v * g\n", _SUM.format("used(w)"), "g = torch.ones(2) * 4"),
    "global tensor written": Read("g = torch.ones(2)\ndef used(v): return v * g\n", _SUM.format("used(w)"), "g.add_(1)"),
    "global deleted": Read("g = torch.ones(2)\ndef used(v): return v * g\n", _SUM.format("used(w)"), "del g"),
    "function rebound": Read(_FUNCTIONS, _SUM.format("scaled(w)"), "scaled = tripled"),
    "function in a name": Read(_FUNCTIONS, _SUM.format("function(w)"), "function = torch.tanh"),
    "function in an attribute": Read(_CLASSES, _SUM.format("held.call(w)"), "held.f = torch.tanh"),
    "cell of a closure": Read(_FUNCTIONS, _SUM.format("read(w)"), "write(3.5)"),
    "cell of a closure of a tensor": Read(_FUNCTIONS, _SUM.format("read(w)"), "write(torch.ones(2) * 3)"),
    "attribute": Read(_CLASSES, _SUM.format("held.call(w)"), "held.k = 3.5"),
    "attribute by setattr": Read(_CLASSES, _SUM.format("held.call(w)"), "setattr(held, 'k', 3.5)"),
    "attribute deleted": Read(_CLASSES, _SUM.format("held.call(w)"), "del held.k"),
    "attribute in vars()": Read(_CLASSES, _SUM.format("held.call(w)"), "vars(held)['k'] = 3.5"),
    "attribute of a class": Read(_CLASSES, "t = t + w.sum() * held.rate", "Held.rate = 5."),
    "attribute instead of the class's": Read(_CLASSES, "t = t + w.sum() * held.rate", "held.rate = 5."),
    "method replaced": Read(_CLASSES, _SUM.format("held.call(w)"), "Held.value = lambda self: 9."),
    "method of an instance": Read(_CLASSES, _SUM.format("held.call(w)"), "held.value = lambda: 9."),
    "static method replaced": Read(_CLASSES, _SUM.format("held.fixed(w)"), "Held.fixed = staticmethod(lambda v: v + 5)"),
    "property replaced": Read(_CLASSES, "t = t + w.sum() * held.double", "Held.double = property(lambda self: 1.)"),
    "instance replaced": Read(_CLASSES, _SUM.format("held.call(w)"), "held = Held(); held.k = 6."),
    "list in an attribute": Read(_CLASSES, "t = t + w.sum() * sum(held.items)", "held.items.append(4.)"),
    "entry of a dict": Read("config = {'k': 2., 'j': 1.}\n", "t = t + w.sum() * config['k']", "config['k'] = 3.5"),
    "entry of a dict, new": Read("config = {'k': 2., 'j': 1.}\n", "t = t + w.sum() * sum(config.values())", "config['z'] = 3.5"),
    "entry of a dict deleted": Read("config = {'k': 2., 'j': 1.}\n", "t = t + w.sum() * config['k']", "del config['k']"),
    "entry with get": Read("config = {'j': 1.}\n", "t = t + w.sum() * config.get('k', 2.)", "config['k'] = 3.5"),
    "nested dict": Read("config = {'a': {'k': 2.}}\n", "t = t + w.sum() * config['a']['k']", "config['a']['k'] = 3.5"),
    "nested dict replaced": Read("config = {'a': {'k': 2.}}\n", "t = t + w.sum() * config['a']['k']", "config['a'] = {'k': 4.}"),
    "membership": Read("config = {'k'}\n", "t = t + w.sum() * (2. if 'k' in config else 1.)", "config.discard('k')"),
    "alias of a list": Read("items = [1., 2.]\nalias = items\n", "t = t + w.sum() * items[0]", "alias[0] = 5."),
    "alias of a list that grows": Read("items = [1., 2.]\nalias = items\n", "t = t + w.sum() * sum(items)", "alias.append(5.)"),
    "length of a list": Read("items = [1., 2.]\nalias = items\n", "t = t + w.sum() * len(items)", "alias.pop()"),
    "list of tensors": Read("items = [w, x]\n", "t = t + items[0].sum()", "items[0] = x"),
    "list of tensors, each": Read("items = [w, x]\n", "for each in items: t = t + each.sum()", "items.append(w)"),
    "list of layers": Read("items = [torch.relu, torch.tanh]\n", "q = w\n    for each in items: q = each(q)\n    t = t + q.sum()", "items[1] = torch.sigmoid"),
    "alias of a tensor": Read("v = torch.ones(2)\nalias = v\n", _SUM.format("(v * 2)"), "alias.add_(1)"),
    "alias by detach": Read("v = torch.ones(2, requires_grad=True)\nalias = v.detach()\n", "(v * v).sum().backward()", "alias.add_(1)"),
    "base of a view": Read("base = torch.ones(4)\nv = base[1:3]\n", _SUM.format("(v * 2)"), "base[1] = 5."),
    "base of a view, refilled": Read("base = torch.ones(4)\nv = base[1:3]\n", "t = t + (v * v).sum()", "base.mul_(3)"),
    "view of what is read": Read("base = torch.ones(4)\nv = base[1:3]\n", "t = t + (base * 2).sum()", "v.zero_()"),
    "array of what is read": Read("array = np.ones(2)\nv = torch.from_numpy(array)\n", "t = t + (v * 2).sum()", "array[0] = 5."),
    "tensor of the same array": Read("v = torch.ones(2)\narray = v.numpy()\n", "t = t + (v * 2).sum()", "array[0] = 5."),
    "shape in place": Read("v = torch.ones(2, 3)\n", "t = t + (v * 2).sum(0).mean()", "v.t_()"),
    "shape by resizing": Read("v = torch.ones(2, 1)\n", "t = t + (v * 2).sum(0).mean()", "v.squeeze_()"),
    "learning rate": Read(_TRAINED, _STEP, "optimizer.param_groups[0]['lr'] = 0.1"),
    "weight decay": Read(_TRAINED, _STEP, "optimizer.param_groups[0]['weight_decay'] = 0.1"),
    "momentum": Read(_TRAINED, _STEP, "optimizer.param_groups[0]['momentum'] = 0."),
    "optimizer's memory": Read(_TRAINED, _STEP, "optimizer.state.clear()"),
    "optimizer's memory written": Read(_TRAINED, _STEP, "optimizer.state[v]['momentum_buffer'].zero_()"),
    "group of parameters": Read(_TRAINED, _STEP, "optimizer.add_param_group({'params': [w], 'lr': 0.5})"),
    "optimizer loaded": Read(_TRAINED + "saved = optimizer.state_dict()\n", _STEP, "optimizer.load_state_dict(saved)"),
    "optimizer replaced": Read(_TRAINED, _STEP, "optimizer = torch.optim.Adam([v], lr=0.1)"),
    "parameter written, trained": Read(_TRAINED, _STEP, "v.data.fill_(3.)"),
    "the leaf replaced": Read(_TRAINED, _STEP, "v = torch.tensor([5., 5.], requires_grad=True)"),
    "tensor of another dtype": Read("v = torch.ones(2)\n", _SUM.format("(v * 2)"), "v = torch.ones(2, dtype=torch.float64)"),
    "tensor of another shape": Read("v = torch.ones(2)\n", _SUM.format("(v * 2)"), "v = torch.ones(3)"),
    "name of a module": Read("import math as m\n", "t = t + w.sum() * m.floor(2.5)", "m = Rounding"),
    "constant in a class of constants": Read("class C: LR = 0.5\n", "t = t + w.sum() * C.LR", "C.LR = 0.25"),
}  # fmt: skip

_CHANGE = "def change():\n    global {globals}\n    {change}\n"

_COUNTED = "calls = 0\ndef tick(*given):\n    global calls\n    calls += 1\n    if calls == {late} + {earlier}: change()\n    return given[0] if given else None\n"  # noqa: E501

CHANGERS = {
    "if": ("", "for i in range({rounds}):\n    if i == {late}: change()\n    {body}\n"),
    "if, at the end": ("", "for i in range({rounds}):\n    {body}\n    if i == {late}: change()\n"),
    "written out": ("", "for i in range({rounds}):\n    if i == {late}:\n        {change}\n    {body}\n"),
    "generator": ("def source():\n    for k in range({rounds}):\n        if k == {late} and epoch: change()\n        yield k\n",
                  "{twice}for i in source():\n        {body_in}\n"),
    "generator expression": (_COUNTED, "{twice}for i in (tick(k) for k in range({rounds})):\n        {body_in}\n"),
    "map": (_COUNTED, "{twice}for i in map(tick, range({rounds})):\n        {body_in}\n"),
    "zip": (_COUNTED, "{twice}for i, _ in zip(range({rounds}), map(tick, range({rounds}))):\n        {body_in}\n"),
    "iterator": ("class Source:\n    def __init__(self): self.k = -1\n    def __iter__(self): return self\n    def __next__(self):\n"
                 "        self.k += 1\n        if self.k == {late} and epoch: change()\n        if self.k == {rounds}: raise StopIteration\n        return self.k\n",
                 "{twice}for i in Source():\n        {body_in}\n"),
    "items": ("class Source:\n    def __getitem__(self, k):\n        if k == {late} and epoch: change()\n        if k == {rounds}: raise IndexError\n        return k\n",
              "{twice}for i in Source():\n        {body_in}\n"),
    "calls until": (_COUNTED, "{twice}for i in iter(lambda: tick(calls % {rounds}), {rounds} - 1):\n        {body_in}\n"),
    "data set": ("from torch.utils.data import DataLoader, Dataset\nclass Data(Dataset):\n    def __len__(self): return {rounds}\n"
                 "    def __getitem__(self, k):\n        if k == {late} and epoch: change()\n        return torch.tensor(float(k))\n",
                 "{twice}for i, batch in enumerate(DataLoader(Data())):\n        {body_in}\n        t = t + batch.sum() * 0.1\n"),
    "collate": ("from torch.utils.data import DataLoader\ndef collate(rows):\n    if rows[0] == {late} and epoch: change()\n    return rows[0]\n",
                "{twice}for i in DataLoader(range({rounds}), collate_fn=collate):\n        {body_in}\n"),
    "sampler": ("from torch.utils.data import DataLoader\nclass Order:\n    def __iter__(self):\n        for k in range({rounds}):\n"
                "            if k == {late} and epoch: change()\n            yield k\n    def __len__(self): return {rounds}\n",
                "{twice}for i in DataLoader(list(range({rounds})), sampler=Order(), batch_size=None):\n        {body_in}\n"),
    "while": (_COUNTED, "i = 0\nwhile tick(i) < {rounds}:\n    {body}\n    i += 1\n"),
    "truth": ("class Going:\n    k = 0\n    def __bool__(self):\n        self.k += 1\n        if self.k == {late}: change()\n        return self.k < {rounds}\n"
              "going = Going()\n", "i = 0\nwhile going:\n    {body}\n    i += 1\n"),
    "length": ("class Going:\n    k = 0\n    def __len__(self):\n        self.k += 1\n        if self.k == {late}: change()\n        return {rounds} - self.k\n"
               "going = Going()\n", "i = 0\nwhile going:\n    {body}\n    i += 1\n"),
    "another name": (_COUNTED + "other = tick\n", "for i in range({rounds}):\n    other(i)\n    {body}\n"),
    "function in a list": (_COUNTED + "functions = [tick]\n", "for i in range({rounds}):\n    for each in functions: each(i)\n    {body}\n"),
    "function in a dict": (_COUNTED + "functions = {'on': tick}\n", "for i in range({rounds}):\n    functions['on'](i)\n    {body}\n"),
    "bound method": ("class Ticker:\n    k = 0\n    def tick(self):\n        self.k += 1\n        if self.k == {late}: change()\nhear = Ticker().tick\n",
                     "for i in range({rounds}):\n    hear()\n    {body}\n"),
    "property": ("class Watched:\n    k = 0\n    @property\n    def now(self):\n        self.k += 1\n        if self.k == {late}: change()\n        return self.k\n"
                 "watched = Watched()\n", "for i in range({rounds}):\n    now = watched.now\n    {body}\n"),
    "getattr": ("class Watched:\n    def __init__(self): self.k = 0\n    def __getattr__(self, name):\n        self.k += 1\n"
                "        if self.k == {late}: change()\n        return self.k\nwatched = Watched()\n", "for i in range({rounds}):\n    now = watched.now\n    {body}\n"),
    "subscript": ("class Watched:\n    def __getitem__(self, k):\n        if k == {late}: change()\n        return k\nwatched = Watched()\n",
                  "for i in range({rounds}):\n    now = watched[i]\n    {body}\n"),
    "operator": ("class Watched:\n    def __add__(self, k):\n        if k == {late}: change()\n        return k\nwatched = Watched()\n",
                 "for i in range({rounds}):\n    now = watched + i\n    {body}\n"),
    "format": ("class Watched:\n    def __str__(self):\n        tick()\n        return 'x'\nwatched = Watched()\n" + _COUNTED,
               "for i in range({rounds}):\n    now = f'{watched}'\n    {body}\n"),
    "context": ("class Within:\n    def __enter__(self): return tick()\n    def __exit__(self, *given): pass\nwithin = Within()\n" + _COUNTED,
                "for i in range({rounds}):\n    with within:\n        {body_in}\n"),
    "comprehension": (_COUNTED, "for i in range({rounds}):\n    now = [tick(k) for k in (i,)]\n    {body}\n"),
    "sort key": (_COUNTED, "for i in range({rounds}):\n    now = sorted([i], key=tick)\n    {body}\n"),
    "default argument": (_COUNTED + "def asked(k, by=tick): return by(k)\n", "for i in range({rounds}):\n    asked(i)\n    {body}\n"),
    "decorator": (_COUNTED + "def told(f):\n    def inner(k):\n        tick()\n        return f(k)\n    return inner\n@told\ndef same(k): return k\n",
                  "for i in range({rounds}):\n    same(i)\n    {body}\n"),
    "setter": ("class Watched:\n    @property\n    def now(self): return 0\n    @now.setter\n    def now(self, k):\n        if k == {late}: change()\n"
               "watched = Watched()\n", "for i in range({rounds}):\n    watched.now = i\n    {body}\n"),
    "forward hook": (_COUNTED + "heard = nn.Identity()\nheard.register_forward_hook(lambda m, a, out: tick() and None)\n",
                     "for i in range({rounds}):\n    heard(w)\n    {body}\n"),
    "backward hook": (_COUNTED + "leaf = torch.ones(2, requires_grad=True)\nleaf.register_hook(lambda g: tick() and None)\n",
                      "for i in range({rounds}):\n    with torch.enable_grad(): (leaf * 2).sum().backward()\n    {body}\n"),
    "forward of a module": (_COUNTED + "class Told(nn.Module):\n    def forward(self, v):\n        tick()\n        return v * 1\ntold = Told()\n",
                            "for i in range({rounds}):\n    told(w)\n    {body}\n"),
    "own function": (_COUNTED + "class Own(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, v):\n        tick()\n        return v * 1\n"
                     "    @staticmethod\n    def backward(ctx, g): return g\n", "for i in range({rounds}):\n    Own.apply(w)\n    {body}\n"),
    "schedule": (_COUNTED + "paced = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.)\n"
                 "pace = torch.optim.lr_scheduler.LambdaLR(paced, lambda e: 1. if tick() is None else 0.)\ncalls = 0\n",
                 "for i in range({rounds}):\n    paced.step(); pace.step()\n    {body}\n"),
    "closure of an optimizer": (_COUNTED + "paced = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.)\n",
                                "for i in range({rounds}):\n    paced.step(lambda: tick(0.))\n    {body}\n"),
    "outer loop": ("", "for epoch in range(3):\n    if epoch == 2: change()\n    for i in range(70):\n        {body_in}\n"),
    "outer call": ("def run_all():\n    global t, {globals}\n    for i in range(70):\n        {body_in}\n", "for epoch in range(3):\n    if epoch == 2: change()\n    run_all()\n"),
}  # fmt: skip
"""What changes it: what stands before the loop, and the loop. One whose length nobody knows ahead is
compiled when it begins once more, so it runs twice.
"""

HEAD = """\
import functools, random
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0); random.seed(0)
w = torch.tensor([1.5, -2.])
x = torch.tensor([[1., 2.], [3., -1.]])
t = torch.zeros(())
class Rounding:
    @staticmethod
    def floor(v): return 7.
"""


def program(read: Read, changer: str) -> str:
    """The program of a kind of state and what changes it."""
    before, loop = CHANGERS[changer]
    assigned = [word.split(" = ")[0] for word in read.change.split("; ") if " = " in word]
    names = [name for name in assigned if name.isidentifier()]
    if read.change.startswith("del ") and read.change[4:].isidentifier():
        names.append(read.change[4:])
    twice = "{twice}" in loop
    loop = loop.replace("{twice}", "for epoch in range(2):\n    ")
    text = HEAD + read.before + _CHANGE + before + loop
    body_in = read.body.replace("\n    ", "\n        ")
    given = {
        "body_in": body_in, "body": read.body, "change": read.change,
        "earlier": str(1 + ROUNDS * twice), "globals": ", ".join(names) or "unused", "late": str(LATE), "rounds": str(ROUNDS),
    }  # fmt: skip
    for name, value in given.items():
        text = text.replace(f"{{{name}}}", value)
    return text + "print(t)\n"


def lates() -> Iterator[Late]:
    """Each kind of state with each change of it."""
    for name, read in READS.items():
        for changer in CHANGERS:
            yield Late(f"{name}, {changer}", program(read, changer))
