"""Checks what the grammar cannot: statements out of place, and trees that are too deep."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.errors import GradcliError
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import blocks_of

# The interpreter works on a tree by recursion; this many levels are far from Python's own limit.
DEPTH_LIMIT = 400

# The keywords of statements that cannot stand everywhere.
PLACED = frozenset({"return", "break", "continue", "nonlocal", "import"})


def check_placement(
    statements: list[tree.Statement],
    in_function: bool = False,
    in_loop: bool = False,
    in_class: bool = False,
) -> None:
    """Passes statements that stand where they may; the first that does not is an E006."""
    for statement in statements:
        if isinstance(statement, tree.Return):
            if not in_function:
                raise GradcliError("E006", "`return` outside a function", span=statement.span)
        elif isinstance(statement, (tree.Break, tree.Continue)):
            if not in_loop:
                word = statement.span.text
                raise GradcliError("E006", f"`{word}` outside a loop", span=statement.span)
        elif isinstance(statement, tree.Global):
            if statement.keyword == "nonlocal" and not in_function:
                raise GradcliError("E006", "`nonlocal` outside a function", span=statement.span)
        elif isinstance(statement, tree.FromImport):
            if (in_function or in_class) and statement.names[0][0] == "*":
                inside = "class" if in_class else "function"
                raise GradcliError("E006", f"`import *` inside a {inside}", span=statement.span)
        elif isinstance(statement, tree.Def):
            check_placement(statement.body, in_function=True)
        elif isinstance(statement, tree.Class):
            check_placement(statement.body, in_class=True)
        elif isinstance(statement, (tree.For, tree.While)):
            check_placement(statement.body, in_function, in_loop=True)
            check_placement(statement.orelse, in_function, in_loop)
        else:
            for body in blocks_of(statement):
                check_placement(body, in_function, in_loop)


def check_depth(trees: Sequence[tree.Syntax]) -> None:
    """Passes trees of at most `DEPTH_LIMIT` levels; a deeper one is an E005."""
    level: list[tree.Syntax] = list(trees)
    for _ in range(DEPTH_LIMIT):
        level = [part for node in level for part in _parts(node)]
        if not level:
            return
    raise GradcliError(
        "E005",
        f"expressions more than {DEPTH_LIMIT} levels inside one another",
        span=level[0].span,
        help="give the inner part a name on a line of its own",
    )


def _parts(node: tree.Syntax) -> list[tree.Syntax]:
    """The trees right below a tree."""
    parts: list[tree.Syntax] = []
    for name in node.fields:
        waiting = [getattr(node, name)]
        while waiting:
            value = waiting.pop()
            if isinstance(value, tree.Syntax):
                parts.append(value)
            elif isinstance(value, (list, tuple)):
                waiting.extend(value)
    return parts
