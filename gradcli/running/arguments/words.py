"""The words of a command line: which are programs, which are `NAME=VALUE`, which are mistakes.

The values of `NAME=VALUE` are read from their texts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.arrays.files.gate import is_file
from gradcli.errors import GradcliError, Label, Source, Span
from gradcli.language.hints.spelling import closest
from gradcli.language.parser.parser import parse_expression
from gradcli.language.tree import syntax
from gradcli.running.arguments.files import RECORDING, STDIN
from gradcli.running.arguments.options import TRACES, Options
from gradcli.session import Session

if TYPE_CHECKING:
    from gradcli.limits import Limits


# --- names and values -----------------------------------------------------------------------------


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
            from gradcli.arrays.files.formats import (  # lazy: start-up: few values are in files
                reads_stdin,
            )

            if not stdin_only or reads_stdin(argument.file):
                with Session(limits=limits).running(argument.span):
                    argument.held, argument.plain = in_file(argument.file)


def in_file(text: str) -> tuple[Any, bool]:
    """What `[FORMAT:]FILE[:KEY]` stands for, and whether its arrays are plain numbers."""
    from gradcli.arrays.files.data_file import DataFile  # lazy: start-up: few values are in files
    from gradcli.arrays.files.formats import is_text, read_one  # lazy: start-up: likewise

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
        error.help = _help_for(argument, error)
        raise moved_into_word(error, source, argument) from error


def _help_for(argument: Argument, error: GradcliError) -> str | None:
    """What to write for a text that is no expression: a file, or a text, was likely meant."""
    from gradcli.arrays.files.data_file import has_suffix  # lazy: start-up: few values are in files
    from gradcli.library.namespace import import_of  # lazy: start-up: for an error alone

    text = argument.text
    if error.code in ("E001", "E101", "E102") and has_suffix(text):
        return f"a file is read by `@`: {argument.name}=@{text}"
    if error.code == "E101" and (error.help is None or import_of(text) is not None):
        in_quotes = f"a text stands in quotes: {argument.name}='\"{text}\"'"
        return in_quotes if text.isidentifier() else None
    return error.help


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


# --- the words of a command line ------------------------------------------------------------------


PROGRAM = "program"
"""The hidden command that runs a program given in the words themselves."""

COMMANDS = {
    PROGRAM: "Run a program given in the words themselves.",
    "blame": "Find the first NaN or infinity, and its cure.",
    "check": "Check gradients against differences, or ones made by hand.",
    "check-doc": "Compare the outputs in a document with what its programs print.",
    "completion": "Print a script for completion in a shell.",
    "derive": "Write the gradients down as formulas of the inputs.",
    "explain": "Show the chain rule at work, edge by edge.",
    "help": "Explain a topic, an op, or the code of an error; search for other words.",
    "info": "Say what is in a recording; without one, versions and devices.",
    "kernel": "Install the kernel for notebooks in the language.",
    "lsp": "Serve editors, by the Language Server Protocol.",
    "mcp": "Serve gradcli's questions to agents, by the Model Context Protocol.",
    "ops": "List the ops by family.",
    "plot": "Draw a function of one number, its derivative and its tangents.",
    "port": "List all that gradcli would refuse in a program.",
    "record": "Record what PyTorch runs, to be asked about as a program.",
    "repl": "Work in a session: one statement after another.",
    "run": "Run program files, notebooks, Markdown; `-` is standard input.",
    "setup": "Set up shells, editors, notebooks and agents.",
    "why": "Prove why a tensor has a gradient, or has none.",
}
"""What each command does, for a list of them that imports none."""

SETUP = ("completion", "kernel", "lsp", "mcp")
"""The commands that are typed once, in a set-up: `gradcli setup NAME` runs them too."""

UNLISTED = (PROGRAM, *SETUP, "check-doc", "ops", "repl")
"""The commands that `--help` leaves out: each has another name there, as `run --check`, `help ops`
or `gradcli` alone.
"""

MEANT = {
    "draw": "gradcli 'PROGRAM' -o graph.svg",
    "eval": "gradcli 'PROGRAM'",
    "exec": "gradcli 'PROGRAM'",
    "grad": "gradcli 'PROGRAM'",
    "graph": "gradcli 'PROGRAM' --trace, or with -o graph.svg",
    "gradcheck": "gradcli check 'PROGRAM'",
    "nan": "gradcli blame 'PROGRAM'",
    "trace": "gradcli 'PROGRAM' --trace",
    "tutorial": "gradcli help tutorial",
    "version": "gradcli --version",
    "watch": "gradcli run --watch FILE",
}
"""What somebody likely means by a first word that is no command."""


class UsageError(Exception):
    """A mistake in the words of a command line, and what helps."""

    USAGE = "`gradcli --help` shows the usage"
    """What helps where nothing better does; the command line names its command there."""

    def __init__(self, message: str, help: str = USAGE) -> None:
        super().__init__(message)
        self.help = help


_MOST_NAMES = 6
"""Names that a message lists."""

_OF_PROGRAMS = " \n=()[]"
"""Characters that tell a program from the name of a file."""

SCRIPT = "--\0"
"""What marks the words behind `--` of `gradcli run`; no shell can hand it over."""


def joined(args: Sequence[str]) -> list[str]:
    """The words with `--trace` and the style behind it as one; alone it stands for the tree.

    Raises a usage error for what no shell can hand over: a zero byte, half of a surrogate pair.
    """
    for word in args:
        try:
            unusable = b"\0" in os.fsencode(word)
        except UnicodeEncodeError:
            unusable = True
        if unusable:
            raise UsageError(f"{word!r} is no text")
    if args and args[0] == "record":  # what comes behind the script is the script's
        return list(args)
    taken: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            if taken[:1] == ["run"]:  # what comes behind is the script's
                return [*taken, word, *[f"{SCRIPT}{each}" for each in words]]
            return [*taken, word, *words]
        if taken and taken[-1] == "--trace":
            taken[-1] = f"--trace={word if word in TRACES else 'tree'}"
            if word in TRACES:
                continue
        taken.append(word)
    if taken and taken[-1] == "--trace":
        taken[-1] = "--trace=tree"
    return taken


def is_plain(words: Sequence[str]) -> bool:
    """Whether the words have no option, and no command but `run`."""
    return (
        bool(words)
        and (words[0] == "run" or words[0] not in COMMANDS)
        and not any(word.startswith("-") and word != STDIN for word in words)
    )


def arguments_of(words: Sequence[str]) -> list[Argument]:
    """The words behind a program; raises a usage error for one that is no `NAME=VALUE`."""
    arguments: dict[str, Argument] = {}
    for word, behind in zip(words, [*words[1:], ""], strict=False):
        argument = read_argument(word)
        if argument is None:
            name, _, value = (part.strip() for part in word.partition("="))
            value = value or behind
            near = f"{name}={value}" if name.isidentifier() and value else ""
            if not near or "=" in value:
                example = f"such as {word}=2, {word}=[1,2] or {word}=@{word}.npy"
                parts = (example,) if word.isidentifier() else ()
                raise UsageError(f"`{word}` is no NAME=VALUE", *parts)
            raise UsageError(f"`{word}` is no NAME=VALUE", f"did you mean `{near}`?")
        if argument.name in arguments:
            raise UsageError(f"`{argument.name}` is given two values")
        arguments[argument.name] = argument
    return list(arguments.values())


def stdin_options(options: Options) -> list[str]:
    """The options that read standard input."""
    if options.inputs is None:
        return []
    from gradcli.arrays.files.formats import reads_stdin  # lazy: start-up: few values are in files

    return [f"--inputs {options.inputs}"] if reads_stdin(options.inputs) else []


def check_stdin(arguments: Sequence[Argument], others: Sequence[str]) -> None:
    """Raise a usage error where standard input is asked for twice: it can be read once."""
    files = [each for each in arguments if each.file]
    if len(files) + len(others) < 2:
        return
    from gradcli.arrays.files.formats import reads_stdin  # lazy: start-up: few values are in files

    readers = [f"`{each.source.text}`" for each in files if reads_stdin(each.file)]
    readers += others
    if len(readers) > 1:
        raise UsageError(f"{' and '.join(readers)} both read standard input")


def is_bound(name: str, words: Sequence[str]) -> bool:
    """Whether one of the words is `NAME=VALUE` or `NAME:DTYPE=VALUE` of the name."""
    return any("=" in word and word.partition("=")[0].partition(":")[0] == name for word in words)


def check_program(text: str, words: Sequence[str] = ()) -> None:
    """Raise a usage error for a first word that is likely meant as something else.

    Args:
        words: those behind it: a name that one of them binds is a program.
    """
    if text.isidentifier() and not is_bound(text, words):
        if text in COMMANDS:
            raise UsageError(f"the command comes first: gradcli {text} …")
        known = [each for each in COMMANDS if each != PROGRAM]
        is_value = words and "=" not in words[0] and not words[0].isidentifier()
        if is_value and text not in MEANT and closest(text, known) is None:
            raise UsageError(
                f"there is no command `{text}`",
                f"a value has no blank in it: gradcli 'PROGRAM' {text}={words[0]}",
            )
        if text in MEANT:
            raise UsageError(
                f"there is no command `{text}`; as a program: -e {text}", f"try {MEANT[text]}"
            )
        raise unknown("command", text, known, f"; as a program: -e {text}")
    if text == STDIN:
        raise UsageError("standard input is a file: use `gradcli run -`")
    missing = text.removesuffix(".grad")
    is_name = missing != text and missing.isidentifier()
    if is_name and not is_bound(missing, words) and not is_file(text):
        raise UsageError(f"there is no file {text}, and no value for `{missing}`")
    if is_program_file(text):
        if not is_file(text):
            raise UsageError(f"there is no file {text}")
        raise UsageError(f"{text} is a file: use `gradcli run {text}`")


def is_program_file(word: str) -> bool:
    """Whether a word in a program's place names a file that holds one, or that is missing."""
    if word == STDIN or ("\n" not in word and is_file(word)):
        return True
    is_path = word.endswith((".py", RECORDING)) or word.startswith(("/", "./", "../", "~/"))
    return is_path and not any(each in word for each in _OF_PROGRAMS)


def not_in_program(name: str, known: Sequence[str], what: str = "") -> str:
    """What is said of a name that is none of a program's, with the closest or with the first."""
    near = closest(name, known)
    ending = f"; did you mean `{near}`?" if near else ""
    if not near and known:
        more = ", …" if len(known) > _MOST_NAMES else ""
        ending = f"; there is {', '.join(f'`{each}`' for each in known[:_MOST_NAMES])}{more}"
    return f"the program has no {what}`{name}`{ending}"


def unknown(what: str, word: str, known: Sequence[str], ending: str = "") -> UsageError:
    """The usage error of a word that is none of those known, with the closest of them."""
    near = closest(word, known)
    hint = "" if near is None else f"; did you mean `{near}`?"
    return UsageError(f"there is no {what} `{word}`{hint}{ending}")
