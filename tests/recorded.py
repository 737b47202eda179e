"""Programs whose output was recorded from PyTorch, for tests that are tables.

Before each program stand a few names: `s`, `v`, `m` and `b` are leaves of 0 to 3 dimensions;
`graph(x)` writes down the nodes behind a tensor, leaves as `leaf`.
"""

from __future__ import annotations

from tests.exactness import Printed
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
