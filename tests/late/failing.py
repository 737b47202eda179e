"""Operations that can fail, by the values they are given or by their shapes and dtypes: one bad
operand among good ones, after every kind of effect that an iteration may have had by then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.late.loop import LATE, ROUNDS, Late
from tests.late.texts import groups


class Failing(NamedTuple):
    """An expression in `v`, which fails, or gives something unusual, where `v` is bad.

    Attributes:
        kind: what it gives: a "tensor", a "pair" of tensors, a "number", or "other".
        before: what stands ahead of the loop.
    """

    expression: str
    good: str
    bad: str
    kind: str = "tensor"
    before: str = ""


def _written() -> Iterator[Failing]:
    """The rows of `failing.txt`."""
    for title, lines in groups("failing.txt"):
        kind = title.rpartition(": ")[2]
        before = "".join(f"{line[4:]}\n" for line in lines if line.startswith("    "))
        for line in lines:
            if " :: " in line and not line.startswith("    "):
                expression, good, bad = line.split(" :: ")
                yield Failing(expression, good, bad, kind, before)


_BATCHES = """\
b + v
b @ v
torch.cat([b, v])
torch.stack([b, v])
F.linear(v, b)
linear(v)
v.view(4)
torch.where(b > 0, b, v)
F.mse_loss(v, b)
torch.mm(b, v)
torch.addmm(b, b, v)
torch.einsum('ij,jk->ik', b, v)
F.cross_entropy(v, torch.tensor([0, 1]))
torch.maximum(b, v)
b.mul(v).sum(0)
torch.softmax(v, 1)
v[1]
v.t()
v.sum(1)
torch.dot(b[0], v[0])
b.copy_(v)
torch.lerp(b, v, 0.5)
v.mean()
v.sqrt()
v.max(1)[0]
torch.zeros(v.shape[0])
"""
"""Operations on a batch `v`, one of which has another shape or dtype, or is no tensor."""

_BAD_BATCHES = """\
torch.ones(3, 3)
torch.ones(2, 1)
torch.ones(2)
torch.tensor([[1, 2], [3, 4]])
torch.ones(2, 2, dtype=torch.float64)
torch.ones(0, 2)
torch.tensor(2.)
3.0
None
"""

_BEFORE_BATCHES = "b = torch.tensor([[1., -1.], [2., 0.5]])\nlinear = nn.Linear(2, 2)\n"

_SHAPES = [
    Failing(expression, "torch.tensor([[1., 2.], [3., 4.]])", bad, "tensor", _BEFORE_BATCHES)
    for expression in _BATCHES.splitlines()
    for bad in _BAD_BATCHES.splitlines()
]

ROWS = [*_written(), *_SHAPES]

EFFECTS = {
    "nothing": "",
    "backward": "(w * 1.5).sum().backward()",
    "append": "kept.append(i)",
    "append of a number": "kept.append((w * i).sum().item())",
    "append of a tensor": "kept.append(w.detach() * i)",
    "dict entry": "seen['last'] = i",
    "dict entry of a tensor": "seen['sum'] = seen['sum'] + w.detach()",
    "attribute": "box.n = box.n + 1",
    "attribute of a module": "norm.calls += 1",
    "batch norm": "norm(x)",
    "optimizer": "optimizer.zero_grad(); (w * i).sum().backward(); optimizer.step()",
    "schedule": "optimizer.step(); schedule.step()",
    "write of data": "w.data.mul_(0.99)",
    "write without grad": "with torch.no_grad(): w -= 0.01",
    "write to a buffer": "buffer.add_(1)",
    "write to an element": "buffer[i % 4] = i",
    "write to a view": "view = buffer[1:3]; view += i",
    "write to a tensor in a list": "held[0].mul_(0.9)",
    "draw": "r = torch.rand(2)",
    "draw of a layer": "r = drop(x)",
    "draw of Python's": "r = random.random()",
    "print": "if i % 25 == 0: print(i, w)",
    "print of each": "print(i)",
    "global": "tick()",
    "nonlocal": "count()",
    "name": "z = w * i",
    "number": "n = n * 0.5 + i",
    "string": "s = f'{i} {n}'",
    "gradient set": "w.grad = None; (w * i).sum().backward()",
    "gradient kept": "y = (w * w).sum(); y.backward()",
}
"""What an iteration has done before the operation that fails."""

BEFORE = {
    "random": "import random; random.seed(0)",
    "w": "w = torch.tensor([1., 2.], requires_grad=True)",
    "x": "x = torch.tensor([[1., 2.], [3., 5.], [2., -1.]])",
    "a": "a = torch.tensor([7, -8])",
    "norm": "norm = nn.BatchNorm1d(2); norm.calls = 0",
    "drop": "drop = nn.Dropout(0.5)",
    "optimizer": "optimizer = torch.optim.SGD([w], lr=0.01, momentum=0.9)",
    "schedule": "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 7, gamma=0.9)",
    "seen": "seen = {'last': 0, 'sum': torch.zeros(2)}",
    "buffer": "buffer = torch.zeros(4)",
    "held": "held = [torch.ones(2)]",
    "box": "class Box: n = 0\nbox = Box()",
    "tick()": "total = 0\ndef tick():\n    global total\n    total += 1",
    "count()": "def counter():\n    number = 0\n    def count():\n        nonlocal number\n"
    "        number += 1\n        return number\n    return count\ncount = counter()",
    "kept": "kept = []",
    "s": "s = ''",
    "n": "n = 0.0",
}
"""What stands before the loop where its text has a name."""

HEAD = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
done = 0
"""

LOOPS = {
    "used": "{head}\n    {effect}\n    q = {call}\n    {use}\n    done += 1\n",
    "overwritten": "{head}\n    {effect}\n    q = {call}\n    done += 1\n",
    "caught": "{head}\n    {effect}\n    try:\n        q = {call}\n    except Exception as e:\n"
    "        print(i, type(e).__name__, str(e))\n    done += 1\n",
    "undone": "{head}\n    try:\n        {effect}\n        q = {call}\n    except Exception as e:\n"
    "        print(i, type(e).__name__, e)\n        {effect}\n    finally:\n        done += 1\n",
    "around": "try:\n    {head_in}\n        {effect}\n        q = {call}\n        done += 1\n"
    "except Exception as e:\n    print(i, type(e).__name__, str(e))\n",
    "called": "def step(v, i):\n    {effect}\n    return {call}\n"
    "{head}\n    q = step(v, i)\n    done += 1\n",
}  # fmt: skip
"""What becomes of the result, and who handles the error."""

_HEADS = {
    "listed": ("values = [{good}] * {late} + [{bad}] + [{good}] * {more}\n",
               "for i, v in enumerate(values):"),
    "chosen": ("good, bad = {good}, {bad}\n",
               "for i in range({rounds}):{newline}    v = bad if i == {late} else good"),
}  # fmt: skip
"""How the bad operand comes to the operation."""

_USES = {
    "tensor": "t = t + q.sum()",
    "pair": "t = t + q[0].sum()",
    "number": "n = n + q",
    "other": "kept.append(q)",
}

TIMES = {"used": 2, "overwritten": 2, "around": 1, "called": 2, "caught": 1, "undone": 1}
"""With how many effects a row runs in each kind of loop."""


def program(row: Failing, loop: str, effect: str, head: str) -> str:
    """A program of a row."""
    made, opening = _HEADS[head]
    given = {
        "{head_in}": opening.replace("{newline}", "\n    "),
        "{head}": opening.replace("{newline}", "\n"),
        "{good}": row.good, "{bad}": row.bad, "{late}": str(LATE), "{rounds}": str(ROUNDS),
        "{more}": str(ROUNDS - LATE - 1), "{effect}": EFFECTS[effect] or "pass",
        "{call}": row.expression, "{use}": _USES[row.kind],
    }  # fmt: skip
    text = made + LOOPS[loop]
    for name, value in given.items():
        text = text.replace(name, value)
    bound = re.findall(r"^([a-z]) = ", EFFECTS[effect])
    if loop == "called" and bound:
        text = text.replace("def step(v, i):\n", f"def step(v, i):\n    global {bound[0]}\n")
    text += "print(count())\n" if "count()" in text else ""
    needs = [line for name, line in BEFORE.items() if _occurs(name, text + row.before)]
    if any("[w]" in line for line in needs) and BEFORE["w"] not in needs:
        needs.insert(0, BEFORE["w"])
    if BEFORE["schedule"] in needs and BEFORE["optimizer"] not in needs:
        needs.insert(-1, BEFORE["optimizer"])
    start = "t = torch.zeros(())\n" if loop == "used" and row.kind in ("tensor", "pair") else ""
    return HEAD + start + "".join(f"{line}\n" for line in needs) + row.before + text


def _occurs(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w'.]){re.escape(name)}(?!\w)", text) is not None


def lates() -> Iterator[Late]:
    """The table's programs: each row in each kind of loop, the effects in turn."""
    turn = 0
    effects, heads = list(EFFECTS), list(_HEADS)
    for row in ROWS:
        for loop, times in TIMES.items():
            for _ in range(times):
                turn += 1
                effect, head = effects[turn % len(effects)], heads[turn // 2 % len(heads)]
                name = f"{row.expression}, {row.good} to {row.bad}, {loop}, {effect}, {head}"
                yield Late(name, program(row, loop, effect, head))
