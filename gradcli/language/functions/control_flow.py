"""How a statement ends the block around it: normally, by `break`, `continue` or `return`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Variables

Run = Callable[[Variables], Any]
"""A compiled statement. It returns None, or how it ends the block around it: `BREAK`, `CONTINUE`,
or `(value,)` for `return value`.
"""

BREAK = object()
CONTINUE = object()

_NOTHING: frozenset[str] = frozenset()
_LOOP = frozenset({"loop"})
_RETURN = frozenset({"return"})


def control_flow(body: Sequence[tree.Statement]) -> frozenset[str]:
    """How statements may end the block around them: `return`; `loop` for `break` and `continue`."""
    found = _NOTHING
    for statement in body:
        if isinstance(statement, tree.Return):
            found |= _RETURN
        elif isinstance(statement, (tree.Break, tree.Continue)):
            found |= _LOOP
        elif isinstance(statement, (tree.For, tree.While)):
            found |= (control_flow(statement.body) - _LOOP) | control_flow(statement.orelse)
        elif isinstance(statement, tree.If):
            for _, branch in statement.branches:
                found |= control_flow(branch)
            found |= control_flow(statement.orelse)
        elif isinstance(statement, tree.With):
            found |= control_flow(statement.body)
        elif isinstance(statement, tree.Match):
            for case in statement.cases:
                found |= control_flow(case.body)
        elif isinstance(statement, tree.Try):
            found |= (
                control_flow(statement.body)
                | control_flow(statement.orelse)
                | control_flow(statement.final)
            )
            for handler in statement.handlers:
                found |= control_flow(handler.body)
    return found
