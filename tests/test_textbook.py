"""The manual's page of gradients in textbook form: `derive` writes each, and the engine agrees.

A line of `gradcli/manual/textbook.md` is a function, the name that it is differentiated by, the
gradient, and the shapes of its names, which are numbers where none is given.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from gradcli.cli.program.source import run_program
from tests.blocks import MANUAL, blocks
from tests.command_line import CommandLine

Row = tuple[str, str, str, str]

_LEAST = 60
"""How many rows the page has."""


def _rows() -> list[Row]:
    lines = [line for block in blocks(MANUAL / "textbook.md") for line in block.text.split("\n")]
    cells = [re.split(r" {2,}", line) for line in lines if not line.startswith("$")]
    return [
        (f, rest[0] if rest else "", by, g) for f, by, g, *rest in (c for c in cells if len(c) > 2)
    ]


ROWS = _rows()

every_row = pytest.mark.parametrize(("function", "shapes", "by", "gradient"), ROWS)


@pytest.fixture
def gradcli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


def test_the_page_is_long() -> None:
    assert len(ROWS) >= _LEAST


@every_row
def test_derive_writes_it(
    gradcli: CommandLine, function: str, shapes: str, by: str, gradient: str
) -> None:
    words = ["--shape", *shapes.split()] if shapes else []
    found = gradcli("derive", function, "--wrt", by, *words)
    assert found.out.split("\n")[0].split("  #")[0].rstrip() == f"grad_{by} = {gradient}", found.err


@every_row
def test_the_engine_agrees(function: str, shapes: str, by: str, gradient: str) -> None:
    """At two random points, at which no determinant is negative."""
    sizes = dict(each.split("=") for each in shapes.split())
    for number in range(2):
        random = np.random.default_rng(number)
        inputs = {}
        for name in (*"abcgpqstvwxyz", "mu", "table", *"ABCX"):
            shape = [int(size) for size in sizes.get(name, "").split(",") if size]
            array = random.uniform(0.3, 0.7, shape)
            if len(shape) == 2 and shape[0] == shape[1]:
                array += 2 * np.eye(shape[0])
            inputs[name] = np.array(array, np.float32)[()]
        formula = run_program(f"found = {gradient}", inputs)["found"]
        program = f"{by}.requires_grad_()\ny_ = {function}\ny_.backward()\nright = {by}.grad"
        right = run_program(program, inputs)["right"]
        np.testing.assert_allclose(np.broadcast_to(formula, right.shape), right, rtol=2e-4)


DOCUMENTED = [
    # What a tool of matrix calculus documents as its input, in PyTorch's spelling.
    ("0.5 * x @ A @ x", "A=3,3 x=3", ["(A.t() + A) @ x / 2", "outer(x, x) / 2"]),
    ("(y * v) @ x", "x=3 y=3 v=3", ["y * v", "x * v", "x * y"]),
    ("a ** b", "", ["b * a ** (b - 1)", "a ** b * log(a)"]),
    ("(A @ x - y).norm(1)", "A=2,3 x=3 y=2", ["A.t() @ sgn(A @ x - y)", "-sgn(A @ x - y)"]),
    ("(A @ x - y).norm() ** 2", "A=2,3 x=3 y=2", ["2 * A.t() @ (A @ x - y)", "-2 * (A @ x - y)"]),
    (
        "log(exp(-y * (X @ w)) + torch.ones(2)).sum()",
        "X=2,3 w=3 y=2",
        ["-(X.t() @ (y * sigmoid(-y * (X @ w))))"],
    ),
    (
        "torch.trace(A @ X.T @ B @ X @ C)",
        "A=3,3 X=3,3 B=3,3 C=3,3",
        ["B.t() @ X @ A.t() @ C.t() + B @ X @ C @ A", "C.t() @ X.t() @ B.t() @ X"],
    ),
    ("log(torch.linalg.det(torch.linalg.inv(X)))", "X=3,3", ["-torch.linalg.inv(X).t()"]),
]


@pytest.mark.parametrize(("function", "shapes", "gradients"), DOCUMENTED)
def test_documented_examples(
    gradcli: CommandLine, function: str, shapes: str, gradients: list[str]
) -> None:
    for gradient in gradients:
        names = "abxyvwABXC" if shapes else "ab"
        lines = []
        for by in names:
            if by in function:
                words = ["--shape", *shapes.split()] if shapes else []
                lines += gradcli("derive", function, "--wrt", by, *words).out.splitlines()
        texts = [line.split("  #")[0].rstrip().partition(" = ")[2] for line in lines]
        assert gradient in texts


def test_names_are_symbols(gradcli: CommandLine) -> None:
    found = gradcli("derive", "sin(a * x)")
    assert found.out == "grad_a = x * cos(a * x)\ngrad_x = a * cos(a * x)\n"


def test_a_misspelt_function_is_no_symbol(gradcli: CommandLine) -> None:
    found = gradcli("derive", "rlu(x)")
    assert found.code == 3
    assert "did you mean `relu`?" in found.err
