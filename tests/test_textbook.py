"""The manual's page of gradients in textbook form: `derive` writes each, and the engine agrees.

A line of `gradcli/manual/textbook.md` is a function, the name that it is differentiated by, the
gradient, and the shapes of its names, which are numbers where none is given.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.running.source import run_program
from tests.blocks import MANUAL, blocks
from tests.command_line import CommandLine
from tests.rows import each_row, sampled

Row = tuple[str, str, str, str]

_LEAST = 60
"""How many rows the page has."""


_PAGE = (MANUAL / "textbook.md").read_text(encoding="utf-8")

_STARTS = [0, *(_PAGE[: _PAGE.index(f"## {each}")].count("\n") for each in ("Jac", "Hess")), 9999]
"""The lines at which gradients, Jacobians and Hessians start, and the end."""


def _rows(part: int) -> list[Row]:
    lines = [
        line
        for block in blocks(MANUAL / "textbook.md")
        if _STARTS[part] < block.line < _STARTS[part + 1]
        for line in block.text.split("\n")
    ]
    cells = [re.split(r" {2,}", line) for line in lines if not line.startswith("$")]
    return [
        (f, rest[0] if rest else "", by, g) for f, by, g, *rest in (c for c in cells if len(c) > 2)
    ]


ROWS = _rows(0)

MATRICES = [
    *(("jacobian", *row) for row in _rows(1)),
    *(("hessian", *row) for row in _rows(2)),
    (
        "jacobian",
        "torch.linalg.cross(a, b)",
        "a=3 b=3",
        "a",
        "torch.linalg.cross(b.expand((3, 3)), eye(3), dim=1)",
    ),
    ("jacobian", "x.sort().values", "x=3", "x", "eye(3)[x.sort(0, False)[1]]"),
    (
        "jacobian",
        "x * w[0] + w[1]",
        "x=3 w=2",
        "w",
        "outer(ones((3,)), eye(2)[1]) + outer(x, eye(2)[0])",
    ),
    (
        "jacobian",
        "x[[0, 2, 2]] * 2",
        "x=3",
        "x",
        "stack([zeros((3,)).index_add(0, tensor([0, 2, 2]), 2 * seed) for seed in eye(3)])",
    ),
    (
        "jacobian",
        "x.roll(1) * x",
        "x=3",
        "x",
        "stack([seed * x.roll(1) + (seed * x).roll(-1) for seed in eye(3)])",
    ),
    (
        "jacobian",
        "relu(w @ x)",
        "w=2,3 x=3",
        "w",
        "stack([outer(where(w @ x > 0, seed, 0), x) for seed in eye(2)])",
    ),
    (
        "jacobian",
        "A @ X",
        "A=2,2 X=2,3",
        "X",
        "stack([A.t() @ seed for seed in eye(6).reshape((6, 2, 3))]).reshape((2, 3, 2, 3))",
    ),
]

every_row = each_row(("function", "shapes", "by", "gradient"), ROWS, size=12, every=2)


def test_the_page_is_long() -> None:
    assert len(ROWS) >= _LEAST


def _first(text: str) -> str:
    """The first formula, without its shape; what it holds for stands above it."""
    formulas = (line for line in text.splitlines() if not line.startswith("# where"))
    return next(formulas, "").split("  #")[0].rstrip()


@every_row
def test_derive_writes_it(
    gradcli: CommandLine, function: str, shapes: str, by: str, gradient: str
) -> None:
    words = ["--shape", *shapes.split()] if shapes else []
    found = gradcli("derive", function, "--wrt", by, *words)
    assert _first(found.out) == f"grad_{by} = {gradient}", found.err


def _inputs(sizes: dict[str, str], number: int) -> dict[str, Any]:
    """Values for names, square matrices with a large diagonal."""
    random = np.random.default_rng(number)
    inputs = {}
    for name in (*"abcgpqstvwxyz", "mu", "table", *"ABCX"):
        shape = [int(size) for size in sizes.get(name, "").split(",") if size]
        array = random.uniform(0.3, 0.7, shape)
        if len(shape) == 2 and shape[0] == shape[1]:
            array += 2 * np.eye(shape[0])
        inputs[name] = np.array(array, np.float32)[()]
    return inputs


@every_row
def test_the_engine_agrees(function: str, shapes: str, by: str, gradient: str) -> None:
    """At two random points, at which no determinant is negative."""
    sizes = dict(each.split("=") for each in shapes.split())
    for number in range(2):
        inputs = _inputs(sizes, number)
        formula = run_program(f"found = {gradient}", inputs)["found"]
        program = f"{by}.requires_grad_()\ny_ = {function}\ny_.backward()\nright = {by}.grad"
        right = run_program(program, inputs)["right"]
        np.testing.assert_allclose(np.broadcast_to(formula, right.shape), right, rtol=2e-4)


every_matrix = each_row(
    ("kind", "function", "shapes", "by", "matrix"), MATRICES, lambda row: row[1], size=12, every=2
)


@every_matrix
def test_derive_writes_the_matrix(
    gradcli: CommandLine, kind: str, function: str, shapes: str, by: str, matrix: str
) -> None:
    words = ["--shape", *shapes.split()] if shapes else []
    found = gradcli("derive", function, "--wrt", by, *words, f"--{kind}")
    assert _first(found.out) == f"{kind}_{by} = {matrix}", found.err


@every_matrix
def test_the_engine_has_its_rows(
    kind: str, function: str, shapes: str, by: str, matrix: str
) -> None:
    sizes = dict(each.split("=") for each in shapes.split())
    inputs = _inputs(sizes, 3)
    program = f"""\
found = {matrix}
{by}.requires_grad_()
y_ = {function}
if {kind == "hessian"}:
    y_ = torch.autograd.grad(y_, {by}, create_graph=True)[0]
units = torch.eye(y_.numel()).reshape(-1, *y_.shape)
slope = lambda unit: torch.autograd.grad(y_, {by}, unit, retain_graph=True, allow_unused=True)[0]
right = torch.stack([slope(unit) if y_.requires_grad else 0 * {by} for unit in units])
"""
    values = run_program(program, inputs)
    right = values["right"].reshape(np.shape(values["found"]))
    np.testing.assert_allclose(values["found"], right, rtol=1e-3, atol=1e-5)


MESSAGES = [
    (("A @ x", "--shape", "A=3,3", "x=3", "--hessian"), "a Hessian is of one number"),
    (("x @ y", "--shape", "x=3", "y=3", "--hessian", "--json"), "has the Hessian by one name"),
    (("a @ x", "--shape", "x=3", "a:const=3", "--hessian"), "the Hessian is 0"),
    (("x * x", "--jacobian", "--hessian"), "exclude each other"),
]


@pytest.mark.parametrize(("words", "message"), MESSAGES)
def test_what_is_no_matrix(gradcli: CommandLine, words: tuple[str, ...], message: str) -> None:
    found = gradcli("derive", *words)
    assert found.code in (2, 3)
    assert message in found.err


STEPS = [
    ("F.normalize(x, dim=0)", "--jacobian"),
    ("F.layer_norm(x, (3,))", "--jacobian"),
    ("F.layer_norm(x, (3,)).pow(3).sum()", "--hessian"),
    ("F.normalize(x, dim=0).prod()", "--hessian"),
    ("(1 - x[0])**2 + 100*(x[1] - x[0]**2)**2", "--hessian"),
    ("x[[0, 2, 2]] * x[1]", "--jacobian"),
    ("x.roll(1) * x", "--jacobian"),
]


@pytest.mark.parametrize("words", sampled(STEPS, 3), ids=lambda words: words[0])
def test_a_file_of_a_matrix_in_several_steps_agrees(
    gradcli: CommandLine, words: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "emitted.py"
    path.write_text(gradcli("derive", *words, "--shape", "x=3", "--to", "numpy").out)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert "ns of x agree" in done.stdout, done.stderr


WINDOWED = [
    ("F.conv1d(x, w).pow(2).sum()", "x=2,5", "w=3,2,2"),
    ("F.conv2d(x, w, stride=2, padding=1).pow(2).sum()", "x=2,2,5,4", "w=3,2,2,3"),
    ("F.conv2d(x, w, b, dilation=2, groups=2).pow(2).sum()", "x=1,4,5,5", "w=4,2,2,2", "b=4"),
    ("F.conv2d(x, w, padding='same').pow(2).sum()", "x=1,1,4,4", "w=2,1,3,2"),
    ("F.conv_transpose1d(x, w, None, 2, 1, 1).pow(2).sum()", "x=1,2,3", "w=2,1,3"),
    ("F.conv_transpose2d(x, w, groups=2).pow(2).sum()", "x=1,2,3,3", "w=2,2,2,2"),
    ("F.max_pool2d(x, 3, 2, 1, ceil_mode=True).pow(2).sum()", "x=1,2,6,5"),
    ("F.max_pool1d(x, 2).pow(2).sum()", "x=1,1,4"),
    ("F.avg_pool2d(x, 3, 2, 1, count_include_pad=False).pow(2).sum()", "x=1,1,5,5"),
    ("F.adaptive_avg_pool2d(x, 2).pow(2).sum()", "x=1,1,4,5"),
    ("F.unfold(x, 2, padding=1).pow(2).sum()", "x=2,1,3,3"),
    ("F.fold(x, (3, 3), 2).pow(2).sum()", "x=1,4,4"),
    ("F.pad(x, (1, -1, 0, 2), value=3.).pow(2).sum()", "x=3,3"),
    ("x.median() ** 2", "x=4"),
    ("x.median(1).values.pow(2).sum()", "x=2,3"),
]


@pytest.mark.parametrize("words", WINDOWED, ids=lambda words: words[0])
def test_files_of_windows(
    gradcli: CommandLine, words: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "emitted.py"
    path.write_text(gradcli("derive", words[0], "--shape", *words[1:], "--to", "numpy").out)
    runpy.run_path(str(path), run_name="__main__")
    assert "agree" in capsys.readouterr().out
    written = gradcli("derive", words[0], "--shape", *words[1:], "--to", "jax").out
    assert re.search(r"^ +x\[.*\] = ", written, re.MULTILINE) is None  # JAX's cannot be written to


def test_a_hessian_by_several_names_has_a_matrix_for_each_pair(gradcli: CommandLine) -> None:
    shown = gradcli("derive", "x**3 * t", "--hessian")
    assert shown.out.split("\n")[:3] == [
        "hessian_x_x = 6 * t * x",
        "hessian_x_t = 3 * x ** 2",
        "hessian_t_x = 3 * x ** 2",
    ]
    shown = gradcli("derive", "x @ A @ x", "--shape", "x=3", "A=3,3", "--hessian", "--to", "latex")
    assert r"\frac{\partial^{2} y}{\partial x \, \partial A^{\top}}" in shown.out


@pytest.mark.parametrize("target", ["numpy", "torch", "jax"])
def test_files_of_matrices(gradcli: CommandLine, target: str, tmp_path: Path) -> None:
    if target != "numpy":
        pytest.importorskip(target)
    for words in (("x / x.norm()", "--jacobian"), ("log(exp(x).sum())", "--hessian")):
        path = tmp_path / "emitted.py"
        path.write_text(gradcli("derive", *words, "--shape", "x=3", "--to", target).out)
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
        assert "ns of x agree" in done.stdout, done.stderr


def test_a_hessian_of_a_module_names_its_parameters(gradcli: CommandLine) -> None:
    program = "m = nn.Linear(2, 1)\nloss = (m(x) ** 2).sum()"
    found = gradcli("derive", program, "--shape", "x=2", "--wrt", "x", "--hessian")
    assert "hessian_x = " in found.out, found.err
    assert "m_bias" in found.out


def test_latex_of_a_hessian(gradcli: CommandLine) -> None:
    found = gradcli("derive", "y = sin(x).sum()", "--shape", "x=3", "--hessian", "--to", "latex")
    left = r"\frac{\partial^{2} y}{\partial x \, \partial x^{\top}}"
    assert f"{left} &= -\\operatorname{{diag}}\\left(\\sin\\left(x\\right)\\right)" in found.out


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
