"""Writes to tensors and the life of graphs, against what PyTorch does.

`tests/writes/` holds the tables, recorded from PyTorch; a row can be added to each:

- `allowed.txt`, `views.txt`, `conjugates.txt`, `overlapping.txt`, `graph_life.txt`: programs with
  what they print. Those of `allowed.txt` write what a graph does not need: none may fail.
- `refused.txt`: programs that end in an error, with the places that it names as comments.
- `in_place_forms.txt`: every in-place form, with its graph, its values and gradients.
- `kept.txt`: expressions of the gradient table, and after `#` what their nodes keep: `result` or
  operands, which may not be written before the backward pass.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tests.op_table
from gradcli.autograd.engine.backward import backward
from gradcli.autograd.inplace.writes import overwrite
from gradcli.autograd.tensor import Tensor, alias
from gradcli.errors import GradcliError
from tests.op_table.check import differentiable
from tests.op_table.rows import Row
from tests.recorded import SETUP, printed
from tests.rows import each_row
from tests.running import Expression, run

TABLES = Path(__file__).parent / "writes"

# --- programs with their output -----------------------------------------------------------------

_ATTEMPT = """
def attempt(f):
    try:
        f()
        print("ok")
    except RuntimeError:  # NotImplementedError is one
        print("RuntimeError")
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        print(type(error).__name__)


"""


def _sections(name: str) -> list[tuple[str, str]]:
    """The title and the body of each section of a table."""
    text = (TABLES / f"{name}.txt").read_text(encoding="utf-8")
    sections = [section.partition("\n") for section in text.split("### ")[1:]]
    return [(title, body.strip()) for title, _, body in sections]


PROGRAMS = [
    (f"{name}: {title}", *body.split("\n--- prints\n"))
    for name in ("allowed", "views", "conjugates", "overlapping", "graph_life")
    for title, body in _sections(name)
]


@each_row(("title", "program", "expected"), PROGRAMS, lambda row: row[0])
def test_program(title: str, program: str, expected: str) -> None:
    assert printed(_ATTEMPT + program) == expected


# --- errors with their places -------------------------------------------------------------------

_PLACE = re.compile(r"# (saved|modified|freed|needed|refused)$")


@pytest.mark.parametrize(
    "program", [pytest.param(body, id=title) for title, body in _sections("refused")]
)
def test_error_names_its_places(program: str) -> None:
    expected = {
        found[1]: number
        for number, line in enumerate(program.split("\n"), 1)
        if (found := _PLACE.search(line))
    }
    error = run(SETUP + program).error
    assert error is not None
    assert error.span is not None
    if "refused" in expected:
        places = {"refused": error.span}
    else:
        words = [word for word in ("saved", "modified", "freed", "needed") if word in expected]
        places = {
            word: label.span for word in words for label in error.labels if word in label.text
        }
    before = SETUP.count("\n")
    assert {word: place.line - before for word, place in places.items()} == expected


# --- in-place forms -----------------------------------------------------------------------------

_OPERANDS = """w = torch.tensor([[1.5, -0.5], [2.0, 3.0]], requires_grad=True)
b2 = torch.arange(8.0).reshape(2, 2, 2).requires_grad_()
ix = torch.tensor([[0, 1], [1, 0]])
"""


def _forms() -> list[tuple[str, str]]:
    blocks = (TABLES / "in_place_forms.txt").read_text(encoding="utf-8").split("\n\n")
    return [
        (first, re.sub("^    ", "", rest.rstrip("\n"), flags=re.MULTILINE))
        for first, _, rest in (block.partition("\n") for block in blocks)
    ]


@each_row(("form", "expected"), _forms(), lambda row: row[0])
def test_in_place_form(form: str, expected: str) -> None:
    source, _, call = form.partition("; ")
    program = f"""{_OPERANDS}{source}
z = {call}
print(z is y, y._version, graph(y))
try:
    y.sum().backward()
    print(y.detach().flatten(), m.grad.flatten())
except RuntimeError:
    print("no gradient")
"""
    assert printed(program) == expected


# --- what nodes keep ----------------------------------------------------------------------------

ROWS: dict[str, Row] = {
    row.expression: row
    for module in pkgutil.iter_modules(tests.op_table.__path__)
    for row in getattr(importlib.import_module(f"tests.op_table.{module.name}"), "ROWS", ())
}


def _kept() -> list[tuple[str, str]]:
    lines = (TABLES / "kept.txt").read_text(encoding="utf-8").splitlines()
    return [
        (expression.rstrip(), kept.strip())
        for expression, kept in (line.rsplit("#", 1) for line in lines)
    ]


def _tensors(row: Row) -> dict[str, Tensor]:
    """The row's operands; those that are differentiable made by an operation, so that they may be
    written.
    """
    values = {}
    for name, array in row.values().items():
        tensor = Tensor(np.asarray(array)[()], row.operands[name].differentiable)
        values[name] = tensor * 1 if tensor.requires_grad else tensor
    return values


def _write(value: Any) -> None:
    """Write to a tensor, or to all of several, what stands there already."""
    for tensor in [value] if isinstance(value, Tensor) else value:
        if isinstance(tensor, Tensor):
            overwrite(alias(tensor), tensor.array.copy())


def _may_be_written(row: Row, name: str) -> bool:
    tensors = _tensors(row)
    result = Expression(row.expression)(**tensors)
    outputs = differentiable(result)
    _write(result if name == "result" else tensors[name])
    try:
        backward(outputs, [Tensor(np.ones_like(output.array)) for output in outputs])
    except GradcliError as error:
        if error.code != "E404":
            raise
        return False
    return True


@each_row(("expression", "kept"), _kept(), lambda row: row[0])
def test_what_a_node_keeps(expression: str, kept: str) -> None:
    row = ROWS[expression]
    names = (*row.operands, "result")
    assert " ".join([name for name in names if not _may_be_written(row, name)]) == kept
