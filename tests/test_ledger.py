"""The ledger of the chain rule: its rows add up to the gradients, for every op of the table."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from gradcli.autograd.engine.backward import backward
from gradcli.autograd.graph import Graph
from gradcli.autograd.recording.recorder import Recorder
from gradcli.autograd.tensor import Tensor
from gradcli.recorded.ledger import Row as LedgerRow
from gradcli.recorded.ledger import Sum, Visit, ledger, worked_element
from gradcli.state import State, active
from tests.command_line import CommandLine
from tests.op_table.check import differentiable, leaf
from tests.op_table.rows import Row
from tests.rows import each_row
from tests.test_gradients import ROWS, Point

# --- the numbers --------------------------------------------------------------------------------


def _explained(row: Row, monkeypatch: pytest.MonkeyPatch) -> tuple[Graph, list[LedgerRow]]:
    """The graph of a row's first output, and its ledger from a random seed."""
    state = State(lambda event: None)
    state.recorder = Recorder(keeps=True)
    monkeypatch.setattr(active, "state", state)
    point = Point(row)
    leaves = list(map(leaf, point.arrays))
    with np.errstate(all="ignore"):
        output = differentiable(point.function(*leaves))[0]
        seed = point.generator.normal(size=output.array.shape)
        backward(output, Tensor(np.array(seed, output.array.dtype)[()]))
        graph = Graph(output, state.recorder.constants)
        return graph, ledger(graph, state.recorder.events or [])


@each_row("row", [row for row in ROWS if row.order], every=3)
def test_rows_recombine_to_the_gradients(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, rows = _explained(row, monkeypatch)
    arrived: dict[tuple[int, int], Any] = defaultdict(lambda: 0.0)
    for each in rows:
        if not isinstance(each, Visit):
            continue
        if each.node is not graph.root:
            for number, grad in enumerate(each.grads):
                # What came into a node is the sum of what the nodes before it passed on.
                np.testing.assert_allclose(
                    0.0 if grad is None else grad,
                    arrived[each.node.id, number],
                    rtol=1e-9,
                    atol=1e-12,
                )
        for share in each.shares:
            if share.passed is None:
                continue
            target = share.edge.node
            assert target is not None
            _check_share(each, share)
            key = (target.id, share.edge.output_nr)
            arrived[key] = arrived[key] + share.passed
    for each in rows:
        if isinstance(each, Sum) and each.arrived:
            np.testing.assert_allclose(
                each.incoming, arrived[each.node.id, 0], rtol=1e-9, atol=1e-12
            )
            assert each.node.leaf is not None
            gradient = each.node.leaf.grad
            assert gradient is not None
            np.testing.assert_array_equal(each.new, gradient.array)


def _check_share(visit: Visit, share: Any) -> None:
    """A share is the gradient times the local derivative, summed to the operand's shape."""
    if share.local is not None:
        product = visit.grads[0] * share.local
        np.testing.assert_allclose(product, share.product, rtol=1e-9, atol=1e-12)
    summed = share.product
    if share.is_summed:
        leading = tuple(range(summed.ndim - share.passed.ndim))
        summed = summed.sum(axis=leading)
        kept = tuple(i for i, n in enumerate(share.passed.shape) if n == 1 and summed.shape[i] != 1)
        summed = summed.sum(axis=kept, keepdims=True)
    if share.passed.dtype.kind == "f":
        summed = summed.real
    np.testing.assert_allclose(summed, share.passed, rtol=1e-9, atol=1e-12)


_WORKED = [row for row in ROWS if row.order == 2][::7]


@each_row("row", _WORKED, ids=repr)
def test_worked_elements_are_sums_of_products(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    _, rows = _explained(row, monkeypatch)
    for each in rows:
        if not isinstance(each, Visit):
            continue
        for share in each.shares:
            if share.product is None:
                continue
            worked = worked_element(each, share, None)
            if worked is None or worked.left_out:
                continue
            total = sum(grad * factor for grad, factor in worked.terms)
            np.testing.assert_allclose(total, worked.value, rtol=1e-7, atol=1e-12)


def test_most_rules_of_the_table_are_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [each for row in ROWS if row.order for each in _explained(row, monkeypatch)[1]]
    shares = [share for each in rows if isinstance(each, Visit) for share in each.shares]
    unread = [share for share in shares if share.formula is None]
    assert len(shares) > 1000
    assert len(unread) < len(shares) * 0.12


# --- the text -----------------------------------------------------------------------------------


def test_the_first_example(gradcli: CommandLine) -> None:
    found = gradcli("explain", "e = (a + b) * d", "a=2", "b=3", "d=4")
    assert found.code == 0
    assert (
        found.out
        == """\
e = tensor(20., grad_fn=<MulBackward0>)

1.  e  MulBackward0                                              e = (a + b) * d
    gradient in: 1.
    [0] → a + b   grad * other   ∂e/∂(a + b) = d = 4.   1. * 4. = 4.
    [1] → d       grad * self    ∂e/∂d = a + b = 5.     1. * 5. = 5.
    d.grad = 5.

2.  AddBackward0                                                           a + b
    gradient in: 4.
    [0] → a   grad   ∂(a + b)/∂a = 1   4. * 1. = 4.
    [1] → b   grad   ∂(a + b)/∂b = 1   4. * 1. = 4.
    a.grad = 4.
    b.grad = 4.
"""
    )


def test_json_has_the_same_rows(gradcli: CommandLine) -> None:
    found = gradcli("explain", "e = (a + b) * d", "a=2", "b=3", "d=4", "--json")
    document = json.loads(found.out)
    assert document["schema"] == "gradcli.ledger/1"
    edges = [row for row in document["rows"] if row["kind"] == "edge"]
    assert [(row["named"], row["local"], row["product"]) for row in edges] == [
        ("d", 4.0, 4.0), ("a + b", 5.0, 5.0), ("1", 1.0, 4.0), ("1", 1.0, 4.0),
    ]  # fmt: skip
    leaves = [(row["variable"], row["new"]) for row in document["rows"] if row["kind"] == "leaf"]
    assert leaves == [("d", 5.0), ("a", 4.0), ("b", 4.0)]


TEXTS = [
    # What is broadcast is summed, in a row of its own.
    (("y = (x + b).sum()", "x=[[1,2],[3,4]]", "b=[5,6]"), "summed from (2, 2) to (2,), as b was"),
    # So is a cast.
    (("y = x.double() * 2", "x=3"), "[0] → x"),
    # A value used twice: where its gradients meet, and what they add up to.
    (("y = x * x", "x=3"), "gradients meet at x: 3. + 3. = 6."),
    (("h = x * 2\ny = h * h", "x=3"), "gradients meet at h: 6. + 6. = 12."),
    # Several ways of one name.
    (("x = x * 2\ny = x * 3", "x=3"), "∂y/∂x#2 = 3"),
    # A program that runs backward itself.
    (("y = x ** 2\ny.backward()", "x=3"), "∂y/∂x = 2 * x = 6."),
    # Large tensors: a formula and one element.
    (("y = (x * 2).sum()", "x=ones(40)"), "[0]: 1. * 2. = 2."),
    (("y = (x @ w).sum()", "x=ones(2, 2)", "w=ones(2, 2)", "--element", "1,0"), "[1, 0]: 1. * 1."),
    # A hook is said.
    (("h = x * 2\nh.register_hook(lambda g: g * 10)\ny = h * 3", "x=1"), "after its hook: 30."),
    # An optimizer has moved the leaf since its gradient was computed.
    (
        ("loss = (x * x).sum()\nloss.backward()\ntorch.optim.SGD([x], lr=0.1).step()", "x=[1,2]"),
        "x.grad = [2., 4.]",
    ),
    # A seed is said.
    (("y = x * 2", "x=[1,2]", "--seed", "[3, 4]"), "seed = tensor([3., 4.])"),
]


@pytest.mark.parametrize(("words", "expected"), TEXTS)
def test_texts(gradcli: CommandLine, words: tuple[str, ...], expected: str) -> None:
    found = gradcli("explain", *words)
    assert found.code == 0, found.err
    assert expected in found.out


def test_lines_keep_to_eighty_columns(gradcli: CommandLine) -> None:
    program = "h = tanh(x @ w + b)\nloss = F.cross_entropy(h @ v, tensor([0, 1]))"
    found = gradcli(
        "explain", program, "x=randn(2, 3)", "w=randn(3, 4)", "b=randn(4)", "v=randn(4, 2)"
    )
    assert found.code == 0, found.err
    assert [line for line in found.out.splitlines() if len(line) > 80] == []


def test_second_backward_is_still_an_error(gradcli: CommandLine) -> None:
    """What an explanation keeps, a program must not see."""
    found = gradcli("explain", "y = x ** 2\ny.backward()\ny.backward()", "x=3")
    assert found.code == 3
    assert "E403" in found.err


_OF_GRADIENTS = """\
x = torch.tensor([0.4, 2.], requires_grad=True)
def f(v):
    return (v.sin() * v).sum()
{gradient}
y = (g * x).sum()
y.backward()
"""


@pytest.mark.parametrize(
    ("gradient", "sum_of"),
    [
        ("g = torch.func.grad(f)(x)", "torch.func.grad(f)(x)"),
        (
            "(g,) = torch.autograd.grad(f(x), x, create_graph=True)",
            "torch.autograd.grad(f(x), x, create_graph=True)",
        ),
    ],
)
def test_nodes_of_a_recorded_gradient(gradient: str, sum_of: str, gradcli: CommandLine) -> None:
    """They are no operations of the place whose gradient they compute, and an entry of a transform
    is no step.
    """
    shown = gradcli("explain", _OF_GRADIENTS.format(gradient=gradient))
    heads = [line.split() for line in shown.out.split("\n") if re.match(r"\d+\. ", line)]
    texts = [(each[1] if each[1] != "g" else each[2], " ".join(each[2:])) for each in heads]
    assert ("CosBackward0", "gradient of v.sin()") in texts
    assert ("SinBackward0", "v.sin()") in texts
    assert any(head[:2] == ["3.", "g"] and " ".join(head).endswith(sum_of) for head in heads)
    assert "AliasBackward0" not in shown.out
    assert "∂g/∂((gradient of v.sin() * v)#" in shown.out
    traced = gradcli("--trace", _OF_GRADIENTS.format(gradient=gradient))
    assert "CosBackward0" in traced.out
    assert re.search(r"CosBackward0 +gradient of v\.sin\(\)", traced.out)
