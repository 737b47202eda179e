"""The parameters of the functions that a program defines."""

from __future__ import annotations

from typing import Any

from gradcli.record import Record


class Signature(Record):
    """The parameters of a function of the program.

    Attributes:
        qualified: the function's name with those of the classes and functions around it.
        rest: the name of `*rest`, "" for none.
        keywords: the name of `**keywords`, "" for none.
        by_position: those of the positional names that no keyword gives.
        simple: how many arguments fill it with nothing else to do, -1 if there are other than
            positional parameters.
    """

    qualified: str
    positional: tuple[str, ...]
    rest: str
    keyword_only: tuple[str, ...]
    keywords: str
    by_position: frozenset[str]
    simple: int

    def text(self, defaults: dict[str, Any]) -> str:
        """The parameters as they are written, with `=…` for those that have a default."""
        shown = [f"{p}=…" if p in defaults else p for p in self.positional]
        if self.rest or self.keyword_only:
            shown.append(f"*{self.rest}")
        shown += [f"{p}=…" if p in defaults else p for p in self.keyword_only]
        if self.keywords:
            shown.append(f"**{self.keywords}")
        return f"({', '.join(shown)})"
