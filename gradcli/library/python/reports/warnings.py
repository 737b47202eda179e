"""The module `warnings`: what a program warns of, and what it makes of the warnings of others."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from gradcli.errors import GradcliError
from gradcli.language.events import Reported
from gradcli.language.objects.exceptions import handles
from gradcli.language.objects.repr import display, text
from gradcli.language.objects.types import EXCEPTIONS, LanguageType, by_name, type_name, type_of
from gradcli.library.python.text import compile
from gradcli.record import Record
from gradcli.state import active


class Warnings(Record):
    """What a session makes of warnings.

    Attributes:
        caught: the warnings that the innermost `catch_warnings(record=True)` keeps, None outside.
        filters: each with its action, a pattern of the text and the class, the last one first.
        seen: those that were shown.
    """

    filters: list[tuple[str, Any, Any]]
    seen: set[tuple[str, str]]
    caught: list[Any] | None = None

    def handle(self, error: GradcliError) -> bool:
        """Raise, keep or hide a warning as the filters say; whether that was all."""
        words = text(error)
        action = next(
            (
                action
                for action, pattern, classes in self.filters
                if handles(classes, error) and (pattern is None or pattern.match(words))
            ),
            "",
        )
        if action == "error":
            raise error
        if action == "ignore":
            return True
        if self.caught is not None:
            self.caught.append(WarningMessage(error, type_of(error)))
            return True
        return action != "always" and (type_name(error), words) in self.seen

    def takes(self, category: str, words: str) -> bool:
        """Whether a warning of ours went where the program wants it."""
        return self.handle(EXCEPTIONS[category](words))


class CatchWarnings:
    """`warnings.catch_warnings(record=True)`."""

    __slots__ = ("action", "before", "category", "record")

    language_name: ClassVar[str] = "warnings.catch_warnings"
    language_context: ClassVar[bool] = True

    def __init__(
        self, *, record: Any = False, action: Any = None, category: Any = None, **named: Any
    ) -> None:
        self.record = bool(record)
        self.action = action
        self.category = category
        self.before: Warnings | None = None

    def __enter__(self) -> list[Any] | None:
        self.before = outer = _warnings()
        active.state.library["warnings"] = inner = Warnings(list(outer.filters), set())
        inner.caught = [] if self.record else outer.caught
        if self.action is not None:
            simplefilter(self.action, self.category)
        return inner.caught if self.record else None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        active.state.library["warnings"] = self.before


class WarningMessage:
    """A warning that was caught."""

    __slots__ = ("category", "filename", "line", "lineno", "message")

    language_name: ClassVar[str] = "warnings.WarningMessage"
    language_str: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset(__slots__)

    def __init__(self, message: Any, category: Any) -> None:
        place = active.state.place
        self.message = message
        self.category = category
        self.filename = "" if place is None else place.source.name
        self.lineno = 0 if place is None else place.source.position(place.start)[0]
        self.line = None

    def __str__(self) -> str:
        return (
            f"{{message : {display(self.message)}, category : {self.category.name!r}, filename :"
            f" {self.filename!r}, lineno : {self.lineno}, line : None}}"
        )


def _warnings() -> Warnings:
    warnings: Warnings = active.state.library.setdefault("warnings", Warnings([], set()))
    return warnings


def warn(message: Any, category: Any = None, stacklevel: int = 1, source: Any = None) -> None:
    """`warnings.warn(message)`: on standard error, once for each text."""
    if isinstance(message, GradcliError):
        error: Any = message
    else:
        kind = category if isinstance(category, LanguageType) else EXCEPTIONS["UserWarning"]
        error = kind(message)
    kept = _warnings()
    if not kept.handle(error):
        name, words = type_name(error), text(error)
        kept.seen.add((name, words))
        active.state.emit(Reported(f"{name}: {words}\n"))


def filterwarnings(
    action: str, message: str = "", category: Any = None, *rest: Any, **named: Any
) -> None:
    """`warnings.filterwarnings(action)`: ignore, error, always, default."""
    pattern = compile(message, re.IGNORECASE) if message else None
    kind = EXCEPTIONS["Warning"] if category is None else category
    _warnings().filters.insert(0, (action, pattern, kind))


def simplefilter(action: str, category: Any = None, *rest: Any, **named: Any) -> None:
    """`warnings.simplefilter(action)`."""
    filterwarnings(action, "", category)


def resetwarnings() -> None:
    """`warnings.resetwarnings()`."""
    _warnings().filters.clear()


WARNINGS: dict[str, Any] = {
    "catch_warnings": CatchWarnings,
    **by_name(filterwarnings, resetwarnings, simplefilter, warn),
}
"""What `warnings` holds."""
