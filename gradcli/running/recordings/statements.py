"""What the program of a recording may consist of: a recording comes from a stranger, and what the
recorder writes is a small part of the language, in which no file is named.
"""

from __future__ import annotations

from gradcli.errors import GradcliError
from gradcli.language.tree import syntax as tree
from gradcli.running.recordings.operations import OPERATIONS

_NODES = (
    tree.Argument,
    tree.Assign,
    tree.Attribute,
    tree.AugmentedAssign,
    tree.Binary,
    tree.Call,
    tree.Class,
    tree.Comparison,
    tree.Constant,
    tree.Dict,
    tree.ExpressionStatement,
    tree.List,
    tree.Name,
    tree.Pass,
    tree.Slice,
    tree.Subscript,
    tree.Tuple,
    tree.Unary,
    tree.With,
)

_NAMES = frozenset(
    {"F", "checkpoint", "math", "nn", "opaque", "recorded", "recorded_hook", "recorded_step"}
    | {"torch", *OPERATIONS}
)

_FILES = frozenset({"hub", "load", "save", "serialization"})
"""Attributes of torch that lead to files."""


def check_statement(statement: tree.Statement, known: set[str]) -> None:
    """Raise E504 for a statement that no recorder writes.

    Args:
        known: the names that the program has assigned so far; those of the statement are added.
    """
    for node in tree.nodes_of(statement):
        named = node.name if isinstance(node, (tree.Attribute, tree.Name)) else ""
        if (
            not isinstance(node, _NODES)
            or (isinstance(node, tree.Attribute) and named in _FILES)
            or named.startswith("__")
        ):
            raise _foreign(statement)
    read, assigned = _names(statement)
    if not read <= known | _NAMES or assigned & _NAMES:
        raise _foreign(statement)
    known |= assigned


def _names(statement: tree.Statement) -> tuple[set[str], set[str]]:
    """The names that a statement reads, and those that it assigns."""
    if isinstance(statement, tree.Class):
        read = {each.name for each in tree.nodes_of(statement.bases) if isinstance(each, tree.Name)}
        return read, {statement.name}
    inner = statement.body if isinstance(statement, tree.With) else [statement]
    assigned: set[str] = set()
    for each in inner:
        for target in each.targets if isinstance(each, tree.Assign) else ():
            parts = target.elements if isinstance(target, tree.Tuple) else [target]
            assigned |= {part.name for part in parts if isinstance(part, tree.Name)}
    read = {each.name for each in tree.nodes_of(statement) if isinstance(each, tree.Name)}
    return read - assigned, assigned


def _foreign(statement: tree.Statement) -> GradcliError:
    return GradcliError(
        "E504",
        "no recorder writes such a statement",
        span=statement.span,
        help="the recording is damaged, or made by something else than `gradcli record`",
    )
