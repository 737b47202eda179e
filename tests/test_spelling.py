"""What is offered for names that do not exist: misspelt, from NumPy, from other languages."""

from __future__ import annotations

import pytest

from gradcli.language.hints.spelling import ADVICE, SPELLINGS, closest
from tests.command_line import CommandLine
from tests.running import run


@pytest.mark.parametrize(
    ("program", "help"),
    [
        # Names.
        ("sigmod(x)", "`sigmoid`"),
        ("true", "`True`"),
        ("null", "`None`"),
        ("weights = 1\nwieghts", "`weights`"),
        ("Variable(x)", "needs no Variable"),
        ("cuda(x)", "`x.to('cuda')`"),
        ("import mth\nmth.sqrt(1)", "`math`"),
        ("import torch.nn.functionl as F\nF.relu(x)", "`torch.nn.functional`"),
        ("import pandas\npandas.DataFrame()", None),
        ("from torch import sigmod\nsigmod(x)", "`sigmoid`"),
        # Attributes, methods and functions of modules.
        ("torch.tensr([1.])", "`tensor`"),
        ("torch.float3", "`float32`"),
        ("np.sigmoid(x)", "`torch.sigmoid`"),
        ("np.random.randnn(3)", "`randn`"),
        ("x.Sum()", "`sum`"),
        ("x.backwards()", "`backward`"),
        ("x.expand_dims(0)", "`unsqueeze`"),
        ("x.cuad()", "`cuda`"),
        ("x.astype(float)", "`x.float()`"),
        ("x.grad.zero_()", "until a backward pass"),
        ("[1, 2].shape", "`tensor(…)`"),
        ("'a'.uper()", "`upper`"),
        ("def loss(w): return w\nloss.backward()", "call it first"),
        ("with torch.no_grad: pass", "`with torch.no_grad():`"),
        ("torch.stack(x, x)", "`stack([a, b])`"),
        ("x.foo()", None),
        # Keywords.
        ("ones(3, requires_gard=True)", "`requires_grad`"),
        ("x.sum(axes=0)", "`dim`"),
        ("x.sum(0, keep_dims=True)", "`keepdim`"),
        ("def f(rate): pass\nf(raet=1)", "`rate`"),
        # Values taken for functions, and functions for values.
        ("x.shape()", "leave the parentheses out"),
        ("x.size[0]", "call it"),
        ("x(0)", "`x[…]`"),
        ("n = 2\nn(x)", "`*`"),
        # Types.
        ("ones(3, dtype='float64')", "`torch.float64`"),
        ("x ^ 2", "`**`"),
        ("[1, 2] * 1.5", "`tensor(…)`"),
        ("'loss ' + x", "`str(x)`"),
        ("0.1 * x.grad", "until a backward pass"),
        ("math.exp(x)", "`torch.exp`"),
        ("for i in 5: pass", "`range(n)`"),
        ("f'{x:.2f}'", "a tensor of no dimension"),
    ],
)
def test_help(program: str, help: str | None) -> None:
    error = run(f"x = ones(3)\n{program}\n").error
    assert error is not None
    if help is None:
        assert error.help is None or "did you mean" not in error.help
    else:
        assert help in (error.help or "")


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("y = 2x", "`2 * x`"),
        ("y = a && b", "`and`"),
        ("y = a || b", "`or`"),
        ("y = !a", "`not`"),
        ("y = a ? b : c", "`a if test else b`"),
        ("i++", "`i += 1`"),
    ],
)
def test_foreign_syntax(text: str, help: str) -> None:
    error = run(f"{text}\n").error
    assert error is not None
    assert help in (error.help or "")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["rnu"], "`run`"),
        (["help", "langauge"], "`language`"),
        (["y = x * 2", "x=1", "--sede", "1"], "did you mean `--seed`?"),
        (["y = x * 2", "x=1", "--error-fromat", "json"], "did you mean `--error-format`?"),
        (["y = rate * 2", "rate=1", "raet=1"], "program does not use `raet`"),
        (["y = x * 2", "x=1", "--wrt", "z"], "`z`"),
    ],
)
def test_the_command_line(capsys: pytest.CaptureFixture[str], words: list[str], hint: str) -> None:
    assert hint in CommandLine(capsys)(*words).err


def test_short_names_are_not_guessed() -> None:
    assert closest("foo", ["floor", "for_each"]) is None
    assert closest("meen", ["mean", "median"]) == "mean"
    assert closest("x", ["y", "xs"]) is None


def test_tables_do_not_overlap() -> None:
    assert not set(SPELLINGS) & set(ADVICE)
    assert all(ours != other for other, ours in SPELLINGS.items())
