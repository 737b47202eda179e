"""`Ref`, a function of a higher family that is imported at its first call.

A family imports only those below it, and few are imported at the start. A rule, or a function that
a lower room calls, may need a function of a family above. It takes that from `refs`, as
derivatives.yaml names a function without regard to its file. Where a rule is specialised for
arrays, a `Ref` is replaced by what it names, as an entry is by its forward function.
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
