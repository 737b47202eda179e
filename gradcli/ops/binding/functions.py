"""The functions and methods of the catalogue as attributes: `torch.matmul(x, y)`,
`methods.unsqueeze(x, 0)`.

Reading a name imports its family if that is not loaded, so code that must not load a family when it
is itself imported names the family's functions here, as does code above the catalogue.
`functions.pyi` declares each name, and mypy rejects all others.
"""

from __future__ import annotations

from typing import Any

from gradcli.ops.binding import catalogue


class _Names:
    """The names of a table as attributes. They are read in the table itself: an entry replaces its
    function there when it is first called.
    """

    def __init__(self, table: dict[str, Any]) -> None:
        self.__dict__ = table

    def __getattr__(self, name: str) -> Any:
        return self.__dict__[name]


class _Operators:
    """The binary operators under the names that Python's `operator` module has for them."""

    def __getattr__(self, name: str) -> Any:
        operator = catalogue.operators[_SYMBOLS[name]]
        setattr(self, name, operator)  # none is replaced: no entry is bound in that table
        return operator


_SYMBOLS = {
    "add": "+",
    "eq": "==",
    "getitem": "[]",
    "lt": "<",
    "mul": "*",
    "pow": "**",
    "setitem": "[]=",
    "sub": "-",
    "truediv": "/",
}

torch = _Names(catalogue.modules["torch"])
F = _Names(catalogue.modules["torch.nn.functional"])
cuda = _Names(catalogue.modules["torch.cuda"])
linalg = _Names(catalogue.modules["torch.linalg"])
special = _Names(catalogue.modules["torch.special"])
methods = _Names(catalogue.methods)
operators = _Operators()
