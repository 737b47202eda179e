"""Sizes with names, `--shape x=n,k`: formulas that hold for any size."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from gradcli.running.source import run_program
from tests.command_line import CommandLine

ANY_SIZE = [
    ("x.mean()", "x=n,3", ["grad_x = full((n, 3), 1 / (3 * n))"]),
    ("x.var()", "x=n", ["grad_x = 2 * (x - x.mean()) / (n - 1)"]),
    ("torch.cat([x, y]).mean()", "x=n y=k", ["grad_x = full((n,), 1 / (n + k))",
                                             "grad_y = full((k,), 1 / (n + k))"]),
    ("((x @ w - t) ** 2).mean()", "x=n,k w=k t=n", ["t1 = 2 * (x @ w - t) / n", "grad_t = -t1",
                                                    "grad_x = outer(t1, w)",
                                                    "grad_w = x.t() @ t1"]),
    ("F.mse_loss(x, t)", "x=n,k t=n,k", ["grad_x = 2 * (x - t) / (n * k)",
                                         "grad_t = 2 * (t - x) / (n * k)"]),
    ("x.sum() / n", "x=n,k", ["grad_x = full((n, k), 1 / n)"]),
    ("x[0] * x[n - 1]", "x=n", ["grad_x = zeros((n,)).select_scatter(x[0], 0, n - 1) + "
                                "zeros((n,)).select_scatter(x[n - 1], 0, 0)"]),
    ("x @ torch.eye(n) @ x", "x=n", ["grad_x = 2 * x"]),
    ("tr(A @ B)", "A=n,k B=k,n", ["grad_A = B.t()", "grad_B = A.t()"]),
    ("tr(A) ** 2", "A=n,n", ["grad_A = 2 * A.trace() * eye(n)"]),
]  # fmt: skip
"""A program, the shapes of its inputs, and the formulas of its gradients."""


@pytest.mark.parametrize(("program", "shapes", "expected"), ANY_SIZE)
def test_formulas_of_any_size(
    gradcli: CommandLine, program: str, shapes: str, expected: list[str]
) -> None:
    found = gradcli("derive", program, "--shape", *shapes.split())
    assert [line.split("  #")[0].rstrip() for line in found.out.splitlines()] == expected, found.err


@pytest.mark.parametrize(("program", "shapes", "expected"), ANY_SIZE)
def test_they_hold_at_other_sizes(
    gradcli: CommandLine, program: str, shapes: str, expected: list[str]
) -> None:
    """Sizes that the command did not try."""
    sizes = {"n": 4, "k": 6}
    random = np.random.default_rng(0)
    inputs = {}
    for each in shapes.split():
        name, _, words = each.partition("=")
        shape = [sizes.get(word) or int(word) for word in words.split(",")]
        inputs[name] = random.uniform(0.3, 1.4, shape).astype(np.float32)
    lines = "\n".join(f"{name} = {size}" for name, size in sizes.items())
    formulas = run_program("\n".join([lines, *expected]), inputs)
    leaves = "\n".join(f"{name}.requires_grad_()" for name in inputs)
    program = program.replace("tr(", "torch.trace(")
    gradients = ", ".join(f"grad_{name}" for name in inputs)
    loss = f"{gradients}, = torch.autograd.grad({program}, [{', '.join(inputs)}])"
    engine = run_program("\n".join([lines, leaves, loss]), inputs)
    for name in inputs:
        found, right = formulas[f"grad_{name}"], engine[f"grad_{name}"]
        assert found.shape == right.shape
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


def test_shapes_are_noted_by_their_names(gradcli: CommandLine) -> None:
    found = gradcli("derive", "tanh(A @ x)", "--shape", "A=n,k", "x=k", "--jacobian", "--wrt", "x")
    assert found.out == "jacobian_x = diag(1 - tanh(A @ x) ** 2) @ A       # (n, k)\n"


def test_a_hessian_of_any_size(gradcli: CommandLine) -> None:
    found = gradcli("derive", "(x ** 2).mean()", "--shape", "x=n", "--hessian")
    assert found.out == "hessian_x = 2 * eye(n) / n                        # (n, n)\n"


@pytest.mark.parametrize("program", ["x.var()", "x.sum() / n"])
def test_a_file_reads_the_sizes_from_its_inputs(
    gradcli: CommandLine, tmp_path: Path, program: str
) -> None:
    path = tmp_path / "gradients.py"
    path.write_text(gradcli("derive", program, "--shape", "x=n", "--to", "numpy").out)
    gradients = runpy.run_path(str(path), run_name="__main__")["gradients"]
    assert gradients(np.ones(6, np.float32))["x"].shape == (6,)


def test_what_differs_in_other_ways_is_refused(gradcli: CommandLine) -> None:
    program = "F.cross_entropy(x, torch.zeros(n).long())"
    found = gradcli("derive", program, "--shape", "x=n,k")
    assert found.code != 0
    assert "there are no formulas for all sizes" in found.err


def test_the_names_of_functions_of_matrices_are_free(gradcli: CommandLine) -> None:
    program = "def tr(x):\n    return x.sum()\ny = tr(A)"
    assert gradcli("derive", program, "--shape", "A=2,2").out.startswith("grad_A = ones((2, 2))")
