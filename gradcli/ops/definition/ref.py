"""Late-bound references to functions of higher families: `ref("elementwise.complex.real_part")`.

A family imports only those below it, and few are imported at the start. A rule, or a function that
a lower room calls, may need a function of a family above. It refers to that one by its place, as
derivatives.yaml does by name, and the family is imported at the first call. Where a rule is
specialised for arrays, a `Ref` is replaced by what it names, as an entry is by its forward
function.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


class Ref:
    """A function or an entry of a family above; called like what it names.

    Attributes:
        path: the module in `gradcli.ops` and the name in it.
    """

    __slots__ = ("_function", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._function: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (self._function or self.resolved())(*args, **kwargs)

    def __repr__(self) -> str:
        return f"ref({self.path!r})"

    def resolved(self) -> Callable[..., Any]:
        """The function or entry that it names, whose family is imported."""
        if self._function is None:
            family, _, name = self.path.rpartition(".")
            self._function = getattr(import_module(f"gradcli.ops.{family}"), name)
        return self._function


def ref(path: str) -> Any:
    """A function or an entry of a family above, by its module and its name there."""
    return Ref(path)
