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

_LOOP = frozenset({"loop"})


def control_flow(body: Sequence[tree.Statement]) -> frozenset[str]:
    """How statements may end the block around them: `return`; `loop` for `break` and `continue`."""
    ends: frozenset[str] = frozenset()
    for statement in body:
        if isinstance(statement, tree.Return):
            ends |= {"return"}
        elif isinstance(statement, (tree.Break, tree.Continue)):
            ends |= _LOOP
        elif isinstance(statement, (tree.For, tree.While)):
            ends |= (control_flow(statement.body) - _LOOP) | control_flow(statement.orelse)
        else:
            ends = ends.union(*map(control_flow, tree.blocks_of(statement)))
    return ends
