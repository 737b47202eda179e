"""`NAME=VALUE`: the words as arguments, and the values of their texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gradcli.errors import GradcliError, Label, Source, Span
from gradcli.language.parser.parser import parse_expression
from gradcli.language.tree import syntax
from gradcli.session import Session

if TYPE_CHECKING:
    from gradcli.limits import Limits


class Argument:
    """One word `NAME=VALUE` or `NAME:const=VALUE` of the command line.

    Attributes:
        constant: whether the value keeps Python's own type and takes no part in gradients.
        source: the whole word, which diagnostics point into.
        offset: where the value starts in it.
        held: the value where it is given as such, or what its file held when it was read, and None
            before that: a file is read once for all runs, and standard input cannot be read twice.
        plain: whether the arrays in what is held are plain numbers without a dtype.
        since: the line of the program from which on it holds, where a session got it later.
        passes: how many assignments of the program keep their values before it replaces one.
        assumed: whether the command chose the value of a name that has none.
    """

    __slots__ = (
        "assumed",
        "constant",
        "held",
        "name",
        "offset",
        "passes",
        "plain",
        "since",
        "source",
    )

    def __init__(self, name: str, constant: bool, word: str, offset: int) -> None:
        self.name = name
        self.constant = constant
        self.source = Source(f"argument {name}=…", word)
        self.offset = offset
        self.held: Any = None
        self.plain = False
        self.since = 1
        self.passes = 0
        self.assumed = False

    @property
    def text(self) -> str:
        """The text of the value."""
        return self.source.text[self.offset :]

    @property
    def file(self) -> str:
        """What it names as a file, "" if its value is none."""
        return self.text[1:] if self.text.startswith("@") else ""

    @property
    def span(self) -> Span:
        """The span of the value, or of the whole word where the value is empty."""
        return Span(self.source, self.offset if self.text else 0, len(self.source.text))

    def wrong(self, message: str, help: str | None = None, code: str = "E501") -> GradcliError:
        """An error about the whole value."""
        return GradcliError(code, message, span=self.span, help=help)


def read_argument(word: str) -> Argument | None:
    """A word as an argument, None if it is none."""
    name, equals, _ = word.partition("=")
    name, colon, kind = name.partition(":")
    if not equals or not name.isidentifier() or (colon and kind != "const"):
        return None
    return Argument(name, bool(colon), word, word.index("=") + 1)


def hold_files(arguments: Iterable[Argument], limits: Limits, *, stdin_only: bool = True) -> None:
    """Read the argument that standard input holds, or all that files hold, for all runs; raises as
    `value_of`.
    """
    for argument in arguments:
        if argument.file and argument.held is None:
            from gradcli.arrays.files.reading import (  # lazy: start-up: few values are in files
                reads_stdin,
            )

            if not stdin_only or reads_stdin(argument.file):
                with Session(limits=limits).running(argument.span):
                    argument.held, argument.plain = in_file(argument.file)


def in_file(text: str) -> tuple[Any, bool]:
    """What `[FORMAT:]FILE[:KEY]` stands for, and whether its arrays are plain numbers."""
    from gradcli.arrays.files.data_file import DataFile  # lazy: start-up: few values are in files
    from gradcli.arrays.files.reading import is_text, read_one  # lazy: start-up: likewise

    file = DataFile.named(text)
    return read_one(file), is_text(file)


def evaluate(argument: Argument, session: Session) -> Any:
    """The value of an argument's text as an expression; raises E501 with a span inside it."""
    if not argument.text.strip():
        raise argument.wrong(
            f"`{argument.name}` has no value", f"write one behind `=`: {argument.source.text}2"
        )
    source = Source(argument.source.name, argument.text)
    try:
        return session.evaluate(source)
    except GradcliError as error:
        if error.code == "E901":
            raise
        uneven = uneven_row(source)
        if error.code == "E204" and uneven is not None:
            error.span = uneven
        raise moved_into_word(error, source, argument) from error


def moved_into_word(error: GradcliError, source: Source, argument: Argument) -> GradcliError:
    """An error in the text of a value as one in the whole word."""

    def shifted(span: Span) -> Span:
        if span.source is not source:
            return span
        shift = argument.offset
        return Span(argument.source, span.start + shift, max(span.end, span.start + 1) + shift)

    return GradcliError(
        "E501",
        error.message,
        span=argument.span if error.span is None else shifted(error.span),
        help=error.help,
        notes=error.notes,
        labels=tuple(Label(shifted(label.span), label.text) for label in error.labels),
    )


def uneven_row(source: Source) -> Span | None:
    """The span of the first row of nested lists that differs in length from the rows before."""

    def walk(tree: syntax.Expression) -> tuple[tuple[int, ...], Span | None]:
        if not isinstance(tree, (syntax.List, syntax.Tuple)):
            return (), None
        shape: tuple[int, ...] | None = None
        for element in tree.elements:
            sizes, uneven = walk(element)
            if uneven is not None:
                return (), uneven
            if shape is not None and sizes != shape:
                return (), element.span
            shape = sizes
        return (len(tree.elements), *(shape or ())), None

    try:
        return walk(parse_expression(source))[1]
    except GradcliError:
        return None
