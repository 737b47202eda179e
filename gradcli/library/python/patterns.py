"""Patterns of `re` that end: one that may take time exponential in the text is refused.

The host tries a pattern by going back and trying again. Where a repeat stands inside a repeat, or
a choice inside one, the same text may be read in ever so many ways. Such a pattern is let through
only if what is inside cannot be read in two ways: a repeat inside must be followed by a character
that it does not take itself, and the choices must begin with different characters.
"""

from __future__ import annotations

import re._constants as sre  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterator
from typing import Any

from gradcli.errors import GradcliError

_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT)
_MANY = 8
"""From so many times on a repeat counts as one without end."""

_LONGEST = 2000
_TRIED = [chr(code) for code in range(128)] + ["é", "中"]


def checked_pattern(pattern: str, flags: int) -> int:
    """How many repeats without end the pattern has; raises E602 for one that may take for ever."""
    if len(pattern) > _LONGEST:
        raise GradcliError("E602", f"a pattern of more than {_LONGEST:,} characters is too long")
    tree = parser.parse(pattern, flags)
    _check(tree, False)
    return sum(1 for op, argument in _items(tree) if op in _REPEATS and argument[1] >= _MANY)


def _items(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every part of a pattern."""
    for op, argument in tree:
        yield op, argument
        for inner in _inside(op, argument):
            yield from _items(inner)


_INSIDE: dict[Any, Callable[[Any], list[Any]]] = {
    **dict.fromkeys((*_REPEATS, sre.POSSESSIVE_REPEAT), lambda argument: [argument[2]]),
    **dict.fromkeys((sre.ASSERT, sre.ASSERT_NOT), lambda argument: [argument[1]]),
    sre.ATOMIC_GROUP: lambda argument: [argument],
    sre.BRANCH: lambda argument: list(argument[1]),
    sre.GROUPREF_EXISTS: lambda argument: [part for part in argument[1:] if part is not None],
    sre.SUBPATTERN: lambda argument: [argument[3]],
}
"""The patterns inside a part, by its kind."""


def _inside(op: Any, argument: Any) -> list[Any]:
    return _INSIDE[op](argument) if op in _INSIDE else []


def _check(tree: Any, repeated: bool) -> None:
    parts = list(tree)
    for number, (op, argument) in enumerate(parts):
        many = op in _REPEATS and argument[1] >= _MANY
        if repeated and many and not _is_ended(argument[2], parts[number + 1 :]):
            raise _endless("a repeat inside a repeat")
        if repeated and op is sre.BRANCH and not _are_different(argument[1]):
            raise _endless("choices that begin alike inside a repeat")
        if repeated and op is sre.GROUPREF:
            raise _endless("a group is repeated inside a repeat")
        for inner in _inside(op, argument):
            _check(inner, repeated or many)


def _endless(what: str) -> GradcliError:
    return GradcliError(
        "E602",
        f"the pattern may take for ever: {what}",
        help="end what is repeated with a character that it does not hold: `(?:\\d+,)*`",
    )


def _is_ended(body: Any, following: list[Any]) -> bool:
    """Whether a repeat is followed by what it does not take."""
    taken = _first(list(body))
    for op, argument in following:
        ending = _first([(op, argument)])
        if taken is None or ending is None or taken & ending:
            return False
        return not (op in _REPEATS and argument[0] == 0)
    return False


def _are_different(choices: list[Any]) -> bool:
    seen: set[str] = set()
    for choice in choices:
        first = _first(list(choice))
        if not first or seen & first:
            return False
        seen |= first
    return True


def _first(parts: list[Any]) -> set[str] | None:
    """The characters that a part may begin with; None where that is not known."""
    if not parts:
        return None
    op, argument = parts[0]
    if op is sre.SUBPATTERN:
        return _first(list(argument[3]))
    if op in _REPEATS:
        return _first(list(argument[2])) if argument[0] > 0 else None
    if op is sre.BRANCH:
        signs: set[str] = set()
        for choice in argument[1]:
            first = _first(list(choice))
            if first is None:
                return None
            signs |= first
        return signs
    if op in (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY):
        return {sign for sign in _TRIED if _takes(op, argument, sign)} | (
            {chr(argument)} if op is sre.LITERAL else set()
        )
    return None


def _takes(op: Any, argument: Any, sign: str) -> bool:
    """Whether a part that is one character is this one, in either case."""
    codes = {ord(sign.lower()), ord(sign.upper()[0])}
    if op is sre.ANY:
        return True
    if op is sre.LITERAL:
        return argument in codes
    if op is sre.NOT_LITERAL:
        return argument not in codes
    if op is sre.RANGE:
        return any(argument[0] <= code <= argument[1] for code in codes)
    if op is sre.CATEGORY:
        negated = "NOT" in str(argument)
        kind = str(argument).rpartition("_")[2]
        member = {
            "DIGIT": sign.isdigit(),
            "SPACE": sign.isspace(),
            "WORD": sign.isalnum() or sign == "_",
        }.get(kind, True)
        return member != negated
    negated = bool(argument) and argument[0][0] is sre.NEGATE
    listed = argument[1:] if negated else argument
    return any(_takes(inner, value, sign) for inner, value in listed) != negated
