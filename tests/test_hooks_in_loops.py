"""Loops that call hooks, of modules and of backward passes, are compiled, and do what the
interpreter does when a hook goes, comes, fails or does something else late.
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

_STEP = """
import torch
from torch import nn
torch.manual_seed(0)
X, Y = torch.randn(16, 4), torch.randn(16, 1)
w = torch.randn(4, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
norms, kept, count, scale, least = [], {{}}, 0, 2.0, -1.0
{before}
try:
    for step in range(300):
        {late}
        h = torch.tanh(X @ w + b)
        {forward}
        loss = ((h - Y) ** 2).mean()
        loss.backward()
        {every}
        with torch.no_grad():
            for p in (w, b):
                if p.grad is not None: p -= 0.05 * p.grad
        w.grad = None; b.grad = None
except ValueError as error:
    print(step, error)
print(w.flatten().tolist(), b.item(), w.grad, len(norms), norms[-3:], count)
print({{name: str(each) for name, each in kept.items()}})
"""

_HALF = "handle = w.register_hook(lambda g: g * 0.5)"

_NO = "", "", ""

BACKWARD: dict[str, tuple[str, str, str, str, int]] = {
    "gradients are clipped": (
        "for p in (w, b): p.register_hook(lambda g: torch.clamp(g, -0.05, 0.05))",
        "",
        "",
        "",
        280,
    ),
    "a gradient is clipped in place": ("w.register_hook(lambda g: g.clamp_(-0.1, 0.1))", *_NO, 280),
    "norms are printed, and kept, in order": (
        "w.register_hook(lambda g: print('w', g.norm().item()))\n"
        "b.register_hook(lambda g: norms.append(g.norm().item()))\n"
        "b.register_hook(lambda g: print('b', g.item()))",
        *_NO,
        280,
    ),
    "a hook is removed late": (_HALF, "if step == 200: handle.remove()", "", "", 270),
    "a hook comes late": ("", f"if step == 200: {_HALF}", "", "", 270),
    "another hook comes late": (
        _HALF,
        "if step == 200: b.register_hook(lambda g: norms.append(g))",
        "",
        "",
        270,
    ),
    "a hook fails late": (
        "def watch(g):\n    if step == 250: raise ValueError('stop')\nw.register_hook(watch)",
        *_NO,
        230,
    ),
    "a hook fails late, by the values": (
        "def watch(g):\n"
        "    norms.append(g.abs().max().item())\n"
        "    if g.abs().max() < least: raise ValueError('small')\n"
        "w.register_hook(watch)",
        "if step == 250: least = 1e9",
        "",
        "",
        230,
    ),
    "a hook returns another shape late": (
        "def watch(g): return g if step < 250 else g[0]\nw.register_hook(watch)",
        "if step == 249: raise ValueError('before it does')",
        "",
        "",
        230,
    ),
    "a number that a hook reads changes": (
        "w.register_hook(lambda g: g * scale)",
        "if step == 200: scale = 0.25",
        "",
        "",
        270,
    ),
    "a number that a hook reads changes in every iteration": (
        "w.register_hook(lambda g: g * scale)",
        "scale = scale * 0.99",
        "",
        "",
        280,
    ),
    "a function that a hook calls is bound anew": (
        "def change(g): return g * 0.5\nw.register_hook(lambda g: change(g))",
        "if step == 200: change = torch.sign",
        "",
        "",
        190,
    ),
    "a hook counts its calls": (
        "def watch(g):\n    global count\n    count += 1\n    if count > 200: return g * 0.1\n"
        "w.register_hook(watch)",
        *_NO,
        260,
    ),
    "a hook is a method": (
        "class Watch:\n"
        "    def __init__(self): self.by = 0.5\n"
        "    def on(self, g): return g * self.by\n"
        "watch = Watch()\n"
        "w.register_hook(watch.on)",
        "if step == 200: watch.by = 0.75",
        "",
        "",
        270,
    ),
    "a hook of a tensor of the iteration": (
        "",
        "",
        "h.register_hook(lambda g: g * scale)",
        "",
        280,
    ),
    "its handle is kept, and used behind the loop": (
        "",
        "",
        "handle = h.register_hook(lambda g: g * scale)",
        "handle.remove()",
        280,
    ),
    "a hook of a tensor keeps its gradient under a name": (
        "def save(name):\n    def hook(g): kept[name] = g\n    return hook",
        "",
        "h.register_hook(save('h'))",
        "norms.append(kept['h'].sum().item())",
        280,
    ),
    "a hook is registered by a condition": (
        "",
        "",
        "if step % 3 == 0: h.register_hook(lambda g: g * 2)",
        "",
        230,
    ),
    "a leaf gets a hook for one pass": (
        "",
        "handle = w.register_hook(lambda g: g * 0.5)",
        "",
        "handle.remove()",
        280,
    ),
    "a leaf gets one more hook in every iteration": (
        "",
        "if step < 280: w.register_hook(lambda g: g * 0.99)",
        "",
        "",
        0,
    ),
    "a retained gradient is read": (
        "",
        "",
        "h.retain_grad()",
        "norms.append(h.grad.norm().item())",
        280,
    ),
    "retained gradients meet hooks": (
        "",
        "",
        "h.retain_grad(); h.register_hook(lambda g: g * 2); q = h * 1; h = q; q.retain_grad()",
        "norms.append(q.grad.sum().item())",
        280,
    ),
    "a gradient is retained of what stops to require grad": (
        "",
        "if step == 200: w.requires_grad_(False); b.requires_grad_(False)",
        "if h.requires_grad: h.retain_grad()\n        else: raise ValueError('frozen')",
        "norms.append(h.grad.norm().item())",
        190,
    ),
    "a leaf is updated in its hook": (
        "def update(p):\n"
        "    with torch.no_grad(): p -= 0.05 * p.grad\n"
        "    p.grad = None\n"
        "for p in (w, b): p.register_post_accumulate_grad_hook(update)",
        *_NO,
        280,
    ),
    "a leaf's gradient is scaled where it is": (
        "def change(p): p.grad.mul_(scale)\nw.register_post_accumulate_grad_hook(change)",
        "if step == 200: scale = 0.5",
        "",
        "",
        270,
    ),
    "optimizers step in hooks": (
        "steps = {p: torch.optim.SGD([p], lr=0.05, momentum=0.5) for p in (w, b)}\n"
        "def update(p):\n    steps[p].step()\n    steps[p].zero_grad()\n"
        "for p in (w, b): p.register_post_accumulate_grad_hook(update)",
        "if step == 200: steps[w].param_groups[0]['lr'] = 0.01",
        "",
        "",
        260,
    ),
    "a hook looks at the gradient of another leaf": (
        "w.register_hook(lambda g: norms.append(0.0 if b.grad is None else b.grad.item()))",
        *_NO,
        280,
    ),
    "backward hooks of a module": (
        "def watch(m, into, out):\n"
        "    norms.append(out[0].norm().item())\n"
        "    return tuple(None if g is None else g * scale for g in into)\n"
        "layer = nn.Tanh()\n"
        "handle = layer.register_full_backward_hook(watch)\n"
        "layer.register_full_backward_pre_hook(lambda m, out: (out[0] * 0.5,))",
        "if step == 200: handle.remove()",
        "h = layer(h)",
        "",
        270,
    ),
    "a backward hook of a module comes late": (
        "layer = nn.Tanh()",
        "if step == 200: layer.register_full_backward_hook(lambda m, a, c: norms.append(c[0]))",
        "h = layer(h)",
        "",
        270,
    ),
    "a pass through a custom function with hooks": (
        "class Twice(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x): ctx.save_for_backward(x); return x * 2\n"
        "    @staticmethod\n"
        "    def backward(ctx, g): return g * 2 + ctx.saved_tensors[0] * 0",
        "",
        "h = Twice.apply(h); h.register_hook(lambda g: g * scale)",
        "",
        280,
    ),
    "two passes through one graph": (
        "",
        "",
        "h.register_hook(lambda g: norms.append(g.sum().item())); h.retain_grad()\n"
        "        h.sum().backward(retain_graph=True)",
        "norms.append(h.grad.sum().item())",
        280,
    ),
}
"""By name: what stands before the loop, what happens in it first, with the result and last, and how
many iterations are compiled at least.
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


@pytest.mark.parametrize("name", BACKWARD)
def test_hooks_of_passes(name: str) -> None:
    before, late, forward, every, least = BACKWARD[name]
    parts = {"late": late, "forward": forward, "every": every}
    program = _STEP.format(before=before, **{key: each or "pass" for key, each in parts.items()})
    compiled = _ran(program, True)
    assert compiled.stdout == _ran(program, False).stdout
    loop = next(iter(compiled.session.interpreter.hot_loops.values()))
    assert loop.compiled_count >= least, loop.broken
    assert least or loop.broken is not None
