"""Programs of many kinds, each watched in turn, with what is expected of it: `several.py FOLDER`.

It runs under a Python that has PyTorch, and loads the watcher as the recorder does.
"""

import importlib.util
import sys
from pathlib import Path

import numpy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def loaded(name):
    path = Path(sys.argv[1]) / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"gradcli_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


recorder, watcher, rerun = map(loaded, ("recorder", "watcher", "step_rerun"))
recorder.use(torch, numpy)
rerun.use(torch, recorder)
watcher.use(torch, numpy, recorder, rerun)


def watched(program):
    torch.manual_seed(0)
    seen = watcher.Watcher(recorder.Settings(""))
    seen.begin()
    failure = None
    try:
        program()
    except ArithmeticError as error:
        failure = error  # its frames hold the loss
    seen.end()
    del failure
    assert not seen.failure, seen.failure
    return seen


def expect(program, step, phase, op, at):
    report = watched(program).report
    assert report is not None, program
    assert report["again"], report["reason"]
    assert (report["step"], report["phase"], report["op"]) == (step, phase, op), report
    assert report["place"][3].startswith(at), report["place"]
    return report


def two_optimizers():
    g, d = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)), nn.Linear(8, 1)
    of_g, of_d = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
    for step in range(8):
        fake = g(torch.randn(6, 4))
        of_d.zero_grad()
        d(fake.detach()).mean().backward()
        (-d(torch.randn(6, 8)).mean()).backward()
        of_d.step()
        of_g.zero_grad()
        score = torch.sigmoid(d(fake)) * (0 if step == 4 else 1)
        loss = -torch.log(score).mean()
        loss.backward()
        if step == 4:
            raise ArithmeticError
        of_g.step()


def accumulated():
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5))
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(12):
        out = net(torch.randn(6, 4)) * (0 if step == 5 else 1)
        out.abs().sqrt().sum().backward() if step == 5 else out.sum().backward()
        if step % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()


def closure():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    optimizer = torch.optim.LBFGS([w])

    def loss_of():
        optimizer.zero_grad()
        loss = torch.log(w - 1.5).sum()
        loss.backward()
        return loss

    optimizer.step(loss_of)


def converging():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    optimizer = torch.optim.LBFGS([w], max_iter=4)

    def loss_of():
        optimizer.zero_grad()
        loss = (w - 1.5).square().sum()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(loss_of)


def by_hand():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(12):
        loss = (w**2 - 3).square().sum()
        loss.backward()
        with torch.no_grad():
            w -= 0.5 * w.grad
            w.grad.zero_()


def penalty():
    d = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(d.parameters())
    for step in range(4):
        x = torch.randn(6, 2, requires_grad=True)
        scale = 0 if step == 2 else 1
        (grad,) = torch.autograd.grad(d(x).sum() * scale, x, create_graph=True)
        norm = grad.pow(2).sum(1).sqrt()
        loss = (norm - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Rooted(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x, factor):
        y = self.linear(x) * factor
        return y.abs().sqrt()


def recomputed(reentrant):
    def program():
        net = Rooted()
        optimizer = torch.optim.Adam(net.parameters())
        for step in range(4):
            x = torch.randn(4, 8, requires_grad=True)
            factor = 0.0 if step == 2 else 1.0
            loss = checkpoint(net, x, factor, use_reentrant=reentrant).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return program


def raising():
    net = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(4):
        out = net(torch.ones(6, 2)).square()
        loss = torch.log(out * (0 if step == 2 else 1)).sum()
        if not torch.isfinite(loss):
            raise ArithmeticError
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def ignored():
    net = nn.Linear(2, 3)
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(4):
        target = torch.full((6,), -100) if step == 2 else torch.zeros(6, dtype=torch.long)
        loss = F.cross_entropy(net(torch.ones(6, 2)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def scaled():
    net = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20)
    for _ in range(12):
        x = torch.randn(16, 8)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.mse_loss(net(x).float(), x[:, :1])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def hidden():
    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return self.linear(x) / (0 if self.calls == 3 else 1)

    net = Hidden()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        loss = net(torch.ones(2, 2)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def partial():
    net = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2), "c": nn.Linear(2, 2)})
    net["d"] = nn.Linear(2, 2).requires_grad_(False)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(40):
        x = net["a"](torch.randn(4, 2))
        y = net["b"](x).detach()
        loss = net["d"](x).sum() + y.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def reasons_of(program):
    """Why the gradients of a program's parameters are none, by name."""
    return {
        table.names[place]: rows[0][0]
        for table in watched(program).all_tables
        for place, rows in table.none.items()
    }


def under_no_grad():
    backbone, head = nn.Sequential(nn.Linear(4, 4)), nn.Linear(4, 1)
    unused = nn.Linear(2, 2)
    weights = {"w": nn.Parameter(torch.ones(2))}
    modules = (backbone, head, unused)
    optimizer = torch.optim.SGD([p for each in modules for p in each.parameters()])
    optimizer.add_param_group({"params": list(weights.values())})
    for _ in range(2):
        with torch.no_grad():
            x = backbone(torch.randn(3, 4))
        head(x).mean().backward()
        optimizer.step()


def without_a_graph():
    first = nn.Linear(4, 4).requires_grad_(False)
    blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4)) for _ in range(2))
    head = nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*blocks.parameters(), *head.parameters()])
    for _ in range(2):
        x = first(torch.randn(3, 4))
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=True)
        head(x).mean().backward()
        optimizer.step()


def functional():
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5))
    weights = {name: nn.Parameter(p.detach()) for name, p in net.named_parameters()}
    optimizer = torch.optim.SGD([*net.parameters(), *weights.values()])
    for step in range(4):
        out = torch.func.functional_call(net, weights, (torch.randn(6, 4),))
        loss = (out * (0 if step == 2 else 1)).square().sum(1).sqrt().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def view_of_what_was_written_to():
    net = nn.Linear(4, 4)
    base = torch.zeros(4)
    with torch.no_grad():
        view = base.view(4)
    base.mul_(net.bias)
    with torch.no_grad():
        view.copy_(net.bias)
    optimizer = torch.optim.SGD(net.parameters())
    for _ in range(2):
        net(torch.randn(3, 4)).mean().backward()
        optimizer.step()


expect(two_optimizers, 10, "forward", "aten.log", "loss = -torch.log(score)")
report = expect(accumulated, 2, "backward", "aten.sqrt", "out.abs().sqrt()")
assert report["operands"] == [{"parameter": "self", "value": 0.0}], report
assert "clamp_min" in report["cure"]["text"], report
expect(closure, 1, "forward", "aten.log", "loss = torch.log(w - 1.5)")
expect(by_hand, 5, "forward", "aten.pow.Tensor_Scalar", "loss = (w**2 - 3)")
expect(penalty, 3, "backward", "aten.sqrt", "norm = grad.pow(2)")
for reentrant in (False, True):
    report = expect(recomputed(reentrant), 3, "backward", "aten.sqrt", "return y.abs().sqrt()")
    assert report["element"] == [0, 0], report
    assert report["module"] == ["net", "Rooted"], report
expect(raising, 3, "forward", "aten.log", "loss = torch.log(out")
report = expect(ignored, 3, "forward", "aten.nll_loss_forward", "loss = F.cross_entropy")
assert "clamp_min(1)" in report["cure"]["text"], report

if hasattr(torch.amp, "GradScaler"):  # before PyTorch 2.3 it is CUDA's alone
    seen = watched(scaled)
    assert seen.report is None
    assert seen.skipped > 2

report = watched(hidden).report
assert not report["again"]
assert report["reason"].startswith("run again, the step is finite"), report
assert report["seen"][0][:2] == ["net", "Hidden"], report

seen = watched(partial)
(table,) = seen.all_tables
reasons = {table.names[place]: rows[0][0] for place, rows in table.none.items()}
assert reasons["net.d.weight"] == "it does not require grad", reasons
assert reasons["net.c.weight"] == "its Linear was not called", reasons
assert "unused, or detached" in reasons["net.b.weight"], reasons
assert len(seen.window.calls) + len(seen.former.calls) < 20
figures = table.figures()
assert figures.shape == (40, 8, 3)
assert (figures[:, 0, 0] > 0).all()
assert (figures[:, 2, 0] == -1).all()
assert (figures[:, 0, 2] > 0).all()

reasons = reasons_of(under_no_grad)
assert reasons["backbone[0].weight"] == "its Sequential ran under no_grad()", reasons
assert reasons["unused.weight"] == "its Linear was not called", reasons
assert "weights['w']" in reasons, reasons
reasons = reasons_of(without_a_graph)
assert reasons["blocks[1][0].weight"].startswith("its Sequential ran in checkpoint("), reasons
reasons = reasons_of(functional)
assert reasons["net[0].weight"].startswith("functional_call() put another"), reasons
expect(functional, 3, "backward", "aten.sqrt", "loss = (out *")

scaler_losses = watched(scaled).all_tables[0].losses
assert 0 < scaler_losses[0] < 100, scaler_losses  # as the program has it, unscaled
(table,) = watched(converging).all_tables
assert table.has_closures
assert (table.figures()[:, :, 2] > 0).any()
watched(view_of_what_was_written_to)
print("as expected")
