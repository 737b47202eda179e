"""Loops that draw random numbers inside functions of the library are compiled: they draw what the
interpreted iterations draw, leave the generators where those do, and fail where those fail.
"""

from __future__ import annotations

import pytest

from tests.rows import sampled
from tests.running import Outcome, run

_HEAD = """
import torch
import torch.nn.functional as F
from torch.distributions import *
torch.manual_seed(0)
p, m = torch.tensor([0.2, 0.5, 0.9]), torch.tensor([1.0, 2.0, 3.0])
w = torch.tensor([0.3, -0.7, 1.1], requires_grad=True)
kept, own, total, width = torch.zeros(3), torch.Generator().manual_seed(4), 0.0, 1.0
"""

_DRAWN = (
    _HEAD
    + """
for step in range(150):
    drawn = {}
    total = total + (drawn.detach().double() * drawn.detach().cos()).sum()
print(drawn, total, kept, torch.rand(2), torch.rand(2, generator=own))
"""
)

DRAWS = (
    """\
torch.rand(2)
torch.randn(())
torch.randn(2, 3, dtype=torch.float64)
torch.randn(20, generator=own)
torch.bernoulli(p)
torch.bernoulli(p[0])
torch.bernoulli(w.sigmoid())
torch.bernoulli(p, 0.4)
torch.bernoulli(p, generator=own)
torch.normal(m, p)
torch.normal(m[0], p[0], generator=own)
torch.normal(m * step, 2.0)
torch.normal(1.0, p)
torch.normal(w, w.abs())
torch.multinomial(p, 2)
torch.multinomial(p, 5, True)
torch.multinomial(torch.stack([p, m]), 1, generator=own)
torch.poisson(m)
torch.empty(3).uniform_(-0.1, 0.1)
torch.empty(()).normal_()
torch.empty(3).exponential_(2.0)
torch.empty(2, 3).bernoulli_(0.3)
torch.empty(2, 3).bernoulli_(p)
torch.empty(3).cauchy_()
torch.empty(3).geometric_(0.3)
torch.empty(3).log_normal_()
torch.empty(3).random_(5)
torch.empty(3).random_()
kept.normal_(1.0, 0.5)
kept.uniform_(generator=own)
kept.exponential_(2.0, generator=own)
torch.binomial(m, p)
torch.binomial(m[2], p[0], generator=own)
torch.nn.init.normal_(torch.empty(3), 1.0, 0.5)
torch.nn.init.trunc_normal_(kept, 0.0, 0.5)
torch.nn.init.trunc_normal_(torch.empty(3), 3.0, 0.5)
torch.nn.init.xavier_uniform_(torch.empty(3, 2))
torch.nn.init.kaiming_normal_(torch.empty(3, 2))
F.gumbel_softmax(w)
F.gumbel_softmax(w, hard=True)
Normal(m, p).sample()
Normal(m, 1.0).sample((4,))
Normal(0.0, 1.0).sample((2,))
Normal(w, w.abs()).rsample()
Categorical(p).sample()
Categorical(logits=w).sample((4,))
Bernoulli(logits=w).sample()
Uniform(m, m + 1).rsample()
Laplace(m, p).rsample()
Exponential(m).rsample()
Cauchy(m, p).rsample()
Gamma(m, p).rsample()
Beta(m, p).rsample()
Dirichlet(m).rsample()
Poisson(m).sample()
Binomial(5, p).sample()
Geometric(p).sample()
StudentT(m).rsample()
LogNormal(m, p).rsample()
MultivariateNormal(m, torch.eye(3)).rsample()
RelaxedOneHotCategorical(torch.tensor(0.5), p).rsample()
Independent(Normal(m, p), 1).rsample()
MixtureSameFamily(Categorical(p), Normal(m, p)).sample()
"""
).splitlines()

_LATE = (
    _HEAD
    + """
seen = []
try:
    for step in range(150):
        {late}
        drawn = {drawn}
        loss = ((w + drawn.detach()) ** 2).mean()
        w.grad = None
        loss.backward()
        with torch.no_grad():
            w -= 0.01 * w.grad
        seen.append(loss.item())
except (RuntimeError, ValueError) as error:
    print(step, error)
print(drawn, w, kept, len(seen), seen[-3:], torch.rand(2), torch.rand(2, generator=own))
"""
)

_FALLS = "width = width - 0.008"

LATE = {
    "another probability": ("if step == 100: p = p / 2", "torch.bernoulli(p)", 90),
    "probabilities that change every time": ("p = p * 0.99", "torch.bernoulli(p)", 130),
    "no probability": ("if step == 120: p.mul_(2)", "torch.bernoulli(p)", 90),
    "no probability, by a number that grows": (
        "width = width + 0.01",
        "torch.bernoulli(0.5 * width * torch.ones(3))",
        80,
    ),
    "a negative weight": ("if step == 120: p[0] = -1.0", "torch.multinomial(p, 3).float()", 90),
    "weights of zero": (
        "p = p * 0.5 if step < 120 else p * 0",
        "torch.multinomial(p, 1, True)",
        60,
    ),
    "a rate that falls below zero": (_FALLS, "torch.empty(3).exponential_(width)", 100),
    "a probability that grows above one": (_FALLS, "kept.bernoulli_(1.1 - width)", 90),
    "a chance that falls to nothing": (_FALLS, "torch.empty(3).geometric_(width * 0.9)", 100),
    "a width that falls below zero": (
        _FALLS,
        "torch.empty(3).cauchy_(0.0, width).clamp(-1, 1)",
        100,
    ),
    "a deviation of logarithms": (_FALLS, "torch.empty(3).log_normal_(0.5, width)", 100),
    "a deviation of first values": (
        _FALLS,
        "torch.nn.init.normal_(torch.empty(3), 0.0, width)",
        100,
    ),
    "bounds of first values": (
        "width = width * 0.99",
        "torch.nn.init.trunc_normal_(torch.empty(3), width, width)",
        130,
    ),
    "a gain of first values": (
        "if step == 100: width = 0.5",
        "torch.nn.init.xavier_normal_(torch.empty(3, 1), width).flatten()",
        130,
    ),
    "a probability of successes": (
        "p = p * 1.002",
        "torch.binomial(torch.full((3,), 9.0), p)",
        130,
    ),
    "a negative deviation": ("m = m - 0.01", "torch.normal(w.detach(), m)", 90),
    "a negative rate": ("m = m - 0.01", "torch.poisson(m)", 90),
    "another shape": (
        "if step == 100: p, m = p[:1], m[:1]",
        "torch.normal(m, p).expand(3)",
        130,
    ),
    "another dtype": (
        "if step == 100: p, m = p.double(), m.double()",
        "Normal(m, p).sample().float()",
        130,
    ),
    "a scale that is not positive": ("p = p - 0.001", "Normal(m, p).rsample()", 130),
    "a scale that becomes NaN": (
        "if step == 120: p = p * float('nan')",
        "Normal(m, p).sample()",
        90,
    ),
    "logits that become NaN": (
        "if step == 120: m = m / 0 * 0",
        "Categorical(logits=m).sample()",
        90,
    ),
    "a seed that is set late": (
        "if step == 100: torch.manual_seed(3)",
        "Normal(m, p).sample()",
        130,
    ),
    "a seed that is set every time": ("torch.manual_seed(step)", "Normal(m, p).sample()", 0),
    "a generator's seed that is set late": (
        "if step == 100: own.manual_seed(8)",
        "torch.bernoulli(p, generator=own)",
        130,
    ),
    "another generator": (
        "if step == 100: own = torch.Generator().manual_seed(9)",
        "kept.normal_(generator=own)",
        90,
    ),
    "the generator's state goes back": (
        "if step == 60: state = torch.get_rng_state()\n"
        "        if step == 100: torch.set_rng_state(state)",
        "Categorical(p).sample()",
        120,
    ),
    "a bound that is switched": (
        "if step == 100: width = 3.0",
        "torch.empty(3).uniform_(-width, width)",
        130,
    ),
    "a bound that shrinks": ("width = width * 0.99", "kept.uniform_(-width, width)", 130),
    "noise that falls off": ("width = 1 / (1 + step)", "torch.empty(3).normal_(std=width)", 130),
    "noise of a generator's own": (
        "width = width * 0.98",
        "kept.normal_(width, 0.1, generator=own)",
        130,
    ),
    "noise that becomes negative": ("width = width - 0.01", "kept.normal_(0.0, width)", 80),
    "noise that becomes NaN": (
        "width = width * 1.1 if step < 120 else width * float('nan')",
        "kept.uniform_(-width, width)",
        90,
    ),
    "a bound that becomes an integer": (
        "width = width * 0.99 if step != 100 else 2",
        "kept.uniform_(0, width)",
        120,
    ),
    "a bound that becomes 1": (
        "width = 1.0 if step > 100 else 0.5 + step / 1000",
        "kept.uniform_(0, width)",
        120,
    ),
    "a rate that changes": ("width = width * 0.99", "kept.exponential_(width)", 0),
    "a probability that changes": ("width = width * 0.99", "kept.bernoulli_(width)", 0),
    "a number of values that changes": ("count = 2 + step // 10", "kept.random_(count)", 0),
    "a mean that a tensor tells": (
        "width = w[0].item()",
        "kept.normal_(width, 0.5)",
        130,
    ),
    "bounds that cross late": (
        "if step == 120: width = -1.0",
        "torch.empty(3).uniform_(-width, width)",
        90,
    ),
    "a default dtype that is switched": (
        "if step == 100: torch.set_default_dtype(torch.float64)",
        "torch.rand(3).float()",
        90,
    ),
    "a draw behind a test": (
        "if w[0] > 0.2: kept.normal_()",
        "torch.bernoulli(p)",
        130,
    ),
    "a draw ahead of a side exit": (
        "kept.exponential_()\n        if kept[0] > 3: m = m + 0.1",
        "torch.normal(m, p)",
        120,
    ),
    "what is drawn decides how often a loop runs": (
        "for _ in range(int(torch.multinomial(p, 1))): kept.normal_()",
        "torch.bernoulli(p)",
        0,
    ),
    "a distribution's checks are switched off": (
        "if step == 100: Distribution.set_default_validate_args(False)\n"
        "        if step == 120: p = -p",
        "Exponential(p).rsample()",
        90,
    ),
}
"""By name: what happens in a loop first, what it draws, and how many iterations are compiled at
least.
"""


_HELD = (
    _HEAD
    + """
model = torch.nn.Linear(3, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
values, state, other = [], torch.nn.Module(), None
class Box: pass
box = Box()
def loss_of(distribution, action):
    return -(distribution.log_prob(action) * (action == 1).float()).mean()
for step in range(150):
    {made}
    action = d.sample()
    loss = loss_of(d, action) + 0 * model(p).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {after}
try: d.log_prob(action).sum().backward()
except RuntimeError as error: print(error)
print(loss, action, values[-3:], torch.rand(2))
{behind}
"""
)

HELD = {
    "a policy": ("d = Categorical(logits=model(m))", "", "print(d, d.probs, d.entropy())", 130),
    "its probabilities are asked for": (
        "d = Categorical(logits=model(m))",
        "values.append(d.probs[0].item())",
        "print(d.logits.grad_fn, d.mode, d.log_prob(action))",
        130,
    ),
    "two parameters": (
        "d = Normal(*model(torch.stack([m, p])).tanh().split([1, 1])[0:1], 1.0)",
        "",
        "print(d.loc, d.scale, d.loc.grad_fn)\ntry: d.loc.sum().backward()\n"
        "except RuntimeError as error: print(error)",
        130,
    ),
    "a parameter with a name": (
        "x = model(m)\n    d = Normal(x, x.exp())",
        "values.append(d.mean[0].item())",
        "print(d.loc is x, x, d.scale, d.variance)",
        130,
    ),
    "of constants": (
        "d, m = Bernoulli(p), model(m).detach()",
        "",
        "print(d, d.logits)",
        130,
    ),
    "parts of others": (
        "d = Independent(Normal(model(m), p), 1)",
        "",
        "print(d, d.base_dist.loc, d.mean, d.log_prob(m))",
        130,
    ),
    "in an attribute": (
        "box.d = d = Categorical(logits=model(m))",
        "",
        "print(box.d.probs, box.d is d)",
        0,
    ),
    "in an attribute alone": (
        "box.d = Categorical(logits=model(m))\n    d = Categorical(p)",
        "values.append(box.d.log_prob(action).mean().item())",
        "print(box.d.probs, d.probs)",
        130,
    ),
    "handed to the next iteration": (
        "d = Categorical(logits=model(m))",
        "values.append(0 if other is None else kl_divergence(d, other).item())\n    other = d",
        "print(other is d, d.probs)",
        0,
    ),
    "in a list": (
        "d = [Categorical(logits=model(m))][0]",
        "values.append(d)\n    values = values[-2:]",
        "print(values[0].probs)",
        0,
    ),
    "of another shape late": (
        "if step == 100: m = torch.stack([m, p])\n    d = Categorical(logits=model(m))",
        "",
        "print(d, d.probs)",
        120,
    ),
    "of another class late": (
        "d = Categorical(logits=model(m)) if step < 100 else Bernoulli(logits=model(m))",
        "",
        "print(d, d.probs)",
        130,
    ),
    "a graph that nothing frees": (
        "d = Categorical(logits=model(m).detach())\n    e = Categorical(logits=model(p))",
        "",
        "print(d.probs, e.probs, e.logits.requires_grad)",
        130,
    ),
    "the loop ends early": (
        "d = Categorical(logits=model(m))",
        "last = d.probs.max().item()\n    if last > 0.98: break",
        "print(step, d, d.probs, d.entropy())",
        30,
    ),
    "the loop fails": (
        "d = Normal(model(m), p)\n    if step == 120: p.mul_(-1)",
        "",
        "print(d.loc)",
        90,
    ),
}
"""By name: what makes the distribution, what follows the step, what is asked of it behind the loop,
and how many iterations are compiled at least.
"""


_EPISODES = (
    _HEAD
    + """
policy = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
moves, steps, totals, best = 0, 4, [], -9.0
for episode in range(150):
    x, v = 0.5, 0.0
    log_probs, rewards = [], []
    for t in range(steps):
        d = Categorical(logits=policy(torch.tensor([x, v])))
        action = d.sample()
        log_probs.append(d.log_prob(action))
        v = v + 0.1 * (2 * action.item() - 1)
        x = x + 0.1 * v
        rewards.append(-abs(x))
    {late}
    R, returns = 0, []
    for r in {order}:
        R = r + 0.9 * R
        {insert}
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-8)
    losses = []
    for log_prob, R in zip(log_probs, returns):
        losses.append(-log_prob * R)
    optimizer.zero_grad()
    loss = torch.stack(losses).sum()
    loss.backward()
    optimizer.step()
    totals.append(sum(rewards))
print(loss, x, v, returns, rewards, R, totals[-3:], best, moves, torch.rand(2))
"""
)

_INSERT = "returns.insert(0, R)"

EPISODES = {
    "rewards from the last on": ("rewards[::-1]", _INSERT, "", 130),
    "reversed rewards": ("reversed(rewards)", _INSERT, "", 130),
    "appended and turned round": (
        "rewards[::-1]",
        "returns.append(R)\n    returns = returns[::-1]\n    if True: pass",
        "",
        130,
    ),
    "in front of the last one": (
        "rewards[::-1]",
        "returns.insert(len(returns) // 2, R)",
        "",
        130,
    ),
    "longer episodes late": ("rewards[::-1]", _INSERT, "if episode == 100: steps = 5", 120),
    "whole rewards": (
        "rewards[::-1]",
        _INSERT,
        "rewards = [1 if r > -0.5 else 0 for r in rewards]",
        130,
    ),
    "a reward that is cut off": (
        "rewards[::-1]",
        _INSERT,
        "rewards[0] = max(rewards[0], -0.5)",
        100,
    ),
    "rewards in a set": ("sorted({*rewards})", _INSERT, "", 0),
    "the best one is kept": (
        "rewards[::-1]",
        _INSERT,
        "best = max(best, sum(rewards))\n    moves += len(rewards)",
        130,
    ),
    "no step in the last one": (
        "rewards[::-1]",
        _INSERT,
        "if episode == 148: optimizer.step = lambda: None; steps = 2",
        90,
    ),
    "none of a kind late": ("rewards[::-1]", _INSERT, "if episode == 120: rewards[1] = -1", 100),
}
"""By name: the order in which rewards are summed, how the sums are kept, what happens before, and
how many iterations are compiled at least.
"""


_WALKS = (
    _HEAD
    + """
def energy(x):
    return ((x**2 - width) ** 2).sum()
x, eta, chain = torch.randn(4, requires_grad=True), 0.01, []
try:
    for step in range(150):
        {late}
        u = energy(x)
        u.backward()
        {step}
        chain.append(x.mean().item())
except (RuntimeError, ValueError, TypeError) as error:
    print(step, str(error)[:90])
print(x, x.grad, x.is_leaf, u, chain[-3:], len(chain), torch.rand(2))
"""
)

_MOVE = "x = x - eta * x.grad + (2 * eta) ** 0.5 * torch.randn(4)\n        "

WALKS = {
    "detached behind the step": (_MOVE + "x = x.detach().requires_grad_(True)", "", 130),
    "cloned behind the step": (_MOVE + "x = x.clone().detach().requires_grad_()", "", 130),
    "a new leaf in no_grad": (
        "with torch.no_grad(): x = x - eta * x.grad + eta * torch.randn(4)\n"
        "        x.requires_grad = True",
        "",
        130,
    ),
    "of its own gradient": (
        "g, = torch.autograd.grad(energy(x), x)\n"
        "        x = (x - eta * g + eta * torch.randn_like(x)).detach().requires_grad_()",
        "",
        130,
    ),
    "accepted or not": (
        "new = (x - eta * x.grad + 0.3 * torch.randn(4)).detach().requires_grad_()\n"
        "        if torch.rand(()) < torch.exp(energy(x) - energy(new)): x = new\n"
        "        else: x = x.detach().requires_grad_()",
        "",
        100,
    ),
    "the leaf is lost late": (
        _MOVE + "x = x.detach().requires_grad_(step < 120)",
        "",
        90,
    ),
    "a graph is kept late": (
        _MOVE + "x = x.detach().requires_grad_() if step < 120 else x",
        "",
        90,
    ),
    "a smaller step": (_MOVE + "x = x.detach().requires_grad_()", "eta = eta * 0.99", 130),
    "another shape": (
        "x = (x - eta * x.grad + eta * torch.randn_like(x)).detach().requires_grad_()",
        "if step == 100: x = torch.ones(2, 3, requires_grad=True)",
        120,
    ),
    "another dtype": (
        "x = x - eta * x.grad + eta * torch.randn(4)\n        x = x.detach().requires_grad_()",
        "if step == 100: x = x.detach().double().requires_grad_()",
        120,
    ),
    "steps that are lost": ("x = x - eta * x.grad", "", 0),
}
"""By name: a step that makes a new leaf, what happens before it, and how many iterations are
compiled at least.
"""


_ATTACKS = (
    _HEAD
    + """
model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y, eps, steps, kept = torch.rand(6, 3), torch.tensor([0, 1, 2, 0, 1, 2]), 0.1, 3, None
def slope(moved, **options):
    return torch.autograd.grad(F.cross_entropy(model(moved), y), moved, **options)[0]
for step in range(120):
    {late}
    delta = torch.zeros_like(x).uniform_(-eps, eps)
    delta.requires_grad = True
    for _ in range(steps):
        {move}
    optimizer.zero_grad()
    loss = F.cross_entropy(model((x + delta).detach()), y)
    loss.backward()
    optimizer.step()
print(loss, delta, delta.grad, delta._version, kept, torch.rand(2))
"""
)

_CLAMPED = "delta.data = (delta + 0.03 * g.sign()).clamp(-eps, eps)"

ATTACKS = {
    "data that are replaced": ("g = slope(delta)\n        " + _CLAMPED, "", 100),
    "by a backward pass": (
        "F.cross_entropy(model(x + delta), y).backward()\n        g = delta.grad.detach()\n"
        f"        {_CLAMPED}\n        delta.grad.zero_()",
        "",
        100,
    ),
    "plain options": (
        "g = slope(delta, create_graph=False, retain_graph=False, only_inputs=True)\n"
        f"        {_CLAMPED}",
        "",
        100,
    ),
    "a second graph": (
        f"g = slope(delta, create_graph=True).detach()\n        {_CLAMPED}",
        "",
        100,
    ),
    "the former data are kept": (
        f"g, kept = slope(delta), delta.detach()\n        {_CLAMPED}\n        delta.data.mul_(0.9)",
        "",
        100,
    ),
    "data that another tensor shows": (
        "g = slope(delta)\n        kept = (delta.detach() + 0.03 * g.sign()).clamp(-eps, eps)\n"
        "        delta.data = kept\n        kept.mul_(0.5)",
        "",
        100,
    ),
    "data from outside": ("g = slope(delta)\n        delta.data = x", "", 0),
    "data of another shape": (
        f"g = slope(delta)\n        {_CLAMPED}\n        delta.data = delta.data[:1]",
        "steps = 1",
        100,
    ),
    "another radius": (f"g = slope(delta)\n        {_CLAMPED}", "eps = eps * 0.99", 0),
    "more steps late": (
        f"g = slope(delta)\n        {_CLAMPED}",
        "steps = 3 if step < 80 else 4",
        90,
    ),
    "a leaf made anew": (
        "delta = (delta + 0.03 * slope(delta).sign()).clamp(-eps, eps).detach()\n"
        "        delta.requires_grad = True",
        "",
        100,
    ),
}
"""By name: a step of an attack, what happens before it, and how many iterations are compiled at
least.
"""


def _alike(program: str) -> Outcome:
    """What the program does where its loops are compiled, as where they are not."""
    compiled, interpreted = run(program), run(program, compiles=False)
    assert compiled.stdout == interpreted.stdout
    assert str(compiled.error) == str(interpreted.error)
    return compiled


def _compiled_count(outcome: Outcome) -> int:
    return sum(loop.compiled_count for loop in outcome.session.interpreter.hot_loops.values())


@pytest.mark.parametrize("draw", sampled(DRAWS, 2))
def test_draws(draw: str) -> None:
    outcome = _alike(_DRAWN.format(draw))
    assert outcome.error is None
    assert _compiled_count(outcome) > 130


@pytest.mark.parametrize("name", HELD)
def test_distributions_that_a_name_holds(name: str) -> None:
    made, after, behind, least = HELD[name]
    outcome = _alike(_HELD.format(made=made, after=after or "pass", behind=behind))
    assert outcome.error is None or name == "the loop fails"
    assert _compiled_count(outcome) >= least


@pytest.mark.parametrize("name", EPISODES)
def test_episodes(name: str) -> None:
    order, insert, late, least = EPISODES[name]
    outcome = _alike(_EPISODES.format(order=order, insert=insert, late=late or "pass"))
    assert outcome.error is None
    loop = max(outcome.session.interpreter.hot_loops.values(), key=lambda loop: loop.compiled_count)
    assert loop.compiled_count >= least


@pytest.mark.parametrize("name", WALKS)
def test_new_leaves(name: str) -> None:
    step, late, least = WALKS[name]
    outcome = _alike(_WALKS.format(step=step, late=late or "pass"))
    assert outcome.error is None
    assert _compiled_count(outcome) >= least


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks(name: str) -> None:
    move, late, least = ATTACKS[name]
    outcome = _alike(_ATTACKS.format(move=move, late=late or "pass"))
    assert outcome.error is None
    assert _compiled_count(outcome) >= least


@pytest.mark.parametrize("name", LATE)
def test_late_changes(name: str) -> None:
    late, drawn, least = LATE[name]
    outcome = _alike(_LATE.format(late=late, drawn=drawn))
    assert outcome.error is None
    assert _compiled_count(outcome) >= least
