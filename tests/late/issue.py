"""Programs that once did something else compiled than PyTorch does, with what that prints."""

from __future__ import annotations

PROGRAMS = {
    "a probability that leaves 0": (
        """
s = 0.
p = 0.
for i in range(220):
    if i == 100: p = 0.5
    s += F.dropout(torch.ones(3), p).sum().item()
print(s, torch.rand(1))
""",
        "660.0 tensor([0.9055])\n",
    ),
    "a bad bound after a backward pass": (
        """
w = torch.ones(2, requires_grad=True)
def step(i):
    (w * 1).sum().backward()
    return torch.randint(0, 299 - i, (2,))
try:
    for i in range(400):
        r = step(i)
except RuntimeError:
    print('stop at', i)
print(w.grad)
""",
        "stop at 299\ntensor([300., 300.])\n",
    ),
    "a number that was an integer": (
        """
n = 0
for i in range(200):
    q = torch.tensor([1]) + 2 ** (i // 2 - 11)
    n += 1
    if i == 90: break
print(n, q)
""",
        "91 tensor([17179869185])\n",
    ),
    "an integer divisor reaches 0": (
        """
a, d, n = torch.tensor([7, -8]), torch.tensor([120, 200]), 0
try:
    for i in range(200):
        q = a // d
        d = d - 1
        n += 1
except RuntimeError as e:
    print(type(e).__name__, e)
print(n, i, q, d)
""",
        "RuntimeError ZeroDivisionError\n120 120 tensor([ 7, -1]) tensor([ 0, 80])\n",
    ),
    "a matrix becomes singular": (
        """
m, n = torch.eye(2), 0
try:
    for i in range(200):
        m[0, 0] = 150. - i
        q = torch.linalg.inv(m)
        n += 1
except RuntimeError as e:
    print(type(e).__name__)
print(n, i, q)
""",
        "_LinAlgError\n150 150 tensor([[1., 0.],\n        [0., 1.]])\n",
    ),
    "one batch of another shape": (
        """
a, n = torch.ones(2), 0
l = [torch.ones(2)] * 100 + [torch.ones(3)] + [torch.ones(2)] * 99
try:
    for i in range(200):
        n += 1
        q = a + l[i]
except RuntimeError as e:
    print(type(e).__name__)
print(n, i, q)
""",
        "RuntimeError\n101 100 tensor([2., 2.])\n",
    ),
    "data of another shape, and no graph of the old": (
        """
w, y = torch.ones(2, requires_grad=True), None
for i in range(200):
    w.grad = None
    if i == 100:
        w.data = torch.ones(3)
        y = None
    y = (w * w).sum()
    y.backward()
print(w.grad, y)
""",
        "tensor([2., 2., 2.]) tensor(3., grad_fn=<SumBackward0>)\n",
    ),
    "data of another shape after a loop": (
        """
w, y = torch.ones(2, requires_grad=True), None
for i in range(150):
    w.grad = None
    y = (w * w).sum()
    y.backward()
w.data = torch.ones(3)
w.grad = None
try:
    (w * w).sum().backward()
except RuntimeError as e:
    print(e)
y = None
(w * w).sum().backward()
print(w.grad)
""",
        "Function MulBackward0 returned an invalid gradient at index 0 - got [3] but expected shape"
        " compatible with [2]\ntensor([2., 2., 2.])\n",
    ),
    "a step that begins to fail": (
        """
w = torch.ones(2, requires_grad=True)
for name, bad in (('weight_decay', 'x'), ('betas', (1.0, 0.9)), ('amsgrad', True)):
    opt = torch.optim.AdamW([w], lr=0.1)
    try:
        for i in range(200):
            opt.zero_grad()
            (w - 3).pow(2).sum().backward()
            opt.step()
            if i == 100: opt.param_groups[0][name] = bad
    except (TypeError, ZeroDivisionError, KeyError) as e:
        print(type(e).__name__, i, w.grad.abs().max() < 1)
""",
        "TypeError 101 tensor(True)\nZeroDivisionError 101 tensor(True)\n"
        "KeyError 101 tensor(True)\n",
    ),
    "what a step remembers is taken away": (
        """
w = torch.ones(2, requires_grad=True)
opt = torch.optim.Adam([w], lr=0.1)
try:
    for i in range(200):
        opt.zero_grad()
        (w - 3).pow(2).sum().backward()
        opt.step()
        if i == 150: del opt.state[w]['exp_avg_sq']
except KeyError as e:
    print(e, i)
""",
        "'exp_avg_sq' 151\n",
    ),
    "an average of a model": (
        """
net = torch.nn.Linear(2, 2)
average = torch.optim.swa_utils.AveragedModel(net)
for i in range(150):
    average.update_parameters(net)
print(average.n_averaged)
""",
        "tensor(150)\n",
    ),
    "a distribution's parameter": (
        """
d, s = torch.distributions.Normal(0., 1.), 0.
try:
    for i in range(200):
        s += d.sample().item()
        if i == 100: d.loc = torch.tensor(10.)
        if i == 150: d.scale = torch.tensor(-1.)
except RuntimeError as e:
    print(e, i)
print(round(s), d.mean)
""",
        "normal expects all elements of std >= 0.0 151\n498 tensor(10.)\n",
    ),
    "what an iteration copies as it lies": (
        """
w, t, kept = torch.tensor([1.5, -2.]), torch.zeros(2), []
for p in [w] * 100 + [torch.ones(3)] * 20:
    q = p.nonzero()
    t = t * 0.5 + w
    kept.append(q)
print({each.stride() for each in kept} == {(1, 2), (1, 3)})
""",
        "True\n",
    ),
    "what an iteration makes and keeps": (
        """
p, kept, made, total = {'a': 1}, [], [], 0.
for i in range(120):
    q = p.keys()
    kept.append(q)
    made.append(type('A', (), {}))
    total += i
print(len({id(each) for each in kept}), len({id(each) for each in made}))
""",
        "120 120\n",
    ),
}
"""The programs, and what PyTorch 2.13 prints."""

HEAD = """\
import torch
import torch.nn.functional as F
torch.manual_seed(0)
"""
