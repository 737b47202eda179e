"""Recipes of nodes in C: what parts the node of a tree has, where that is the same for all trees of
a class, or for those that are as the recipe asks.

A handler writes its recipe down beside what it does without nodes. `native/making.c` makes them,
several times faster than a handler could, and calls the handler for a tree that no recipe fits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.language.tree import syntax as tree

Path = tuple[str | int, ...]
"""Where something stands in a tree: attributes, and indices of lists and tuples."""

Step = tuple[int, Path, Any]
"""What a part is made from, or what is asked: its kind, where it stands, what is done with it."""

_STEPS = (
    *("object", "nothing", "place", "session", "compiler's", "by", "given", "child", "inner child"),
    *("optional", "item", "get", "own name", "store", "inner store", "loop store", "block"),
    *("loop block", "the compiler", "the scope", "children", "inner children", "arguments"),
    *("deciding", "stores", "keywords", "branches"),
)
"""The kinds of steps that make parts, at the number that `making.c` has for each."""

_ASKED = (
    *("is", "is no", "has", "none is", "length", "plain", "named", "no call of", "without loop"),
    "holds",
)
"""The kinds of what is asked, likewise."""

VALUES: list[tuple[type[tree.Syntax], str, Step, tuple[Step, ...], tuple[Step, ...]]] = []
"""The recipes of expressions and statements: the class, the node's kind, its number, what is asked,
and the parts. Of those of a class, which stand side by side, the first that fits is taken.
"""

TARGETS: list[tuple[type[tree.Syntax], str, Step, tuple[Step, ...], tuple[Step, ...]]] = []
"""Those of targets."""


OF_NAMES: list[Any] = []
"""What `making.c` makes the nodes of names with, in its order."""


def recipe(
    of: type[tree.Syntax],
    kind: str,
    *parts: Step,
    number: Step = (0, (), 0),
    asks: tuple[Step, ...] = (),
    table: list[Any] = VALUES,
) -> None:
    """Let trees of a class be made into nodes of a kind, as `nodes.def` has it, of these parts."""
    table.append((of, kind, number, asks, parts))


def by_table(table: dict[Any, int], *path: str | int) -> Step:
    """The number of the node that a table has for what stands there; the recipe fits no other."""
    return 0, path, table


def known(value: Any) -> Step:
    """A part that is the same for all."""
    return _STEPS.index("object"), (), value


def nothing(count: int) -> Step:
    """Parts that the node learns."""
    return _STEPS.index("nothing"), (), count


def place_of(*path: str | int) -> Step:
    """Two parts: the session's state, and the span of what stands there."""
    return _STEPS.index("place"), (*path, "span"), None


def session() -> Step:
    """The session's state."""
    return _STEPS.index("session"), (), None


def compilers(name: str) -> Step:
    """An attribute of the compiler."""
    return _STEPS.index("compiler's"), (), name


def made_by(make: Callable[[Any, Any, Any], Any]) -> Step:
    """What a function makes of the compiler, the tree and the scope."""
    return _STEPS.index("by"), (), make


def given(*path: str | int) -> Step:
    """What stands there."""
    return _STEPS.index("given"), path, None


def child(*path: str | int) -> Step:
    """The node of the expression there."""
    return _STEPS.index("child"), path, None


def inner_child(*path: str | int) -> Step:
    """The same in the scope that the tree has inside, as for what follows with this word."""
    return _STEPS.index("inner child"), path, None


def optional(*path: str | int) -> Step:
    """The same; None for None."""
    return _STEPS.index("optional"), path, None


def item(table: dict[Any, Any], *path: str | int) -> Step:
    """What a table has for what stands there, or makes for it."""
    return _STEPS.index("item"), path, table


def get(table: dict[Any, Any], *path: str | int) -> Step:
    """The same; None for what it does not have."""
    return _STEPS.index("get"), path, table


def own_name(*path: str | int) -> Step:
    """The name that a target is; None for any other."""
    return _STEPS.index("own name"), path, None


def inner_target(*path: str | int) -> Step:
    """The node of the target there, inside."""
    return _STEPS.index("inner store"), path, None


def inner_each(*path: str | int) -> Step:
    """The nodes of the expressions of a list, inside."""
    return _STEPS.index("inner children"), path, None


def target_of(*path: str | int) -> Step:
    """The node of the target there, of an assignment."""
    return _STEPS.index("store"), path, None


def loop_target_of(*path: str | int) -> Step:
    """The same of a loop, which assigns nothing that an override would replace."""
    return _STEPS.index("loop store"), path, None


def each_of(*path: str | int) -> Step:
    """The nodes of the expressions of a list, and the texts in it."""
    return _STEPS.index("children"), path, None


def block_of(*path: str | int) -> Step:
    """The node of the statements there; None for no statement."""
    return _STEPS.index("block"), path, None


def loop_block_of(*path: str | int) -> Step:
    """The same of the body of a loop, one at least."""
    return _STEPS.index("loop block"), path, None


def the_compiler() -> Step:
    """The compiler."""
    return _STEPS.index("the compiler"), (), None


def the_scope() -> Step:
    """The scope that the tree stands in."""
    return _STEPS.index("the scope"), (), None


def branches_of(*path: str | int) -> Step:
    """The nodes of tests and of the blocks behind them, each with the place of the test between."""
    return _STEPS.index("branches"), path, None


def arguments_of(*path: str | int) -> Step:
    """The nodes of the arguments of a call, which are made first."""
    return _STEPS.index("arguments"), path, None


def words_of(*path: str | int) -> Step:
    """Three parts for each argument of a call: its name, stars, or None; its node; its place."""
    return _STEPS.index("keywords"), path, None


def operands_of(*path: str | int) -> Step:
    """The nodes of operands, each but the last with its place behind it."""
    return _STEPS.index("deciding"), path, None


def targets_of(*path: str | int) -> Step:
    """The nodes of targets."""
    return _STEPS.index("stores"), path, None


def ask(what: str, *path: str | int, of: Any = None) -> Step:
    """What is asked of what stands there."""
    return _ASKED.index(what), path, of


class Made(dict[Any, Any]):
    """A table that makes what it does not have yet."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: Any) -> Any:
        made = self[key] = self._make(key)
        return made
