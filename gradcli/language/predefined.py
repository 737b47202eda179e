"""What the compiler asks of the library above it: the names that a program finds, its modules."""

from __future__ import annotations

from typing import Any, Protocol

from gradcli.errors import GradcliError, Span
from gradcli.language.objects.attributes import Module


class Predefined(Protocol):
    """The library, as `gradcli/library/namespace.py` has it; the session hands it on.

    Attributes:
        BUILTINS: the built-in functions and classes by their names.
        INSTEAD: for modules that stay outside of the language, what to write in their place.
    """

    BUILTINS: dict[str, Any]
    INSTEAD: dict[str, str]

    def table_of(self, name: str) -> dict[str, Any] | None:
        """The table that defines a name which the program does not assign; None for no such."""

    def unknown_name(self, name: str, values: dict[str, Any], span: Span) -> GradcliError:
        """The error of an undefined name, with the one that was likely meant."""
        raise NotImplementedError

    def module(self, name: str) -> Module:
        """A module by its dotted name; raises E103 for one that the language does not have."""
        raise NotImplementedError

    def imported(self, found: Module, name: str) -> Any:
        """What `from module import name` binds; raises E103 for what there is not."""
