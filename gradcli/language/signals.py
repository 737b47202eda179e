"""How a statement ends the block around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.language import syntax
from gradcli.language.scopes import Variables

Run = Callable[[Variables], Any]
"""A compiled statement: gives None, or a signal: `BREAK`, `CONTINUE`, or `(value,)` for `return
value`.
"""

BREAK = object()
CONTINUE = object()

_NOTHING: frozenset[str] = frozenset()
_LOOP = frozenset({"loop"})
_RETURN = frozenset({"return"})


def signals(body: Sequence[syntax.Statement]) -> frozenset[str]:
    """What the statements may signal: `return`, `loop` for `break` and `continue`."""
    found = _NOTHING
    for statement in body:
        if isinstance(statement, syntax.Return):
            found |= _RETURN
        elif isinstance(statement, (syntax.Break, syntax.Continue)):
            found |= _LOOP
        elif isinstance(statement, (syntax.For, syntax.While)):
            found |= (signals(statement.body) - _LOOP) | signals(statement.orelse)
        elif isinstance(statement, syntax.If):
            for _, branch in statement.branches:
                found |= signals(branch)
            found |= signals(statement.orelse)
        elif isinstance(statement, syntax.With):
            found |= signals(statement.body)
        elif isinstance(statement, syntax.Try):
            found |= signals(statement.body) | signals(statement.orelse) | signals(statement.final)
            for handler in statement.handlers:
                found |= signals(handler.body)
    return found
