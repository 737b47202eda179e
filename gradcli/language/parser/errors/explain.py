"""Says why a statement could not be read and, where there is one, gives a fix.

Imported only when the parser met a token that no rule accepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gradcli.errors import GradcliError, Source
from gradcli.language.parser.errors.foreign_syntax import foreign_syntax
from gradcli.language.parser.errors.location import Location
from gradcli.language.parser.errors.structure import (
    block,
    bracket,
    missing_expression,
    missing_word,
    unexpected,
)
from gradcli.language.parser.errors.tokens import outside_language, unreadable
from gradcli.language.parser.lexer import Lexer
from gradcli.language.parser.tokens import CLOSERS

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
