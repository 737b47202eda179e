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

_GOES_ON = frozenset({tree.Assign, tree.AugmentedAssign, tree.ExpressionStatement, tree.Def})
"""The commonest statements that end no block."""


def blocks_of(node: tree.Statement) -> list[list[tree.Statement]]:
    """The blocks of a statement that belong to the function around it, in order."""
    if isinstance(node, tree.If):
        return [*[body for _, body in node.branches], node.orelse]
    if isinstance(node, (tree.For, tree.While)):
        return [node.body, node.orelse]
    if isinstance(node, tree.Match):
        return [case.body for case in node.cases]
    if isinstance(node, tree.Try):
        return [node.body, *[each.body for each in node.handlers], node.orelse, node.final]
    return [node.body] if isinstance(node, tree.With) else []


def control_flow(body: Sequence[tree.Statement]) -> frozenset[str]:
    """How statements may end the block around them: `return`; `loop` for `break` and `continue`."""
    ends = _NOTHING
    for statement in body:
        kind = type(statement)
        if kind in _GOES_ON:
            continue
        if kind is tree.Return:
            ends |= _RETURN
        elif kind is tree.Break or kind is tree.Continue:
            ends |= _LOOP
        elif isinstance(statement, (tree.For, tree.While)):
            ends |= (control_flow(statement.body) - _LOOP) | control_flow(statement.orelse)
        else:
            for block in blocks_of(statement):
                if block:
                    ends |= control_flow(block)
    return ends
