"""Optimisers and schedules: what they refuse, and the very numbers that PyTorch's steps give.

The networks of `tests/programs/training` show them at work.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.rows import each_row
from tests.running import run

START = "import torch\nfrom torch import nn, optim\nlr_scheduler = optim.lr_scheduler\n"
# Settings, and the parameter in float32 and float64 after four steps from [1, -2, 0.5] with the
# gradients below. A square root in float32 may differ in the last place: there PyTorch's depends
# on the machine.
STEPS = {
    "SGD(p, lr=0.1)": (
        [0.809999942779541, -1.9199999570846558, 0.4050000309944153],
        [0.81, -1.92, 0.405],
    ),
    "SGD(p, lr=0.1, momentum=0.9)": (
        [0.6351299285888672, -1.7254199981689453, 0.13770002126693726],
        [0.63513, -1.7254199999999997, 0.1376999999999999],
    ),
    "SGD(p, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01)": (
        [0.7065927386283875, -1.6699707508087158, 0.03737528622150421],
        [0.7065927320746329, -1.6699708080398459, 0.037375327850771425],
    ),
    "SGD(p, lr=0.1, momentum=0.9, nesterov=True)": (
        [0.4816170036792755, -1.6728779077529907, 0.07893001288175583],
        [0.4816169999999999, -1.672878, 0.07892999999999993],
    ),
    "SGD(p, lr=0.1, maximize=True)": (
        [1.190000057220459, -2.080000162124634, 0.5950000286102295],
        [1.1900000000000002, -2.0800000000000005, 0.595],
    ),
    "ASGD(p, lr=0.1)": (
        [0.8099647164344788, -1.9199222326278687, 0.4049829840660095],
        [0.8099647989956221, -1.9199224211370278, 0.40498298478601336],
    ),
    "ASGD(p, lr=0.5, lambd=0.1, alpha=0.5, t0=2, weight_decay=0.1)": (
        [-0.15142498910427094, -1.0376132726669312, -0.0029619985725730658],
        [-0.1514249758116139, -1.0376132780925678, -0.002961998949904855],
    ),
    "Adam(p, lr=0.1)": (
        [0.6772847175598145, -1.8191936016082764, 0.35914379358291626],
        [0.6772846839515605, -1.819193685010538, 0.35914378823661847],
    ),
    "Adam(p, lr=0.1, betas=(0.4, 0.7), eps=1e-3, weight_decay=0.1)": (
        [0.6688957214355469, -1.8379533290863037, 0.40731316804885864],
        [0.6688957309921908, -1.8379533692960135, 0.4073131966530954],
    ),
    "Adam(p, lr=0.1, amsgrad=True)": (
        [0.6772847175598145, -1.8191936016082764, 0.3591483533382416],
        [0.6772846839515605, -1.819193685010538, 0.3591483606562302],
    ),
    "Adam(p, maximize=True)": (
        [1.0032272338867188, -2.001807928085327, 0.5014085173606873],
        [1.0032271531604846, -2.0018080631498947, 0.5014085621176338],
    ),
    "AdamW(p, lr=0.1)": (
        [0.6738345623016357, -1.8116258382797241, 0.3574812710285187],
        [0.6738344868805796, -1.8116257338491508, 0.3574812611170786],
    ),
    "AdamW(p, weight_decay=0.5, amsgrad=True)": (
        [0.9947770237922668, -1.9941966533660889, 0.4975939095020294],
        [0.9947770663608084, -1.9941970370355178, 0.4975939065029497],
    ),
    "RMSprop(p, lr=0.1)": (
        [-1.4804840087890625, -1.3116300106048584, -0.07733897864818573],
        [-1.4804840760853994, -1.3116300046704357, -0.07733897923135255],
    ),
    "RMSprop(p, alpha=0.5, eps=1e-3, weight_decay=0.1)": (
        [0.9616881012916565, -1.9838356971740723, 0.4903852045536041],
        [0.9616881097695328, -1.9838356702583007, 0.4903852208453693],
    ),
    "RMSprop(p, momentum=0.9, centered=True)": (
        [0.369282603263855, -1.7540867328643799, 0.2852403223514557],
        [0.36928261351887687, -1.754086822104009, 0.28524028501645965],
    ),
    "Adagrad(p, lr=0.1, lr_decay=0.1)": (
        [0.7750585675239563, -1.9289249181747437, 0.4398607611656189],
        [0.7750585566293605, -1.9289249055974285, 0.4398607361803247],
    ),
    "Adagrad(p, initial_accumulator_value=0.1, weight_decay=0.1)": (
        [0.9769653081893921, -1.989469289779663, 0.4937138557434082],
        [0.9769652583092273, -1.9894693401408927, 0.4937138526836644],
    ),
    "Adadelta(p)": (
        [0.9892509579658508, -1.9979344606399536, 0.4986090362071991],
        [0.9892509411346235, -1.9979343149050244, 0.49860903004278134],
    ),
    "Adadelta(p, lr=0.5, rho=0.5, weight_decay=0.1)": (
        [0.9975674748420715, -1.99905264377594, 0.4995766580104828],
        [0.997567416173271, -1.9990526109501767, 0.4995766507208951],
    ),
    "Rprop(p)": (
        [0.972000002861023, -1.9950000047683716, 0.4790000021457672],
        [0.972, -1.9949999999999999, 0.479],
    ),
    "Rprop(p, lr=0.1, etas=(0.3, 1.5), step_sizes=(0.01, 0.2))": (
        [0.7049999833106995, -1.9299999475479126, 0.32499998807907104],
        [0.705, -1.93, 0.325],
    ),
    "Adamax(p, lr=0.1, weight_decay=0.1)": (
        [0.7310363054275513, -1.810296654701233, 0.3646337687969208],
        [0.7310363424001368, -1.8102967690197664, 0.3646337680026943],
    ),
    "NAdam(p, lr=0.1)": (
        [0.7107220888137817, -1.9137688875198364, 0.4286835789680481],
        [0.7107221258649444, -1.9137688695947817, 0.4286835659000231],
    ),
    "NAdam(p, weight_decay=0.1, decoupled_weight_decay=True)": (
        [0.9934167861938477, -1.996677041053772, 0.4981747567653656],
        [0.9934166595577447, -1.9966768542965394, 0.49817467229404644],
    ),
    "RAdam(p, lr=0.1)": (
        [0.8445147275924683, -1.812109351158142, 0.24049922823905945],
        [0.8445146995232674, -1.8121093941965878, 0.24049920115368645],
    ),
    "RAdam(p, lr=0.1, betas=(0.9, 0.3), weight_decay=0.1)": (
        [0.8059813380241394, -1.7356363534927368, 0.22489455342292786],
        [0.8059813530052473, -1.7356364273693088, 0.22489452803122947],
    ),
}

GRADIENTS = "[[0.3, -1.2, 2.0], [0.7, 0.1, -1.5], [-0.2, 0.9, 0.4], [1.1, -0.6, 0.05]]"


def stepped(settings: str, dtype: str = "float32") -> list[float]:
    """The parameter after the steps."""
    outcome = run(
        f"{START}p = nn.Parameter(torch.tensor([1.0, -2.0, 0.5], dtype=torch.{dtype}))\n"
        f"optimizer = optim.{settings.replace('(p', '([p]', 1)}\n"
        f"for gradient in {GRADIENTS}:\n"
        f"    p.grad = torch.tensor(gradient, dtype=torch.{dtype})\n"
        "    optimizer.step()\n"
        "result = p.tolist()\n"
    )
    assert outcome.error is None, outcome.error
    result: list[float] = outcome.session.interpreter.values["result"]
    return result


@pytest.mark.parametrize("settings", STEPS)
def test_steps(settings: str) -> None:
    single, double = STEPS[settings]
    np.testing.assert_array_almost_equal_nulp(
        np.array(stepped(settings), np.float32), np.array(single, np.float32), nulp=4
    )
    np.testing.assert_array_almost_equal_nulp(
        np.array(stepped(settings, "float64")), np.array(double), nulp=4
    )


@pytest.mark.parametrize("settings", [s for s in STEPS if s.startswith("SGD")])
def test_sgd_is_exact(settings: str) -> None:
    assert (stepped(settings), stepped(settings, "float64")) == STEPS[settings]


ERRORS = [
    line.split(" -> ")
    for line in """
optim.SGD([p], lr=-1) -> ValueError
optim.SGD([], lr=1) -> ValueError
optim.SGD(p, lr=1) -> TypeError
optim.SGD([1], lr=1) -> TypeError
optim.SGD([p * 2], lr=1) -> ValueError
optim.SGD([{'params': {p}}]) -> TypeError
optim.SGD([{'lr': 1}]) -> KeyError
optim.SGD([{'params': [p]}, {'params': p}]) -> ValueError
optim.SGD([p], lr=0.1, momentum=-1) -> ValueError
optim.SGD([p], lr=0.1, nesterov=True) -> ValueError
optim.SGD([p], rate=0.1) -> TypeError
optim.SGD([p], weight_decay=-1) -> ValueError
optim.Adam([p], betas=(1.0, 0.9)) -> ValueError
optim.Adam([p], betas=(0.9, -0.1)) -> ValueError
optim.Adam([p], eps=-1) -> ValueError
optim.AdamW([p], lr=-0.1) -> ValueError
optim.RMSprop([p], alpha=-1) -> ValueError
optim.Adagrad([p], lr_decay=-1) -> ValueError
optim.Adadelta([p], rho=1.5) -> ValueError
optim.Rprop([p], etas=(1.5, 1.2)) -> ValueError
optim.NAdam([p], momentum_decay=-1) -> ValueError
optim.SGD([p]).load_state_dict(optim.SGD([p, q]).state_dict()) -> ValueError
lr_scheduler.StepLR(p, 3) -> TypeError
lr_scheduler.SequentialLR(optim.SGD([p]), [], []) -> ValueError
lr_scheduler.SequentialLR(optim.SGD([p]), [3], []) -> TypeError
lr_scheduler.CyclicLR(optim.SGD([p], momentum=0.9), 0.1, 1.0, mode='x') -> ValueError
lr_scheduler.CyclicLR(optim.Adagrad([p]), 0.1, 1.0) -> ValueError
lr_scheduler.CosineAnnealingWarmRestarts(optim.SGD([p]), 3).step(-1) -> ValueError
optim.LBFGS([{'params': [p]}, {'params': [torch.ones(1)]}]) -> ValueError
optim.LBFGS([p]).step() -> TypeError
optim.LBFGS([p], lr=-1) -> ValueError
optim.ASGD([p], weight_decay=-1) -> ValueError
lr_scheduler.LambdaLR(optim.SGD([p]), [abs, abs]) -> ValueError
lr_scheduler.ConstantLR(optim.SGD([p]), factor=2) -> ValueError
lr_scheduler.LinearLR(optim.SGD([p]), start_factor=0) -> ValueError
lr_scheduler.ReduceLROnPlateau(optim.SGD([p]), factor=1) -> ValueError
lr_scheduler.ReduceLROnPlateau(optim.SGD([p]), mode='x') -> ValueError
lr_scheduler.ExponentialLR(optim.SGD([p]), 0.9, last_epoch=3) -> KeyError
""".strip().splitlines()
]


@each_row(("expression", "raised"), ERRORS)
def test_error(expression: str, raised: str) -> None:
    outcome = run(
        f"{START}p, q = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(1))\n{expression}\n"
    )
    assert outcome.error is not None
    assert outcome.error.raises == raised


# The rates after each of six steps from 0.5, as PyTorch gives them.
RATES = {
    "StepLR(o, 2, gamma=0.5)": [0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.0625],
    "MultiStepLR(o, [1, 4, 4], gamma=0.5)": [0.5, 0.25, 0.25, 0.25, 0.0625, 0.0625, 0.0625],
    "ExponentialLR(o, 0.9)": [
        0.5,
        0.45,
        0.405,
        0.36450000000000005,
        0.32805000000000006,
        0.2952450000000001,
        0.2657205000000001,
    ],
    "CosineAnnealingLR(o, 4)": [
        0.5,
        0.42677669529663687,
        0.25,
        0.07322330470336313,
        0.0,
        0.0732233047033631,
        0.25000000000000006,
    ],
    "CosineAnnealingLR(o, 2, eta_min=0.1)": [
        0.5,
        0.30000000000000004,
        0.1,
        0.3,
        0.5000000000000001,
        0.30000000000000016,
        0.1,
    ],
    "LambdaLR(o, lambda e: 0.5**e)": [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125],
    "MultiplicativeLR(o, lambda e: 0.95)": [
        0.5,
        0.475,
        0.45125,
        0.42868749999999994,
        0.40725312499999994,
        0.38689046874999994,
        0.3675459453124999,
    ],
    "LinearLR(o, total_iters=3)": [
        0.16666666666666666,
        0.2777777777777778,
        0.3888888888888889,
        0.5,
        0.5,
        0.5,
        0.5,
    ],
    "ConstantLR(o, factor=0.25, total_iters=3)": [0.125, 0.125, 0.125, 0.5, 0.5, 0.5, 0.5],
    "PolynomialLR(o, total_iters=4, power=2.0)": [0.5, 0.28125, 0.125, 0.03125, 0.0, 0.0, 0.0],
    "CosineAnnealingWarmRestarts(o, 2, 2)": [
        0.5,
        0.25,
        0.5,
        0.42677669529663687,
        0.25,
        0.07322330470336313,
        0.5,
    ],
    "OneCycleLR(o, 0.5, 7, cycle_momentum=False)": [
        0.020000000000000018,
        0.4902783136674793,
        0.4595221881348553,
        0.33634191824027254,
        0.17886938786982853,
        0.0496483959466328,
        2e-06,
    ],
    "OneCycleLR(o, 0.5, 7, three_phase=True, anneal_strategy='linear')": [
        0.02,
        0.45636363636363636,
        0.10727272727272735,
        0.015789894736842107,
        0.010527263157894737,
        0.005264631578947368,
        1.9999999999985307e-06,
    ],
}


@pytest.mark.parametrize("schedule", RATES)
def test_rates(schedule: str) -> None:
    outcome = run(
        f"{START}o = optim.SGD([nn.Parameter(torch.ones(1))], lr=0.5, momentum=0.5)\n"
        f"s = lr_scheduler.{schedule}\n"
        "rates = s.get_last_lr()\n"
        "for epoch in range(6):\n"
        "    o.step()\n"
        "    s.step()\n"
        "    rates += s.get_last_lr()\n"
    )
    assert outcome.error is None
    assert outcome.session.interpreter.values["rates"] == RATES[schedule]


# What the rates are after each step, the bounds being tensors: a tensor is a rate, is written to,
# and leaves the bound as it was.
TENSOR_RATES = {
    "OneCycleLR(o, low, 5)": """[tensor(0.0100)] 0.95
[tensor(0.2376)] 0.854951556604879
[tensor(0.1528)] 0.8888739533021842
[tensor(0.0471)] 0.9311744900929366
tensor(0.2500)
""",
    "OneCycleLR(o, [low], 5, anneal_strategy='linear')": """[tensor(0.0100)] 0.95
[tensor(0.2143)] 0.8642857142857142
[tensor(0.1429)] 0.8928571428571428
[tensor(0.0714)] 0.9214285714285714
tensor(0.2500)
""",
    "CyclicLR(o, low, tensor(0.5), 2)": """[tensor(0.2500)] 0.9
[tensor(0.3750)] 0.8500000000000001
[tensor(0.5000)] 0.8
[tensor(0.5000)] 0.8500000000000001
tensor(0.2500)
""",
    "CyclicLR(o, low, 0.5, 2, base_momentum=tensor(0.5))": """[tensor(0.2500)] tensor(0.9000)
[tensor(0.3750)] tensor(0.7000)
[tensor(0.5000)] tensor(0.5000)
[tensor(0.5000)] tensor(0.7000)
tensor(0.2500)
""",
    "SWALR(o, low, 2)": """[tensor(0.5000)] 0.5
[tensor(0.3750)] 0.5
[tensor(0.2500)] 0.5
[tensor(0.2500)] 0.5
tensor(0.2500)
""",
}


@pytest.mark.parametrize("schedule", TENSOR_RATES)
def test_rates_that_are_tensors(schedule: str) -> None:
    outcome = run(_tensor_program(schedule))
    assert outcome.error is None
    assert outcome.stdout == TENSOR_RATES[schedule]


def _tensor_program(schedule: str) -> str:
    return (
        f"{START}from torch import tensor\nfrom torch.optim.lr_scheduler import *\n"
        "from torch.optim.swa_utils import SWALR\nlow = tensor(0.25)\n"
        "o = optim.SGD([nn.Parameter(torch.ones(1))], lr=0.5, momentum=0.5)\n"
        f"s = {schedule}\n"
        "for epoch in range(4):\n"
        "    print(s.get_last_lr(), o.param_groups[0]['momentum'])\n"
        "    o.step()\n"
        "    s.step()\n"
        "print(low)\n"
    )


def test_plateau() -> None:
    outcome = run(
        f"{START}o = optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)\n"
        "s = lr_scheduler.ReduceLROnPlateau(o, patience=1, factor=0.5, cooldown=1)\n"
        "for loss in [3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]:\n"
        "    s.step(torch.tensor(loss))\n"
        "    print(o.param_groups[0]['lr'], end=' ')\n"
    )
    assert outcome.stdout == "1.0 1.0 1.0 0.5 0.5 0.5 0.5 0.5 0.25 0.25 0.25 "


def test_closure_and_parameters_without_gradient() -> None:
    outcome = run(
        f"{START}p, q = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(1))\n"
        "o = optim.Adam([p, q], lr=0.1)\n"
        "def closure():\n"
        "    o.zero_grad()\n"
        "    loss = (p ** 2).sum()\n"
        "    loss.backward()\n"
        "    return loss\n"
        "print(o.step(closure), p, q, len(o.state))\n"
    )
    assert outcome.stdout == (
        "tensor(2., grad_fn=<SumBackward0>) Parameter containing:\n"
        "tensor([0.9000, 0.9000], requires_grad=True) Parameter containing:\n"
        "tensor([1.], requires_grad=True) 1\n"
    )


def test_step_counts_as_a_write() -> None:
    """Adam writes once, AdamW decays the weights first: as often as in PyTorch."""
    outcome = run(
        f"{START}p = nn.Parameter(torch.ones(2))\n"
        "for kind in (optim.SGD, optim.Adam, optim.AdamW, optim.NAdam):\n"
        "    p.grad = torch.ones(2)\n"
        "    kind([p]).step()\n"
        "    print(p._version, end=' ')\n"
    )
    assert outcome.stdout == "1 2 4 6 "


def test_zero_dim_and_half_precision_parameters() -> None:
    outcome = run(
        f"{START}p = nn.Parameter(torch.tensor(1.0))\n"
        "h = nn.Parameter(torch.ones(2, dtype=torch.float16))\n"
        "o = optim.SGD([p, h], lr=0.1, momentum=0.9)\n"
        "for _ in range(2):\n"
        "    p.grad, h.grad = torch.tensor(1.0), torch.ones(2, dtype=torch.float16)\n"
        "    o.step()\n"
        "print(p.item(), h)\n"
    )
    assert outcome.stdout == (
        "0.7099999785423279 Parameter containing:\n"
        "tensor([0.7100, 0.7100], dtype=torch.float16, requires_grad=True)\n"
    )
