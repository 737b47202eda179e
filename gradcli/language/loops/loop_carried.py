"""Which names of a loop may hold another value in every iteration, from scopes."""

from __future__ import annotations

from typing import NamedTuple

from gradcli.language import tree
from gradcli.language.tree.scopes import bound_names, target_names


class LoopPlan(NamedTuple):
    """What the syntax of a loop tells of its iterations.

    Attributes:
        targets: the names that the loop itself binds.
        bound: those that its body binds.
        tested: those that decide whether there is another iteration.
        leaves: whether the program may look at what an iteration left that is not the last one:
            where it does not always run to its end, or nobody knows which one is the last.
    """

    targets: frozenset[str]
    bound: frozenset[str]
    tested: frozenset[str]
    leaves: bool


def analysed(loop: tree.For | tree.While) -> LoopPlan:
    """The plan of a loop."""
    targets, tested = frozenset[str](), frozenset[str]()
    if isinstance(loop, tree.While):
        names = tree.nodes_of(loop.test)
        tested = frozenset(each.name for each in names if isinstance(each, tree.Name))
    else:
        targets = frozenset(target_names(loop.target))
    ends = (tree.If, tree.Break, tree.Return, tree.Try)
    leaves = isinstance(loop, tree.While) or any(
        isinstance(each, ends) for each in tree.nodes_of(loop.body)
    )
    return LoopPlan(targets, frozenset(bound_names(loop.body)), tested, leaves)
