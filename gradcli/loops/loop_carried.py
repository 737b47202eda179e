"""Which names of a loop may hold another value in every iteration, from scopes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import bound_names, target_names
from gradcli.language.tree.syntax import Statement


class LoopPlan(NamedTuple):
    """What the syntax of a loop tells of its iterations.

    Attributes:
        leaves: whether the program may look at what an iteration left that is not the last one:
            where it does not always run to its end, or nobody knows which one is the last.
        anew: the names that every iteration binds anew before it may end, so that nobody looks at
            what an iteration before left in them.
    """

    targets: frozenset[str]
    bound: frozenset[str]
    tested: frozenset[str]
    leaves: bool
    anew: frozenset[str]


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
    bound, anew = frozenset(bound_names(loop.body)), frozenset(_bound_anew(loop.body))
    return LoopPlan(targets, bound, tested, leaves, anew)


def _bound_anew(body: Sequence[Statement]) -> Iterator[str]:
    for node in body:
        if any(isinstance(each, _ENDS) for each in tree.nodes_of(node)):
            return
        if isinstance(node, tree.Assign):
            for target in node.targets:
                yield from target_names(target)


_ENDS = (tree.Break, tree.Continue, tree.Raise, tree.Return, tree.Try)
