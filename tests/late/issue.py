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
}
"""The programs, and what PyTorch 2.13 prints."""

HEAD = """\
import torch
import torch.nn.functional as F
torch.manual_seed(0)
"""
