"""The comparison of what was printed with what was recorded lets roundings pass, and nothing else:
errors are planted in kernels and in texts, and must be found.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli.arrays.kernels import vector_math
from tests.conformance import Record, program_of, records
from tests.exactness import Printed, Work, difference, work_of
from tests.running import run
from tests.test_last_digits import SETUP

ROUNDED = Work(8, 2.0**-23, 1.0)
"""Of a run that added up a few numbers about 1."""

ELEMENTWISE = Work(1, 2.0**-23)

TRANSCRIPTS = {record["id"]: record for record in records("transcripts")}


def differs(found: str, recorded: str, work: Work = ROUNDED) -> bool:
    return difference(found, recorded, lambda: work) is not None


# --- planted in a kernel --------------------------------------------------------------------------

KERNELS = ["exp", "log", "tanh", "sin", "cos", "tan", "sinh", "cosh"]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("ulp", "found"), [(1, False), (10, True)])
def test_ulp_in_an_elementwise_kernel(
    name: str, ulp: int, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10 ulp in every result are found; 1 ulp is what the contract allows."""
    program = f"{SETUP}print(x.{name}().tolist())"
    recorded = run(program).stdout
    kernel = getattr(vector_math, name)

    def planted(array: Any, *rest: Any) -> Any:
        result = kernel(array, *rest)
        for _ in range(ulp):
            result = np.nextafter(result, np.float32(np.inf))
        return result

    monkeypatch.setattr(vector_math, name, planted)
    wrong = run(program).stdout
    assert wrong != recorded
    assert (Printed(wrong, program) != recorded) == found


def test_ulp_in_one_element() -> None:
    """The first of twenty numbers is the smallest: the others are no excuse."""
    program = f"{SETUP}print(x.exp().tolist())"
    recorded = run(program).stdout
    first = recorded[1 : recorded.index(",")]
    off = float(first) * (1 + 10 * 2.0**-23)
    assert Printed(recorded.replace(first, str(off), 1), program) != recorded


# --- planted in a text ----------------------------------------------------------------------------

Mistake = Callable[[str], str]

_ELEMENT = r"(?<=[\[ ])-?\d+\.\d*(?:e[+-]\d+)?"


def _largest(text: str) -> str:
    """The number of the largest magnitude among those printed."""
    return max(re.findall(_ELEMENT, text), key=lambda number: abs(float(number)), default="")


def _sign(text: str) -> str:
    number = _largest(text)
    turned = number[1:] if number.startswith("-") else f"-{number}"
    return text.replace(number, turned, 1)


def _number(text: str) -> str:
    number = _largest(text)
    return text.replace(number, re.sub(r"^(-?)\d", r"\g<1>7", number), 1)


def _node(text: str) -> str:
    return re.sub(r"<(\w+)Backward(\d)>", r"<\1Backward\g<2>9>", text, count=1)


def _lost_grad_fn(text: str) -> str:
    return re.sub(r",\s*grad_fn=<\w+>", "", text, count=1)


def _edges(text: str) -> str:
    edge = r"\('[\w:]+', \d\)|\(None, \d\)"
    return re.sub(rf"({edge}), ({edge})", r"\2, \1", text, count=1)


def _integer(text: str) -> str:
    return re.sub(r"', (\d)\)", lambda found: f"', {int(found[1]) + 1})", text, count=1)


def _shape(text: str) -> str:
    return text.replace("tensor([", "tensor([[", 1).replace("])", "]])", 1)


MISTAKES = [_sign, _number, _node, _lost_grad_fn, _edges, _integer, _shape]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__.strip("_"))
def test_mistakes_in_records(mistake: Mistake) -> None:
    """Every recorded transcript that a mistake changes is told from what it was."""
    changed = 0
    for record in list(TRANSCRIPTS.values())[::4]:
        wrong = mistake(record["stdout"])
        if wrong != record["stdout"]:
            changed += 1
            assert _found(record, wrong), f"{record['id']}\n{wrong}"
    assert changed > 5


def _found(record: Record, wrong: str) -> bool:
    program = program_of("transcripts", record)
    return difference(wrong, record["stdout"], lambda: work_of(program)) is not None


@pytest.mark.parametrize(
    ("found", "recorded"),
    [
        ("tensor([1.5000, 2.0000])", "tensor([2.0000, 1.5000])"),
        ("tensor([1.5002, 2.0000])", "tensor([1.5000, 2.0000])"),
        ("tensor([1.5000,  2.0000])", "tensor([1.5000, 2.0000])"),
        ("tensor([ 1.5000,  2.0000])\n", "tensor([1.5000, 2.0000])\n"),
        ("tensor(0.5000)", "tensor([0.5000])"),
        ("tensor([1, 2])", "tensor([1, 3])"),
        ("tensor([1., 2.])", "tensor([1, 2])"),
        ("tensor([1., -0.])", "tensor([1., 0.])"),
        ("tensor([1., nan])", "tensor([1., inf])"),
        ("tensor([True])", "tensor([False])"),
        ("0.5", "0.6"),
        ("0.50001", "0.50002"),
        ("[0.25, 1.0]", "[0.26, 1.0]"),
        ("tensor([0.1000], dtype=torch.float64)", "tensor([0.1000])"),
        ("e = tensor(20., grad_fn=<MulBackward0>)", "e = tensor(20., grad_fn=<AddBackward0>)"),
        ("('MulBackward0', 0), ('ExpBackward0', 1)", "('ExpBackward0', 1), ('MulBackward0', 0)"),
        ("a  b", "a b"),
        ("tensor([1.0000])\ntensor([2.0000])", "tensor([1.0000])"),
    ],
)
def test_found(found: str, recorded: str) -> None:
    assert differs(found, recorded)


# --- what may differ ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "recorded"),
    [
        ("tensor([1.5000, 2.0000])", "tensor([1.5001, 2.0000])"),
        ("tensor([ 9.9999,  1.0000])", "tensor([10.0000,  1.0000])"),
        ("tensor([9.9999, 1.0000])", "tensor([10.0000,  1.0000])"),
        ("tensor([1., 0.])", "tensor([1.0000e+00, 2.9802e-08])"),
        ("tensor([0.5000, 0.0000])", "tensor([5.0000e-01, -3.1e-08])"),
        ("tensor([1.+1.e-08j])", "tensor([1.-3.e-08j])"),
        ("tensor(0.)", "tensor(-2.9802e-08)"),
        ("0.8982198238372803", "0.898219883441925"),
    ],
)
def test_let_pass(found: str, recorded: str) -> None:
    assert not differs(found, recorded)
    assert differs(found, recorded, Work()), "a run that rounded nothing is exact"


def test_elements_of_their_own_scale() -> None:
    """Where nothing is added up, a large element is no excuse for a small one."""
    found, recorded = "tensor([1.0000e+08, 1.0000e-08])", "tensor([1.0000e+08, 2.0000e-08])"
    assert differs(found, recorded, ELEMENTWISE)
    assert not differs(found, recorded, Work(1, 2.0**-23, 1e8))


def test_digits_that_a_program_asks_for() -> None:
    assert not differs("loss 0.1234", "loss 0.1235", ROUNDED._replace(digits=frozenset({4})))
    assert differs("loss 0.1234", "loss 0.1235", ROUNDED._replace(digits=frozenset({6})))
    assert work_of("print(f'{1.5:.3f}', '%.2e' % 1.5, round(1.5, 4))").digits == {2, 3, 4}


# --- what is measured -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        "y = (x * 3 - w) / 7 + x.sqrt()",
        "y = x[1:].relu().clamp(0.5, 1.5) * w[1:]\ny.backward(torch.ones(2))",
        "y = torch.cat([x, w]).sort()[0].double().float()",
        "y = torch.randn(5) * torch.rand(5)",
        "y = x.view(3, 1).expand(3, 2).transpose(0, 1).contiguous().max(0)[0]",
    ],
)
def test_what_is_exact(program: str) -> None:
    """IEEE's operations, draws and choices count nothing: they are compared exactly."""
    assert work_of(MEASURED + program)[:3] == (0, 0, 0)


@pytest.mark.parametrize(
    ("program", "work"),
    [
        ("y = x.exp()", (1, 2.0**-23, 0)),
        ("y = x.double().exp()", (1, 2.0**-52, 0)),
        ("y = x.half().exp()", (1, 2.0**-10, 0)),
        ("y = (x * w).sum()", (3, 2.0**-23, 16)),
        ("y = (x.expand(4, 3) * 2).sum((0, 1))\ny.backward()", (24, 2.0**-23, 48)),
    ],
)
def test_what_is_rounded(program: str, work: tuple[float, ...]) -> None:
    found = work_of(MEASURED + program)
    assert found[:2] == work[:2]
    assert found.largest <= work[2]
    assert (found.largest > 0) == (work[2] > 0)


MEASURED = """
x = torch.tensor([1., 2., 3.], requires_grad=True)
w = torch.tensor([0.5, 0.7, 0.9])
"""
