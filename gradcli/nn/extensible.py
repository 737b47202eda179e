"""Objects of ours that a program's class may derive from, with attributes of its own."""

from __future__ import annotations

from typing import Any, ClassVar


class Extensible:
    """The base of optimisers, schedules and data sets.

    Attributes:
        values: the attributes that the program set.
    """

    __slots__ = ("values",)

    language_base: ClassVar[bool] = True

    values: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made = object.__new__(cls)
        # A program's class may set attributes before it calls `super().__init__()`.
        made.values = {}
        return made

    def language_names(self) -> list[str]:
        """The names of what the program set."""
        return list(self.values)

    def language_getattr(self, name: str) -> Any:
        """What the program set; raises AttributeError."""
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(name) from None

    def language_setattr(self, name: str, value: Any) -> None:
        """Set an attribute."""
        self.values[name] = value

    def language_delattr(self, name: str) -> None:
        """Take an attribute away; raises AttributeError where there is none."""
        self.language_getattr(name)
        del self.values[name]
