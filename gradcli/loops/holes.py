"""Code that is walked, and its expressions with holes in the places of operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.language.tree.syntax import Expression
from gradcli.record import Record

HOLES = Scope(Scope(), frozenset(map(str, range(64))))
"""The scope of an expression whose operands have been found: they are called by numbers."""


def hole(node: Expression, number: int) -> tree.Hole:
    """The hole in the place of an operand."""
    return tree.Hole(node.span, str(number), node)


def numbered(values: Sequence[Any]) -> Variables:
    """What goes into the holes, by their names."""
    return {str(number): value for number, value in enumerate(values)}


class Frame(Record):
    """Code that runs: the loop's own, or that of a function or comprehension."""

    scope: Scope
    variables: Variables


class Drawn:
    """What a generator expression gave.

    Attributes:
        is_recorded: whether whoever draws from it takes the values from here, and records them.
        looks: whether whoever draws from it looks at the values, and does not only hand them on.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.is_recorded = False
        self.looks = True
