"""Checks of values outside the entries: compiled code repeats them for the values of its own
iterations.

Each row is an expression of `e`, an `e` that it is compiled with, and one that it fails with or
that decides on another shape of the result.
"""

from __future__ import annotations

from typing import Any

import pytest

from gradcli.language.compiler.statements import blocks
from gradcli.loops import hot_loop as hot
from gradcli.loops.compiled import CompiledIteration
from tests.running import run

SETUP = """
import torch.nn.functional as F
m = torch.tensor([[2., 1.], [1., 3.]])
n, v = torch.tensor([7, 9]), torch.tensor([1., 2., 3.])
half = torch.tensor([0.25, 0.75])
log_probs, labels = torch.arange(9.).reshape(3, 1, 3).log_softmax(2), torch.tensor([[1, 2]])
padded = torch.arange(6.).reshape(2, 3, 1)
dist = torch.distributions
"""

PROGRAM = """
given = [{good}] * 8 + [{bad}] + [{good}] * 2
total = torch.tensor(0.)
for i in range(11):
    e = given[i]
    y = {expression}
    total = total + y.float().sum()
"""

GOOD, SINGULAR = "m * 1", "torch.tensor([[1., 2.], [2., 4.]])"
INDEFINITE = "torch.tensor([[1., 2.], [2., 1.]])"
DIVISORS = ("torch.tensor([2, 3])", "torch.tensor([2, 0])")
POSITIVE = ("v * 1", "-v")
CLASSES = ("torch.tensor([0, 1])", "torch.tensor([0, -1])")
ROWS = [
    *[
        (expression, *DIVISORS)
        for expression in (
            "7 // e", "n // e", "7 % e", "n % e", "torch.remainder(n, e)", "torch.fmod(n, e)",
            "torch.div(n, e, rounding_mode='floor')", "torch.div(n, e, rounding_mode='trunc')",
            "n.clone().floor_divide_(e)",
        )
    ],
    *[
        (expression, GOOD, SINGULAR)
        for expression in (
            "torch.linalg.inv(e)", "e.inverse()", "torch.linalg.solve(e, m)",
            "torch.linalg.inv_ex(e, check_errors=True)[0]",
            "torch.linalg.solve_ex(e, m, check_errors=True)[0]",
            "torch.linalg.lu_factor(e)[0]", "torch.linalg.matrix_power(e, -2)",
            "torch.linalg.tensorsolve(e, m[0])", "torch.linalg.inv(torch.stack([m, e]))",
        )
    ],
    ("torch.linalg.cholesky(e)", GOOD, INDEFINITE),
    ("torch.cholesky(e)", GOOD, INDEFINITE),
    ("torch.linalg.cholesky_ex(e, check_errors=True)[0]", GOOD, INDEFINITE),
    ("torch.cov(m, fweights=e)", "torch.tensor([1, 2])", "torch.tensor([1, -2])"),
    ("F.multi_margin_loss(m, e)", *CLASSES),
    ("F.multilabel_margin_loss(m, torch.stack([e, e]))", *CLASSES[:1], "torch.tensor([0, -2])"),
    ("F.nll_loss(m, e)", *CLASSES),
    ("F.cross_entropy(m, e)", *CLASSES),
    ("v.index_select(0, e)", *CLASSES),
    ("torch.tensor_split(v, e)[0]", "torch.tensor([1, 2])", "torch.tensor([2, 2])"),
    ("torch.tensor_split(v, e)[0]", "torch.tensor(3)", "torch.tensor(1)"),
    ("torch.tensordot(m, m, dims=e)", "torch.tensor(1)", "torch.tensor(2)"),
    ("torch.segment_reduce(v, 'sum', lengths=e)", "torch.tensor([2, 1])", "torch.tensor([3, 1])"),
    (
        "F.ctc_loss(log_probs, labels, e, torch.tensor([2]), reduction='sum')",
        "torch.tensor([3])", "torch.tensor([2])",
    ),
    (
        "nn.utils.rnn.unpad_sequence(padded, e, batch_first=True)[1]",
        "torch.tensor([3, 2])", "torch.tensor([3, 1])",
    ),
    ("dist.Normal(v, e).log_prob(v)", *POSITIVE),
    ("dist.Normal(v, v).log_prob(e)", "v * 1", "v * nan"),
    ("dist.Bernoulli(half).log_prob(e)", "torch.tensor([1., 0.])", "torch.tensor([1., 0.5])"),
    ("dist.MultivariateNormal(half, e).log_prob(half)", GOOD, INDEFINITE),
    ("dist.Dirichlet(e).log_prob(v / 6)", *POSITIVE),
    ("dist.Uniform(v - 9, v + 9).log_prob(e)", "v * 1", "v - 40"),
    ("dist.Uniform(v - 9, e).log_prob(v)", "v + 9", "v - 1"),
    ("dist.Independent(dist.Uniform(v * 0, e), 1).log_prob(v)", "v * 2", "v / 2"),
]  # fmt: skip


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each compiled iteration did the same as the interpreted one."""
    found = []
    verify = hot.HotLoop._verify

    def listen(self: hot.HotLoop, path: CompiledIteration, variables: Any) -> bool:
        ran = verify(self, path, variables)
        found.append(path.verified)
        return ran

    monkeypatch.setattr(hot.HotLoop, "_verify", listen)
    monkeypatch.setattr(hot, "HOT_AFTER", 1)
    return found


@pytest.mark.parametrize(("expression", "good", "bad"), ROWS)
def test_compiled_code_checks_its_own_values(
    expression: str, good: str, bad: str, compiled: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = SETUP + PROGRAM.format(expression=expression, good=good, bad=bad)
    shown = []
    for many in (2, 1 << 60):
        monkeypatch.setattr(blocks, "_MANY", many)
        outcome = run(program)
        error = outcome.error and outcome.error.message
        shown.append((error, repr(outcome.session.values["total"])))
    assert shown[0] == shown[1]
    assert any(compiled)
