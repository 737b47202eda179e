"""LazyArray pointwise execution never shows: the same values, nodes, traces and errors as without.

Each program runs twice, lazy and not; what it prints must be the same text. Sums are rounded
before they are printed, as a plan adds block by block, and so are gradients of log_softmax, for
which softmax is a quotient then, and no exponential.
"""

from __future__ import annotations

import pytest

from gradcli.arrays.fusion import lazy, plan
from gradcli.errors import GradcliError
from gradcli.session import Session
from tests.exactness import difference, work_of

LARGE = 300_000
"""Elements: more than one block for each of two threads."""

NEVER = 1 << 60

START = f"""\
torch.manual_seed(3)
x = torch.randn({LARGE}, requires_grad=True)
w = torch.rand({LARGE}) + 0.5
m = torch.randn(600, 500, requires_grad=True)
v = torch.randn(500, requires_grad=True)
c = torch.randn(600, 1, requires_grad=True)
def some(t):
    return t.flatten()[::9973].tolist()
def near(t):
    return [f"{{e:.3g}}" for e in some(t)]
"""

PROGRAMS = {
    "a chain": "y = torch.tanh(x * w + 1) ** 2\nprint(some(y), y.grad_fn)",
    "every unary op": "for f in (exp, log, sqrt, sin, cos, sigmoid, abs, relu, neg, erf, square):\n"
    "    print(some(f(w * 0.5)))",
    "forward and backward": "y = (torch.tanh(x * w) ** 2).sum()\ny.backward()\n"
    "print(y.item(), some(x.grad))",
    "a seed of its own": "y = torch.exp(x * 0.1) / w\ny.backward(w * 0.3)\nprint(some(x.grad))",
    "gradients that share work": "a = x.detach().requires_grad_()\n"
    "y = (torch.sin(x) * torch.sin(a) * w).sum()\ny.backward()\nprint(some(x.grad), some(a.grad))",
    "one gradient for two leaves": "a = w.clone().requires_grad_()\n"
    "((x + a) * 2).sum().backward()\nx.grad.mul_(3)\nprint(some(x.grad), some(a.grad))",
    "equal gradients of two leaves": "a = x.detach().requires_grad_()\n"
    "torch.sin(x * a).sum().backward()\nx.grad.add_(1)\nprint(some(x.grad), some(a.grad))\n"
    "a.grad.mul_(3)\nprint(some(x.grad), some(a.grad))",
    "broadcasting": "y = (m * v + c) ** 3\ny.backward(torch.ones_like(y) * 0.5)\n"
    "print(some(m.grad), y.shape, [round(g, 0) for g in some(v.grad) + some(c.grad)])",
    "sums over dimensions": "y = torch.sin(m)\n"
    "print(y.sum(0).shape, y.sum(1, keepdim=True).shape, round(y.sum().item(), 1))\n"
    "print([round(s, 2) for s in y.sum(1)[::100].tolist() + y.sum(0)[::100].tolist()])",
    "a mean that is read later": "y = x * w\nz = y - y.mean()\nprint(z.sum().abs().item() < 0.5)",
    "comparison and choice": "y = torch.where(x > 0, x * 2, -w)\ny.sum().backward()\n"
    "print(some(y), some(x.grad), (x > w).dtype)",
    "mixed dtypes": "y = x * w.double() + (x > 0)\nprint(y.dtype, some(y))",
    "integers beside": "y = x * 2 + torch.arange(x.numel())\nprint(y.dtype, some(y))",
    "written to afterwards": "y = x.detach() * w\nw.mul_(0)\nprint(some(y), some(w))",
    "written through a view": "y = w * 2\nw[:10] = 7\nprint(y[:3].tolist(), w[:3].tolist())",
    "an input that is updated": "for i in range(3):\n    (x * x * w).sum().backward()\n"
    "    with torch.no_grad():\n        x -= 0.1 * x.grad\n    x.grad = None\nprint(some(x))",
    "accumulated": "for i in range(3):\n    (x * w).sum().backward()\nprint(some(x.grad))",
    "the result is written to": "y = x * w\ny += 1\nz = y.sigmoid_()\nz.sum().backward()\n"
    "print(some(z), some(x.grad), z is y, z.grad_fn)",
    "a saved result that was written to": "y = torch.exp(x)\ntry:\n    y.mul_(2)\n"
    "    y.sum().backward()\nexcept RuntimeError as error:\n    print('modified', y._version)",
    "an optimizer's step": "a = torch.ones_like(w, requires_grad=True)\ny = a * x.detach()\n"
    "opt = torch.optim.SGD([a], lr=0.5)\n(a * w).sum().backward()\nopt.step()\n"
    "print(some(y), some(a))",
    "views of a result": "y = (x * w).reshape(600, 500)\nz = y.T[3] * 2\nz.sum().backward()\n"
    "print(some(z), some(x.grad))",
    "read in between": "y = x * w\nprint(y[0].item())\nz = y * 2\nprint(some(z), y[:2].tolist())",
    "a long chain": "y = x\nfor i in range(200):\n    y = y * 0.99 + 0.01\ny.sum().backward()\n"
    "print(some(y), some(x.grad))",
    "second derivatives": "(g,) = torch.autograd.grad((torch.sin(x) * w).sum(), x,"
    " create_graph=True)\ng.square().sum().backward()\nprint(some(g), some(x.grad))",
    "hooks": "y = x * w\ny.register_hook(lambda g: g * 2)\nx.register_hook(lambda g: g + 1)\n"
    "y.retain_grad()\n(y * 3).sum().backward()\nprint(some(x.grad), some(y.grad))",
    "grad of several": "a = (x * w)\nb = a.sin()\nga, gx = torch.autograd.grad(b.sum(), (a, x))\n"
    "ga.add_(1)\nprint(some(ga), some(gx))",
    "not a number": "y = (x - x) / (x - x)\nprint(y.isnan().all(), torch.nan_to_num(y).sum())",
    "signed zeros": "y = x.detach() * 0\nprint(some(1 / (y * 1.0)), some(1 / (y * -1.0)))",
    "an op that is no part of plans": "y = torch.sort(x * w)[0].cumsum(0)\nprint(y.shape, y[0])",
    "matrix products": "y = relu(m @ m.T) * 2\ny.sum().backward()\nprint(y.shape, m.grad.shape)",
    "written over by a plan": "t = w * 2\nw -= t * w\nprint(some(t), some(w), w._version)\n"
    "w.mul_(w + 1).add_(x.detach(), alpha=0.5)\nprint(some(w), w._version)",
    "written over by its own transpose": "q = w[:250000].view(500, 500)\n"
    "q += q.T * 2\nprint(some(q), some(w))",
    "written over where it is strided": "q = w[::2]\nq += q * w[1::2]\nprint(some(q), some(w))",
    "a choice written over": "w.copy_(torch.where(w > 1, x.detach(), w))\nprint(some(w))",
    "how results lie": "q = torch.rand(500, 600)\nfor r in (m.T * 2, m.T + m.T, m.T * q, q * m.T,"
    " torch.relu(m.T), m[::2] * 3, (m * 2).T + 1):\n    print(r.stride(), some(r))",
    "cross-entropy": "t = torch.arange(600) * 7 % 500\nt[5] = -100\n"
    "for loss in (F.cross_entropy(m, t), -F.cross_entropy(m * 99, t, reduction='sum')):\n"
    "    loss.backward()\n    print(near(m.grad), str(m.grad.min()), m.grad.signbit().sum())",
    "the gradient of nll_loss": "t = torch.arange(600) * 7 % 500\nq = m * 1\nq.retain_grad()\n"
    "F.nll_loss(q, t).backward()\nprint(some(q.grad), some(m.grad), m.grad.sum(1)[:3])\n"
    "q = F.log_softmax(m, 1)\nq.register_hook(lambda g: g * 2)\nF.nll_loss(q, t).backward()\n"
    "print(near(m.grad))",
    "the gradient of log_softmax": "q = F.log_softmax(m, 1)\nprint(some(q), q.sum(1)[:3])\n"
    "q.backward(torch.rand(600, 500))\nprint(near(m.grad))\nm.grad = None\n"
    "(F.log_softmax(m.view(600, 50, 10), -1) * v[:10]).sum().backward()\nprint(near(m.grad))\n"
    "n = m.detach().view(60, 500, 10).requires_grad_()\n"
    "F.cross_entropy(n, torch.arange(600).view(60, 10) % 500).backward()\nprint(near(n.grad))",
    "logits that are written to": "q = F.log_softmax(m, 1)\nwith torch.no_grad():\n"
    "    m.zero_()\nF.nll_loss(q, torch.arange(600) % 500).backward()\n"
    "print(some(q), near(m.grad))",
    "a gradient that is not asked for yet": "t = torch.arange(600) % 500\n"
    "F.cross_entropy(m, t).backward()\na = m.grad\nF.cross_entropy(m, t).backward()\n"
    "print(a is m.grad, near(a))\nwith torch.no_grad():\n    m -= 100 * m.grad\n"
    "print(near(m), near(a))\na.zero_()\nprint(m.grad[3, 4])",
    "the node knows": "y = x.tanh()\nprint(y.grad_fn._saved_result.shape,"
    " y.grad_fn.next_functions[0][0])",
}


def _printed(program: str, lazy_from: int) -> str:
    out: list[str] = []
    session = Session(lambda event: out.append(event.text))
    session.state.lazy_from = lazy_from
    for _ in session.run(START + program + "\n", "program"):
        pass
    return "".join(out)


@pytest.mark.parametrize("name", PROGRAMS)
def test_laziness_never_shows(name: str) -> None:
    plain = _printed(PROGRAMS[name], NEVER)
    assert plain
    lazy = _printed(PROGRAMS[name], 1 << 16)
    assert difference(lazy, plain, lambda: work_of(START + PROGRAMS[name] + "\n")) is None


def test_an_error_keeps_its_statement() -> None:
    with pytest.raises(GradcliError) as raised:
        _printed("y = x * w\nz = y + torch.ones(7)\nprint(z)", 1 << 16)
    assert raised.value.code == "E301"
    assert raised.value.span is not None
    assert raised.value.span.text == "y + torch.ones(7)"


def test_forward_and_backward_are_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    run = plan.FusedPlan.run

    def counted(each: plan.FusedPlan) -> None:
        passes.append(each)
        run(each)

    monkeypatch.setattr(plan.FusedPlan, "run", counted)
    program = "y = (torch.tanh(x * w) ** 2).sum()\ny.backward()\nprint(y.item(), x.grad[0])"
    _printed(program, 1 << 16)
    assert len(passes) == 1


def test_a_step_is_one_pass_to_the_memory_that_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    run = plan.FusedPlan.run

    def counted(each: plan.FusedPlan) -> None:
        passes.append(len(each.memory))
        run(each)

    monkeypatch.setattr(plan.FusedPlan, "run", counted)
    _printed("a = w * 1\nb = a[0]\na -= 0.5 * w\nprint(a[0])", 1 << 16)
    assert passes == [0, 1]


def test_values_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []
    force = lazy.LazyArray.force

    def counted(array: lazy.LazyArray) -> object:
        computed.append(array.value is None)
        return force(array)

    monkeypatch.setattr(lazy.LazyArray, "force", counted)
    _printed("y = x * w\nprint(y[0], y[1], y.sum())", 1 << 16)
    assert sum(computed) <= 3
