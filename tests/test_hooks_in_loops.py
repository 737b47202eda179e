"""Loops that call modules with forward hooks are compiled, and do what the interpreter does when a
hook goes, comes, fails or does something else late.
"""

from __future__ import annotations

import pytest

from tests.running import Outcome, run

_PROGRAM = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
X, Y = torch.randn(16, 4), torch.randn(16, 1)
kept, means, flag, scale, count = {{}}, [], True, 1.0, 0

class Scaled(nn.Module):
    def forward(self, x, times=1):
        return x * times

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), Scaled(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

def keep(module, inputs, output):
    kept["out"] = output.detach()
    kept["in"] = len(inputs)

{before}
x, y = X, Y
try:
    for step in range(300):
        {late}
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        {every}
except ValueError as error:
    print(step, error)
print(loss.item(), sum(p.sum().item() for p in model.parameters()), len(means), means[-3:])
print({{name: str(each) for name, each in kept.items()}}, count)
"""

_KEEP = "handle = model[1].register_forward_hook(keep)"

PROGRAMS: dict[str, tuple[str, str, str, int]] = {
    "activations are kept in a dict": (_KEEP, "", "means.append(kept['out'].mean().item())", 280),
    "the shapes of outputs are kept": (
        "def note(module, inputs, output):\n"
        "    kept['shape'] = output.shape\n"
        "    means.append(inputs[0].shape[0])\n"
        "model[2].register_forward_hook(note)",
        "if step == 200: x, y = X[:8], Y[:8]",
        "",
        270,
    ),
    "a hook is removed": (_KEEP, "if step == 200: handle.remove()", "", 270),
    "all hooks are cleared": (_KEEP, "if step == 200: model[1]._forward_hooks.clear()", "", 270),
    "a hook comes late": (
        _KEEP,
        "if step == 200: model[0].register_forward_hook(lambda m, i, o: o.clamp(-1, 1))",
        "",
        270,
    ),
    "a hook fails late": (
        "def watch(module, inputs, output):\n"
        "    if step == 250: raise ValueError('stop')\n"
        "    kept['mean'] = output.mean().item()\n"
        "model[0].register_forward_hook(watch)",
        "",
        "",
        230,
    ),
    "a hook that is called behind an error, too": (
        "def watch(module, inputs, output):\n"
        "    if output is None: means.append(step)\n"
        "model[2].register_forward_hook(watch, always_call=True)\n"
        "def check(module, inputs, output):\n"
        "    if step == 250: raise ValueError('stop')\n"
        "model[2].register_forward_hook(check, prepend=True)",
        "",
        "",
        230,
    ),
    "a flag is switched": (
        "def watch(module, inputs, output):\n"
        "    if flag: kept['mean'] = output.mean().item()\n"
        "    else: means.append(output.abs().max().item())\n"
        "model[0].register_forward_hook(watch)",
        "if step == 200: flag = False",
        "",
        270,
    ),
    "a hook replaces the output by a number that changes": (
        "model[0].register_forward_hook(lambda module, inputs, output: output * scale)",
        "scale = 1 / (1 + step)",
        "",
        270,
    ),
    "a hook replaces the arguments by an integer that changes": (
        "model[2].register_forward_pre_hook(lambda module, inputs: (inputs[0], 1 + count % 3))",
        "count = step",
        "",
        0,
    ),
    "a hook takes the keywords": (
        "def more(module, args, kwargs):\n    return args, {'times': 2.0 * scale}\n"
        "def note(module, args, kwargs, output):\n    kept.update(kwargs)\n"
        "model[2].register_forward_pre_hook(more, with_kwargs=True)\n",
        "if step == 200: scale = 0.5",
        "",
        270,
    ),
    "a method of an object": (
        "class Watch:\n"
        "    def __init__(self): self.total = 0.0\n"
        "    def __call__(self, module, inputs, output): return None\n"
        "    def on(self, module, inputs, output): self.total += output.mean().item()\n"
        "watch = Watch()\n"
        "model[0].register_forward_hook(watch.on)",
        "",
        "means.append(watch.total)",
        280,
    ),
    "another shape": (_KEEP, "if step == 200: x, y = X[:8], Y[:8]", "", 270),
    "a parameter is frozen": (
        _KEEP,
        "if step == 200: model[0].weight.requires_grad_(False)",
        "",
        270,
    ),
    "a hook goes and comes in every iteration": (
        "",
        "handle = model[1].register_forward_hook(keep)",
        "handle.remove()",
        0,
    ),
}
"""By name: what stands before the loop, what happens in it first and last, and how many iterations
are compiled at least.
"""


def _ran(program: str, compiles: bool) -> Outcome:
    outcome = run(program, compiles=compiles)
    assert outcome.error is None, outcome.error
    return outcome


@pytest.mark.parametrize("name", PROGRAMS)
def test_forward_hooks(name: str) -> None:
    before, late, every, least = PROGRAMS[name]
    program = _PROGRAM.format(before=before, late=late or "pass", every=every or "pass")
    compiled = _ran(program, True)
    assert compiled.stdout == _ran(program, False).stdout
    (loop,) = compiled.session.interpreter.hot_loops.values()
    assert loop.compiled_count >= least
    assert least or loop.broken is not None
