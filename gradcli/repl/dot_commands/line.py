"""The line of a dot-command: its words, what they name, and what a command takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, Source, Span
from gradcli.language.hints.spelling import closest
from gradcli.language.objects.types import type_name
from gradcli.record import Record
from gradcli.running.arguments.words import Argument
from gradcli.running.report import seed_of

if TYPE_CHECKING:
    from gradcli.running.run import Run

_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"'])+|["']\S*""")

Kind = str | tuple[str, ...]
"""What an argument is: one of several words, or a `tensor`, a `topic`, a `file`, an `expression`.
"""


class Line:
    """A line for the session, as a source of its own that diagnostics point into.

    Attributes:
        words: the spans of its words; `name?` is one word.
    """

    def __init__(self, span: Span, commands: Mapping[str, DotCommand]) -> None:
        self.commands = commands
        # A command starts in the first column, so columns are those of the program's text.
        self.source = Source(span.source.name, span.text, span.line)
        if span.text.startswith("."):
            self.words = [self.span(*match.span()) for match in _WORD.finditer(span.text)]
        else:
            self.words = [self.span(0, len(span.text))]

    def span(self, start: int, end: int) -> Span:
        """A stretch of the line."""
        return Span(self.source, start, end)

    def argument(self, number: int) -> str | None:
        """The text of an argument, from 1, without quotes; None if it is not given."""
        if number >= len(self.words):
            return None
        return self.words[number].text.replace('"', "").replace("'", "")

    def choice(self, number: int) -> str | None:
        """The argument at a number, from 1, one of several words; raises E105 for another."""
        word = self.argument(number)
        command = self.commands[self.words[0].text]
        kind = command.arguments[number - 1][1]
        if word is None or word in kind:
            return word
        near = closest(word, kind)
        raise self.wrong(
            f"`{command.name}` does not take `{word}`",
            self.words[number],
            f"did you mean `{near}`?" if near else f"it is one of {', '.join(kind)}",
        )

    def tensor(self, run: Run, number: int) -> tuple[str, Tensor]:
        """The name at an argument, and its tensor; raises E101 for none, E105 for others."""
        name, value = self.value(run, number)
        if type(value) is Tensor:
            return name, value
        said = f"`{name}` is no tensor but a value of type {type_name(value)}"
        raise self.wrong(said, self.words[number])

    def value(self, run: Run, number: int) -> tuple[str, Any]:
        """The name at an argument, and its value; raises E101 where it has none."""
        name = self.argument(number) or ""
        values = run.session.values
        if name in values:
            return name, values[name]
        span = self.words[number]
        near = closest(name, [each for each, value in values.items() if type(value) is Tensor])
        help = f"did you mean `{near}`?" if near else None
        if help is None and not name.isidentifier():
            help = f"assign the expression to a name first: y = {self.rest(number).text}"
        raise GradcliError("E101", f"`{name}` has no value", span=span, help=help)

    def seed(self, run: Run, number: int, output: Tensor) -> Tensor | None:
        """The gradient to start from that the line ends with, None where it does not."""
        if len(self.words) <= number:
            return None
        argument = Argument("seed", True, self.source.text, self.rest(number).start)
        argument.source = self.source
        return seed_of(run.session, argument, output)

    @contextmanager
    def placing_errors(self, number: int) -> Iterator[None]:
        """Let an error without a place of its own point at an argument."""
        try:
            yield
        except GradcliError as error:
            error.span = error.span or self.words[number]
            raise

    def rest(self, number: int) -> Span:
        """The line from an argument on."""
        return self.span(self.words[number].start, len(self.source.text))

    def wrong(
        self, message: str, span: Span, help: str | None = None, code: str = "E105"
    ) -> GradcliError:
        """An error about a part of the line."""
        return GradcliError(code, message, span=span, help=help)


class DotCommand(Record):
    """A command of the session.

    Args:
        run: carries it out, given the run and the line.
        arguments: the words that it takes: for each the name that its usage shows, and its kind.
        kept: whether `.save` keeps the line, since it changes values.
    """

    name: str
    run: Callable[[Run, Line], None]
    summary: str
    arguments: Sequence[tuple[str, Kind]] = ()
    needed: int = 0
    kept: bool = False

    @property
    def usage(self) -> str:
        """The command as it is typed: `.trace [NAME [tree|values|next|steps]]`."""
        text, closing = self.name, ""
        for number, (shown, kind) in enumerate(self.arguments):
            word = shown if isinstance(kind, str) else "|".join(kind)
            if number >= self.needed:
                text += " ["
                closing += "]"
            else:
                text += " "
            text += word
        return text + closing

    def check(self, line: Line) -> None:
        """Raise E105 where the words of a line are too few, too many, or none that it takes."""
        count = len(line.words) - 1
        if count < self.needed:
            missing = self.arguments[count][0]
            raise line.wrong(
                f"`{self.name}` needs a {missing}", line.words[0], f"the usage is `{self.usage}`"
            )
        if self.arguments and self.arguments[-1][1] == "expression":
            count = min(count, len(self.arguments))
        if count > len(self.arguments):
            raise line.wrong(
                f"`{self.name}` takes {self._most()}",
                line.rest(len(self.arguments) + 1),
                f"the usage is `{self.usage}`",
            )

    def _most(self) -> str:
        count = len(self.arguments)
        return {0: "no argument", 1: "one argument"}.get(count, f"{count} arguments")
