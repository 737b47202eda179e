"""The operands of a failed operation: labelled with text, shape and dtype, and how they could fit.

To add a case, add a row: the last line of a program, the labels, and a part of the help or "".
"""

from __future__ import annotations

import pytest

from gradcli.language.compiler.operand_labels import Operand, broadcast_note, shape_fix
from tests.running import run

VALUES = """\
a = randn(2, 3)
b = randn(4, 3)
v = randn(2)
i = tensor([1, 2])
n = None
"""


@pytest.mark.parametrize(
    ("line", "labels", "help"),
    [
        ("(a @ b).sum()", {"a": "(2, 3) float32", "b": "(4, 3) float32"}, "`b.T`"),
        ("y = a + v", {"a": "(2, 3) float32", "v": "(2,) float32"}, "`v[:, None]`"),
        ("a * (v * 2)", {"a": "(2, 3) float32", "v * 2": "(2,) float32"}, "`(v * 2)[:, None]`"),
        ("a - 1 + b", {"a - 1": "(2, 3) float32", "b": "(4, 3) float32"}, ""),
        ("torch.cat([a, b.T])", {"a": "(2, 3) float32", "b.T": "(3, 4) float32"}, ""),
        ("cat([a, b], dim=1)", {"a": "(2, 3) float32", "b": "(4, 3) float32"}, "`dim=0`"),
        ("F.linear(a, b.T)", {"a": "(2, 3) float32", "b.T": "(3, 4) float32"}, "`b.T.T`"),
        ("a.matmul(b)", {"a": "(2, 3) float32", "b": "(4, 3) float32"}, "`b.T`"),
        ("a.add(b, alpha=2)", {"a": "(2, 3) float32", "b": "(4, 3) float32"}, ""),
        ("a += b", {"a": "(2, 3) float32", "b": "(4, 3) float32"}, ""),
        ("v @ i", {"v": "(2,) float32", "i": "(2,) int64"}, "cast"),
        ("a[v]", {"a": "(2, 3) float32", "v": "(2,) float32"}, "`.long()`"),
        ("a.sum(dim=5)", {"a": "(2, 3) float32"}, ""),
        ("n * 2", {"n": "None"}, ""),
        ("'a' - i", {"i": "(2,) int64"}, ""),
        ("len(n)", {"n": "None"}, ""),
    ],
)
def test_labels(line: str, labels: dict[str, str], help: str) -> None:
    error = run(f"{VALUES}{line}\n").error
    assert error is not None
    found = {label.span.text: label.text.partition(" is ")[2] for label in error.labels}
    assert found == labels
    assert help in (error.help or "")


def test_errors_further_in_keep_their_labels() -> None:
    """An operation whose operand failed is not what failed."""
    error = run(f"{VALUES}def f(x): return x @ b\ny = v + f(a)\n").error
    assert error is not None
    assert [label.span.text for label in error.labels] == ["x", "b"]
    assert [name for name, _ in error.stack] == ["f"]


def test_handled_errors_leave_nothing() -> None:
    outcome = run(f"{VALUES}try: a @ b\nexcept RuntimeError as e: print('caught')\n")
    assert (outcome.stdout, outcome.error) == ("caught\n", None)


@pytest.mark.parametrize(
    ("first", "second", "symbol", "fits"),
    [
        ((2, 3), (4, 3), "@", "`b.T`"),
        ((3, 2), (3, 4), "@", "`a.T`"),
        ((3,), (4, 3), "@", "`b.T`"),
        ((2, 3), (3, 2), "*", "`b.T`"),
        ((2, 3), (2,), "*", "`b[:, None]`"),
        ((4,), (3,), "*", "`a[:, None]`"),
        ((2, 3), (5, 7), "*", None),
        ((2, 3), (5, 7), "@", None),
    ],
)
def test_mends(
    first: tuple[int, ...], second: tuple[int, ...], symbol: str, fits: str | None
) -> None:
    found = shape_fix(Operand("a", first), Operand("b", second), symbol)
    assert (found is None) if fits is None else (found is not None and fits in found)


def test_the_dimension_that_differs() -> None:
    note = broadcast_note(Operand("a", (5, 2, 3)), Operand("b", (4, 3)))
    assert note is not None
    assert "dimension -2 is 2 in one and 4 in the other" in note
    assert broadcast_note(Operand("a", (5, 1, 3)), Operand("b", (4, 3))) is None
