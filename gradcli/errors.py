"""The one error tree, and the spans of source text that errors point at.

Everything that can go wrong is a `GradcliError`: a code from `CODES`, a message, a span and, where
there is one, a fix. `gradcli/cli` alone turns it into text and an exit code; `except RuntimeError`
in a program matches it by the Python class that PyTorch raises for the same mistake.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from gradcli.codes import CODES


class Source:
    """A text that programs come from: a file, standard input, a shell argument or a REPL entry.

    `first_line` is the number of its first line: the statements of a stream are sources of their
    own, whose lines go on counting. `origins` has for each line, by its number, where it was
    recorded, "" for nowhere; None where no line was.
    """

    __slots__ = ("_line_starts", "first_line", "name", "origins", "text")

    def __init__(self, name: str, text: str, first_line: int = 1) -> None:
        self.name = name
        self.text = text
        self.first_line = first_line
        self.origins: Sequence[str] | None = None
        self._line_starts: list[int] | None = None

    def position(self, offset: int) -> tuple[int, int]:
        """The line and column, both from 1, of a character offset."""
        if self._line_starts is None:
            starts = [0]
            find = self.text.find
            at = find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = find("\n", at + 1)
            self._line_starts = starts
        row = bisect_right(self._line_starts, offset) - 1
        return self.first_line + row, offset - self._line_starts[row] + 1

    def line(self, number: int) -> str:
        """The text of a line by its number, without its line end."""
        self.position(0)
        assert self._line_starts is not None
        row = number - self.first_line
        end = self._line_starts[row + 1] - 1 if row + 1 < len(self._line_starts) else len(self.text)
        return self.text[self._line_starts[row] : end].rstrip("\r")


class Span:
    """A range of a source, `start` to `end` (exclusive), in characters."""

    __slots__ = ("end", "source", "start")

    def __init__(self, source: Source, start: int, end: int) -> None:
        self.source = source
        self.start = start
        self.end = end

    @property
    def line(self) -> int:
        """The line of the first character, from 1."""
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        """The column of the first character, from 1."""
        return self.source.position(self.start)[1]

    @property
    def origin(self) -> str:
        """Where its line was recorded, as `train.py:12 in forward`; "" for a line of a person's."""
        origins = self.source.origins
        # A session goes on behind the lines of a recording.
        return "" if origins is None or self.line >= len(origins) else origins[self.line]

    @property
    def text(self) -> str:
        """The source text of the range."""
        return self.source.text[self.start : self.end]


class Label:
    """A second span that a diagnostic shows, with its own text."""

    __slots__ = ("span", "text")

    def __init__(self, span: Span, text: str) -> None:
        self.span = span
        self.text = text


class Warned:
    """A warning: what is likely a mistake, its span, and a fix."""

    __slots__ = ("code", "help", "labels", "message", "span")

    def __init__(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        help: str | None = None,
        labels: tuple[Label, ...] = (),
    ) -> None:
        self.code = code
        self.message = message
        self.span = span
        self.help = help
        self.labels = labels


class GradcliError(Exception):
    """Any failure that gradcli reports, as data.

    `raises` names the Python class that the same program meets in PyTorch; it defaults to the
    code's own. `text` is what `str(error)` says in a program: PyTorch's text, or CPython's, where
    programs read it, else the message. `span` is filled in by the first caller that knows it.
    `stack` holds the calls that led there, outermost first, as `(function name, span of the call)`,
    `modules` the `nn.Module`s that were being called and their arguments, innermost first.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        text: str | None = None,
        raises: str | None = None,
        span: Span | None = None,
        help: str | None = None,
        notes: tuple[str, ...] = (),
        labels: tuple[Label, ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.text = message if text is None else text
        self.raises = raises or CODES[code].raises
        self.span = span
        self.help = help
        self.notes = notes
        self.labels = labels
        self.stack: tuple[tuple[str, Span | None], ...] = ()
        self.modules: tuple[Any, ...] = ()
        self.cause: GradcliError | None = None
        self.context: GradcliError | None = None
        self.remarks: list[str] = []

    def __reduce__(self) -> Any:
        """What another process gets: all but the modules, which live in the session."""
        kept = {
            name: value
            for name, value in vars(self).items()
            if name in _PICKLED or name == "__notes__"
        }
        return _unpickled, (self.code, self.message, kept)

    @property
    def stage(self) -> str:
        """What gradcli was doing: reading, parsing, evaluating or differentiating."""
        return CODES[self.code].stage

    @property
    def exit_code(self) -> int:
        """The exit code of a run that this error ends."""
        return CODES[self.code].exit_code


_PICKLED = frozenset(
    ("text", "raises", "span", "help", "notes", "labels", "stack", "cause", "context", "remarks")
)


def _unpickled(code: str, message: str, kept: dict[str, Any]) -> GradcliError:
    error = GradcliError(code, message)
    vars(error).update(kept)
    return error


def internal_error(failure: Exception, span: Span | None = None) -> GradcliError:
    """E901, the error of a failure in gradcli itself, which is its cause."""
    error = GradcliError(
        "E901",
        f"{type(failure).__name__}: {failure}",
        span=span,
        help="this is a bug of gradcli: please report it with the output of `gradcli info`, and"
        " whether `--no-compiled-loops` makes it go away",
    )
    error.__cause__ = failure
    return error


class SyntaxErrors(GradcliError):
    """All syntax errors of one text, at most one for each top-level statement; itself the first of
    them.
    """

    def __init__(self, errors: list[GradcliError]) -> None:
        first = errors[0]
        super().__init__(
            first.code, first.message, span=first.span, help=first.help, notes=first.notes
        )
        self.errors = errors


def runtime_error(message: str, text: str | None = None, help: str | None = None) -> GradcliError:
    """E204, an invalid value, as the RuntimeError that PyTorch's kernels raise for it."""
    return GradcliError("E204", message, text=text, help=help, raises="RuntimeError")


def assertion_error(message: str, text: str | None = None, help: str | None = None) -> GradcliError:
    """E204, an invalid value, as the AssertionError of PyTorch's own checks."""
    return GradcliError("E204", message, text=text, help=help, raises="AssertionError")


def attribute_error(message: str, text: str | None = None, help: str | None = None) -> GradcliError:
    """E202, a value of the wrong type, of which PyTorch reads an attribute that it lacks."""
    return GradcliError("E202", message, text=text, help=help, raises="AttributeError")


def type_error(
    message: str, text: str | None = None, help: str | None = None, raises: str | None = None
) -> GradcliError:
    """E202, a value of the wrong type."""
    return GradcliError("E202", message, text=text, help=help, raises=raises)


def value_error(
    message: str, text: str | None = None, help: str | None = None, raises: str | None = None
) -> GradcliError:
    """E204, an invalid value."""
    return GradcliError("E204", message, text=text, help=help, raises=raises)


def dtype_error(
    message: str, text: str | None = None, help: str | None = None, raises: str | None = None
) -> GradcliError:
    """E203, a wrong dtype."""
    return GradcliError("E203", message, text=text, help=help, raises=raises)


def shape_error(
    message: str, text: str | None = None, help: str | None = None, raises: str | None = None
) -> GradcliError:
    """E301, shapes that do not fit."""
    return GradcliError("E301", message, text=text, help=help, raises=raises)


def index_error(
    message: str, text: str | None = None, help: str | None = None, raises: str | None = None
) -> GradcliError:
    """E302, a dimension or a position that does not exist."""
    return GradcliError("E302", message, text=text, help=help, raises=raises)
