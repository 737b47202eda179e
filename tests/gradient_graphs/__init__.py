"""The graphs that gradients have when they are recorded, beside PyTorch's.

    python -m tests.gradient_graphs --oracle PYTHON             the rows whose graphs differ
    python -m tests.gradient_graphs --oracle PYTHON --show 12   one of them, both graphs
    python -m tests.gradient_graphs --oracle PYTHON --record    write recorded.jsonl anew

For each row of the gradient table (`tests/op_table/`) a program differentiates its expression with
`create_graph=True` and prints the graph of the gradients: every node's name and edges. It runs
unchanged under PyTorch; PYTHON is an interpreter that has torch. `recorded.jsonl` holds what it
printed there, so that the tests need no torch. `known_misfits.txt` names the rows that differ; it
may only shrink.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np

import tests.op_table
from tests.differential.comparing import Outcome
from tests.op_table.rows import Row

FOLDER = Path(__file__).parent
RECORDED = FOLDER / "recorded.jsonl"
KNOWN_MISFITS = FOLDER / "known_misfits.txt"

_PROGRAM = """\
import torch
import torch.nn.functional as F
from torch import nn
def tensors_of(value):
    if isinstance(value, torch.Tensor):
        return [value] if value.requires_grad else []
    return [tensor for part in value for tensor in tensors_of(part)]
{operands}
leaves = [{leaves}]
{statements}
outputs = tensors_of(result)
seeds = [torch.ones_like(output).requires_grad_() for output in outputs]
gradients = torch.autograd.grad(outputs, leaves, seeds, create_graph=True, allow_unused=True)
seen = []
def number_of(node):
    if node is None:
        return None
    for number, other in enumerate(seen):
        if other is node:
            return number
    number = len(seen)
    seen.append(node)
    if "AccumulateGrad" in node.name():
        places = [i for i, leaf in enumerate(leaves + seeds) if leaf is node.variable]
        print(number, "leaf", places)
        return number
    edges = [(number_of(following), nr) for following, nr in node.next_functions]
    print(number, node.name(), edges)
    return number
for gradient in gradients:
    if gradient is None:
        print(None)
    elif gradient.grad_fn is None:
        print("leaf", [i for i, seed in enumerate(seeds) if seed is gradient])
    else:
        print(number_of(gradient.grad_fn), gradient.output_nr)
"""


def rows() -> Iterator[Row]:
    """The rows of the gradient table."""
    for found in iter_modules(tests.op_table.__path__):
        yield from getattr(import_module(f"tests.op_table.{found.name}"), "ROWS", ())


def program(row: Row, torch_names: frozenset[str]) -> str:
    """The program that prints a row's graph; `torch_names` are those it may use plainly."""
    tree = ast.parse(row.expression)
    tree = ast.fix_missing_locations(_Qualified(torch_names).visit(tree))
    last = tree.body[-1]
    assert isinstance(last, ast.Expr)
    tree.body[-1] = ast.copy_location(
        ast.Assign([ast.Name("result", ast.Store())], last.value), last
    )
    values = row.values()
    operands = [
        f"{name} = {_literal(values[name], operand.differentiable)}"
        for name, operand in row.operands.items()
    ]
    leaves = [name for name, operand in row.operands.items() if operand.differentiable]
    return _PROGRAM.format(
        operands="\n".join(operands),
        leaves=", ".join(leaves),
        statements=ast.unparse(ast.fix_missing_locations(tree)),
    )


def _literal(value: Any, differentiable: bool) -> str:
    array = np.asarray(value)
    dtype = "float64" if array.dtype.kind == "f" else str(array.dtype)
    more = ", requires_grad=True" if differentiable else ""
    return f"torch.tensor({array.tolist()}, dtype=torch.{dtype}{more})"


class _Qualified(ast.NodeTransformer):
    """Writes `torch.` before torch's names where a row uses them plainly."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name as it is, or as an attribute of torch."""
        if isinstance(node.ctx, ast.Load) and node.id in self.names:
            return ast.Attribute(ast.Name("torch", ast.Load()), node.id, ast.Load())
        return node


def _assigned(row: Row) -> set[str]:
    """The names that a row's program does not take from torch."""
    own = {"F", "nn", "torch", "sum", *row.operands}
    return own | {
        node.id
        for node in ast.walk(ast.parse(row.expression))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def programs() -> list[tuple[str, str]]:
    """Each row's text and its program."""
    from gradcli.ops.binding.catalogue import modules

    names = frozenset(modules["torch"])
    return [(repr(row), program(row, names - _assigned(row))) for row in rows()]


def write_recorded(found: list[tuple[str, Outcome]]) -> None:
    """Write `recorded.jsonl`: a line per row."""
    lines = [
        json.dumps({"row": text, "graph": outcome.stdout, "error": outcome.error})
        for text, outcome in found
    ]
    RECORDED.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_recorded() -> dict[str, Outcome]:
    """What PyTorch printed, by the row's text."""
    entries = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    return {entry["row"]: Outcome(entry["graph"], entry["error"]) for entry in entries}


def read_misfits() -> set[str]:
    """The texts of the rows that are known to differ."""
    return set(KNOWN_MISFITS.read_text(encoding="utf-8").splitlines())
