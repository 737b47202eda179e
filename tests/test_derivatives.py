"""Labelled tables of Jacobians, gradients of rows and Hessians: `gradcli explain --derivatives`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.command_line import CommandLine

A, B = "A:const=tensor([[1.,2],[3,4]])", "x=[1,2]"

TABLES: list[tuple[str, str, list[str], dict[str, Any]]] = [
    ("jacobian", "y = A @ x", [A, B], {"∂y/∂x": [[1, 2], [3, 4]]}),
    ("jacobian", "y = x ** 2", [B], {"∂y/∂x": [[2, 0], [0, 4]]}),
    ("jacobian", "y = (x * s).sum()", [B, "s=3"], {"∂y/∂x": [[3, 3]], "∂y/∂s": [[3]]}),
    ("jacobian", "y = torch.outer(x, x)", [B], {"∂y/∂x": [[2, 0], [2, 1], [2, 1], [0, 4]]}),
    (
        "jacobian", "y = x.detach() * s", [B, "s=3"],
        {"∂y/∂x": [[0, 0], [0, 0]], "∂y/∂s": [[1], [2]]},
    ),
    ("rows", "y = A * x", [A, B], {"∂y/∂x": [[1, 2], [3, 4]]}),
    ("rows", "y = ((A @ x) ** 2)", [A, B], {"∂y/∂x": [[10, 20], [66, 88]]}),
    ("hessian", "y = (x ** 3).sum()", [B], {"∂²y/∂x∂x": [[6, 0], [0, 12]]}),
    ("hessian", "y = x @ A @ x", [A, B], {"∂²y/∂x∂x": [[2, 5], [5, 8]]}),
    (
        "hessian", "y = a * b ** 2", ["a=2", "b=3"],
        {"∂²y/∂a∂a": [[0]], "∂²y/∂a∂b": [[6]], "∂²y/∂b∂a": [[6]], "∂²y/∂b∂b": [[4]]},
    ),
    ("hessian", "y = (A * w).sum()", [A, "w=[[1,2],[3,4]]"], {"∂²y/∂w∂w": [[0] * 4] * 4}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "program", "words", "expected"), TABLES)
def test_tables(
    gradcli: CommandLine, kind: str, program: str, words: list[str], expected: dict[str, Any]
) -> None:
    found = gradcli("explain", program, *words, "--derivatives", kind)
    assert found.code == 0, found.err
    shown = {}
    for part in found.out.strip().split("\n\n"):
        (corner, *_), *rows = (line.split() for line in part.splitlines())
        shown[corner] = [[float(cell) for cell in row[1:]] for row in rows]
    assert shown == expected


def test_the_margins_name_the_elements(gradcli: CommandLine) -> None:
    found = gradcli("explain", "y = (w * w).sum(0)", "w=[[1,2],[3,4]]", "--derivatives", "jacobian")
    head, *rows = (line.split() for line in found.out.splitlines())
    assert head == ["∂y/∂w", "w[0,0]", "w[0,1]", "w[1,0]", "w[1,1]"]
    assert [row[0] for row in rows] == ["y[0]", "y[1]"]


def test_layouts(gradcli: CommandLine) -> None:
    words = ("explain", "y = A @ x", A, B, "--derivatives", "jacobian", "--json")
    by_output = json.loads(gradcli(*words).out)
    by_input = json.loads(gradcli(*words, "--layout", "denominator").out)
    assert by_output["schema"] == "gradcli.derivatives/1"
    assert by_output["layout"] == "numerator"
    assert by_output["tables"][0]["values"] == [[1.0, 2.0], [3.0, 4.0]]
    assert by_input["tables"][0]["values"] == [[1.0, 3.0], [2.0, 4.0]]
    assert by_input["tables"][0]["rows"] == by_output["tables"][0]["columns"] == ["x[0]", "x[1]"]


def test_parameters_have_the_names_of_their_paths(gradcli: CommandLine) -> None:
    program = "m = nn.Linear(2, 1)\ny = m(x)"
    found = gradcli("explain", program, B, "--derivatives", "jacobian")
    assert "∂y/∂m.weight  m.weight[0,0]  m.weight[0,1]" in found.out


@pytest.mark.parametrize(
    ("kind", "program", "words"),
    [("hessian", "y = x * 2", "has the shape (2,)"), ("rows", "y = x.sum()", "has no rows")],
)
def test_what_has_no_table_is_refused(
    gradcli: CommandLine, kind: str, program: str, words: str
) -> None:
    found = gradcli("explain", program, B, "--derivatives", kind)
    assert found.code == 3
    assert "E204" in found.err
    assert words in found.err


def test_an_output_whose_inputs_were_stepped_since_is_to_be_computed_once_more(
    gradcli: CommandLine,
) -> None:
    training = (
        "net = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "loss = net(tensor([1., 2.])).sum()\nloss.backward()\nopt.step()\n"
    )
    found = gradcli("explain", training, "--derivatives", "jacobian")
    assert found.code == 3
    assert "E404" in found.err
    assert "ask for that: `--of y`" in found.err
    again = f"{training}y = net(tensor([1., 2.]))"
    found = gradcli("explain", again, "--derivatives", "jacobian", "--of", "y")
    assert found.code == 0
    assert "∂y/∂net.2.bias" in found.out
