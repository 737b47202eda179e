"""Answers that once misled: each row says what is asked of which program, and what the answer holds
and does not hold.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gradcli.record import Record
from tests.command_line import CommandLine


class Row(Record):
    """A question about a program.

    Attributes:
        ask: the command and its words in front of the file.
        says: texts of the answer; white space counts as one blank.
        never: texts that it does not hold.
    """

    ask: str
    program: str
    says: tuple[str, ...]
    never: tuple[str, ...] = ()


_LOOP = """\
from torch import nn
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    loss = net(torch.ones(4, 2)).pow(2).mean()
"""

_GROUPS = """\
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({'a': nn.Linear(2, 1), 'b': nn.Linear(2, 1)})
        self.scale = nn.ParameterList([nn.Parameter(torch.ones(1))])
        self.register_buffer('mean', torch.zeros(2))
        self.plain = [nn.Linear(2, 2)]
    def forward(self, x):
        return self.heads['a'](self.plain[0](x - self.mean)) * self.scale[0]
net = Net()
opt = torch.optim.AdamW([{'params': net.heads['a'].parameters(), 'lr': 0.1}])
for i in range(2):
    opt.zero_grad()
    loss = net(torch.ones(4, 2)).pow(2).mean() * 100
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1e-3)
    opt.step()
"""

_ADVERSARIES = """\
from torch import nn
G, D = nn.Linear(2, 2), nn.Linear(2, 1)
for i in range(3):
    D.requires_grad_(True)
    for k in range(2):
        D.zero_grad()
        ld = D(G(torch.ones(4, 2)).detach()).mean()
        ld.backward()
    D.requires_grad_(False)
    G.zero_grad()
    lg = -D(G(torch.ones(4, 2))).mean()
    lg.backward()
"""

_TIED = """\
from torch import nn
emb = nn.Embedding(4, 3)
net = nn.Sequential(emb, nn.Linear(3, 4, bias=False))
net[1].weight = emb.weight
net(torch.arange(4)).logsumexp(1).sum().backward()
"""

_HOOK = """\
from torch import nn
net = nn.Linear(2, 2)
h = net(torch.ones(3, 2))
h.register_hook(lambda g: torch.zeros_like(g))
loss = h.sum()
loss.backward()
"""

_PENALTY = """\
from torch import nn
net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
x = torch.ones(4, 2, requires_grad=True)
out = net(x)
g = torch.autograd.grad(out.sum(), x)[0]
penalty = (g.norm(dim=1) - 1).pow(2).mean()
loss = out.mean() + penalty
loss.backward()
"""

_MODEL = (
    "from torch import nn\nnet = nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
)

_WHY = [
    Row(  # the average that is written to it is no way to the loss
        "why teacher.weight.grad",
        "net, teacher = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)\n"
        "teacher.load_state_dict(net.state_dict())\n"
        "for i in range(2):\n    x = torch.rand(3, 2)\n    with torch.no_grad():\n"
        "        t = teacher(x)\n    loss = (net(x) - t * 0.5).pow(2).mean()\n    loss.backward()\n"
        "    with torch.no_grad():\n        teacher.weight.mul_(0.9).add_(net.weight, alpha=0.1)",
        ("the only way from teacher.weight to loss leaves the graph", "t = teacher(x)"),
        ("load_state_dict", "mul_"),
    ),
    Row(  # its name in a function stands for what is made of it there
        "why x.grad",
        "def step(x):\n    x = x.detach().requires_grad_()\n    return (x * 2).sum()\n"
        "x = torch.ones(2, requires_grad=True)\nloss = step(x)\nloss.backward()",
        ("the only way from x to loss leaves the graph", "leave `.detach()` out here"),
        ("an earlier tensor", "a name of its own"),
    ),
    Row(  # a model that was never one with this one
        "why m.weight.trains",
        "from torch import nn\nm, n = nn.Linear(2, 1), nn.Linear(2, 1)\n"
        "opt = torch.optim.SGD(n.parameters(), lr=0.1)\nl = m(torch.ones(1, 2)).sum()\n"
        "l.backward()\nopt.step()",
        ("these are the parameters of `n`, and nothing reads them", "give `opt` those of `m`"),
        ("was made from", "behind the line"),
    ),
    Row(  # a pass that failed brought nothing
        "why x.grad",
        "class Bad(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x, y):\n        return x + y\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g\n"
        "x = torch.ones(2, requires_grad=True)\ny = (x * 3).sum()\ny.backward()\n"
        "z = Bad.apply(x, x).sum()\ntry:\n    z.backward()\nexcept RuntimeError:\n    pass",
        ("because the gradient flows from y to x",),
        ("from z", "added up"),
    ),
    Row(  # what is frozen by now has what a pass brought before
        "why D.weight.grad",
        _ADVERSARIES,
        ("from ld to D.weight; later passes bring it nothing, since D.weight is frozen by now",),
        ("no pass brought it",),
    ),
    Row(  # the passes of rounds that are not recorded are in the sum
        "why A.weight.grad",
        "from torch import nn\nA, B = nn.Linear(2, 2), nn.Linear(2, 1)\nfor i in range(300):\n"
        "    B.zero_grad()\n    h = A(torch.ones(4, 2))\n    h = h if i < 150 else h.detach()\n"
        "    loss = B(h.tanh()).square().mean()\n    loss.backward()",
        ("the backward passes of many rounds were added up", "this adds to it, in each round"),
        ("8 backward passes", "8 rounds"),
    ),
    Row(  # the rate is 0 behind the last step, and was not before
        "why net.weight",
        _MODEL
        + "sch = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=4)\nfor i in range(4):\n"
        "    opt.zero_grad()\n    net(torch.ones(1, 2)).sum().backward()\n    opt.step()\n"
        "    sch.step()",
        ("net.weight.trains = True", "by now `opt` has lr=0 for it"),
        ("trains = False",),
    ),
    Row(
        "why net.weight",
        _MODEL
        + "for i in range(4):\n    opt.param_groups[0]['lr'] = 0.1 * (3 - i)\n    opt.zero_grad()\n"
        "    net(torch.ones(1, 2)).sum().backward()\n    opt.step()",
        ("net.weight.trains = True", "by now `opt` has lr=0 for it"),
        ("trains = False",),
    ),
    Row(  # zero_grad() ahead of the pass is not what clears the gradient
        "why net.weight",
        _MODEL
        + "for i in range(3):\n    opt.zero_grad()\n    net(torch.ones(1, 2)).sum().backward()\n"
        "    nn.utils.clip_grad_norm_(net.parameters(), 0.)\n    opt.step()",
        ("trains = False", "this sets it to 0", "program.py:8:5 | 8 |"),
        ("trains = True", "program.py:6:5 | 6"),
    ),
    Row(
        "why a.grad",
        "a = torch.ones(2, requires_grad=True)\nx = a * 2\nx.requires_grad = True\n"
        "x.sum().backward()",
        ("the program ended in error E408 before anything else came of it",),
        ("was never called",),
    ),
    Row(
        "why net.weight.grad",
        "import copy\nfrom torch import nn\nnet = nn.Linear(2, 1)\nfast = copy.deepcopy(net)\n"
        "fast(torch.ones(1, 2)).sum().backward()",
        ("this copies the module", "`fast.weight.grad` has a gradient", "copy.deepcopy(net)"),
        ("made here, and read nowhere", "untried"),
    ),
    Row(
        "why w.grad",
        "w = torch.ones(2, requires_grad=True)\n(w ** 2).sum().backward()\n"
        "torch.nn.utils.clip_grad_norm_([w], 0.0)",
        (
            "was set to 0 afterwards",
            "this sets it to 0 -->",
            "torch.nn.utils.clip_grad_norm_([w], 0.0)",
        ),
    ),
    Row(
        "why theta.grad",
        "theta = torch.ones(1, requires_grad=True)\nout = torch.zeros(1, requires_grad=True)\n"
        "out.data = theta * 2\n(out ** 2).sum().backward()",
        ("`.data` takes the numbers alone: `out` stays the leaf that it was", "`out = …`"),
        ("is used here",),
    ),
    Row(
        "why w.grad",
        "w = torch.ones(2, requires_grad=True)\n@torch.no_grad()\ndef f(x):\n"
        "    return (w * x).sum()\ny = f(torch.ones(2))\n"
        "(y + torch.zeros(1, requires_grad=True)).backward()",
        ("leave `@torch.no_grad()` out",),
        ("out of the block",),
    ),
    Row(
        "why b.grad",
        "b = torch.tensor(0.5, requires_grad=True)\nz = torch.tensor([[1., 2., 3.]])\n"
        "F.cross_entropy(z + b, torch.tensor([1])).backward()",
        ("log_softmax is the same whatever is added to all numbers that it goes over",),
    ),
    Row(
        "why head.bias.grad",
        "from torch import nn\ntorch.manual_seed(0)\nhead = nn.Linear(2, 2)\n"
        "bn = nn.BatchNorm1d(2)\n"
        "x = torch.tensor([[1., 2.], [3., 4.], [0., 1.]])\n"
        "(bn(head(x)) * torch.tensor([[1., 2.], [3., -1.], [0., 1.]])).sum().backward()",
        ("0 up to rounding", "a batch norm takes the mean of the batch away"),
        ("the gradient flows",),
    ),
    Row(
        "blame",
        "z = torch.tensor([1., 2., 3.], requires_grad=True)\nT = torch.tensor(0.)\n"
        "loss = torch.softmax(z / T, 0)[0]",
        ("no cure: the value is infinite",),
        ("cure: divide by 1",),
    ),
    Row(
        "blame",
        "x = torch.tensor([1.0000001, 0.5], requires_grad=True)\ny = torch.asin(x).sum()",
        ("x 1.00000012", "torch.asin(x.detach().clamp(-1, 1))"),
    ),
    Row(
        "blame",
        "A = torch.tensor([[1., 2.], [2., 4.]], requires_grad=True)\n"
        "y = torch.linalg.inv_ex(A)[0].sum()",
        ("the matrix is singular: it has no inverse", "no cure: a singular matrix has no inverse"),
        ("overflow",),
    ),
    Row(
        "blame",
        "x = torch.tensor([0., 2., 3.], requires_grad=True)\ng = x.prod() ** (1 / 3)",
        ("no cure: the slope is infinite there; keep what goes in above 0",),
    ),
    Row(
        "why x.grad",
        "x = torch.ones(2, requires_grad=True)\nh = x.sigmoid()\nh[0] = 0.\n"
        "loss = h.sum()\nloss.backward()",
        ("the backward pass ended in error E404 before it reached x",),
        ("`inputs`",),
    ),
    Row(
        "why net.0.weight.grad",
        _PENALTY,
        ("ended in error E403", "pass it create_graph=True"),
        ("`inputs`", "retain_graph"),
    ),
    Row("check", _PENALTY, ("pass it create_graph=True",), ("retain_graph",)),
    Row(
        "why logits.grad",
        "logits = torch.ones(2, 3, requires_grad=True)\n"
        "loss = 1 - (logits.argmax(1) == 1).float().mean()\nloss.backward()",
        ("argmax() gives positions", "help: a smooth relative has a gradient"),
        ("make an input with requires_grad=True",),
    ),
    Row(
        "why net.weight.grad",
        _HOOK,
        ("because a hook changes the gradient on its way from loss to net.weight", ":5:1"),
        ("the gradient flows",),
    ),
    Row("check", _HOOK, ("a hook of `h` changes the gradient",)),
    Row(
        "why net.heads.a.weight.grad",
        _GROUPS,
        ("this changes it after the backward pass", "clip_grad_norm_"),
    ),
    Row(
        "why net.scale.0.grad",
        _GROUPS,
        ("2 backward passes were added up", "`opt.zero_grad()` does not clear it"),
        ("clear it in between",),
    ),
    Row(
        "why net.mean.grad",
        _GROUPS,
        ("net.mean is a buffer of a module", "gets no gradient"),
        ("requires_grad_()",),
    ),
    Row("why net.mean", _GROUPS, ("net.mean is a buffer of a module",), ("frozen",)),
    Row(
        "why net.plain[0].weight",
        _GROUPS,
        ("`net.plain` hides it from `net`", "nn.ModuleList(…)", "add_param_group"),
    ),
    Row("why net.heads['b'].weight.grad", _GROUPS, ("net.heads.b.weight.grad = None",)),
    Row("why net", _GROUPS, ("ask of its parameters: net.",)),
    Row(
        "why net.1.weight.grad",
        _TIED,
        ("emb.weight and net.1.weight are one tensor", "each use adds its share"),
    ),
    Row(
        "why model.0.weight.grad",
        "from torch import nn\nnet = nn.Sequential(nn.Linear(2, 1))\nmodel = torch.compile(net)\n"
        "model(torch.ones(2)).sum().backward()",
        ("net.0.weight.grad = tensor([[1., 1.]])",),
    ),
    Row(
        "why net.weight",
        f"{_LOOP}    opt.step()\n    loss.backward()\n    opt.zero_grad()",
        ("trains = False", "no step() of `opt` finds a gradient"),
        ("read it before it is cleared",),
    ),
    Row(
        "why net.weight",
        f"{_LOOP}    loss.backward()\n    opt.step()\n    opt.zero_grad()",
        ("trains = True", "was used, and was cleared afterwards"),
        ("read it before it is cleared",),
    ),
    Row("why net.weight", f"{_LOOP}    opt.step()", ("backward() was never called",)),
    Row(
        "why b",
        "w = torch.zeros(3, requires_grad=True)\nb = torch.zeros(1, requires_grad=True)\n"
        "opt = torch.optim.SGD([{'params': [w]}, {'params': [b], 'lr': 0.0}], lr=0.1)\n"
        "loss = (w.sum() + b).pow(2).sum()\nloss.backward()\nopt.step()",
        ("b.trains = False", "`opt` has lr=0 for it"),
    ),
    Row(
        "why w.grad",
        "w = torch.ones(2, requires_grad=True)\nv = w.data * 3\ny = (v * w).sum()\ny.backward()",
        ("the gradient flows from y to w", "beside it: `.data` gives the values outside the graph"),
    ),
    Row(
        "why w.grad",
        "w = torch.ones(2, requires_grad=True)\ntorch.set_grad_enabled(False)\ny = (w * 3).sum()\n"
        "torch.set_grad_enabled(True)\nz = y + 1",
        ("this runs under set_grad_enabled(False)", "gradients are off from here"),
        ("move it out of the block",),
    ),
    Row(
        "why net.1.weight.grad",
        "from torch import nn\nnet = nn.Sequential(nn.ReLU(), nn.Linear(2, 1))\n"
        "net(-torch.ones(3, 2)).sum().backward()",
        ("multiplies the gradient by the other operand, and that is 0",),
        ("derivative of AddmmBackward0",),
    ),
]


_WHY += [
    Row(
        "why w1.grad",
        "w1 = torch.ones(2, requires_grad=True)\nw2 = torch.ones(2, requires_grad=True)\n"
        "(w1 * w2).sum().backward()\nw1.grad.zero_()\nw2.grad.zero_()",
        ("was set to 0 afterwards", ":5:1"),
        ("w2.grad.zero_()",),
    ),
    Row(
        "why y.grad",
        "import copy\nx = torch.ones(2, requires_grad=True)\n(x * 2).sum().backward()\n"
        "y = copy.deepcopy(x)",
        ("as a copy or a conversion: no pass brought it",),
        ("the program set it",),
    ),
    Row(
        "why other.weight",
        "other = torch.nn.Linear(2, 1)\nnet = torch.nn.Linear(2, 1)\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nother = torch.nn.Linear(2, 1)\n"
        "net(torch.ones(1, 2)).sum().backward()\nopt.step()",
        ("no optimizer holds it",),
        ("former model",),
    ),
    Row("why x.grad", "x = torch.arange(6.).view(2, 3)", ("computed here, of numbers alone",)),
]


_FROZEN = (
    "net = torch.nn.Linear(2, 1)\nfor p in net.parameters():\n    p.requires_grad = False\n"
    "loss = net(torch.ones(3, 2)).pow(2).mean()\n{then}"
)

_WHY += [  # the parameters are frozen, and nobody forgot to ask
    Row(
        "run",
        _FROZEN.format(then="loss.backward()"),
        ("[E402]", "the parameters among it are frozen", "| 4 | p.requires_grad", "unfreeze it"),
        ("make an input with requires_grad=True",),
    ),
    Row(
        "why loss.requires_grad",
        _FROZEN.format(then=""),
        ("the parameters among it are frozen", "p.requires_grad = False"),
        ("untried",),
    ),
]

_CUT = (
    "net = torch.nn.Linear(2, 1)\nloss = torch.tensor(net(torch.ones(3, 2)).pow(2).mean().item())\n"
    "loss.requires_grad = True\nloss.backward()"
)

_WHY += [  # the output is a leaf, since its way to the parameters is cut
    Row(
        "check",
        _CUT,
        (
            "the output is a leaf",
            "`gradcli why net.weight.grad` says where its way to the output ends",
        ),
    ),
    Row("explain --flow", _CUT, ("2 of 2 parameters get no gradient",), ("loss []",)),
]

_COLUMNS = (
    "x = torch.tensor([[1., 3., 2.], [0.5, 0.1, 0.7]], requires_grad=True)\n"
    "y = (x[:, 1:] ** 2).sum() + (x[0, 2] * 3 - x[0, 2] * 7)\ny.backward()"
)

_WHY += [  # a part of a gradient
    Row("why x.grad[:,1:]", _COLUMNS, ("x.grad[:,1:] = tensor([[6.0000, 0.0000],", "from y to x")),
    Row(
        "why x.grad[1,0]",
        _COLUMNS,
        (
            "this part of it is 0: no use of it brings anything there",
            "arrives there from here",
            "x[:, 1:]",
        ),
    ),
    Row(
        "why x.grad[0,2]",
        _COLUMNS,
        ("this part of it is 0: what its uses bring there adds up to 0", "this brings a share"),
    ),
    Row(
        "why net.0.weight.grad[0]",
        "from torch import nn\nnet = nn.Sequential(nn.Linear(2, 2), nn.ReLU())\n"
        "with torch.no_grad():\n    net[0].bias.fill_(-9.)\nloss = net(torch.ones(1, 2)).sum()\n"
        "loss.backward()",
        ("net.0.weight.grad[0] = tensor([0., 0.])", "the units are dead"),
        ("this part",),
    ),
    Row("why x.grad[7]", _COLUMNS, ("position 7 does not exist in dimension 0",)),
]

_TURNS = """\
from torch import nn
G, D = nn.Linear(2, 2), nn.Linear(2, 1)
og, od = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (G, D)]
def of_critic(z):
    fake = G(z).detach()
    loss_d = D(fake).pow(2).mean()
    od.zero_grad(); loss_d.backward(); od.step()
def of_generator(z):
    fake = G(z).detach()
    loss_g = (D(fake) - 1).pow(2).mean()
    og.zero_grad(); loss_g.backward(); og.step()
for step in range(2):
    z = torch.ones(3, 2)
"""

_STEPS_INSIDE = """\
from torch import nn
net = nn.Linear(2, 1)
opts = {p: torch.optim.SGD([p], lr=0.1) for p in net.parameters()}
def hook(p):
    opts[p].step()
    opts[p].zero_grad()
for p in net.parameters():
    p.register_post_accumulate_grad_hook(hook)
for i in range(3):
    net(torch.ones(4, 2)).sum().backward()
"""

_OF_MODULE = """\
from torch import nn
net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
net[1].register_full_backward_hook(lambda module, into, out: tuple(g * 0 for g in into))
loss = net(torch.ones(3, 2)).sum()
loss.backward()
"""

_SLOPES = """\
from torch import nn
D = nn.Linear(2, 1)
x = torch.ones(4, 2, requires_grad=True)
g, = torch.autograd.grad(D(x).pow(2).sum(), x)
loss = (g.detach() * 1.).sum() + D(x).sum()
"""

_INNER = """\
from torch import nn
net = nn.Linear(2, 1)
x = torch.tensor([[1., 2.], [3., -1.]])
def inner(params):
    w, b = params
    grads = torch.autograd.grad((x @ w.t() + b - 1).pow(2).mean(), params)
    return [p - 0.1 * g for p, g in zip(params, grads)]
fast = list(net.parameters())
for _ in range(2):
    fast = inner(fast)
loss = (x @ fast[0].t() + fast[1] - 1).pow(2).mean()
loss.backward()
"""

_WHY += [
    Row(  # the way to the critic's loss is cut as it should be
        "why G.weight",
        f"{_TURNS}    of_critic(z)\n    of_generator(z)",
        ("the only way from G.weight to loss_g leaves the graph", ":10:12"),
        (":6:12",),
    ),
    Row(
        "why G.weight.grad",
        f"{_TURNS}    of_generator(z)\n    of_critic(z)",
        ("the only way from G.weight to loss_g leaves the graph", ":10:12"),
        (":6:12", "loss_d"),
    ),
    Row(
        "why net.weight",
        _STEPS_INSIDE,
        ("trains = True", "a gradient arrived and was used, and was cleared afterwards"),
        ("`inputs`",),
    ),
    Row(
        "why net.weight.grad",
        _STEPS_INSIDE,
        ("a gradient arrived, and was cleared afterwards", ":7:5"),
        ("`inputs`",),
    ),
    Row(
        "why h.grad",
        "x = torch.ones(2, requires_grad=True)\nh = x * 2\nh.retain_grad()\n"
        "loss = (h.detach() * x).sum()\nloss.backward()",
        ("the only way from h to loss leaves the graph", "leave `.detach()` out here"),
        ("are not kept",),
    ),
    Row(
        "why x.grad",
        "class Pick(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        out = x * 2\n        ctx.mark_non_differentiable(out)\n        return out\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g * 2\n"
        "x = torch.ones(2, requires_grad=True)\nv = torch.ones(2, requires_grad=True)\n"
        "(Pick.apply(x) * v).sum().backward()",
        ("`Pick` gives this output as one that carries no gradient", "this marks it"),
        ("no_grad()", "did not require grad yet"),
    ),
    Row(
        "why net.weight",
        "net = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "def evaluate():\n    torch.set_grad_enabled(False)\n    net(torch.ones(2))\n"
        "def train():\n    loss = net(torch.ones(2)).sum()\n"
        "    if loss.requires_grad:\n        loss.backward()\n    opt.step()\n"
        "evaluate()\ntrain()",
        ("under set_grad_enabled(False)", ":8:12", "| 5 |", "set_grad_enabled(True)` before it"),
        ("backward() was never called",),
    ),
    Row(  # in a round that is not recorded
        "why net.weight",
        "net = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.01)\n"
        "for step in range(400):\n    if step == 200:\n        net.weight.requires_grad_(False)\n"
        "    opt.zero_grad()\n    net(torch.ones(2)).sum().backward()\n    opt.step()",
        ("is frozen", ":6:9"),
    ),
    Row(  # of other uses that are 0 it does not come
        "why logits.grad",
        "logits = torch.tensor([[1., 3., 2.]], requires_grad=True)\n"
        "w, at = logits.softmax(-1).topk(1)\nw = w / w.sum(-1, keepdim=True)\n"
        "loss = sum((w * (at == i) * (i + 1)).sum() for i in range(3))\nloss.backward()",
        ("its contributions add up to 0", "2 uses of `w`", ":4:5"),
        ("other operand",),
    ),
    Row(
        "why net.0.weight.grad",
        _OF_MODULE,
        ("a hook changes the gradient on its way from loss", "a hook of `net[1]`", ":4:1"),
        ("passes nothing on",),
    ),
    Row(
        "why net.weight.grad",
        _INNER,
        ("beside it: `torch.autograd.grad()`", "pass `create_graph=True`"),
        ("a value of Python's",),
    ),
]


_EMA = """\
import copy
from torch import nn
student = nn.Linear(2, 1)
teacher = copy.deepcopy(student)
opt = torch.optim.Adam(student.parameters(), lr=0.1)
x = torch.arange(8.).view(4, 2) / 4
for i in range(3):
    with torch.no_grad():
        target = teacher(x) + 1
    loss = (student(x) - target).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for p, q in zip(student.parameters(), teacher.parameters()):
            q.mul_(0.9).add_(p, alpha=0.1)
"""

_CUBE = """\
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3
    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0] ** 2
w = torch.tensor([0.5, 2.], requires_grad=True)
opt = torch.optim.SGD([w], lr=0.01)
for i in range(3):
    loss = Cube.apply(w).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

_CHECK = [
    Row(  # the gradient of another output that came later is not this one's
        "check --of a",
        "class Own(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, u, v):\n        return u * 2\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g * 2, None\n"
        "u = torch.ones(2, requires_grad=True)\nv = torch.ones(2, requires_grad=True)\n"
        "a = Own.apply(u, v).sum()\na.backward()\nb = (u * v).sum()\nb.backward()",
        ("u.grad fine", "v.grad fine"),
    ),
    Row(
        "check",
        f"{_LOOP}    opt.zero_grad()\n    loss.backward()\n    opt.step()",
        ("net.bias.grad fine", "net.weight.grad fine"),
    ),
    Row(
        "check",
        f"{_LOOP}    loss.backward()\n    opt.step()\n    opt.zero_grad()",
        ("net.bias.grad fine", "net.weight.grad fine"),
    ),
    Row("check", _GROUPS, ("net.scale.0.grad fine", "net.heads.a.weight.grad fine")),
    Row("check", _EMA, ("student.bias.grad fine", "student.weight.grad fine"), ("p.grad",)),
    Row("check", _CUBE, ("w.grad wrong", "it is 2/3 times the right one", "`Cube` has a backward")),
    Row(
        "check",
        "x = torch.tensor([[2., 1.], [1., 3.]], requires_grad=True)\n"
        "y = torch.linalg.cholesky(x).sum()",
        ("x.grad symmetric", "one triangle is read, and both share its gradient"),
        ("wrong",),
    ),
    Row(
        "check",
        "x = torch.tensor(3., requires_grad=True)\ny = x.detach() * x",
        ("x.grad wrong", "differences see this way, gradients do not", ":3:5"),
    ),
]

_ACCUMULATED = """\
from torch import nn
def train():
    net = nn.Linear(2, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for i, batch in enumerate(torch.arange(8.).view(4, 2).split(1)):
        loss = net(batch / 8).pow(2).mean() / 4
        loss.backward()
        if i % 2:
            opt.step()
            opt.zero_grad()
    return net, loss
model, loss = train()
"""

_CHECK += [
    Row(
        "check",
        "net = torch.nn.Linear(2, 1)\n"
        "ws = [p.detach().clone().requires_grad_() for p in net.parameters()]\n"
        "loss = (torch.ones(3, 2) @ ws[0].t() + ws[1]).pow(2).sum()",
        ("ws[0].grad fine", "ws[1].grad fine"),
    ),
    Row(  # a loop that writes to its variable in place names no parameter
        "check",
        "net = torch.nn.Linear(2, 3)\nfor i in range(3):\n"
        "    loss = net(torch.ones(4, 2)).pow(2).mean()\n    net.zero_grad()\n"
        "    loss.backward()\n    with torch.no_grad():\n        for p in net.parameters():\n"
        "            p -= 0.1 * p.grad",
        ("net.bias.grad fine 3 elements", "net.weight.grad fine 6 elements"),
        ("p.grad",),
    ),
    Row("check", _ACCUMULATED, ("model.bias.grad fine", "model.weight.grad fine")),
    Row(
        "why net.weight",
        "net = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\nopt.stop()",
        ("the program ended in error", "before anything else came of it"),
        ("call `opt.step()`",),
    ),
]

_CHECK += [
    Row("check", _OF_MODULE, ("net.0.weight.grad wrong", "a hook of `net[1]`", ":4:1")),
    Row(  # a module's parameter is moved ahead of all that reads it, as another leaf is
        "check",
        _SLOPES,
        ("D.weight.grad wrong", "D.bias.grad wrong", "x.grad wrong"),
        ("fine",),
    ),
]

_STATISTICS = """\
from torch import nn
net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, 1))
x = torch.randn(6, 2)
net(x).pow(2).mean().backward()
net.eval()
net.zero_grad()
loss = net(x).pow(2).mean()
loss.backward()
"""

_FIXED_POINT = """\
from torch import nn
class Equilibrium(nn.Module):
    def __init__(self):
        super().__init__()
        self.W, self.U = nn.Linear(3, 3), nn.Linear(2, 3)
    def f(self, z, x):
        return torch.tanh(self.W(z) / 4 + self.U(x))
    def solve(self, f, z):
        for i in range(60):
            former, z = z, f(z)
            if (z - former).abs().max() < 1e-14:
                break
        return z
    def forward(self, x):
        with torch.no_grad():
            z = self.solve(lambda z: self.f(z, x), torch.zeros(4, 3))
        z = self.f(z, x)
        own = z.detach().requires_grad_()
        value = self.f(own, x)
        def hook(g):
            def step(y):
                return torch.autograd.grad(value, own, y, retain_graph=True)[0] + g
            return self.solve(step, g)
        z.register_hook(hook)
        return z
net = Equilibrium()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(4, 2)
for step in range(12):
    loss = (net(x) - 0.5).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

_CHECK += [
    # What batch norm keeps of an earlier pass is none of what the gradient is of.
    Row("check", _STATISTICS, ("net.0.bias.grad fine", "net.0.weight.grad fine"), ("wrong",)),
    # What is solved ahead, outside the graph, is of the values that the last step left.
    Row(
        "check",
        _FIXED_POINT,
        ("net.W.bias.grad fine 3 elements", "net.U.weight.grad fine 6 elements"),
        ("wrong", "random direction"),
    ),
]

_STOPPED = _FIXED_POINT.replace("< 1e-14", "< tolerance").replace("range(12)", "range(1)")
_STOPPED = _STOPPED.replace("def solve(self, f, z", "def solve(self, f, z, tolerance=1e-3")

_CHECK += [
    # What a tolerance leaves is no wrong gradient; that of a wrong one stays.
    Row(
        "check",
        _STOPPED,
        ("net.W.bias.grad tolerance", "an iteration stops by `1e-3` here", ":9:37"),
        ("wrong",),
    ),
    Row(
        "check",
        _STOPPED.replace("return self.solve(step, g)", "return self.solve(step, g) * 1.005"),
        ("net.W.bias.grad wrong", "a hook of `z` changes the gradient"),
        ("stops by",),
    ),
]

_TWO_LOSSES = """\
from torch import nn
trunk, a, b = nn.Linear(2, 3), nn.Linear(3, 1), nn.Linear(3, 1)
h = torch.tanh(trunk(torch.ones(4, 2)))
la = a(h).pow(2).mean()
lb = (b(h.detach()) - 1).pow(2).mean()
la.backward()
lb.backward()
"""

_CRITIC = """\
from torch import nn
G, D = nn.Linear(2, 2), nn.Linear(2, 1)
og, od = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (G, D)]
for step in range(3):
    fake = G(torch.ones(3, 2))
    ld = D(fake.detach()).pow(2).mean()
    od.zero_grad()
    ld.backward()
    od.step()
    lg = (D(fake) - 1).pow(2).mean()
    og.zero_grad()
    lg.backward()
    og.step()
"""

_CLOSURE = """\
w = torch.tensor([-1., 2.], requires_grad=True)
opt = torch.optim.LBFGS([w], max_iter=10)
def closure():
    opt.zero_grad()
    loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
    loss.backward()
    return loss
for i in range(3):
    loss = opt.step(closure)
"""

_UNDERFLOW = """\
logits = torch.tensor([[200., 0., 1.]], requires_grad=True)
p = torch.softmax(logits, dim=1)
loss = -torch.log(p[0, 1])
loss.backward()
"""

_ARGMAX = """\
logits = torch.randn(4, 3, requires_grad=True)
chosen = F.one_hot(SCORES.argmax(-1), 3).float()
loss = (chosen @ torch.ones(3, 2)).pow(2).mean()
loss.backward()
"""

_CHECK += [
    Row("blame", _UNDERFLOW, ("torch.log_softmax(logits, dim=1)[0, 1]",), ("--dtype float64",)),
    Row(
        "blame",
        _UNDERFLOW.replace("torch.log(p[0, 1])", "p.gather(1, torch.tensor([[1]])).log().sum()"),
        ("-torch.log_softmax(logits, dim=1).gather(1, torch.tensor([[1]])).sum()",),
        ("--dtype float64",),
    ),
    Row("check", _STATISTICS, ("net.0.bias.grad fine",), ("--of loss",)),
    Row("check", _CLOSURE, ("check does", "compute `loss` anew"), ("out of place",)),
    Row("check", _FIXED_POINT, ("net.W.bias.grad fine",), ("reaches",)),
    Row(
        "check",
        "from torch import nn\na = torch.tensor(0.5, requires_grad=True)\n"
        "net = nn.Linear(2, 1)\nloss = net(torch.ones(3, 2)).pow(2).mean() * a.item()",
        ("no gradient of loss reaches `a`, which requires grad: `gradcli why a.grad`",),
    ),
    Row("check", _TWO_LOSSES, ("b.bias.grad fine",), ("reaches",)),
    Row(
        "explain --flow",
        _TWO_LOSSES,
        ("shown is the backward pass from lb; 4 of 6 parameters get no gradient in it",),
    ),
    Row(  # what trains a critic is the loss ahead of its own step
        "why D.weight",
        _CRITIC,
        ("D.weight.trains = True", "the gradient flows from ld to D.weight"),
        ("added up", "lg"),
    ),
    Row("why D.weight.grad", _CRITIC, ("the gradient flows from lg", "2 backward passes")),
    Row("explain --flow", _CLOSURE, ("shown is the last of 30 backward passes",), ("not run",)),
    Row("check", _UNDERFLOW, ("in the program's own dtype logits.grad is not finite",)),
    Row(  # what this pass frees was freed by that one
        "explain --ir",
        _PENALTY,
        ("g = torch.autograd.grad(out.sum(), x)[0] | ----", "pass it create_graph=True"),
        ("hands on",),
    ),
    Row("derive", _PENALTY, ("pass it create_graph=True",), ("hands on",)),
    Row(  # a draw of normal() has the gradient 0 everywhere
        "why m.grad",
        "m = torch.ones(2, requires_grad=True)\nz = torch.normal(m.detach(), 1.)\n"
        "(z * torch.ones(2, requires_grad=True)).sum().backward()",
        ("`.detach()` gives the values outside the graph",),
        ("leave `.detach()` out",),
    ),
    Row(
        "why w",
        "w = torch.ones(2, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\n"
        "torch.relu(-w).sum().backward()\nopt.step()",
        ("w.trains = False because its gradient is zero for these values",),
    ),
    Row(
        "explain --flow",
        _MODEL + "loss = (net(torch.ones(1, 2)) * 1e4).pow(2).sum()\nloss.backward()\n"
        "nn.utils.clip_grad_norm_(net.parameters(), 1.)\nopt.step()",
        ("gradients explode", "what the program's clipping leaves of them is not shown"),
        ("bounds them",),
    ),
    Row(
        "why logits.grad",
        _ARGMAX.replace("SCORES", "F.softmax(logits, dim=-1)"),
        ("`chosen = F.softmax(logits, dim=-1).float()`",),
    ),
    Row(
        "why logits.grad",
        _ARGMAX.replace("chosen =", "p = logits.softmax(-1)\nchosen =").replace("SCORES", "p"),
        ("`chosen = p.float()`",),
    ),
    Row(
        "why logits.grad",
        _ARGMAX.replace("SCORES", "logits"),
        ("`chosen = torch.softmax(logits, -1).float()`",),
    ),
]

_ROUND = """\
class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()
    @staticmethod
    def backward(ctx, g):
        return g
x = torch.tensor([0.3, 1.7], requires_grad=True)
w = torch.tensor([2., 3.], requires_grad=True)
y = (Round.apply(x) * w).sum()
"""

_WHY += [
    Row(
        "why mu.grad",
        "mu = torch.tensor(0.5, requires_grad=True)\n"
        "z = torch.distributions.Normal(mu, 1.).sample((3,))\nloss = z.sum()\nloss.backward()",
        ("sample() draws outside the graph", "`rsample()` lets the gradient through"),
    ),
    Row(
        "why mu.grad",
        "mu = torch.ones(3, requires_grad=True)\nz = mu + torch.randn_like(mu)\n"
        "loss = (z ** 2).sum()\nloss.backward()",
        ("the gradient flows from loss to mu",),
        ("without history",),
    ),
    Row(
        "why emb.weight.grad",
        "emb = torch.nn.Embedding(3, 2, padding_idx=0)\nemb(torch.tensor([0, 0])).sum().backward()",
        ("only rows that were looked up get a gradient, and that of padding_idx none",),
    ),
    Row(
        "why net.weight.trains",
        "net = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for _ in range(3):\n    loss = net(torch.ones(2)).sum()\n    loss.backward()\n"
        "    net.weight.grad = None\n    opt.step()",
        ("net.weight.trains = False", "is cleared before a step() can use it"),
    ),
    Row(
        "why net.weight.trains",
        "net = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for _ in range(3):\n    loss = net(torch.ones(2)).sum()\n    loss.backward()\n"
        "    opt.step()\n    net.weight.grad = None",
        ("net.weight.trains = True", "a gradient arrived and was used"),
        ("untried",),
    ),
    Row(
        "why net.weight.grad",
        "data = torch.ones(2).requires_grad_()\nnet = torch.nn.Linear(2, 1)\n"
        "net.weight = torch.nn.Parameter(torch.ones(1, 2), requires_grad=False)\n"
        "loss = net(data).sum()\nloss.backward()",
        ("net.weight is frozen",),
        ("this says which parameters require grad",),
    ),
    Row(
        "why net.weight.grad",
        "net = torch.nn.Linear(2, 1)\nwith torch.no_grad():\n    h = net(torch.ones(2))\n"
        "loss = h.sum()\nloss.backward()",
        ("every way to loss from net.bias and net.weight leaves the graph",),
    ),
]

_EXPLAIN = [
    Row(  # a table has one pass
        "explain --flow --of ld",
        _ADVERSARIES,
        (
            "G.weight [2, 2] None: none in this pass",
            "shown is the last backward pass from ld, behind which others ran",
        ),
        ("the last of 6",),
    ),
    Row(  # what reaches no parameter is told to be another pass
        "explain --flow",
        f"{_LOOP}    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
        "a = torch.ones(2, requires_grad=True)\ny = (a * 2).sum()\ny.backward()",
        ("shown is the backward pass from y; 2 of 3 parameters get no gradient in it",),
    ),
    Row("explain --flow --of lg", _ADVERSARIES, ("shown is the last of 3 backward passes",)),
    Row("explain --of ld", _ADVERSARIES, ("ld MeanBackward0",), ("G.weight",)),
    Row(
        "derive",
        f"{_LOOP}    opt.zero_grad()\n    loss.backward()\n    opt.step()",
        ("in place, after the output was computed from it", "as before `opt.step()`"),
        ("at these inputs only",),
    ),
    Row(  # the number that the formulas stand for is named
        "derive",
        "x = torch.tensor([1., 3., -2.], requires_grad=True)\nk = x.argmax().item()\n"
        "y = x[:k].pow(2).sum()",
        ("near these inputs: what follows from `x.argmax().item()` (line 3) stands as numbers",),
    ),
    Row("derive", _ROUND, ("grad_w = x.round()", "grad_x = w"), ("E901",)),
    Row(
        "explain --derivatives hessian",
        "x = torch.tensor([1., 2.], requires_grad=True)\ny = (x ** 3).sum()\ny.backward()",
        ("x[0] 6 0", "x[1] 0 12"),
        ("E403",),
    ),
    Row(
        "explain --flow",
        "w = torch.tensor([3., 4.], requires_grad=True)\ny = (w ** 2).sum() / 2\ny.backward()",
        ("w [2] 5",),
        ("no module",),
    ),
    Row(  # `grad()` returns gradients, and stores none; two ways to w are added
        "explain --flow",
        "w = torch.tensor([3., 4.], requires_grad=True)\nv = torch.tensor(1., requires_grad=True)\n"
        "v.backward()\ny = (w ** 2).sum() / 4 + w @ w / 4\n"
        "g, = torch.autograd.grad(y, w)",
        ("w [2] 5",),
        ("w [2] None",),
    ),
    Row(
        "explain --flow",
        "w = torch.tensor([3., 4.], requires_grad=True)\nv = torch.tensor(1., requires_grad=True)\n"
        "(v * 2).backward()\ny = (w ** 2).sum() / 2\nfor _ in range(1):\n"
        "    torch.autograd.grad(y, w)",
        ("w [2] 5", "v [] None: no"),
        ("w [2] None",),
    ),
    Row(  # leaves that stand beside modules
        "explain --flow",
        "net = torch.nn.Linear(2, 1)\nscale = torch.tensor(2., requires_grad=True)\n"
        "prompts = [torch.nn.Parameter(torch.tensor([3., 4.]))]\nx = torch.ones(2)\n"
        "z = torch.zeros(2, requires_grad=True)\nfree = torch.ones(1, requires_grad=True)\n"
        "torch.autograd.grad(z.exp().sum(), z)\n"
        "loss = net(x).sum() + scale * (prompts[0] ** 2).sum() / 4\nloss.backward()",
        (
            "net.bias [1] 1",
            "scale [] 6.25",
            "prompts[0] [2] 5",
            "free [1] None",
            "1 of 5 parameters get",
        ),
        ("z [2]",),
    ),
    Row(
        "explain --paths net.weight",
        "net = torch.nn.Linear(2, 1)\nnet.weight.requires_grad_(False)\n"
        "y = net(torch.ones(2)).sum()",
        ("`net.weight` does not require grad, and no path leads to it",),
        ("is no leaf",),
    ),
]

_BLAME = [
    Row(  # a NaN that is gone in the end says nothing of a dtype
        "blame",
        "w = torch.ones(2, requires_grad=True)\nfor x in (1., 0., 2.):\n"
        "    x = torch.tensor(x)\n    loss = (w * x / x).sum()\n    w.grad = None\n"
        "    loss.backward()",
        ("in round 2 of the loop",),
        ("--dtype float64",),
    ),
    Row(
        "blame",
        "m = torch.tensor([True, False])\nz = torch.tensor([1., 2.], requires_grad=True)\n"
        "logp = z.masked_fill(~m, -torch.inf).log_softmax(0)\n"
        "loss = -(logp.exp() * logp).sum()",
        ("one that is there already is to be masked ahead of the product",),
    ),
    Row(
        "blame",
        "x = torch.tensor([300., 2.], dtype=torch.float16, requires_grad=True)\n"
        "y = (x ** 2).sum().sqrt()\ny.backward()",
        ("cure:", "proof: this was run"),
        ("too large for float64",),
    ),
    Row(
        "blame",
        "from torch import nn\nrnn = nn.RNN(2, 2, nonlinearity='relu')\n"
        "for p in rnn.parameters():\n    nn.init.constant_(p, 5.)\n"
        "o, h = rnn(torch.ones(60, 1, 2))\nloss = h.sum()\nloss.backward()",
        ("rnn.weight_hh_l0.grad",),
        ("p.grad",),
    ),
    Row(  # an element of a product is made of a row and a column
        "blame",
        "v = torch.tensor([[3., 2e20], [2e20, 1.]])\ny = (v @ v).sum()",
        ("at element [0, 0] v 1 to 2e+20",),
        ("v 3",),
    ),
    Row(  # an element of the gradient that is no element of the result
        "blame",
        "x = torch.ones(4, 8, requires_grad=True)\nW = torch.zeros(8, 2)\nW[7] = 1e30\n"
        "y = torch.addmm(torch.ones(2), x, W) * 1e-20\ny.backward(torch.full((4, 2), 1e38))",
        ("x.grad is not finite: overflow, in the backward pass",),
        ("bug of gradcli",),
    ),
]


_CUBES = """\
from torch.func import grad, hessian, jacrev, jvp, vjp, vmap
u, v = torch.tensor([0.3, -1.2]), torch.tensor([0.7, 2.1])
x = torch.tensor([1.4, -0.6], requires_grad=True)
def cubes(t, s):
    return (t ** 3 * s).sum()
def line(t):
    return (3 * t).sum()
"""

_OF_SAMPLES = """\
from torch import nn
from torch.func import functional_call, grad, vmap
net = nn.Linear(2, 1)
params = {name: each.detach() for name, each in net.named_parameters()}
def loss(params, row):
    return functional_call(net, params, (row,)).pow(2).sum()
"""

_BY_HAND = f"""\
{_OF_SAMPLES}rows = torch.tensor([[0.5, 1.5], [-0.2, 0.7]])
for step in range(2):
    own = dict(net.named_parameters())
"""

_TRANSFORMS = [
    Row(  # neither made of numbers alone, nor cut
        "why g",
        f"{_CUBES}g = grad(cubes)(u, v)",
        ("g is a derivative, which torch.func returned", "requires grad: u, v", ":9:5"),
        ("leaves the graph", "numbers alone"),
    ),
    Row(
        "why g",
        f"{_CUBES}rows = torch.stack([u, v])\ng = vmap(grad(cubes), in_dims=(None, 0))(u, rows)",
        ("g is a derivative", "requires grad: u, v", ":10:5"),
        ("numbers alone",),
    ),
    Row(  # whose rules read what is a variable inside
        "why J",
        f"{_CUBES}J = jacrev(lambda t: torch.tanh(t) * v)(u)",
        ("J is a derivative", "requires grad: u, v"),
        ("no_grad",),
    ),
    Row("why t", f"{_CUBES}y, t = jvp(torch.sin, (u,), (v,))", ("t is a derivative",), ("Python",)),
    Row("why y", f"{_CUBES}y, pull = vjp(torch.sin, u)", ("requires grad: u", ":9:11"), ("leaf",)),
    Row(
        "why u",
        f"{_CUBES}H = hessian(cubes)(u, v)",
        ("torch.func returns derivatives by u", ":9:5"),
        ("nobody asked", "`H` is"),
    ),
    Row(
        "why u.requires_grad",
        f"{_CUBES}g = grad(cubes)(u, v)",
        ("u is a leaf that was never asked to", "torch.func differentiates by `u` here"),
        ("nobody asked",),
    ),
    Row(
        "why x",
        f"{_CUBES}g = vmap(grad(torch.sin))(x)",
        ("torch.func returns derivatives by x",),
        ("`g.backward()`", "not computed"),
    ),
    Row(
        "why g",
        f"{_CUBES}g = grad(line)(x)",
        ("g is a derivative, which torch.func returned, and is constant", "linear in `x`"),
        ("numbers alone",),
    ),
    Row(
        "why g",
        f"{_CUBES}with torch.no_grad():\n    g = grad(cubes)(x, v)",
        ("every way to g from x", "runs under no_grad()", ":10:9"),
    ),
    Row(
        "why net.weight",
        f"{_OF_SAMPLES}g = grad(loss)(params, torch.tensor([0.5, 1.5]))\n"
        "new = {name: each - 0.1 * g[name] for name, each in params.items()}\n"
        "last = loss(new, torch.tensor([1.5, -0.5]))",
        ("the only way from net.weight to last leaves the graph", "`.detach()`"),
        ("no backward pass wrote",),
    ),
    Row(
        "why g",
        f"{_OF_SAMPLES}g = vmap(grad(loss), (None, 0))(params, torch.rand(3, 2))['weight']",
        ("every way to g from net.bias and net.weight", "`.detach()`"),
        ("a value of Python's",),
    ),
    Row(
        "explain",
        f"{_CUBES}g = grad(cubes)(u, v)",
        ("g does not require grad", "g is a derivative", "requires grad: u, v"),
        ("leaves the graph",),
    ),
    Row(  # the second derivative is that of what is linear
        "check --order 2",
        f"{_CUBES}g = grad(line)(x)",
        ("g does not require grad, so it has no gradient to check", "linear in `x`", ":9:1"),
        ("computes nothing",),
    ),
    Row(
        "check --order 2",
        f"{_CUBES}g = vmap(grad(torch.sin))(u)",
        ("g does not require grad", "g is a derivative", "requires grad: u"),
        ("computes nothing",),
    ),
    Row(  # the note is about the output, and not about what is printed
        "explain",
        f"{_CUBES}A, B = jacrev(lambda t, s: t * s, (0, 1))(u, v)\nprint(A)",
        ("B does not require grad", "B is a derivative"),
    ),
    Row(
        "why net.weight",
        f"{_BY_HAND}    grads = torch.autograd.grad(loss(own, rows), [net.weight, net.bias])\n"
        "    with torch.no_grad():\n        for p, g in zip(net.parameters(), grads):\n"
        "            p -= 0.1 * g",
        ("net.weight.trains = True", "gradients that are returned to it", ":14:13"),
    ),
    Row(
        "why net.weight",
        f"{_BY_HAND}    grads = grad(loss)(own, rows)\n    with torch.no_grad():\n"
        "        for name, p in net.named_parameters():\n            p -= 0.1 * grads[name]",
        ("net.weight.trains = True", "gradients that are returned to it", ":14:13"),
    ),
    Row(  # in a loop, whose last name is another one's
        "why net.weight.grad",
        f"{_BY_HAND}    grads = grad(loss)(own, rows)\n"
        "for name, p in net.named_parameters():\n    p.grad = grads[name] * 2",
        ("the program set .grad itself", ":13:5"),
        ("came with the tensor",),
    ),
    Row(  # the rule's division is no division of the program's
        "blame",
        "x = torch.tensor(0., requires_grad=True)\n"
        "g = torch.func.grad(lambda t: torch.where(t > 0, t.sqrt(), t * 0))(x)\ny = g * 2",
        ("0*inf, in the backward pass of sqrt", "mask what goes into the op"),
        ("forward pass of div",),
    ),
    Row(
        "blame",
        "x = torch.tensor([0., 4.])\n"
        "g = torch.vmap(torch.func.grad(lambda t: torch.where(t > 0, t.sqrt(), t * 0)))(x)",
        ("in div, which the backward pass computes",),
        ("forward pass",),
    ),
    Row(
        "why w",
        "w = torch.tensor([1., 2., 3.], requires_grad=True)\n"
        "h = w * 2\ny = ((h + 1) - (h + 1)).sum() + (w - w).sum()\n"
        "y.backward()",
        ("uses of",),
        ("`it`",),
    ),
    Row(  # whose values are stacked without their history
        "why nets[0].weight",
        "from torch import nn\nfrom torch.func import functional_call, stack_module_state, vmap\n"
        "nets = [nn.Linear(2, 1) for _ in range(3)]\nparams, _ = stack_module_state(nets)\n"
        "def run(p):\n    return functional_call(nets[0], p, torch.ones(4, 2))\n"
        "loss = vmap(run)(params).pow(2).mean()\nloss.backward()",
        ("the only way from nets[0].weight to loss", "takes the values alone", ":5:13"),
        ("nothing is computed from", "do not make it"),
    ),
    Row(
        "why H.requires_grad",
        "x = torch.tensor([0.4, 1.7], requires_grad=True)\n"
        "H = torch.autograd.functional.hessian(lambda t: (t ** 3).sum(), x)\ny = H.sum()",
        ("gives the Hessian without its history", "create_graph=True"),
    ),
    Row(
        "why x",
        "x = torch.tensor([0.4, 1.7], requires_grad=True)\n"
        "J = torch.autograd.functional.jacobian(torch.sin, x)",
        ("jacobian() returns the gradients and leaves every .grad alone",),
        ("grad() returns",),
    ),
    Row(  # which stands for `x` inside
        "explain",
        "x = torch.tensor([0.4, -1.7], requires_grad=True)\n"
        "g = torch.func.grad(lambda t: t.relu().sum())(x)\ny = (g * x).sum()",
        ("∂(t.relu())/∂x",),
        ("∂(torch.func.grad",),
    ),
    Row(  # whose value comes with its history
        "why x",
        f"{_CUBES}y, t = jvp(torch.exp, (x,), (v,))\nloss = t.sum() + y.sum()\nloss.backward()",
        ("the gradient flows from loss to x",),
        ("values alone",),
    ),
    *(
        Row(  # as functions of parameters have them
            f"why {question}",
            "p = {'a.w': torch.tensor([0.4, 1.7], requires_grad=True)}\n"
            "(p['a.w'] ** 2).sum().backward()",
            ("p['a.w'].grad = tensor([0.8000, 3.4000])",),
        )
        for question in ("p['a.w']", "p['a.w'].grad")
    ),
    Row("why z", "x = torch.tensor([0.4, 1.7])\nz = x * 2", ("computed from x",), ("alone",)),
    Row(  # `y.backward()` would raise
        "why x",
        "x = torch.tensor([0.4, 1.7], requires_grad=True)\ny = x * 2",
        ("call `y.sum().backward()`",),
    ),
]

_RECORDS = (
    "X, Y = torch.randn(40, 3), torch.ones(40, 1)\nX[26, 1] = X[30, 0] = float('nan')\n"
    "w = torch.ones(3, requires_grad=True)\n"
)

_BLAME += [
    Row(  # in a loop inside the round whose step spoils the leaves
        "blame",
        "W = torch.nn.Parameter(torch.eye(2) * 7.)\nopt = torch.optim.SGD([W], lr=0.1)\n"
        "for epoch in range(2):\n    h = torch.tensor([0.3, -1.2])\n    for t in range(60):\n"
        "        h = W @ h\n    loss = h.pow(2).mean()\n    opt.zero_grad()\n"
        "    loss.backward()\n    opt.step()",
        ("overflow, in the forward pass of mv", "in round 46 of", "grows 7-fold each time"),
        ("backward pass of pow",),
    ),
    Row(  # the batch and its record in which data came in
        "blame",
        _RECORDS + "for i in range(0, 40, 8):\n    x, y = X[i:i+8], Y[i:i+8]\n"
        "    loss = (x @ w - y[:, 0]).pow(2).mean()\n    loss.backward()",
        ("it is computed with here first, in x", "in round 4 of the loop", "(i = 24)", "x[2, 1]"),
    ),
    Row(
        "blame",
        _RECORDS + "for x in X:\n    loss = (x * w).sum()\n    loss.backward()",
        ("in round 27 of the loop", "x[1] nan"),
    ),
    Row(
        "blame",
        _RECORDS + "from torch.utils.data import DataLoader, TensorDataset\nX = X * 1\n"
        "for n, (x, y) in enumerate(DataLoader(TensorDataset(X.detach(), Y), batch_size=8)):\n"
        "    loss = (x * w).sum()\n    loss.backward()",
        ("it is computed with here first, in X", "X[26, 1] nan"),
    ),
    Row(
        "blame",
        "w = torch.ones(2, requires_grad=True)\n"
        "X = torch.tensor([[1., 2.], [torch.nan, torch.inf]])\nloss = (X @ w).sum()",
        ("X holds nan, and 2 numbers that are not finite, in 1 row", "at element [1, 0] X nan"),
        ("computed with here",),
    ),
]


@pytest.mark.parametrize(
    "row",
    [*_WHY, *_CHECK, *_BLAME, *_EXPLAIN, *_TRANSFORMS],
    ids=lambda row: f"{row.ask}: {row.says[0]}",
)
def test_answers(row: Row, tmp_path: Path, gradcli: CommandLine) -> None:
    path = tmp_path / "program.py"
    path.write_text(f"import torch\n{row.program}\n")
    shown = gradcli(*row.ask.split(), str(path))
    told = " ".join((shown.out + shown.err).split())
    assert [text for text in row.says if text not in told] == [], told
    assert [text for text in row.never if text in told] == [], told
