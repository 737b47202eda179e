"""The parameters of the functions that a program defines."""

from __future__ import annotations

from typing import Any


class Signature:
    """The parameters of a function of the program.

    Attributes:
        qualified: the function's name with those of the classes and functions around it.
        rest: the name of `*rest`, "" for none.
        keywords: the name of `**keywords`, "" for none.
        by_position: those of the positional names that no keyword gives.
        simple: how many arguments fill it with nothing else to do, -1 if there are other than
            positional parameters.
    """

    __slots__ = (
        "by_position",
        "keyword_only",
        "keywords",
        "positional",
        "qualified",
        "rest",
        "simple",
    )

    def __init__(
        self,
        qualified: str,
        positional: tuple[str, ...],
        rest: str,
        keyword_only: tuple[str, ...],
        keywords: str,
        by_position: frozenset[str] = frozenset(),
    ) -> None:
        self.qualified = qualified
        self.positional = positional
        self.rest = rest
        self.keyword_only = keyword_only
        self.keywords = keywords
        self.by_position = by_position
        self.simple = -1 if rest or keyword_only or keywords else len(positional)

    def text(self, defaults: dict[str, Any]) -> str:
        """The parameters as they are written, with `=…` for those that have a default."""
        shown = [f"{p}=…" if p in defaults else p for p in self.positional]
        if self.rest or self.keyword_only:
            shown.append(f"*{self.rest}")
        shown += [f"{p}=…" if p in defaults else p for p in self.keyword_only]
        if self.keywords:
            shown.append(f"**{self.keywords}")
        return f"({', '.join(shown)})"
