"""Splits a text into tokens, one top-level statement at a time.

A `Lexer` never fails: what it cannot read becomes a token of a kind in `BAD_KINDS`, which no rule
of the grammar accepts, so that the parser stops there. It keeps its state between lines, so the
lines of a stream can be fed one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from sys import intern

# fmt: off
KEYWORDS = frozenset((
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
))
# fmt: on

# Kinds of tokens that no program may hold: a character that begins no token, a string without an
# end, an opening bracket or a block nested too deeply, a line indented as no open block is, a
# backslash that ends the text.
BAD_KINDS = frozenset({"CHARACTER", "UNCLOSED", "TOO_DEEP", "MISALIGNED", "BACKSLASH"})

# Python's own limits.
BRACKET_LIMIT = 200
INDENTATION_LIMIT = 100

# The words at the start of a line that go on with the compound statement before it, and the tokens
# that begin a statement of several lines.
CONTINUATIONS = frozenset({"elif", "else", "except", "finally"})
COMPOUNDS = frozenset(
    {"if", "while", "for", "with", "try", "def", "class", "match", "async", "@", "_INDENT"}
)

CLOSERS = {"(": ")", "[": "]", "{": "}"}

# The quotes of strings of several lines.
STRINGS = ('"""', "'''")

# What stands on the stack of open brackets besides brackets: an expression that is the whole text,
# a string that goes on in the next line (as its quotes), an f-string (as its quotes after `f`, or
# `r` if it is raw), a field of one, and the format of a field.
WHOLE = "whole"
QUOTES = {f"{prefix}{quotes}": quotes for prefix in "fr" for quotes in ('"', "'", *STRINGS)}
FIELD = "field"
FORMAT = "format"


(
    NAME, NUMBER, OPERATOR, OPENING, CLOSING, NEWLINE, STRING, FORMATTED, OTHER_NAME, COMMENT,
    TRIPLE, UNCLOSED, BACKSLASH, END, CHARACTER,
) = range(1, 16)  # fmt: skip

DIGITS = r"[0-9](?:[0-9]|_[0-9])*+"

# What follows the opening quotes of a string of several lines, up to the closing ones.
LONG = {
    quote: rf"[^{quote}\\]*+(?:(?:\\.|{quote}[^{quote}\\]|{quote}\\.|{quote}{quote}[^{quote}\\]"
    rf"|{quote}{quote}\\.)[^{quote}\\]*+)*+"
    for quote in ("'", '"')
}

# One group for each of the numbers above. No repetition can be retried, so time grows with the
# length of the text alone. Before Python 3.11.5 `(?:…)*+` goes on from the place where its last
# repetition failed: each of these can fail at its start only, what cannot be so is `(?>(?:…)*)`.
TOKEN = re.compile(
    rf"""[ \t\f]*+(?>(?:\\\r?\n(?!\Z)[ \t\f]*+)*)(?:
    ([A-Za-z_][A-Za-z_0-9]*+)(?![\w'"])
  | (0[xX](?:[0-9a-fA-F]|_[0-9a-fA-F])++ | 0[bB](?:[01]|_[01])++ | 0[oO](?:[0-7]|_[0-7])++
    | (?:{DIGITS}(?:\.(?:{DIGITS})?)? | \.{DIGITS})(?:[eE][+-]?{DIGITS})?[jJ]?)
  | (\*\*=? | //=? | <<=? | >>=? | -> | := | != | \.\.\. | [-+*/%@&|^<>=]=? | [,:.;~])
  | ([(\[{{]) | ([)\]}}])
  | (\r?\n)
  | ((?:[rRuU]|[bB][rR]?|[rR][bB])?(?:
      '''{LONG["'"]}'''
    | '(?!'')[^'\\\n]*+(?:\\(?:\r\n|.)[^'\\\n]*+)*+'
    | \"""{LONG['"']}\"""
    | "(?!"")[^"\\\n]*+(?:\\(?:\r\n|.)[^"\\\n]*+)*+"))
  | ((?:[fF][rR]?|[rR][fF])(?:'''|\"""|'|"))
  | ([^\W\d]\w*+)
  | (\#[^\n]*+)
  | ('''|\""") | (['"][^\n]*+)
  | (\\(?:\r?\n)?\Z)
  | (\Z)
  | (.)
)""",
    re.VERBOSE | re.DOTALL,
)

# From the start of a line over empty lines and comments to the next line's first token.
MARGIN = re.compile(r"(?:\A\ufeff)?(?:[ \t\f\n]|\r\n|#[^\n]*+)*+(\w*)")

# A line for the session: `.vars`, or a name with question marks, `exp?`, `f??`, `?exp`.
COMMAND = (
    r"(?:\.[A-Za-z](?:[^\n]*[^\s])? | [A-Za-z_][\w.]*+[ \t]*+\?\??"
    r" | \?\??[ \t]*+[A-Za-z_][\w.]*+ ) (?=[ \t\r]*+(?:\n|\Z))"
)

# Inside a field of an f-string, outside brackets of its own, these end the expression.
FIELD_END = (
    r"[ \t\f\r\n]*+(?:(?P<DEBUG>=[ \t\f\r\n]*+(?=[:}]|!(?!=)))"
    r"|(?P<CONVERSION>!(?!=)\w*+)|(?P<FORMAT>:)|(?P<CLOSE>\}))"
)

_AFTER_A_NAME = frozenset({"=", ".", ",", ":", ":="})
"""What makes the name before it a name, and no word of a statement."""


Scan = Callable[..., int]
"""Cuts tokens in C: of a text, from a position on, into a lexer's lists; where it ends."""


class Lexer:
    """The tokens of a text, statement by statement.

    `kinds`, `texts`, `starts` and `ends` describe the tokens of the statement read last. The kind
    of a keyword, operator or bracket is its own text. `scan` cuts those that most texts are made
    of, which `TOKEN` would cut too.
    """

    __slots__ = (
        "brackets",
        "compound",
        "decorated",
        "ends",
        "first_word",
        "indents",
        "kinds",
        "position",
        "scan",
        "starts",
        "string_start",
        "text",
        "texts",
    )

    def __init__(self, text: str, scan: Scan | None = None) -> None:
        self.text = text
        self.scan = scan if text.isascii() else None
        self.position = 0
        self.first_word = ""
        self.string_start = 0
        self.begin()

    def begin(self) -> None:
        """Makes ready for a new top-level statement."""
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.indents: list[tuple[int, int]] = [(0, 0)]
        self.brackets: list[str] = []
        self.compound = self.decorated = False

    def feed(self, line: str) -> None:
        """Goes on with another line in place of the text."""
        self.text = line
        self.position = 0

    # ---- statements ----

    def statement(self) -> bool:
        """Reads the next top-level statement; False at the end of the text."""
        self.begin()
        while (margin := self.next_line()) is not None and self.belongs(margin):
            self.indent(margin)
            first = len(self.kinds)
            self.logical_line()
            if not self.may_go_on(first):
                break
        if not self.kinds:
            return False
        self.indent("")
        self.mark("$END")
        return True

    def whole(self) -> None:
        """Reads the whole text as one expression, line ends and all, as if it stood in brackets."""
        self.brackets.append(WHOLE)
        self.logical_line()
        self.mark("$END")

    def next_line(self) -> str | None:
        """Moves to the next line that holds a token; its margin, or None at the end of the text."""
        match = MARGIN.match(self.text, self.position)
        assert match is not None
        self.first_word = match[1]
        line = 1 + self.text.rfind("\n", self.position, match.start(1))
        margin = self.text[max(line, self.position) : match.start(1)]
        self.position = match.start(1)
        return None if self.position == len(self.text) else margin.removeprefix("\ufeff")

    def belongs(self, margin: str) -> bool:
        """Whether the line that was moved to belongs to the statement under way."""
        return (
            margin != ""
            or not self.kinds
            or self.decorated
            or (self.compound and self.first_word in CONTINUATIONS)
        )

    def may_go_on(self, first: int) -> bool:
        """Whether more lines may belong to the statement whose last line begins at `first`."""
        kinds = self.kinds
        self.soft_keyword(first)
        # A line that ends with a colon has a block, even where its first word is none of ours.
        self.compound = self.compound or kinds[0] in COMPOUNDS or kinds[-2:-1] == [":"]
        self.decorated = kinds[first] == "@" and len(self.indents) == 1
        return self.compound

    def soft_keyword(self, first: int) -> None:
        """Reads `match` at the start of a line that ends with a colon, and `case` at that of a line
        inside with a colon outside of brackets, as words of the language.
        """
        kinds, word = self.kinds, self.texts[first]
        if kinds[first] != "NAME" or len(kinds) < first + 4 or kinds[first + 1] in _AFTER_A_NAME:
            return
        if word == "match" and kinds[-2] == ":":
            kinds[first] = word
        elif word == "case" and "match" in kinds[:first]:
            depth = 0
            for kind in kinds[first:]:
                depth += (kind in CLOSERS) - (kind in CLOSERS.values())
                if kind == ":" and depth == 0:
                    kinds[first] = word
                    return

    def indent(self, margin: str) -> None:
        """Marks where a line with this margin opens or closes blocks."""
        if not margin and len(self.indents) == 1:
            return
        # A tab reaches to the next multiple of eight. Counting it as one column as well shows the
        # margins whose depth would depend on the width of a tab.
        blanks = margin.rpartition("\f")[2]
        depth = (len(blanks.expandtabs(8)), len(blanks))
        indents = self.indents
        dedented = False
        while depth[0] < indents[-1][0]:
            indents.pop()
            self.mark("_DEDENT")
            dedented = True
        if depth == indents[-1]:
            return
        kind = "MISALIGNED"
        if not dedented and depth[1] > indents[-1][1]:
            indents.append(depth)
            kind = "_INDENT" if len(indents) <= INDENTATION_LIMIT else "TOO_DEEP"
        self.add(kind, self.position - len(margin), self.position)

    # ---- lines ----

    def logical_line(self) -> None:
        """Reads to the end of a logical line, which the end of the text ends as well."""
        if self.line():
            return
        if self.brackets and self.brackets[-1] in STRINGS:
            self.add("UNCLOSED", self.string_start, len(self.text))
        self.mark("_NEWLINE")

    def line(self) -> bool:
        """Reads to the end of a logical line; False if the text ends before it."""
        brackets = self.brackets
        if not self.kinds and not brackets and self.command():
            return True
        while True:
            top = brackets[-1] if brackets else ""
            if top in STRINGS:
                if not self.string_end(top):
                    return False
            elif top in QUOTES or top == FORMAT:
                if not self.string_text(top):
                    return False
            elif self.scanned():
                return True
            else:
                ended = self.tokens(top == FIELD)
                if ended is not None:
                    return ended

    def command(self) -> bool:
        """Reads a line for the session, if one stands here; most programs have nothing like it."""
        text, start = self.text, self.position
        line = text[start : text.find("\n", start) + 1 or None]
        if not line.startswith(".") and "?" not in line:
            return False
        match = re.compile(COMMAND, re.VERBOSE).match(text, start)
        if match is None:
            return False
        self.add("COMMAND", *match.span())
        self.position = match.end()
        self.mark("_NEWLINE")
        return True

    def scanned(self) -> bool:
        """Read the tokens that can be cut in C; True at the line's end."""
        if self.scan is None or FIELD in self.brackets:
            return False
        lists = self.kinds, self.texts, self.starts, self.ends
        self.position = self.scan(self.text, self.position, *lists, self.brackets, KEYWORDS)
        if not self.text.startswith("\n", self.position):
            return False
        self.position += 1
        self.mark("_NEWLINE")
        return True

    def tokens(self, in_field: bool) -> bool | None:
        """Read tokens to the line's end (True) or the text's (False); None for another bracket
        mode.
        """
        brackets = self.brackets
        add_kind = self.kinds.append
        add_text = self.texts.append
        add_start = self.starts.append
        add_end = self.ends.append
        done = self.position
        for match in TOKEN.finditer(self.text, done):
            if in_field and self.field_end(done):
                return None
            group = match.lastindex or END
            word = match[group]
            done = match.end()
            start = done - len(word)
            if group == NAME:
                add_kind(word if word in KEYWORDS else "NAME")
                word = intern(word)
            elif group == OPERATOR:
                add_kind(word)
            elif group == NUMBER:
                add_kind("NUMBER")
            elif group == OPENING:
                brackets.append(word)
                in_field = False
                add_kind(word if len(brackets) <= BRACKET_LIMIT else "TOO_DEEP")
            elif group == CLOSING:
                in_field = self.close(word)
                add_kind(word)
            elif group == NEWLINE:
                if brackets:
                    continue
                self.position = done
                self.mark("_NEWLINE")
                return True
            elif group == STRING:
                add_kind("BYTES" if "b" in word[: word.index(word[-1])].lower() else "STRING")
            elif group in (FORMATTED, TRIPLE):
                self.begin_string(word, start, done)
                return None
            elif group == OTHER_NAME:
                kind, word = other_name(word)
                add_kind(kind)
                word = intern(word)
            elif group == COMMENT:
                continue
            elif group == END:
                break
            elif group == UNCLOSED:
                brackets.clear()
                in_field = False
                add_kind("UNCLOSED")
            else:
                add_kind("BACKSLASH" if group == BACKSLASH else "CHARACTER")
            add_text(word)
            add_start(start)
            add_end(done)
        self.position = len(self.text)
        return False

    def close(self, bracket: str) -> bool:
        """Read a closing bracket; returns whether an f-string's expression follows."""
        brackets = self.brackets
        if brackets and CLOSERS.get(brackets[-1]) == bracket:
            brackets.pop()
        else:
            # The statement cannot be read in any case: let it end with its line.
            brackets.clear()
        return bool(brackets) and brackets[-1] == FIELD

    # ---- strings ----

    def begin_string(self, opening: str, start: int, end: int) -> None:
        """Reads the quotes that open an f-string, or a string of several lines."""
        self.position = end
        if opening in STRINGS:
            self.brackets.append(opening)
            self.string_start = start
        else:
            raw = "r" in opening[:2].lower()
            self.brackets.append(("r" if raw else "f") + opening.lstrip("fFrR"))
            self.add("FSTRING_START", start, end)

    def field_end(self, position: int) -> bool:
        """Reads what ends the expression of an f-string's field, if it stands here."""
        match = re.compile(FIELD_END).match(self.text, position)
        if match is None:
            return False
        kind = match.lastgroup or ""
        start, self.position = match.span(kind)
        if kind == "CLOSE":
            self.brackets.pop()
            kind = "}"
        elif kind == "FORMAT":
            self.brackets.append(FORMAT)
            kind = ":"
        self.add(kind, start, self.position)
        return True

    def string_text(self, top: str) -> bool:
        """Reads an f-string, or a format, up to the next field; False if the text ends."""
        brackets = self.brackets
        text = self.text
        opening = next(entry for entry in reversed(brackets) if entry in QUOTES)
        quotes = QUOTES[opening]
        match = re.compile(text_pattern(opening, top == FORMAT)).match(text, self.position)
        assert match is not None
        start, end = match.span()
        if end > start:
            self.add("FSTRING_TEXT", start, end)
        self.position = end + 1
        if text.startswith("{", end):
            brackets.append(FIELD)
            self.add("{" if len(brackets) <= BRACKET_LIMIT else "TOO_DEEP", end, end + 1)
        elif text.startswith("}", end):
            if top == FORMAT:
                # The format and its field end together.
                del brackets[-2:]
            self.add("}", end, end + 1)
        elif text.startswith(quotes, end) and top != FORMAT:
            brackets.pop()
            self.position = end + len(quotes)
            self.add("FSTRING_END", end, self.position)
        else:
            self.position = end
            if end == len(text) and len(quotes) == 3:
                return False
            # The line ends inside the string, or the string inside a format.
            brackets.clear()
            self.add("UNCLOSED", end, end)
        return True

    def string_end(self, quotes: str) -> bool:
        """Reads on in a plain string that began on an earlier line; False if the text ends."""
        match = re.compile(LONG[quotes[0]] + quotes, re.DOTALL).match(self.text, self.position)
        if match is None:
            self.position = len(self.text)
            return False
        self.brackets.pop()
        self.add("STRING", self.position, match.end())
        self.position = match.end()
        return True

    # ---- single tokens ----

    def add(self, kind: str, start: int, end: int) -> None:
        """Appends one token."""
        self.kinds.append(kind)
        self.texts.append(self.text[start:end])
        self.starts.append(start)
        self.ends.append(end)

    def mark(self, kind: str) -> None:
        """Appends a token without text, at the end of the one before."""
        end = self.ends[-1] if self.ends else self.position
        self.add(kind, end, end)


def other_name(word: str) -> tuple[str, str]:
    """The kind and the text of a word right before a quote, or with letters beyond ASCII."""
    if word.isascii():
        return word if word in KEYWORDS else "NAME", word
    if not word.isidentifier():
        return "CHARACTER", word
    from unicodedata import normalize

    # Python, too, takes names that differ only in the form of their letters for one.
    return "NAME", normalize("NFKC", word)


def text_pattern(opening: str, format: bool) -> str:
    """The text of an f-string, or a field's format, up to the next field or the closing quotes."""
    quotes = QUOTES[opening]
    quote = quotes[0]
    line_end = r"\n" if len(quotes) == 1 else ""
    choices = [rf"[^{{}}\\{quote}{line_end}]++"]
    if opening[0] == "f":
        choices.append(r"\\N\{[^{}\n]*+\}")
    choices += [r"\\(?:\r\n|[^{}])", r"\\(?=[{}])"]
    if not format:
        choices += [r"\{\{", r"\}\}"]
    if len(quotes) == 3:
        choices.append(rf"{quote}(?!{quote}{quote})")
    return f"(?>(?s:{'|'.join(choices)})*)"
