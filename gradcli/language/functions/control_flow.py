"""How a statement ends the block around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.language import tree
from gradcli.language.tree.scopes import Variables

Run = Callable[[Variables], Any]
"""A compiled statement: gives None, or a signal: `BREAK`, `CONTINUE`, or `(value,)` for `return
value`.
"""

BREAK = object()
CONTINUE = object()

_NOTHING: frozenset[str] = frozenset()
_LOOP = frozenset({"loop"})
_RETURN = frozenset({"return"})


def signals(body: Sequence[tree.Statement]) -> frozenset[str]:
    """What the statements may signal: `return`, `loop` for `break` and `continue`."""
    found = _NOTHING
    for statement in body:
        if isinstance(statement, tree.Return):
            found |= _RETURN
        elif isinstance(statement, (tree.Break, tree.Continue)):
            found |= _LOOP
        elif isinstance(statement, (tree.For, tree.While)):
            found |= (signals(statement.body) - _LOOP) | signals(statement.orelse)
        elif isinstance(statement, tree.If):
            for _, branch in statement.branches:
                found |= signals(branch)
            found |= signals(statement.orelse)
        elif isinstance(statement, tree.With):
            found |= signals(statement.body)
        elif isinstance(statement, tree.Try):
            found |= signals(statement.body) | signals(statement.orelse) | signals(statement.final)
            for handler in statement.handlers:
                found |= signals(handler.body)
    return found
