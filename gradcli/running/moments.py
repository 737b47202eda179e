"""When a program wrote to its leaves: a gradient belongs to the values that the last write left."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.layout.meta import MetaArray
from gradcli.autograd.tensor import Tensor, is_usable_leaf
from gradcli.language.compiler.base import Running
from gradcli.language.long_loops import LoopCompiler
from gradcli.language.tree import control_flow
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.library.torch.nn.attributes import is_initialised
from gradcli.library.torch.nn.layers.lazy import is_uninitialized
from gradcli.record import Record

if TYPE_CHECKING:
    from gradcli.running.run import Run


def tell_of_statements(interpreter: Running, ended: Callable[[int], None]) -> None:
    """Call `ended` after each statement that the interpreter runs from now on, with how many
    statements stand around it; of iterations in a row that are not recorded, once behind the last.
    """
    interpreter.statement_ended = ended
    loops = interpreter.long_loops
    if loops is None:
        interpreter.make_hot_loop = None
    else:
        loops.resumed = lambda: ended(interpreter.depth)
    interpreter.compiler = _TellingCompiler(interpreter)


class _TellingCompiler(LoopCompiler):
    """Compiles closures of statements that tell of their end."""

    __slots__ = ()

    def statement(self, node: tree.Statement, scope: Scope) -> control_flow.Run:
        run = super().statement(node, scope)
        interpreter, ended = self.interpreter, self.interpreter.statement_ended
        assert ended is not None
        loops = self.loops

        def run_and_tell(variables: Variables) -> Any:
            interpreter.depth += 1
            try:
                control = run(variables)
            finally:
                interpreter.depth -= 1
            if loops is None or not loops.paused:
                ended(interpreter.depth)
            return control

        return run_and_tell


Place = tuple[int | str, str]
"""Where a leaf stands, the same in every run: the number of its module, in the order in which they
were made, and its name there; or "" and a name of the program's.
"""


class Moment(Record):
    """The end of a statement, after which the output is computed from a leaf.

    Attributes:
        number: how many statements ended before.
        place: of the leaf then, when it may have another name.
    """

    number: int
    place: Place


Moments = Mapping[str, Moment]
"""The moments of leaves, by the names that they have in the end."""


class Writes:
    """The writes to the leaves of a run.

    Attributes:
        nodes: the number of the node made last, when each statement ended, and `depths`: how many
            statements stand around it.
        at: the statements that wrote to each leaf, by its `id`.
    """

    def __init__(self, run: Run, by_value: bool) -> None:
        self.nodes: list[int] = []
        self.depths: list[int] = []
        self.at: dict[int, list[int]] = {}
        self._run = run
        self._by_value = by_value
        self._known: dict[int, tuple[Tensor, Any]] = {}
        tell_of_statements(run.session.interpreter, self._ended)

    def _ended(self, depth: int) -> None:
        self.depths.append(depth)
        number = len(self.nodes)
        self.nodes.append(self._run.session.state.sequence_nr)
        for _, leaf in placed_leaves(self._run):
            now = np.array(to_host(leaf.array)) if self._by_value else leaf.version
            known = self._known.get(id(leaf))
            if known is not None and not np.array_equal(known[1], now, equal_nan=self._by_value):
                self.at.setdefault(id(leaf), []).append(number)
            self._known[id(leaf)] = leaf, now

    def ahead_of(self, leaf: Tensor, node: int, always: bool) -> int | None:
        """The last statement before the one that made a node, None where none wrote to a leaf,
        unless it is wanted `always`.
        """
        if id(leaf) not in self.at and not always:
            return None
        own = bisect_left(self.nodes, node)
        # The node of a custom function is made behind the statements of its forward().
        inside = self.depths[own] if own < len(self.depths) else 0
        return next((n for n in reversed(range(own)) if self.depths[n] <= inside), None)


def placed_leaves(run: Run) -> Iterator[tuple[Place, Tensor]]:
    """The leaves that require grad, parameters and those that names hold, with their places."""
    modules = run.session.state.modules
    for number, module in [] if modules is None else list(modules.items()):
        parameters = module._parameters.items() if is_initialised(module) else ()
        for name, each in parameters:
            if each is not None and _has_elements(each):
                yield (number, name), each
    for name, each in leaves(run):
        yield ("", name), each


def leaves(run: Run) -> Iterator[tuple[str, Tensor]]:
    """The leaves that names of a program hold and that require grad, those in lists too; none
    without a shape or without elements.
    """
    for name, value in run.session.state.names().items():
        held = enumerate(value) if type(value) in (list, tuple) else ()
        for called, each in [(name, value), *((f"{name}[{n}]", each) for n, each in held)]:
            is_leaf = type(each) is Tensor and is_usable_leaf(each) and each.requires_grad
            if is_leaf and _has_elements(each):
                yield called, each


def _has_elements(tensor: Tensor) -> bool:
    """Whether a tensor has a shape, and values behind it."""
    return not is_uninitialized(tensor) and not isinstance(tensor.array, MetaArray)


def at_statements(
    run: Run, numbers: Collection[int], visit: Callable[[int, dict[Place, Tensor]], None]
) -> None:
    """Let a run call `visit` with its leaves as statements of these numbers have ended."""
    count = 0

    def ended(depth: int) -> None:
        nonlocal count
        if count in numbers:
            visit(count, dict(placed_leaves(run)))
        count += 1

    tell_of_statements(run.session.interpreter, ended)


def at_moments(run: Run, moments: Moments, values: Mapping[str, Any]) -> None:
    """Let a run give leaves their values as it reaches the moments of these."""

    def give(number: int, placed: dict[Place, Tensor]) -> None:
        for name, array in values.items():
            moment = moments.get(name)
            leaf = None if moment is None else placed.get(moment.place)
            if moment is not None and moment.number == number and leaf is not None:
                leaf.array = array.astype(leaf.array.dtype)

    at_statements(run, {moments[name].number for name in values if name in moments}, give)
