"""The transcript of a session: the statements that succeeded, for `.save` and for `name?`."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

from gradcli.errors import GradcliError, Source, Span
from gradcli.language.parser.parser import parse_program
from gradcli.language.tree.syntax import AugmentedAssign, Name
from gradcli.running.arguments.name_uses import ASSIGNED, BOUND, all_name_uses

if TYPE_CHECKING:
    from gradcli.language.tree.syntax import Statement

_LAST = re.compile(r"(?<!\w)_(?!\w)")
"""A use of `_`, the value shown last."""


class Transcript:
    """The statements of a session in the order in which they succeeded.

    Attributes:
        most: how many statements are kept, the oldest being forgotten first; None for all.
        lines: how many lines `program` has, nothing forgotten.
    """

    def __init__(self) -> None:
        self.failed = self.lines = 0
        self.most: int | None = None
        self._statements: deque[tuple[Span, bool]] = deque()
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._statements)

    def add(self, span: Span, is_last: bool = False) -> None:
        """Keep a statement; `is_last` if its value became `_`."""
        self._statements.append((span, is_last))
        self.lines += span.text.count("\n") + 1
        if self.most is not None and len(self._statements) > self.most:
            self._statements.popleft()
            self._forgotten += 1

    def last(self) -> Span | None:
        """The statement that was kept last."""
        return self._statements[-1][0] if self._statements else None

    def clear(self) -> None:
        """Forget everything."""
        self._statements.clear()
        self._forgotten = 0
        self.failed = self.lines = 0

    def program(self) -> str:
        """The statements as a program that leaves the same values, without relying on `_` being
        kept: an expression whose value a later statement reads as `_` is assigned to it.

        Raises E602 where some of them were forgotten.
        """
        if self._forgotten:
            raise GradcliError(
                "E602",
                f"{self._forgotten + len(self):,} statements were read as they arrived, and only"
                f" the last {len(self):,} are kept",
                help="put the program into a file, and run that",
            )
        texts = [span.text for span, _ in self._statements]
        last = None
        for number, (_, is_last) in enumerate(self._statements):
            if last is not None and _LAST.search(texts[number]):
                texts[last] = f"_ = {texts[last]}"
                last = None
            if is_last:
                last = number
        return "".join(f"{text}\n" for text in texts)

    def assignment(self, name: str) -> Span | None:
        """The statement that gave a name its value last, None if none did."""
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        for span, _ in reversed(self._statements):
            if not word.search(span.text):
                continue
            if any(_gives(each, name) for each in parse_program(Source("", span.text))):
                return span
        return None


def _gives(statement: Statement, name: str) -> bool:
    """Whether a statement gives a name a value anywhere in it."""
    if isinstance(statement, AugmentedAssign):
        return isinstance(statement.target, Name) and statement.target.name == name
    return any(
        use.name == name and use.how in (ASSIGNED, BOUND) for use in all_name_uses(statement)
    )
