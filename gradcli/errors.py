"""The one error tree, the codes of errors and warnings, and the spans of source text that errors
point at.

Everything that can go wrong is a `GradcliError`: a code from `CODES`, a message, a span and, where
there is one, a fix. `gradcli/cli` alone turns it into text and an exit code; `except RuntimeError`
in a program matches it by the Python class that PyTorch raises for the same mistake. The text that
`gradcli help CODE` shows stands in `gradcli/manual/codes/CODE.md`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

# --- codes ----------------------------------------------------------------------------------------


class Code:
    """What a code stands for: a title, the Python class it raises, the stage it belongs to and its
    exit code.
    """

    __slots__ = ("exit_code", "raises", "stage", "title")

    def __init__(self, title: str, raises: str, stage: str, exit_code: int = 3) -> None:
        self.title = title
        self.raises = raises
        self.stage = stage
        self.exit_code = exit_code


# One code per kind of mistake. The hundreds follow the stages: E0 text that is no program, E1
# names, E2 calls and types, E3 shapes and indices, E4 differentiation, E5 values from outside, E6
# limits, E7 what a program raises itself, E9 ours.
CODES: dict[str, Code] = {
    "E001": Code("invalid syntax", "SyntaxError", "parsing"),
    "E002": Code("unexpected character", "SyntaxError", "parsing"),
    "E003": Code("unfinished string or bracket", "SyntaxError", "parsing"),
    "E004": Code("inconsistent indentation", "IndentationError", "parsing"),
    "E005": Code("nested too deeply", "SyntaxError", "parsing"),
    "E006": Code("statement out of place", "SyntaxError", "parsing"),
    "E007": Code("outside the language", "NotImplementedError", "parsing"),
    "E101": Code("name without a value", "NameError", "evaluating"),
    "E102": Code("no such attribute", "AttributeError", "evaluating"),
    "E103": Code("module or name that cannot be imported", "ModuleNotFoundError", "evaluating"),
    "E104": Code("no such dot-command", "NameError", "evaluating", exit_code=2),
    "E105": Code("wrong arguments of a dot-command", "ValueError", "evaluating", exit_code=2),
    "E201": Code("wrong arguments", "TypeError", "evaluating"),
    "E202": Code("wrong type", "TypeError", "evaluating"),
    "E203": Code("wrong dtype", "RuntimeError", "evaluating"),
    "E204": Code("invalid value", "ValueError", "evaluating"),
    "E205": Code("outside the catalogue", "NotImplementedError", "evaluating"),
    "E206": Code("division by zero", "ZeroDivisionError", "evaluating"),
    "E207": Code("no such key", "KeyError", "evaluating"),
    "E208": Code("tensors on different devices", "RuntimeError", "evaluating"),
    "E209": Code("a value that was not expected", "SystemError", "evaluating"),
    "E301": Code("shapes do not fit", "RuntimeError", "evaluating"),
    "E302": Code("index out of range", "IndexError", "evaluating"),
    "E303": Code("cannot unpack", "ValueError", "evaluating"),
    "E401": Code("seed missing", "RuntimeError", "differentiating"),
    "E402": Code("nothing to differentiate", "RuntimeError", "differentiating"),
    "E403": Code("graph already freed", "RuntimeError", "differentiating"),
    "E404": Code("saved value was modified", "RuntimeError", "differentiating"),
    "E405": Code("in-place change refused", "RuntimeError", "evaluating"),
    "E406": Code("seed does not fit", "RuntimeError", "differentiating"),
    "E407": Code("input not in the graph", "RuntimeError", "differentiating"),
    "E408": Code("cannot require grad", "RuntimeError", "evaluating"),
    "E409": Code("no derivative", "RuntimeError", "differentiating"),
    "E410": Code("invalid gradient", "RuntimeError", "differentiating"),
    "E411": Code("nan in a backward pass", "RuntimeError", "differentiating"),
    "E412": Code("gradient check failed", "GradcheckError", "differentiating"),
    "E413": Code("no formula", "NotImplementedError", "differentiating"),
    "E501": Code("unreadable value", "ValueError", "reading", exit_code=4),
    "E502": Code("unreadable file", "OSError", "reading", exit_code=4),
    "E503": Code("unreadable program", "OSError", "reading", exit_code=2),
    "E504": Code("damaged file", "ValueError", "reading", exit_code=4),
    "E505": Code("no numbers of PyTorch's", "ValueError", "reading", exit_code=4),
    "E506": Code("no such part of a file", "KeyError", "reading", exit_code=4),
    "E507": Code("wrong record", "ValueError", "reading", exit_code=4),
    "E601": Code("too many calls", "RecursionError", "evaluating", exit_code=5),
    "E602": Code("too much work", "MemoryError", "evaluating", exit_code=5),
    "E603": Code("output file", "OSError", "evaluating", exit_code=5),
    "E604": Code("no such device", "RuntimeError", "evaluating", exit_code=5),
    "E605": Code("too many steps", "TimeoutError", "evaluating", exit_code=5),
    "E606": Code("files are out of bounds", "PermissionError", "evaluating", exit_code=5),
    "E607": Code("out of time", "TimeoutError", "evaluating", exit_code=5),
    "E608": Code("lost process", "RuntimeError", "evaluating", exit_code=5),
    "E609": Code("a package that is missing", "ImportError", "evaluating", exit_code=5),
    "E610": Code("a worker of another version", "RuntimeError", "evaluating", exit_code=5),
    "E701": Code("assertion failed", "AssertionError", "evaluating", exit_code=1),
    "E702": Code("raised by the program", "Exception", "evaluating"),
    "E703": Code("iteration ended", "StopIteration", "evaluating"),
    "E901": Code("internal error", "SystemError", "evaluating", exit_code=70),
}


def _warning(title: str, stage: str = "evaluating") -> Code:
    return Code(title, "UserWarning", stage, 0)


WARNINGS: dict[str, Code] = {
    "W001": _warning("a column and a vector make a matrix"),
    "W002": _warning("a leaf is replaced in a loop"),
    "W003": _warning("the gradient of a non-leaf is not kept"),
    "W004": _warning("target and input differ in shape"),
    "W005": _warning("a tensor is copied by torch.tensor"),
    "W006": _warning("the dimension is guessed"),
    "W007": _warning("a number leaves the graph"),
    "W008": _warning("too few elements for a variance"),
    "W009": _warning("an argument is not used", "reading"),
    "W010": _warning("an output is resized"),
    "W011": _warning("NumPy warns of a result"),
    "W012": _warning("something is not drawn"),
    "W013": _warning("an op has no batching rule"),
    "W014": _warning("anomaly detection is on"),
    "W015": _warning("a name or an order of arguments is deprecated"),
    "W016": _warning("a result is NaN, or a gradient infinite", "differentiating"),
    "W017": _warning("gradients are never cleared"),
    "W018": _warning("a sum of losses keeps their graphs"),
    "W019": _warning("an evaluation is recorded"),
    "W020": _warning("probabilities where scores are expected"),
    "W021": _warning("layers that are not registered"),
    "W022": _warning("a logarithm that rounds or overflows"),
    "W023": _warning("an optimizer that changes nothing"),
    "W024": _warning("a comparison used as a loss", "differentiating"),
    "W025": _warning("nothing is compiled"),
    "W026": _warning("a schedule steps before its optimizer"),
    "W027": _warning("a replay that differs from the run"),
    "W028": _warning("a gradient keeps its graph alive", "differentiating"),
    "W029": _warning("a layer is replaced behind its optimizer"),
    "W030": _warning("a softmax along another dimension than the classes"),
}

BY_TENSORS = frozenset({"E203", "E204", "E301", "E302", "E401", "E406", "E408"})
"""The codes whose errors the shapes and dtypes of the tensors explain."""

BY_OPERANDS = frozenset({"E202"})
"""The codes whose errors the types of all operands explain."""


# --- errors ---------------------------------------------------------------------------------------


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

    __slots__ = ("_of_rule", "end", "source", "start")

    _of_rule: RuleSpan

    def __init__(self, source: Source, start: int, end: int) -> None:
        self.source = source
        self.start = start
        self.end = end

    @property
    def of_rule(self) -> RuleSpan:
        """The same place, of what the rule of an operation there computes in a recorded pass."""
        try:
            return self._of_rule
        except AttributeError:  # most places are asked for none, and none is made
            self._of_rule = RuleSpan(self.source, self.start, self.end)
            return self._of_rule

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


class RuleSpan(Span):
    """The place of an operation, where the graph of its gradient is made."""

    __slots__ = ()


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


RECORDED = "`gradcli record SCRIPT` runs it under PyTorch as it is, and answers about that run"
"""What is left to a program that needs what the language does not have."""


def ways_out(root: str) -> str:
    """The two ways of a program that needs a module which the language does not have, or more of
    one than it has.

    Args:
        root: the module's first name.
    """
    return f"a `{root}.py` of yours beside the script is imported in its place, or {RECORDED}"


class GradcliError(Exception):
    """Any failure that gradcli reports, as data.

    `raises` names the Python class that the same program meets in PyTorch; it defaults to the
    code's own. `text` is what `str(error)` says in a program: PyTorch's text, or CPython's, where
    programs read it, else the message. `span` is filled in by the first caller that knows it.
    `stack` holds the calls that led there, outermost first, as `(function name, span of the call)`,
    `modules` the `nn.Module`s that were being called and their arguments, innermost first.
    `remarks` are the notes that the program added.
    """

    # What few errors have is their class's: a program may raise and catch many.
    span: Span | None = None
    help: str | None = None
    notes: tuple[str, ...] = ()
    labels: tuple[Label, ...] = ()
    stack: tuple[tuple[str, Span | None], ...] = ()
    modules: tuple[Any, ...] = ()
    cause: GradcliError | None = None
    context: GradcliError | None = None
    suppressed: bool = False
    remarks: list[str] | None = None

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
        self.args = (message,)
        self.code = code
        self.message = message
        self.text = message if text is None else text
        self.raises = raises or CODES[code].raises
        if span is not None:
            self.span = span
        if help is not None:
            self.help = help
        elif code == "E205" and self.raises == "NotImplementedError":
            self.help = RECORDED
        if notes:
            self.notes = notes
        if labels:
            self.labels = labels

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
    {"text", "raises", "span", "help", "notes", "labels", "stack", "cause", "context"}
    | {"remarks", "suppressed"}
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
