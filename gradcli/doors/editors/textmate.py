"""`python -m gradcli.doors.editors.textmate`: prints a TextMate grammar of the language.

It is made from the tokens of the language's lexer, in the regular expressions of Oniguruma.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from gradcli.language.parser.lexer import COMMAND, KEYWORDS, QUOTES, STRINGS, TOKEN

_VALUES = frozenset({"False", "None", "True"})
_WORDS = frozenset({"and", "in", "is", "not", "or"})
_DEFINING = frozenset({"class", "def", "lambda"})


def grammar() -> dict[str, Any]:
    """The grammar as the JSON object that editors read."""
    return {
        "name": "gradcli",
        "scopeName": "source.gradcli",
        "fileTypes": ["grad"],
        "patterns": [
            _match("meta.command.gradcli entity.name.command", rf"^(?:{_plain(COMMAND)})"),
            {"include": "#expression"},
        ],
        "repository": {
            "expression": {"patterns": _expression()},
            "field": _field(),
            "group": _GROUP,
        },
    }


def _expression() -> list[dict[str, Any]]:
    return [
        _match("comment.line.number-sign", "#.*$"),
        *_formatted(),
        *_strings(),
        _match("constant.language", _words(_VALUES)),
        _match("keyword.operator.logical", _words(_WORDS)),
        _match("storage.type", _words(_DEFINING)),
        _match("keyword.control", _words(KEYWORDS - _VALUES - _WORDS - _DEFINING)),
        _match("entity.name.function", r"[^\W\d]\w*(?=[ \t]*\()"),
        _match("variable.other", r"[^\W\d]\w*"),
        _match("constant.numeric", _plain(_group(TOKEN.pattern, 2))),
        _match("keyword.operator", _plain(_group(TOKEN.pattern, 3))),
    ]


def _strings() -> list[dict[str, Any]]:
    """Strings, those of several lines first."""
    patterns = []
    for quotes in (*STRINGS, '"', "'"):
        patterns.append(
            {
                "name": "string.quoted.gradcli",
                "begin": rf"(?:[rRuU]|[bB][rR]?|[rR][bB])?{quotes}",
                "end": quotes if len(quotes) == 3 else rf"{quotes}|$",
                "patterns": [_match("constant.character.escape", r"\\.")],
            }
        )
    return patterns


def _field() -> dict[str, Any]:
    """A field of an f-string: an expression, and a format that may hold fields."""
    return {
        "name": "meta.field.gradcli",
        "begin": r"\{(?!\{)",
        "end": r"\}",
        "patterns": [
            _match("storage.type.format", r"![ras]|:[^{}'\"]*(?=[}{])"),
            {"include": "#group"},
            {"include": "#field"},
            {"include": "#expression"},
        ],
    }


# Inside brackets a colon begins no format.
_GROUP: dict[str, Any] = {
    "begin": r"[(\[]",
    "end": r"[)\]]",
    "patterns": [{"include": "#group"}, {"include": "#expression"}],
}


def _formatted() -> list[dict[str, Any]]:
    """f-strings, with the expressions in their fields."""
    patterns = []
    for quotes in sorted(set(QUOTES.values()), key=lambda each: (-len(each), each)):
        patterns.append(
            {
                "name": "string.interpolated.gradcli",
                "begin": rf"(?:[fF][rR]?|[rR][fF]){quotes}",
                "end": quotes if len(quotes) == 3 else rf"{quotes}|$",
                "patterns": [
                    _match("constant.character.escape", r"\\.|\{\{|\}\}"),
                    {"include": "#field"},
                ],
            }
        )
    return patterns


def _match(name: str, pattern: str) -> dict[str, Any]:
    return {"name": " ".join(f"{each}.gradcli" for each in name.split()), "match": pattern}


def _words(words: frozenset[str]) -> str:
    return rf"\b(?:{'|'.join(sorted(words))})\b"


def _plain(verbose: str) -> str:
    """A pattern of Python's verbose form without its blanks; those in classes stay."""
    return re.sub(r"(\[[^\]]*\])|\s+", lambda match: match[1] or "", verbose)


def _group(pattern: str, number: int) -> str:
    """The text of a group of a pattern, by its number."""
    at, count = 0, 0
    while count < number:
        match = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\((?!\?)").search(pattern, at)
        assert match is not None
        at = match.end()
        count += match[0] == "("
    depth, end = 1, at
    while depth:
        match = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|[()]").search(pattern, end)
        assert match is not None
        end = match.end()
        depth += {"(": 1, ")": -1}.get(match[0], 0)
    return pattern[at : end - 1]


if __name__ == "__main__":
    json.dump(grammar(), sys.stdout, indent=1)
    sys.stdout.write("\n")
