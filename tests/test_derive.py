"""Gradients as formulas: what is written, and that it gives the engine's numbers everywhere."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.running.source import run_program
from tests.blocks import MANUAL, blocks
from tests.command_line import CommandLine
from tests.derivations import GALLERY
from tests.machine import takes_at_most
from tests.rows import each_row, sampled

WRITTEN = [
    ("e = (a + b) * d", "a= b= d=", ["grad_d = a + b", "grad_a = d", "grad_b = d"]),
    ("y = -(-x)", "x=", ["grad_x = 1"]),
    ("y = (x * 1 + 0) / 1 * z", "x= z=", ["grad_x = z", "grad_z = x"]),
    ("y = x.t().t() @ w", "x=2 w=2", ["grad_x = w", "grad_w = x"]),
    (
        "y = (tanh(x @ w + b) ** 2).sum()",
        "x=3,4 w=4,2 b=2",
        [
            "t1 = tanh(x @ w + b)",
            "t2 = 2 * t1 * (1 - t1 ** 2)",
            "grad_b = t2.sum((0,))",
            "grad_x = t2 @ w.t()",
            "grad_w = x.t() @ t2",
        ],
    ),
    # The program's own names stay, and one spelled like a function takes nothing away.
    ("h = exp(x)\nexp = h * h\ny = exp * h", "x=", ["h = torch.exp(x)", "exp = h ** 2"]),
]


TEXTBOOK = [
    ("x ** 2", "2 * x"),
    ("x ** 3 - 2 * x", "3 * x ** 2 - 2"),
    ("1 / x", "-1 / x ** 2"),
    ("1 / x ** 2", "-2 / x ** 3"),
    ("3 * (x * 2)", "6"),
    ("x", "1"),
    ("(x + 1) ** 2", "2 * (x + 1)"),
    ("(x + 1) * (x - 1)", "2 * x"),
    ("x * log(x)", "log(x) + 1"),
    ("log(2 * x)", "1 / x"),
    ("log(1 + exp(-x))", "-sigmoid(-x)"),
    ("log(1 + exp(x))", "sigmoid(x)"),
    ("log(sigmoid(x))", "sigmoid(-x)"),
    ("-x * log(x) - (1 - x) * log(1 - x)", "log(1 - x) - log(x)"),
    ("exp(-x * x / 2)", "-x * exp(-x ** 2 / 2)"),
    ("exp(3 * x)", "3 * exp(3 * x)"),
    ("sin(x) * cos(x)", "cos(2 * x)"),
    ("sin(3 * x)", "3 * cos(3 * x)"),
    ("sin(x) / x", "cos(x) / x - sin(x) / x ** 2"),
    ("cos(x) ** 2", "-sin(2 * x)"),
    ("atan(x)", "1 / (x ** 2 + 1)"),
    ("cosh(x)", "sinh(x)"),
    ("log(x) ** 2", "2 * log(x) / x"),
    ("x / 4 + 0.5", "0.25"),
    ("sin(x) ** 2 + cos(x) ** 2", "0"),
    ("1 / (1 + exp(-x))", "sigmoid(x) * sigmoid(-x)"),
    ("1 / (1 + exp(-x)) ** 2", "2 * sigmoid(x) ** 2 * sigmoid(-x)"),
    ("log10(x)", "1 / (x * math.log(10))"),
    ("x ** 2 / (1 + x ** 2)", "2 * x / (x ** 2 + 1) ** 2"),
    ("log((1 + x) / (1 - x)) / 2", "1 / ((1 - x) * (x + 1))"),
]
"""Functions of one number, and what a textbook has for their derivatives."""

MATRICES = [
    ("(x @ w - t).square().mean()", "w=3 x=5,3:const t=5:const", "2 / 5 * x.t() @ (x @ w - t)"),
    (
        "F.cross_entropy(z, tensor([0, 2]))",
        "z=2,3",
        "(z.softmax(1) - F.one_hot(tensor([0, 2]), 3)) / 2",
    ),
    ("log(exp(z).sum())", "z=4", "z.softmax(0)"),
    ("x @ A @ x", "x=3 A=3,3:const", "(A.t() + A) @ x"),
    ("(x.t() @ a @ x).sum()", "x=3,1 a=3,3:const", "a.t() @ x + a @ x"),
    ("x.square().sum() / 2", "x=4", "x"),
    ("relu(x).sum()", "x=3", "where(x > 0, 1.0, 0)"),
    ("F.leaky_relu(x).sum()", "x=3", "where(x > 0, 1.0, 0.01)"),
    ("F.elu(x).sum()", "x=3", "where(x <= 0, exp(x), 1.0)"),
    ("x.clamp(0, 1).sum()", "x=3", "where(logical_and(x >= 0, x <= 1), 1.0, 0.0)"),
    ("(x - x).sum()", "x=3", "zeros((3,))"),
    ("logsigmoid(x).sum()", "x=3", "sigmoid(-x)"),
    ("((x - m) ** 2 / 2).sum().neg()", "x=3 m=3:const", "m - x"),
]


@pytest.mark.parametrize(("function", "expected"), TEXTBOOK)
def test_textbook_form(gradcli: CommandLine, function: str, expected: str) -> None:
    found = gradcli("derive", f"({function})", "x=0.7")
    assert found.out == f"grad_x = {expected}\n", found.err


@pytest.mark.parametrize(("function", "shapes", "expected"), MATRICES)
def test_textbook_form_of_matrices(
    gradcli: CommandLine, function: str, shapes: str, expected: str
) -> None:
    words = []
    for each in shapes.split():
        name, _, rest = each.partition("=")
        sizes, _, kind = rest.partition(":")
        words.append(f"{name}{kind and ':const'}=rand({sizes})")
    found = gradcli("derive", f"y = {function}", *words)
    assert found.out.split("  #")[0].split(" = ")[1].rstrip() == expected, found.out + found.err


@pytest.mark.parametrize(
    "program", ["y = x @ A @ x", "h = x * 2\nh.squeeze_(0)\ny = (h * h).sum()"]
)
def test_no_number_of_the_run_stands_for_a_formula(gradcli: CommandLine, program: str) -> None:
    words = ["x=rand(1,3)"] if "squeeze" in program else ["x=rand(3)", "A=rand(3,3)"]
    found = gradcli("derive", program, *words)
    assert "tensor([" not in found.out
    assert found.code == 0 or "E413" in found.err


@pytest.mark.parametrize(("program", "shapes", "expected"), WRITTEN)
def test_written(gradcli: CommandLine, program: str, shapes: str, expected: list[str]) -> None:
    found = gradcli("derive", program, "--shape", *shapes.split())
    assert found.code == 0, found.err
    lines = [line.split("  #")[0].rstrip() for line in found.out.splitlines()]
    assert lines[: len(expected)] == expected


def test_a_shape_that_no_formula_reads_gives_its_names_no_place(gradcli: CommandLine) -> None:
    found = gradcli("derive", "e = y * k", "x=n,3", "y=k", "--shape", "--json")
    assert (found.code, json.loads(found.out)["sizes"].keys()) == (0, {"k"}), found.err


def test_a_hessian_with_a_number_as_seed(gradcli: CommandLine) -> None:
    found = gradcli(
        "derive", "e = x * a\ne.sum().backward()", "a=2", "x=3", "--hessian", "--seed=1"
    )
    assert (found.code, found.err.count("error")) == (0, 0), found.err


CUBES = "e = x.abs()\nfor i in range(90):\n    e = torch.func.grad(lambda t: (t**3).sum())(e)"


@pytest.mark.parametrize(
    "program",
    sampled(
        [CUBES, "for i in range(90):\n    x = x**x", "for i in range(90):\n    x = 3 * x * x"], 3
    ),
)
def test_powers_of_powers_take_seconds(gradcli: CommandLine, program: str) -> None:
    """Their numbers and their parts double from round to round."""
    with takes_at_most(10):
        assert gradcli("derive", program, "x=0.5").code == 0


def test_a_number_is_reduced_over_its_only_dimension(gradcli: CommandLine) -> None:
    shown = gradcli("derive", "e = x.softmax(-1) ** 2", "x=3.", "--to", "latex")
    assert (shown.code, "softmax" in shown.out) == (0, True), shown.err


def test_the_diagonal_of_a_matrix_that_is_computed(gradcli: CommandLine) -> None:
    shown = gradcli("derive", "y = ((s * 2).diag() ** 3).sum()", "s=[[1, 2], [3, 4]]")
    assert shown.code == 0, shown.err
    assert "diagonal_scatter(" in shown.out


def test_a_long_chain_is_refused_a_matrix_at_once(gradcli: CommandLine) -> None:
    """Each of its lines is put into the next once."""
    chain = "e = x * a\nfor i in range(90): e = e.log()\ne = e.mean()"
    with takes_at_most(4):
        shown = gradcli("derive", chain, "a=2", "x=[0.,-1.]", "--hessian")
    assert (shown.code, "too long to be written down" in shown.err) == (3, True)


def _shown_in_gallery() -> list[tuple[str, list[str]]]:
    """The functions of the manual's gallery, and the lines that stand below each."""
    (block,) = blocks(MANUAL / "gallery.md")
    entries = []
    for entry in block.text.removesuffix("\n").split("\n\n"):
        lines = entry.split("\n")
        program = [line for line in lines if not line.startswith("    ")]
        entries.append(("\n".join(program), [line.strip() for line in lines[len(program) :]]))
    return entries


@pytest.mark.parametrize(("program", "formulas"), _shown_in_gallery())
def test_gallery_of_the_manual(gradcli: CommandLine, program: str, formulas: list[str]) -> None:
    found = gradcli("derive", program, "--shape", *dict(GALLERY)[program].split())
    assert [line.split("  #")[0].rstrip() for line in found.out.splitlines()] == formulas


def test_gallery_of_the_manual_is_large() -> None:
    assert len(_shown_in_gallery()) >= 30


@each_row(("program", "shapes"), GALLERY, size=6, every=2)
def test_formulas_run_in_gradcli(gradcli: CommandLine, program: str, shapes: str) -> None:
    """The command checks its formulas at the values it was given; here they meet the numbers of
    other values."""
    found = gradcli("derive", program, "--shape", *shapes.split(), "--json")
    assert found.code == 0, found.err
    document = json.loads(found.out)
    assert document["schema"] == "gradcli.derivation/1"
    random = np.random.default_rng(len(program))
    inputs = {
        each["name"]: random.uniform(0.3, 1.4, each["shape"]).astype(np.float32)[()]
        for each in document["inputs"]
    }
    lines = [f"{line['name']} = {line['formula']}" for line in document["lines"]]
    formulas = run_program("\n".join(lines), inputs)
    leaves = "".join(f"{name}.requires_grad_()\n" for name in inputs)
    backward = f"\n{document['output']}.sum().backward()\n"
    grads = "".join(f"grad_of_{each['of']} = {each['of']}.grad\n" for each in document["gradients"])
    engine = run_program(leaves + program + backward + grads, inputs)
    for each in document["gradients"]:
        np.testing.assert_allclose(
            formulas[each["name"]], engine[f"grad_of_{each['of']}"], rtol=2e-4, atol=2e-4
        )


a_half = pytest.mark.parametrize("start", sampled(range(2), 2))
"""Of the functions whose files are run, each second is in the suite."""


def _emitted(
    gradcli: CommandLine, target: str, folder: Path, gallery: Sequence[Any] = GALLERY
) -> list[Path]:
    paths = []
    for number, (program, shapes) in enumerate(gallery):
        found = gradcli("derive", program, "--shape", *shapes.split(), "--to", target)
        assert found.code == 0, found.err
        path = folder / f"gallery_{number}.py"
        path.write_text(found.out, encoding="utf-8")
        paths.append(path)
    return paths


_RUN_ALL = """
import runpy, sys
for path in sys.argv[1:]:
    runpy.run_path(path, run_name="__main__")
assert not any(name.split(".")[0] == "gradcli" for name in sys.modules)
"""


@a_half
def test_numpy_files_pass_their_own_asserts(
    gradcli: CommandLine, tmp_path: Path, start: int
) -> None:
    paths = _emitted(gradcli, "numpy", tmp_path, GALLERY[start::2])
    assert len(paths) >= 15
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", _RUN_ALL, *map(str, paths)],
        capture_output=True, text=True, cwd=tmp_path, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("agree") == len(paths)


def test_a_wrong_number_fails_the_asserts(gradcli: CommandLine, tmp_path: Path) -> None:
    text = gradcli("derive", "y = x * z", "x=2", "z=3", "--to", "numpy").out
    path = tmp_path / "wrong.py"
    path.write_text(text.replace("grad_x = z", "grad_x = -z"), encoding="utf-8")
    done = subprocess.run([sys.executable, path], capture_output=True, check=False)
    assert b"AssertionError" in done.stderr


a_part = pytest.mark.parametrize("start", sampled(range(3), 3))
"""Of the files that are compiled only, NumPy's being run, a third is in the suite."""


of_each_target = pytest.mark.parametrize("target", ["torch", "jax"])


@of_each_target
@a_part
def test_files_compile(gradcli: CommandLine, tmp_path: Path, start: int, target: str) -> None:
    for path in _emitted(gradcli, target, tmp_path, GALLERY[start::3]):
        text = path.read_text(encoding="utf-8")
        compile(text, path.name, "exec")
        assert target != "jax" or "np.add.at" not in text  # JAX's arrays are not written to


@of_each_target
def test_files_pass_their_own_asserts(gradcli: CommandLine, tmp_path: Path, target: str) -> None:
    pytest.importorskip(target)
    paths = _emitted(gradcli, target, tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", _RUN_ALL, *map(str, paths)], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


LATEX = [
    ("log(1 + exp(-x))", "", r"-\sigma\left(-x\right)"),
    ("(x - mu) ** 2 / (2 * s ** 2)", "mu", r"\frac{\mu - x}{s^{2}}"),
    ("x @ A @ x", "x x=3 A=3,3", r"\left(A^{\top} + A\right) \, x"),
    ("x.norm()", "x x=3", r"\frac{x}{\left\lVert x \right\rVert}"),
    ("(x * y).sum()", "x x=3 y=3", "y"),
    ("(x * y).sum() ** 2", "x x=3 y=3", r"2 \, y \, \sum_{i} x_{i} \, y_{i}"),
    ("(x * s * y).sum()", "s x=2,3 y=2,3", r"\sum_{i,j} y_{i j} \, x_{i j}"),
    ("torch.logdet(X)", "X X=3,3", r"X^{-\top}"),
    ("a @ torch.linalg.inv(X) @ b", "X X=3,3 a=3 b=3", r"-X^{-\top} \, a \, b^{\top} \, X^{-\top}"),
    ("relu(x).sum()", "x x=3", r"\mathbf{1}_{x > 0}"),
    # no product of a matrix with itself
    ("(X ** 3).sum()", "X X=3,3", r"3 \, X^{\odot 2}"),
    ("exp(X).sum()", "X X=2,2", r"e^{\odot X}"),
    ("exp(x).sum()", "x x=3", "e^{x}"),
    (
        "((x @ w - t) ** 2).mean()", "w x=5,3 w=3 t=5",
        r"\frac{2}{5} \, x^{\top} \, \left(x \, w - t\right)",
    ),
    (
        "(tanh(x) ** 3).sum()", "x x=3",
        r"3 \, \tanh^{2}\left(x\right) \odot \left(1 - \tanh^{2}\left(x\right)\right)",
    ),
]  # fmt: skip
"""A function, the name that it is differentiated by with shapes, and the gradient for a paper."""


@pytest.mark.parametrize(("function", "names", "expected"), LATEX)
def test_latex(gradcli: CommandLine, function: str, names: str, expected: str) -> None:
    by, *shapes = names.split() or ["x"]
    words = ["--shape", *shapes] if shapes else []
    found = gradcli("derive", function, "--wrt", by, *words, "--to", "latex")
    assert found.out.splitlines()[1].partition(" &= ")[2] == expected, found.err


@a_half
def test_latex_is_balanced(gradcli: CommandLine, start: int) -> None:
    refused = []
    for program, shapes in GALLERY[start::2]:
        shown = gradcli("derive", program, "--shape", *shapes.split(), "--to", "latex")
        text = shown.out
        if "no word in LaTeX" in shown.err:
            refused.append(program)
            continue
        bare = text.replace(r"\{", "").replace(r"\}", "")
        assert bare.count("{") == bare.count("}")
        assert text.count(r"\left") == text.count(r"\right")
        assert text.count(r"\begin") == text.count(r"\end")
        assert text.startswith("\\begin{aligned}\n")
        assert not re.search(r"_\{[^{}]*\}_\{", text)  # TeX takes one subscript
    assert len(refused) <= len(GALLERY) // 10


def test_latex_refuses_what_it_would_say_falsely(gradcli: CommandLine) -> None:
    program = "y = (torch.einsum('ij,jk->ik', a, b) ** 2).sum()"
    shown = gradcli("derive", program, "a=[[1,2]]", "b=[[3],[4]]", "--to", "latex")
    assert (shown.code, shown.out) == (3, "")
    assert "there is no word in LaTeX for a product of batches" in shown.err


BY_ELEMENTS = [
    (
        "torch.outer(a, b).exp().sum()",
        "a=2 b=3",
        [
            r"\left(\frac{\partial L}{\partial b}\right)_{i} &= "
            r"\sum_{j} e^{a_{j} \, b_{i}} \, a_{j}",
            r"\left(\frac{\partial L}{\partial a}\right)_{i} &= "
            r"\sum_{j} b_{j} \, e^{a_{i} \, b_{j}}",
        ],
    ),
    (
        "y = (x.unsqueeze(1) * w).sum()",
        "x=3 w=3,2",
        [
            r"\left(\frac{\partial y}{\partial w}\right)_{i j} &= x_{i}",
            r"\left(\frac{\partial y}{\partial x}\right)_{i} &= \sum_{j} w_{i j}",
        ],
    ),
    (
        "y = torch.kron(a, b).pow(2).sum()",
        "a=2,2 b=2,2",
        [
            r"\left(t_{1}\right)_{i 1 j 1} &= a_{i j}",
            r"\left(t_{2}\right)_{1 i 1 j} &= b_{i j}",
            r"\left(t_{3}\right)_{i j k l} &= "
            r"2 \, \left(t_{1}\right)_{i 1 k 1} \, \left(t_{2}\right)_{1 j 1 l}",
        ],
    ),
    (
        "y = torch.linalg.svd(X, False)[1].sum()",
        "X=3,2",
        [
            r"\frac{\partial y}{\partial X} &= U \, V^{\top}",
            r"&\text{with } X = U \, \operatorname{diag}\left(\sigma\right) \, V^{\top}",
        ],
    ),
]
"""A program, the shapes of its inputs, and the first rows of its display."""


@pytest.mark.parametrize(("program", "shapes", "rows"), BY_ELEMENTS)
def test_latex_has_indices_where_dimensions_differ(
    gradcli: CommandLine, program: str, shapes: str, rows: list[str]
) -> None:
    shown = gradcli("derive", program, "--shape", *shapes.split(), "--to", "latex").out
    found = [row.strip().removesuffix("\\\\").rstrip() for row in shown.splitlines()[1:-1]]
    assert found[: len(rows)] == rows


@pytest.mark.parametrize(
    ("program", "shapes"),
    [
        ("(x.reshape(2, 3) @ w).sum()", "x=6 w=3,2"),
        ("x.permute(1, 0).reshape(6).pow(2).sum()", "x=2,3"),
        ("F.conv1d(x, w).pow(2).sum()", "x=2,2,5 w=3,2,2"),
    ],
)
def test_latex_refuses_rearranged_elements(gradcli: CommandLine, program: str, shapes: str) -> None:
    shown = gradcli("derive", program, "--shape", *shapes.split(), "--to", "latex")
    assert "there is no word in LaTeX for" in shown.err, shown.out


def test_a_one_hot_of_few_rows_keeps_its_classes(gradcli: CommandLine) -> None:
    found = gradcli("derive", "F.cross_entropy(x, torch.tensor([0, 1]))", "--shape", "x=2,3")
    assert found.out.startswith("grad_x = (x.softmax(1) - F.one_hot(tensor([0, 1]), 3)) / 2")


def test_a_function_that_is_not_called_is_a_symbol(gradcli: CommandLine) -> None:
    found = gradcli("derive", "exp(-k * t)", "--wrt", "k")
    assert found.out == "grad_k = -t * exp(-k * t)\n", found.err


def test_the_seed_is_an_input(gradcli: CommandLine) -> None:
    found = gradcli("derive", "y = x * z", "x=[1,2]", "z=[3,4]", "--seed", "[0.5, 1]")
    assert found.out.splitlines()[0].startswith("grad_x = seed * z")


def test_an_output_of_several_elements_takes_a_symbol_for_its_gradient(
    gradcli: CommandLine,
) -> None:
    found = gradcli("derive", "A @ exp(x)", "--shape", "A=3,3", "x=3")
    lines = [line.split("  #")[0].rstrip() for line in found.out.splitlines()]
    assert lines == ["grad_A = outer(seed, exp(x))", "grad_x = A.t() @ seed * exp(x)"]
    assert "`seed` stands for the gradient that arrives" in found.err


LOOP = "h = x\nfor i in range(25):\n    h = tanh(w @ h + x)\ny = h.sum()"


def test_a_long_loop_is_a_recurrence(gradcli: CommandLine) -> None:
    words = ("derive", LOOP, "--shape", "x=3", "w=3,3")
    short, full = gradcli(*words), gradcli(*words, "--full")
    assert len(short.out.splitlines()) < 35
    assert len(full.out.splitlines()) > 90
    assert short.out.count("and so on") == 2
    for line in short.out.splitlines():
        assert line.startswith("# ") or line in full.out.splitlines()


PROGRAMS = [
    # modules, custom functions, writes in place, views, decompositions, long chains
    "m = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))\ny = m(x).pow(2).mean()",
    "c = nn.LSTMCell(3, 2)\nh, k = c(x)\ny = (h * k).sum()",
    "z = x * 1\nz[0] = x[1] ** 2\ny = (z * z).sum()",
    "z = x * 1\nz[:, 1] *= x[:, 0]\ny = (z * x).sum()",
    "z = x.clone()\nz.diagonal().exp_()\ny = (z * x).sum()",
    "y = F.conv1d(x.unsqueeze(0), torch.ones(2, 3, 2)).pow(2).sum()",
    "y = F.batch_norm(x, None, None, training=True).pow(3).sum()",
    "y = torch.linalg.svd(x[:3])[1].sum()",
    "y = F.interpolate(x.view(1, 1, 3, 3), scale_factor=2, mode='bilinear').pow(2).sum()",
    "y = torch.einsum('ij,kj->ik', x, x).pow(2).sum()",
    "y = F.pad(x.unsqueeze(0), (1, 1), mode='reflect').pow(2).sum()",
    "y = torch.fft.rfft(x).abs().pow(2).sum()",
    "m = nn.LSTM(3, 2)\nout, _ = m(x.unsqueeze(1))\ny = out.pow(2).sum()",
    "m = nn.GRU(3, 2)\nout, _ = m(x.unsqueeze(1))\ny = out.pow(2).sum()",
    "m = nn.MultiheadAttention(3, 1)\nout, _ = m(x, x, x)\ny = out.pow(2).sum()",
    "y = F.dropout(x, 0.5).pow(2).sum()",
    "z = x * 2\nz.as_strided_((2, 2), (1, 2))\ny = (z ** 3).sum()",
    "z = x * 2\nz.transpose_(0, 1)\ng = torch.autograd.grad((z ** 3).sum(), x,"
    " create_graph=True)[0]\ny = (g ** 2).sum()",
    "y = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)[0].pow(2).sum()",
]


@pytest.mark.parametrize("program", sampled(PROGRAMS, 2))
def test_programs_have_formulas(gradcli: CommandLine, program: str) -> None:
    """`derive` runs its formulas beside the engine, at the inputs given and at others nearby."""
    found = gradcli("derive", program, "--shape", "x=3,3")
    assert found.code == 0, found.err
    assert "grad_x = " in found.out


OF_SEVERAL_STEPS = [
    ("y = F.grid_sample(x, g).pow(2).sum()", "x=rand(1,1,3,4)", "g=rand(1,2,2,2)"),
    (
        "y = F.grid_sample(x, g, mode='bicubic', padding_mode='reflection').pow(2).sum()",
        "x=rand(1,1,3,4)", "g=rand(1,1,2,2)*2",
    ),
    ("y = F.grid_sample(x, g, 'nearest', 'border').pow(2).sum()", "x=rand(1,1,3,4)",
     "g=rand(1,2,2,2)"),
    ("y = F.ctc_loss(x.log_softmax(2), tensor([[1, 2], [2, 2]]), (4, 5), (2, 1))", "x=rand(5,2,3)"),
    (
        "y = F.ctc_loss(x.log_softmax(2), tensor([1, 1, 2]), (2, 5), (2, 1), zero_infinity=True)",
        "x=rand(5,2,3)",
    ),
    ("x = torch.distributions.Gamma(a, b).rsample()\ny = (x * x).sum()", "a=[2,0.3]", "b=[3,4]"),
    ("x = torch.distributions.Beta(a, b).rsample()\ny = x * x", "a=2", "b=3"),
    ("x = torch.distributions.Dirichlet(a).rsample()\ny = (x * w).sum()", "a=[1,2,4]", "w=[1,2,3]"),
    ("x = torch.distributions.StudentT(a).rsample()\ny = x * x", "a=5"),
]  # fmt: skip
"""Ops whose formula is a sum over weights, a recursion, or the implicit function of a draw."""


@pytest.mark.parametrize("target", ["numpy", "torch"])
@pytest.mark.parametrize("words", sampled(OF_SEVERAL_STEPS, 3))
def test_files_of_ops_of_several_steps(
    gradcli: CommandLine,
    words: tuple[str, ...],
    target: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = gradcli("derive", *words, "--to", target)
    assert found.code == 0, found.err
    if target == "torch":
        pytest.importorskip("torch")
    path = tmp_path / "emitted.py"
    path.write_text(found.out, encoding="utf-8")
    runpy.run_path(str(path), run_name="__main__")
    assert "agree" in capsys.readouterr().out


def test_ctc_has_the_variables_of_its_recursion(gradcli: CommandLine) -> None:
    program = "y = F.ctc_loss(x.log_softmax(1), tensor([1, 2]), (20,), (2,))"
    found = gradcli("derive", program, "--shape", "x=20,3")
    assert "alpha1 = t5.logsumexp((1,)) + t3[1]" in found.out
    assert "beta1 = t26.logsumexp((1,)) + t3[18]" in found.out
    assert found.out.count("and so on 16 times") == 2
    latex = gradcli("derive", program, "--shape", "x=20,3", "--to", "latex").out
    assert latex.count(r"\vdots") == 2


def test_long_constants_have_names(gradcli: CommandLine, tmp_path: Path) -> None:
    words = "y = x @ torch.randn(40, 40) @ x", "--shape", "x=40"
    found = gradcli("derive", *words)
    assert found.out.splitlines() == [
        "# c1 is a constant of shape (40, 40)",
        "grad_x = (c1.t() + c1) @ x                        # (40,)",
    ]
    path = tmp_path / "emitted.py"
    path.write_text(gradcli("derive", *words, "--to", "numpy").out, encoding="utf-8")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.stdout == "the gradients of x agree\n", done.stderr


def test_a_scalar_written_through_an_alias_is_no_constant(gradcli: CommandLine) -> None:
    found = gradcli("derive", "x = a * b\nx.detach().mul_(2)\ny = x * x", "a=2", "b=3")
    assert found.out == "x = a * b\ngrad_a = 4 * x * b\ngrad_b = 4 * x * a\n"


def test_a_function_that_a_target_lacks_is_named(gradcli: CommandLine) -> None:
    found = gradcli("derive", "y = torch.polygamma(2, x).sum()", "--shape", "x=4", "--to", "numpy")
    assert found.code == 3
    assert "there is no formula for polygamma in NumPy" in found.err


FUNCTIONS = """\
x = tensor([1., 2.], requires_grad=True)
y = (x * x).sum()
derive(y)
explain(y)
y.backward()
"""


def test_functions_of_the_language(gradcli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "functions.grad"
    path.write_text(FUNCTIONS, encoding="utf-8")
    found = gradcli("run", str(path))
    assert found.code == 0, found.err
    assert found.out.startswith("grad_x = 2 * x")
    assert "∂(x * x)/∂x = x = [1., 2.]" in found.out


@pytest.mark.parametrize("call", ["explain(3)", "derive('y')", "derive(tensor(2.))"])
def test_functions_refuse_what_they_cannot_explain(gradcli: CommandLine, call: str) -> None:
    found = gradcli(call)
    assert found.code == 3
    assert "E202" in found.err or "E402" in found.err


def test_the_hessian_of_a_loss_has_only_names_that_it_defines(gradcli: CommandLine) -> None:
    program = "y = F.cross_entropy(W @ x, torch.tensor(0))"
    words = ["--shape", "W=2,2", "x=2", "--wrt", "W", "--dtype", "float64", "--hessian"]
    shown = gradcli("derive", program, *words)
    lines = [line.partition(" = ") for line in shown.out.splitlines()]
    known = {"W", "x", "seed"}
    for name, _, formula in lines:
        used = set(re.findall(r"\b[a-z]\w*\b(?!\()", formula.partition("#")[0]))
        assert not {each for each in used if re.fullmatch(r"t\d+", each)} - known
        known.add(name)


@pytest.mark.parametrize(
    ("program", "words", "value"),
    [
        ("h = zeros(3)\nfor t in range(2):\n    h = tanh(h + x)\ny = h.sum()", ["x=[1,2,3]"], "h"),
        ("m = torch.eye(2)\ny = (m @ x).sum()", ["x=[1,2]"], "m"),
    ],
)
def test_a_constant_of_the_program_is_a_value(
    program: str, words: list[str], value: str, gradcli: CommandLine
) -> None:
    shown = gradcli("derive", program, *words, "--to", "numpy")
    assert "def gradients(x):" in shown.out


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("y = torch.linalg.pinv(x).sum()", ["x=[[1,2],[3,4],[5,7]]"]),
        ("y = x.topk(2).values.sum()", ["x=[1,3,2]"]),
        ("y = (x.kthvalue(2).values ** 2).sum()", ["x=[[1,3,2],[5,4,6]]"]),
        ("y = (x * torch.eye(2, dtype=torch.bool)).sum()", ["x=[[1,2],[3,4]]"]),
    ],
)
def test_the_file_for_numpy_agrees_with_itself(
    program: str, words: list[str], gradcli: CommandLine
) -> None:
    exec(gradcli("derive", program, *words, "--to", "numpy").out, {"__name__": "__main__"})


_REVERSAL = """class Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)
    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.scale, None
"""

OF_PASSES = [
    # The program goes backward from a number behind the tensor that it assigned last.
    ("y = x.sin()\ny.sum().backward()", ["grad_x = cos(x)"]),
    (f"{_REVERSAL}y = Reversal.apply(x, 0.5)\n(y * tensor([2., 4.])).sum().backward()",
     ["grad_x = tensor([-1.0, -2.0])"]),
    # What it assigned last is a leaf.
    ("y = (x * x).sum()\ny.backward()\nfor p in [x]:\n    p = p", ["grad_x = 2 * x"]),
    # The gradient is that of one pass, whatever others added to `.grad`.
    ("y = (x * x).sum()\ny.backward(retain_graph=True)\ny.backward()", ["grad_x = 2 * x"]),
    ("y = x * x\ny.backward(tensor([1., 10.]))", ["grad_x = 2 * seed * x"]),
    ("y = (x * x).sum()\ny.backward(tensor(3.))", ["grad_x = 2 * seed * x"]),
]  # fmt: skip


@pytest.mark.parametrize(("program", "formulas"), OF_PASSES)
def test_a_gradient_is_that_of_the_programs_pass(
    program: str, formulas: list[str], gradcli: CommandLine
) -> None:
    shown = gradcli("derive", program, "x=[1,2]")
    assert shown.code == 0, shown.err
    assert [line.partition("  ")[0] for line in shown.out.splitlines()] == formulas


def test_an_output_that_is_a_leaf_is_refused(gradcli: CommandLine) -> None:
    shown = gradcli("derive", "x = ones(2, requires_grad=True)")
    assert (shown.code, "the output is a leaf" in shown.err) == (3, True)


ASSIGNED_AGAIN = [
    "x = randn(2)\nm = nn.Linear(2, 1)\nz = m(x)\nm = nn.Linear(2, 1)\nx = randn(2)\n"
    "y = m(x).pow(2).sum()",
    "for i in range(3):\n    x = randn(2, requires_grad=True)\n    y = (x ** 3).sum() * (i + 1)",
    "x = [1., 2.]\nx = torch.tensor(x, requires_grad=True)\ny = (x ** 3).sum()",
]
"""The values at which formulas are confirmed go to the assignment that made the leaf."""


@pytest.mark.parametrize("command", ["derive", "check"])
@pytest.mark.parametrize("program", ASSIGNED_AGAIN)
def test_a_name_may_be_assigned_again(program: str, command: str, gradcli: CommandLine) -> None:
    shown = gradcli(command, program)
    assert (shown.code, shown.err) == (0, "")


_OWN_PASS = """class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()
    @staticmethod
    def backward(ctx, grad):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad(): z = x.sin()
        z.backward(grad)
        return x.grad
"""


@pytest.mark.parametrize(
    ("program", "place", "reason"),
    [
        ("k = x.sum().item()\ny = (x * k).sum()", "1:5", "`.item()` makes a number of Python's"),
        (f"{_OWN_PASS}y = Again.apply(x).sum()", "11:9", "`Again` has a backward() of its own"),
    ],
)
def test_formulas_of_these_inputs_say_where_the_number_comes_from(
    program: str, place: str, reason: str, gradcli: CommandLine
) -> None:
    shown = gradcli("derive", program, "x=[1,2]")
    assert shown.code == 3
    assert "a number in them follows from the inputs" in shown.err
    assert f"--> program:{place}\n" in shown.err
    assert f"= note: {reason}" in shown.err


# Between the write to `x` and its use no statement ends.
_IN_A_STEP = """\
x = torch.tensor([1., 2.], requires_grad=True)
opt = torch.optim.LBFGS([x], lr=0.5, max_iter=3)
losses = []
def closure():
    losses.append((x ** 4).sum())
    opt.zero_grad()
    losses[-1].backward()
    return losses[-1]
opt.step(closure)
loss = losses[-1]
"""


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        (_IN_A_STEP, 0, "the formulas were run at these inputs alone"),
        (
            "tests/programs/numpy/linear_regression.grad",
            3,
            "have numbers that may follow from the inputs",
        ),
    ],
    ids=["in a step", "NumPy"],
)
def test_formulas_that_cannot_be_tried_elsewhere_are_told_of(
    program: str, code: int, said: str, gradcli: CommandLine
) -> None:
    shown = gradcli("derive", program)
    assert (shown.code, said in shown.err) == (code, True)
    assert f"cannot be given other inputs where `{'x' if code == 0 else 'w'}` gets" in shown.err


def test_data_that_is_replaced_is_what_the_formula_reads(gradcli: CommandLine) -> None:
    program = "a = (w * 3).sum()\nw.data = torch.tensor([5., 7.])\ny = w.pow(2).sum()"
    shown = gradcli("derive", program, "w=[1, 2]")
    assert (shown.code, "grad_w = 2 * w" in shown.out) == (0, True), shown.err


def test_an_element_that_is_written_between_ops(gradcli: CommandLine) -> None:
    program = "e = (x * a).exp()\ne = e.clone(); e[0] = 3\ne = e.tanh()"
    assert gradcli("derive", "-e", program, "a=2", "x=[1.,2.]", "--to=jax").code == 0


def test_no_elements_have_an_empty_hessian(gradcli: CommandLine) -> None:
    program = "e = x * a\nfor i in range(2):\n    e = e.tanh()\ne = e.sum()"
    finished = gradcli("derive", program, "a=2", "x=[]", "--hessian", "--wrt", "a,x")
    assert finished.code == 0, finished.err


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        # a mask that no input changes
        (
            "m = torch.tensor(0.) > 1\ny = torch.where(m | (x > 0), x * x, 1.).sum()",
            "2 * x * where(m | (x > 0), 1.0, 0.0)",
        ),
        # what a function's body reads may be assigned behind it
        (
            "def f(v):\n    return (v * k).sum()\nk = torch.tensor(3.)\ny = f(x)",
            "k * ones((2,))",
        ),
        # no name of a module is a symbol
        (
            "from torch.nn.functional import *\ny = relu(x).sum() * 2",
            "where(x > 0, 2.0, 0)",
        ),
        # elements that unpacking takes
        ("a, b = x\ny = a * b * b", "stack([x[1] ** 2, 2 * x[1] * x[0]], 0)"),
    ],
)
def test_programs_that_a_formula_is_for(program: str, expected: str, gradcli: CommandLine) -> None:
    assert f"grad_x = {expected} " in gradcli("derive", program, "x=[1,2]").out


def test_a_tensor_on_meta_has_no_formula(gradcli: CommandLine) -> None:
    program = "x = torch.ones(2, device='meta', requires_grad=True)\ny = (x * x).sum()"
    shown = gradcli("derive", program)
    assert "[E413]" in shown.err
    assert "a tensor on meta, which has none" in shown.err


@pytest.mark.parametrize("program", ["y = softmax(x @ w, 1)", "y = x.sum(1)", "y = trace(x @ w)"])
def test_names_without_sizes_are_told_how_to_get_them(gradcli: CommandLine, program: str) -> None:
    assert "sizes are given by --shape x=2,3" in gradcli("derive", program).err
    assert "--shape" not in gradcli("derive", program, "x=2", "w=3").err


def test_a_graph_that_the_program_freed_has_formulas(gradcli: CommandLine) -> None:
    program = "h = x.exp()\na = h.sin().sum()\nb = h.cos().sum()\ntorch.autograd.grad(a, x)"
    shown = gradcli("derive", program, "x=[1,2]")
    assert "grad_x = -h * sin(h)" in shown.out
    assert "the program freed the graph of b" in shown.err
    assert "ExpBackward0" in gradcli("explain", program, "x=[1,2]").out


def test_classes_that_are_computed(gradcli: CommandLine) -> None:
    shown = gradcli("derive", "loss = F.cross_entropy(x[None], x.argmax()[None])", "x=[0.5, 2, -1]")
    assert (shown.code, "grad_x = " in shown.out) == (0, True), shown.err
