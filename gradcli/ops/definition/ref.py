"""Late-bound references to ops of higher families: `real_part = ref("real_part")`.

A family imports only those below it. A rule, or a function that the engine calls, may need a
function of a family above. It refers to that one by name, as derivatives.yaml does, and the name is
looked up at the first call. Where a rule is specialised for arrays, a `Ref` is replaced by what it
names, as an entry is by its forward function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_named: dict[str, Callable[..., Any]] = {}
"""The functions that families provide to those below them, by name."""


def named(name: str, function: Callable[..., Any]) -> None:
    """Provide a function, or an entry, to families below under a name. Raises TypeError for a name
    that is taken.
    """
    if name in _named:
        raise TypeError(f"{name}: there is a function of this name already")
    _named[name] = function


class Ref:
    """A function or an entry of a family above; called like what it names.

    Attributes:
        name: the name under which the family above provides it.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _named[self.name](*args, **kwargs)

    def __repr__(self) -> str:
        return f"ref({self.name!r})"

    def resolved(self) -> Callable[..., Any]:
        """The function or entry that it names. Raises KeyError while no loaded family provides
        one.
        """
        return _named[self.name]


def ref(name: str) -> Any:
    """A function or an entry of a family above, by its name."""
    return Ref(name)
