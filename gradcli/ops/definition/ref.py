"""Names of what stands in a family above: `real_part = ref("real_part")`.

A family imports those below it. A rule, or what the engine calls, may need a function of a family
above; it names that one, which is looked up when it is first called, as derivatives.yaml does.
Where rules are read with arrays, a `Ref` is replaced by what it names, as an entry is by its
forward function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_named: dict[str, Callable[..., Any]] = {}
"""What families give to those below them, by name."""


def named(name: str, function: Callable[..., Any]) -> None:
    """Let families below call a function, or an entry, by a name. Raises TypeError for a name that
    is taken.
    """
    if name in _named:
        raise TypeError(f"{name}: there is a function of this name already")
    _named[name] = function


class Ref:
    """A function or an entry of a family above; called as what it names is.

    Attributes:
        name: under which the family above gives it.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _named[self.name](*args, **kwargs)

    def __repr__(self) -> str:
        return f"ref({self.name!r})"

    def resolved(self) -> Callable[..., Any]:
        """What it names. Raises KeyError while no family that is loaded gives that."""
        return _named[self.name]


def ref(name: str) -> Any:
    """A function or an entry of a family above, by its name."""
    return Ref(name)
