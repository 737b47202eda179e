"""How results lie in memory: the strides that PyTorch gives them, recorded from it."""

from __future__ import annotations

from tests.rows import each_row
from tests.running import run

# An expression and its strides.
STRIDES: list[tuple[str, tuple[int, ...]]] = [
    ("torch.arange(12.).view(3, 4).T + torch.arange(4.).view(4, 1)", (1, 4)),
    ("torch.arange(4.).view(4, 1) + torch.arange(12.).view(3, 4).T", (1, 4)),
    ("torch.arange(12.).view(3, 4).T * torch.arange(12.).view(4, 3)", (1, 4)),
    ("torch.arange(12.).view(4, 3) * torch.arange(12.).view(3, 4).T", (3, 1)),
    (
        "torch.arange(2.).view(2, 1).permute(1, 0) - torch.arange(1.).view(1, 1).expand(1, 2)",
        (1, 1),
    ),
    ("torch.zeros(1, 2, 3).expand(4, 2, 3) + torch.zeros(3, 4, 2).permute(1, 2, 0)", (6, 3, 1)),
    ("torch.zeros(3, 0, 4).permute(2, 1, 0) + torch.zeros(4, 0, 6)[..., ::2]", (3, 3, 1)),
    ("torch.where(torch.ones(4, 3).T > 0, torch.zeros(3, 4), torch.zeros(4))", (1, 3)),
    ("torch.where(torch.ones(3, 4) > 0, torch.zeros(4, 3).T, torch.zeros(4))", (4, 1)),
    ("torch.lerp(torch.zeros(3, 2).T, torch.ones(2, 3), torch.ones(2, 3))", (1, 2)),
    ("torch.clamp(torch.zeros(3, 2).T, torch.ones(2, 3), torch.ones(2, 1))", (1, 2)),
    ("torch.isclose(torch.zeros(3, 2).T, torch.ones(2, 1))", (1, 2)),
    ("torch.zeros(4, 2).T.double() + torch.zeros(2, 4)", (1, 2)),
    ("torch.zeros(2, 1, 4).expand(2, 2, 4).half() + 1", (8, 4, 1)),
    ("torch.zeros(3, 2, 0)[..., ::2].clone()", (2, 1, 2)),
    ("torch.zeros(2, 1, 4).permute(0, 2, 1).clone()", (4, 1, 4)),
    ("torch.full_like(torch.arange(2.).view(1, 2)[..., ::2], 2.)", (2, 2)),
    ("torch.arange(36.).view(6, 6)[::2, ::2][:, None, 0]", (12, 6)),
    ("torch.arange(12.).view(3, 4)[..., None, 0]", (4, 4)),
    ("torch.arange(12.).view(3, 4)[:, torch.tensor([False, True, False, False])]", (1, 1)),
    ("torch.arange(36.).view(3, 4, 3, 1).permute(3, 2, 1, 0)[:, [0], [0]]", (1, 1, 1)),
    ("torch.arange(24.).view(2, 3, 4).permute(2, 0, 1)[[0, 1]]", (6, 3, 1)),
    (
        "torch.arange(8.).view(4, 2, 1).permute(2, 1, 0).unsqueeze(0).expand(2, 1, 2, 4)",
        (0, 1, 1, 2),
    ),
    ("F.one_hot(torch.zeros(2, 3, dtype=torch.long).T, 4)", (8, 4, 1)),
    ("F.logsigmoid(torch.zeros(4, 3).T)", (4, 1)),
    ("F.rrelu(torch.zeros(4, 3).T)", (4, 1)),
    ("F.softplus(torch.zeros(4, 3).T)", (1, 3)),
    ("F.glu(torch.zeros(2, 3, 4).transpose(0, 2), 0)", (1, 2, 6)),
    ("gradient(torch.zeros(2, 3), lambda x: x.sum())", (0, 0)),
    ("gradient(torch.zeros(2, 3), lambda x: x.exp().sum(0).sum())", (3, 1)),
    ("gradient(torch.zeros(2, 3), lambda x: x.sum(0).sum())", (0, 0)),
    ("gradient(torch.zeros(2, 3), lambda x: (x * 2).sum())", (3, 1)),
    ("gradient(torch.zeros(2, 3, 4), lambda x: x.permute(2, 1, 0).mul(2).sum())", (1, 2, 6)),
    ("gradient(torch.zeros(3, 2).T, lambda x: x.sum())", (0, 0)),
    ("accumulated(torch.zeros(3, 2).T, lambda x: x.sum(-1).exp().sum())", (1, 2)),
    ("accumulated(torch.zeros(2, 6)[:, ::2], lambda x: x.sum())", (3, 1)),
    ("accumulated(torch.zeros(2, 3), lambda x: x.T.mul(2).sum())", (3, 1)),
    (
        ("F.adaptive_avg_pool2d(torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last), 1)"),
        (3, 1, 3, 3),
    ),
    ("F.adaptive_avg_pool2d(torch.zeros(2, 3, 4, 5), 1)", (3, 1, 1, 1)),
    ("F.adaptive_avg_pool1d(torch.zeros(2, 4, 3).transpose(1, 2), 1)", (3, 1, 3)),
    ("F.adaptive_avg_pool2d(torch.zeros(3, 4, 5).permute(2, 0, 1), 1)", (1, 1, 1)),
    (
        (
            "F.adaptive_avg_pool3d(torch.zeros(2, 3, 4, 5, "
            "2).to(memory_format=torch.channels_last_3d), 1)"
        ),
        (3, 1, 3, 3, 3),
    ),
    ("F.max_pool3d(torch.zeros(4, 5, 4, 3).permute(3, 0, 1, 2), 2)", (1, 12, 6, 3)),
    ("F.max_pool3d(torch.zeros(3, 4, 5, 4), 2)", (8, 4, 2, 1)),
    ("F.max_pool3d(torch.zeros(4, 5, 4, 6).permute(3, 0, 1, 2)[:3], 2)", (8, 4, 2, 1)),
    (
        "F.max_pool3d(torch.zeros(4, 5, 4, 3).permute(3, 0, 1, 2), 2, return_indices=True)[1]",
        (1, 12, 6, 3),
    ),
    (
        (
            "gradient(torch.zeros(4, 5, 4, 3).permute(3, 0, 1, 2), lambda x: F.max_pool3d(x, "
            "2).sum())"
        ),
        (80, 20, 4, 1),
    ),
    (
        (
            "gradient(torch.zeros(2, 3, 4, 5, 4).to(memory_format=torch.channels_last_3d), "
            "lambda x: F.max_pool3d(x, 2).sum())"
        ),
        (240, 1, 60, 12, 3),
    ),
]

PREAMBLE = """
def gradient(x, f):
    x = x.requires_grad_()
    return torch.autograd.grad(f(x), x)[0]
def accumulated(x, f):
    x = x.requires_grad_()
    f(x).backward()
    return x.grad
"""


@each_row(("expression", "strides"), STRIDES)
def test_strides(expression: str, strides: tuple[int, ...]) -> None:
    outcome = run(f"import torch.nn.functional as F\n{PREAMBLE}print(({expression}).stride())")
    assert outcome.error is None
    assert outcome.masked == f"{strides}\n"


def test_a_write_to_an_expanded_gradient_is_refused() -> None:
    program = "x = torch.ones(3, requires_grad=True)\n"
    outcome = run(program + "torch.autograd.grad(x.sum(), x)[0].mul_(2)")
    assert outcome.error is not None
    assert outcome.error.code == "E405"


def test_data_of_a_saved_scalar_result_is_the_saved_one() -> None:
    program = "x = torch.tensor(4.0, requires_grad=True)\ny = x.sqrt()\ny.data.fill_(1.0)\n"
    assert run(program + "y.backward()\nprint(x.grad)").masked == "tensor(0.5000)\n"


def test_a_history_is_shown_after_its_leaf_was_frozen() -> None:
    program = """
import torch.autograd.forward_ad as fwAD
with fwAD.dual_level():
    dual = fwAD.make_dual(torch.ones(1), torch.ones(1))
x = torch.ones(1, requires_grad=True)
y = x * 2
x.requires_grad_(False)
print(y)
"""
    assert run(program).masked == "tensor([2.], grad_fn=<MulBackward0>)\n"


def test_cross_rounds_once() -> None:
    program = "x = torch.tensor([-0.75, -1.75, -0.75])\nprint(torch.linalg.cross(x, x.exp()))"
    assert run(program).masked == "tensor([-6.9631e-01, -7.4506e-09,  6.9631e-01])\n"
