"""Says why a statement could not be read and, where there is one, gives a fix.

Imported only when the parser met a token that no rule accepts.
It recognises syntax of other languages and common typing errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gradcli.errors import GradcliError, Label, Source, Span
from gradcli.language.parser.lexer import (
    BAD_KINDS,
    BRACKET_LIMIT,
    CLOSERS,
    INDENTATION_LIMIT,
    KEYWORDS,
    STRINGS,
    Lexer,
)

# --- structure ------------------------------------------------------------------------------------


# The kinds of token that an expression may end with, and those that begin one and nothing else.
EXPRESSION_ENDS = frozenset(
    {"NAME", "NUMBER", "STRING", "FSTRING_END", "True", "False", "None", "...", ")", "]", "}"}
)
EXPRESSION_STARTS = frozenset(
    {"NAME", "NUMBER", "STRING", "FSTRING_START", "True", "False", "None", "...", "lambda", "not"}
)

# Tokens that begin a line.
LINE_STARTS = ("_NEWLINE", "_INDENT", "_DEDENT", "MISALIGNED")


class Location:
    """The tokens of the statement, the index of the one that does not fit, and what would fit.

    `line` is the index of the first token on the logical line, `open` holds the indices of the
    brackets that are open.
    """

    def __init__(self, source: Source, tokens: Lexer, at: int, expected: set[str]) -> None:
        self.source = source
        self.tokens = tokens
        self.at = at
        self.expected = expected
        self.kinds = tokens.kinds
        self.kind = tokens.kinds[at]
        self.text = tokens.texts[at]
        self.line = self.line_start(at)
        self.open: list[int] = []
        for number in range(at):
            kind = self.kinds[number]
            if kind in CLOSERS:
                self.open.append(number)
            elif self.open and kind == CLOSERS[self.kinds[self.open[-1]]]:
                self.open.pop()

    def line_start(self, at: int) -> int:
        """The first token of the logical line that the token at `at` stands on."""
        while at and self.kinds[at - 1] not in LINE_STARTS:
            at -= 1
        return at

    def first(self) -> str:
        """The first word of the line, or nothing if the reading stopped there."""
        return self.tokens.texts[self.line] if self.line < self.at else ""

    def before(self, count: int = 1) -> str:
        """The kind of the token `count` tokens earlier on the line, or nothing."""
        at = self.at - count
        return self.kinds[at] if at >= self.line else ""

    def touches(self) -> bool:
        """Whether no blank stands between the token and the one before it."""
        return self.at > 0 and self.tokens.ends[self.at - 1] == self.tokens.starts[self.at]

    def at_line_end(self) -> bool:
        """Whether nothing more stands on the line."""
        return self.kind in ("_NEWLINE", "_DEDENT", "$END")

    def span(self, first: int, last: int | None = None) -> Span:
        """The stretch from one token to another, or of one token."""
        end = self.tokens.ends[first if last is None else last]
        return Span(self.source, self.tokens.starts[first], end)

    def here(self) -> Span:
        """The stretch of the token that does not fit."""
        return self.span(self.at)

    def gap(self) -> Span:
        """The empty stretch right behind the token before."""
        end = self.tokens.ends[self.at - 1] if self.at else self.tokens.starts[0]
        return Span(self.source, end, end)

    def shown(self, at: int) -> str:
        """A token as a message quotes it."""
        return f"`{shorten(self.tokens.texts[at])}`"


def shorten(text: str) -> str:
    """A text as a message quotes it: to the end of its line, and not too long."""
    longest = 40
    for at, character in enumerate(text[: longest + 1]):
        if at == longest or not character.isprintable():
            return f"{text[:at]}…"
    return text


def invalid(message: str, span: Span, help: str | None = None) -> GradcliError:
    """The error for text that is no statement."""
    return GradcliError("E001", message, span=span, help=help)


# What the clauses of compound statements go on from.
OWNERS = {
    "elif": "`if`",
    "else": "`if`, `for`, `while` or `try`",
    "except": "`try`",
    "finally": "`try`",
}

# Words that stand in no expression: after a bracket, they show that it was never closed.
STATEMENT_WORDS = frozenset(
    {
        "def", "class", "return", "import", "from", "raise", "assert", "del", "pass", "global",
        "nonlocal", "while", "with", "try", "break", "continue", "elif", "except", "finally",
    }
)  # fmt: skip

AUGMENTED = frozenset(
    {"+=", "-=", "*=", "/=", "//=", "%=", "@=", "**=", "&=", "|=", "^=", "<<=", ">>="}
)


def block(location: Location) -> GradcliError | None:
    """A block that is missing, or a line that is indented without reason."""
    if location.kind == "_INDENT":
        return GradcliError("E004", "unexpected indentation", span=location.here())
    if "_INDENT" in location.expected:
        last = location.at - 1
        while location.kinds[last] != ":":
            last -= 1
        first = location.line_start(last)
        message = f"expected an indented block after {location.shown(first)}"
        return GradcliError("E004", message, span=location.span(first, last))
    if {"except", "finally"} <= location.expected:
        message = "expected `except` or `finally` after the block of `try`"
        return invalid(message, location.span(block_start(location, "try")))
    if "@" in location.expected and "def" in location.expected and "NAME" not in location.expected:
        message = "expected `def` or `class` after a decorator"
        return invalid(message, location.span(block_start(location, "@")))
    if location.kind in OWNERS and location.at == location.line:
        return invalid(f"`{location.kind}` belongs to no {OWNERS[location.kind]}", location.here())
    return None


def block_start(location: Location, word: str) -> int:
    """The last token `word` before the location, at the indentation of the location."""
    depth = 0
    at = location.at - 1
    while at and not (location.kinds[at] == word and depth == 0):
        depth += (location.kinds[at] == "_DEDENT") - (location.kinds[at] == "_INDENT")
        at -= 1
    return at


def bracket(location: Location) -> GradcliError | None:
    """A bracket that closes nothing, closes another one, or is never closed."""
    kind = location.kind
    opening = location.open[-1] if location.open else -1
    if kind in CLOSERS.values():
        if not location.open:
            in_string = (
                "FSTRING_START" in location.kinds[location.line : location.at] and kind == "}"
            )
            fix = "for a brace that stands for itself write `}}`" if in_string else None
            return invalid(f"`{kind}` closes nothing", location.here(), fix)
        if CLOSERS[location.kinds[opening]] != kind:
            return GradcliError(
                "E001",
                f"`{kind}` does not close `{location.kinds[opening]}`",
                span=location.here(),
                labels=(Label(location.span(opening), "opened here"),),
            )
    elif location.open and (assigns(location) or never_closed(location, opening)):
        message = f"`{location.kinds[opening]}` is never closed"
        return GradcliError("E003", message, span=location.span(opening))
    return None


def assigns(location: Location) -> bool:
    """Whether the token makes an assignment of what its line begins with."""
    if location.kind != "=" and location.kind not in AUGMENTED:
        return False
    ends, starts = location.tokens.ends, location.tokens.starts
    return "\n" in location.source.text[ends[location.at - 2] : starts[location.at - 1]]


def never_closed(location: Location, opening: int) -> bool:
    """Whether the text ends, a statement begins or another bracket closes before this one does."""
    waiting: list[str] = []
    for at in range(opening, len(location.kinds)):
        kind = location.kinds[at]
        if kind in CLOSERS:
            waiting.append(CLOSERS[kind])
        elif kind in STATEMENT_WORDS:
            return True
        elif kind in CLOSERS.values():
            if waiting.pop() != kind:
                return "\n" in location.span(opening, at).text
            if not waiting:
                return False
    return True


def missing_word(location: Location) -> GradcliError | None:
    """A header without its colon, a conditional without `else`, a starred value on its own."""
    first = location.first()
    if ":" in location.expected and first in KEYWORDS and not location.open and first != "lambda":
        if location.at_line_end():
            fix = f"write `{shorten(location.span(location.line, location.at - 1).text)}:`"
            return invalid(f"expected `:` to end the `{first}` line", location.gap(), fix)
        if location.kind in EXPRESSION_STARTS:
            return invalid(f"expected `:` to end the `{first}` line", location.gap())
    if "else" in location.expected and "or" in location.expected:
        message = f"expected `else` after {location.shown(location.at - 1)}"
        return invalid(message, location.gap(), "a conditional has two values: `a if test else b`")
    if location.at_line_end() or location.kind == "=":
        at = location.at - 1
        while at > location.line and location.kinds[at] != "*":
            at -= 1
        if location.kinds[at] == "*" and (
            at == location.line or location.kinds[at - 1] in ("=", "return")
        ):
            message = "a starred value stands only beside others, or in brackets"
            return invalid(message, location.span(at, location.at - 1))
    return None


def missing_expression(location: Location) -> GradcliError | None:
    """An operator, bracket or word that lacks what must follow it."""
    if "NAME" not in location.expected:
        return None
    what = "an expression" if "NUMBER" in location.expected else "a name"
    if location.at == location.line:
        return invalid(f"expected {what}", location.here()) if location.at_line_end() else None
    message = f"expected {what} after {location.shown(location.at - 1)}"
    if location.at_line_end():
        return invalid(message, location.span(location.at - 1))
    return invalid(f"{message}, found {location.shown(location.at)}", location.here())


def unexpected(location: Location) -> GradcliError:
    """A token that does not fit, with no better word for it."""
    after = f" after {location.shown(location.at - 1)}" if location.at > location.line else ""
    fixed = sorted(kind for kind in location.expected if kind in ("(", "=", "in", "import", "def"))
    if fixed and (len(location.expected) == 1 or fixed == ["import"]):
        message = f"expected `{fixed[0]}`{after}"
        return invalid(message, location.gap() if location.at_line_end() else location.here())
    if location.at_line_end():
        return invalid(f"the line ends too early{after}", location.gap())
    fix = None
    if location.before() in EXPRESSION_ENDS and location.kind in EXPRESSION_STARTS:
        fix = "an operator or a comma may be missing between them"
    return invalid(f"unexpected {location.shown(location.at)}{after}", location.here(), fix)


# --- syntax of other languages ------------------------------------------------------------------


# Operators of other languages, as the two tokens that they are split into.
FOREIGN_OPERATORS = {
    ("&", "&"): "and",
    ("|", "|"): "or",
    ("==", "="): "==",
    ("!=", "="): "!=",
    ("<", ">"): "!=",
    ("=", "<"): "<=",
    ("=", ">"): ">=",
}


def foreign_syntax(location: Location) -> GradcliError | None:
    """Syntax of another language, or a common typing error, with its fix."""
    for check in (foreign_operator, number_and_more, foreign_statement, equals, keyword_as_name):
        error = check(location)
        if error is not None:
            return error
    return None


def foreign_operator(location: Location) -> GradcliError | None:
    """`a && b`, `x++` and their like."""
    at = location.at
    fix = FOREIGN_OPERATORS.get((location.before(), location.kind))
    if fix is not None and location.touches():
        span = location.span(at - 1, at)
        return invalid(f"`{span.text}` is no operator", span, f"use `{fix}`")
    sign = location.before()
    if (
        sign in ("+", "-")
        and location.before(2) == sign
        and location.before(3) in ("NAME", "]")
        and location.kind not in EXPRESSION_STARTS
    ):
        span = location.span(at - 2, at - 1)
        target = shorten(location.span(location.line, at - 3).text)
        return invalid(f"`{span.text}` is no operator", span, f"write `{target} {sign}= 1`")
    return None


def number_and_more(location: Location) -> GradcliError | None:
    """`2x`, `1.2.3`, `1_`: a number with letters or a second number right behind it; `x.1`."""
    if (
        location.kind == "NUMBER"
        and location.text[0] == "."
        and location.before() in ("NAME", ")", "]")
    ):
        index = shorten(location.text[1:])
        return invalid("expected a name after `.`", location.here(), f"an element is `[{index}]`")
    if (
        location.before() != "NUMBER"
        or location.kind not in ("NAME", "NUMBER")
        or not location.touches()
    ):
        return None
    span = location.span(location.at - 1, location.at)
    number, rest = location.tokens.texts[location.at - 1], location.text
    product = (
        location.kind == "NAME" and rest[0] != "_" and rest not in ("e", "E") and number != "0"
    )
    return invalid(
        f"`{shorten(span.text)}` is neither a number nor a name",
        span,
        f"write `{shorten(number)} * {shorten(rest)}`" if product else None,
    )


def foreign_statement(location: Location) -> GradcliError | None:
    """`else if`, `elsif`, `print x`, braces around a block."""
    at, kind, first = location.at, location.kind, location.first()
    if kind == "if" and location.before() == "else":
        return invalid("`else if` is no statement", location.span(at - 1, at), "write `elif`")
    if first in ("elseif", "elsif") and at == location.line + 1:
        return invalid(f"`{first}` is no statement", location.span(location.line), "write `elif`")
    if first == "print" and at == location.line + 1 and kind in EXPRESSION_STARTS:
        end = at
        while location.kinds[end + 1] not in ("_NEWLINE", ";"):
            end += 1
        return invalid(
            "`print` is a function",
            location.span(location.line, end),
            f"write `print({shorten(location.span(at, end).text)})`",
        )
    if kind == "{" and ":" in location.expected and not location.open:
        return invalid(
            f"expected `:` to end the `{first}` line",
            location.here(),
            "a block is the indented lines after `:`, without braces",
        )
    if kind in ("else", "elif", "except", "finally") and location.line < at:
        return invalid(
            f"unexpected `{kind}`", location.here(), f"`{kind}` begins a line of its own"
        )
    return None


def equals(location: Location) -> GradcliError | None:
    """`=` and `:=` where they do not stand."""
    if location.kind == ":=":
        return invalid(
            "`:=` stands only inside an expression",
            location.here(),
            "use `=`, or put parentheses around it",
        )
    if location.kind != "=":
        return None
    if location.before() in KEYWORDS and location.at == location.line + 1:
        return invalid(
            f"`{location.first()}` is a word of the language and cannot be a name",
            location.span(location.line),
        )
    header = location.kinds[location.line]
    opening = location.open[-1] if location.open else 0
    call = location.open and location.kinds[opening] == "(" and opening > location.line
    if call and location.kinds[opening - 1] in ("NAME", ")", "]") and header != "def":
        message = "a keyword argument is `name=value`"
        return invalid(message, location.here(), "use `==` to compare")
    if location.open or header in ("if", "elif", "while", "assert", "return"):
        message = "`=` does not stand in an expression"
        return invalid(message, location.here(), "use `==` to compare")
    return None


def keyword_as_name(location: Location) -> GradcliError | None:
    """`x.lambda`, `def if():`, `in = 3`."""
    named = location.before() in (".", "def", "class", "as", "import", "for", "global")
    assigned = location.at == location.line and location.kinds[
        location.at + 1 : location.at + 2
    ] == ["="]
    if location.text in KEYWORDS and (named or assigned):
        message = f"`{location.text}` is a word of the language and cannot be a name"
        return invalid(message, location.here())
    return None


# --- explanations -------------------------------------------------------------------------------


# Characters that word processors, formulas and other languages bring along, and what to write.
_CHARACTERS = {
    '"': "“”„«»",
    "'": "‘’",
    "-": "−–—",
    "*": "×·⋅∗",
    "/": "÷",
    "<=": "≤",
    ">=": "≥",
    "!=": "≠",
    "**2": "²",
    "**3": "³",
    "...": "…",
    ",": "，",
    ":": "：",
    "(": "（",
    ")": "）",
    " ": "\u00a0",
}
REPLACEMENTS = {each: ours for ours, others in _CHARACTERS.items() for each in others}

# Characters that begin something in other languages, and what stands for it here.
HABITS = {
    "!": "use `not`",
    "?": "a conditional is `a if test else b`",
}


def unreadable(location: Location) -> GradcliError | None:
    """A character or string that is no token."""
    kind, text, span = location.kind, location.text, location.here()
    if kind not in BAD_KINDS:
        return None
    if kind == "CHARACTER":
        return unexpected_character(location)
    if kind == "UNCLOSED":
        return unclosed_string(location)
    if kind == "TOO_DEEP" and text in CLOSERS:
        return GradcliError("E005", f"more than {BRACKET_LIMIT} brackets are open", span=span)
    if kind == "TOO_DEEP":
        message = f"more than {INDENTATION_LIMIT} blocks inside one another"
        return GradcliError("E005", message, raises="IndentationError", span=span)
    if kind == "MISALIGNED" and "\t" in text:
        return GradcliError(
            "E004",
            "tabs and blanks are mixed in the indentation",
            raises="TabError",
            span=span,
            help="indent with blanks only",
        )
    if kind == "MISALIGNED":
        return GradcliError("E004", "the line is indented as no open block is", span=span)
    return invalid("the text ends after a `\\`", Span(span.source, span.start, span.start + 1))


def unexpected_character(location: Location) -> GradcliError:
    """A character that begins no token."""
    # A word comes here whole: the first character that no name may hold is to blame, or else the
    # one that no name may begin with.
    offset, character = next(
        (
            (offset, character)
            for offset, character in enumerate(location.text)
            if not f"_{character}".isidentifier()
        ),
        (0, location.text[0]),
    )
    start = location.tokens.starts[location.at] + offset
    span = Span(location.source, start, start + 1)
    if character == "\\":
        return GradcliError("E002", "a `\\` joins lines only at the very end of one", span=span)
    shown = f"`{character}`" if character.isprintable() else f"U+{ord(character):04X}"
    fix = REPLACEMENTS.get(character)
    help = HABITS.get(character) if fix is None else f"write `{fix}`"
    return GradcliError("E002", f"unexpected character {shown}", span=span, help=help)


def unclosed_string(location: Location) -> GradcliError:
    """A string or an f-string without an end."""
    kinds = location.kinds[: location.at]
    if kinds.count("FSTRING_START") > kinds.count("FSTRING_END"):
        at = max(at for at, kind in enumerate(kinds) if kind == "FSTRING_START")
        if location.open and location.open[-1] > at:
            return GradcliError(
                "E003",
                f"`{kinds[location.open[-1]]}` in the f-string is never closed",
                span=location.span(location.open[-1]),
                help="for a brace that stands for itself write `{{`",
            )
        return GradcliError("E003", "the f-string is never closed", span=location.span(at))
    start = location.tokens.starts[location.at]
    quotes = Span(location.source, start, start + (3 if location.text.startswith(STRINGS) else 1))
    return GradcliError("E003", "the string is never closed", span=quotes)


def outside_language(location: Location) -> GradcliError | None:
    """Python that the language leaves out."""
    first = location.first() == "type" and location.at == location.line + 1
    if not first or location.kind not in EXPRESSION_STARTS:
        return None
    return GradcliError(
        "E007",
        "the `type` statement is outside the language",
        raises="SyntaxError",
        span=location.span(location.line),
        help="write the assignment alone: `A = int`",
    )


# Asked in turn, the surest first.
CHECKS: tuple[Callable[[Location], GradcliError | None], ...] = (
    unreadable,
    outside_language,
    block,
    bracket,
    foreign_syntax,
    missing_word,
    missing_expression,
)

# A line that, at the left margin, very likely begins a statement.
STATEMENT_START = (
    r"(?m)^(?:@|(?:if|for|while|with|try|def|class|return|import|from|raise|assert|del|pass|global"
    r"|nonlocal)\b|[^\W\d][\w.]*[ \t]*(?:=(?!=)|(?:[-+*/@%&|^]|//|\*\*|<<|>>)=|\())"
)


def explain(source: Source, tokens: Lexer, at: int, expected: set[str]) -> GradcliError:
    """The error of a statement whose token at `at` no rule accepts; `expected` would have fit."""
    location = Location(source, tokens, at, expected)
    for check in CHECKS:
        error = check(location)
        if error is not None:
            return error
    return unexpected(location)


def recover(tokens: Lexer, error: GradcliError) -> int:
    """Have the lexer go on at the next statement; returns how much it will read twice."""
    span = error.span
    if error.code != "E003" or span is None or span.text not in CLOSERS:
        return 0
    match = re.compile(STATEMENT_START).search(tokens.text, span.end, tokens.position)
    if match is None:
        return 0
    again = tokens.position - match.start()
    tokens.position = match.start()
    return again
