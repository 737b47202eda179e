"""Functions of higher families for the families below them, each imported at its first call.

A family imports only those below it, and few are imported at the start. A rule, or a function that
a lower room calls, may need a function of a family above. It takes that from here, as
derivatives.yaml names a function without regard to its file. Where a rule is specialised for
arrays, a `Ref` is replaced by what it names, as an entry is by its forward function.

`refs.pyi` imports each from its family, for mypy.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


class Ref:
    """A function or an entry of a family above; called like what it names.

    Attributes:
        family: its module in `gradcli.ops`.
        name: its name there.
    """

    __slots__ = ("_function", "family", "name")

    def __init__(self, family: str, name: str) -> None:
        self.family = family
        self.name = name
        self._function: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (self._function or self.resolved())(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Ref({self.family!r}, {self.name!r})"

    def resolved(self) -> Callable[..., Any]:
        """The function or entry that it names, whose family is imported."""
        if self._function is None:
            module = import_module(f"gradcli.ops.{self.family}")
            self._function = getattr(module, self.name)
        return self._function


_NAMES = {
    "creation.copies": "to",
    "elementwise.comparison": "logical_and where",
    "elementwise.complex": (
        "imag imaginary_part real real_part set_imag set_real view_as_complex view_as_real"
    ),
    "elementwise.unary": "exp",
    "indexing.strided": "strided",
    "reduction.sum": "sum_dims",
    "shape.reshaping": "conjugate_transpose matrix_adjoint matrix_transpose reversed_dims",
    "shape.joining": "unbind",
}
"""For each family, a module in `gradcli.ops`, the names that stand there."""

globals().update(
    (name, Ref(family, name)) for family, names in _NAMES.items() for name in names.split()
)
