"""Programs whose output was recorded from PyTorch, for tests that are tables.

Before each program stand a few names: `s`, `v`, `m` and `b` are leaves of 0 to 3 dimensions;
`graph(x)` writes down the nodes behind a tensor, leaves as `leaf`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.exactness import Printed
from tests.rows import each_row
from tests.running import run

SETUP = """import torch
import torch.nn.functional as F
from torch import inf, nan, tensor

s = torch.tensor(3.0, requires_grad=True)
v = torch.tensor([1.0, 2.0], requires_grad=True)
m = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
b = torch.arange(6.0).reshape(2, 1, 3).requires_grad_()


def graph(tensor):
    def shown(node):
        if node is None:
            return "None"
        if not node.next_functions:
            return "leaf"
        name = node.name().split("::")[-1]
        return name + "(" + ", ".join([shown(n) for n, _ in node.next_functions]) + ")"

    return shown(tensor.grad_fn)


"""


def printed(program: str) -> Printed:
    """What the program prints, without the last line end; it must not fail. It equals a text that
    was recorded where the contract of exactness says so.
    """
    outcome = run(SETUP + program)
    if outcome.error is not None:
        raise outcome.error
    return Printed(outcome.stdout.removesuffix("\n"), SETUP + program)


def raised(program: str) -> str | None:
    """The Python class that the program raises in PyTorch; None where it raises nothing."""
    error = run(SETUP + program).error
    return None if error is None else error.raises


# --- tests of tables, whose rows hold an expression and what was recorded; `setup` stands before it


def _each(rows: Iterable[tuple[str, Any]], found: Callable[[str], Any]) -> Any:
    @each_row(("expression", "recorded"), rows)
    def test(expression: str, recorded: Any) -> None:
        assert found(expression) == recorded

    return test


def prints(rows: Iterable[tuple[str, str]], setup: str = "") -> Any:
    return _each(rows, lambda each: printed(f"{setup}print({each})"))


def lists(rows: Iterable[tuple[str, Any]]) -> Any:
    """The tensor's numbers as a list."""
    texts = [(each, str(value)) for each, value in rows]
    return _each(texts, lambda each: printed(f"print(({each}).tolist())"))


def raises(rows: Iterable[tuple[str, str | None]], setup: str = "") -> Any:
    """The class of the error."""
    return _each(rows, lambda each: raised(setup + each))


def graphs(rows: Iterable[tuple[str, str]], setup: str = "") -> Any:
    """The nodes behind the tensor."""
    program = f"{setup}print(graph({{}}))"
    return _each(rows, lambda each: printed(program.format(each)).replace("Backward0", ""))


def graphs_and_shapes(rows: Iterable[tuple[str, str, tuple[int, ...]]]) -> Any:
    program = "y = {}\nprint(graph(y))\nprint(tuple(y.shape))"
    texts = [(each, f"{nodes}\n{shape}") for each, nodes, shape in rows]
    return _each(texts, lambda each: printed(program.format(each)))


def gradients(rows: Iterable[tuple[str, str]], setup: str) -> Any:
    """The gradient of the setup's `x`, where the expression's is 1."""
    program = "{}y = {}\ny.backward(torch.ones_like(y))\nprint(x.grad)"
    return _each(rows, lambda each: printed(program.format(setup, each)))


def saves(rows: Iterable[tuple[str, bool, bool]], setup: str) -> Any:
    """Whether a write to the operand `y`, a copy of the setup's `x`, and one to the result spoils
    the gradient: whether the node saved them.
    """
    program = "{}y = x.clone()\nz = {}\n{}.mul_(2)\nz.sum().backward()"
    errors = [
        (each, [("RuntimeError" if saved else None) for saved in both]) for each, *both in rows
    ]
    return _each(errors, lambda each: [raised(program.format(setup, each, at)) for at in "yz"])
