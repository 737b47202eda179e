"""A compiled iteration: the functions that do the same as an interpreted one, and what they rely
on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.arrays.storage import InferenceStorage
from gradcli.autograd.engine.accumulate import kept
from gradcli.autograd.tensor import Tensor, meta_of, storage_of
from gradcli.language.loops.guards import Guard
from gradcli.language.loops.locations import Location
from gradcli.language.loops.lower_backward import forget_values
from gradcli.language.tree.scopes import Variables
from gradcli.limits import Steps
from gradcli.state import State
from gradcli.trace.guards import kind_of

if TYPE_CHECKING:
    from gradcli.optim.optimizer import Optimizer

Arrays = tuple[Any, ...]

Kind = tuple[Any, ...]
"""How an array lies in memory: its type, dtype, shape and strides; or the type of a number."""


class SideExit(Exception):
    """An iteration takes another path than the compiled one, which leaves nothing of itself."""


def is_new_leaf(tensor: Tensor) -> bool:
    """Whether a tensor is a leaf that no pass has reached, and nothing but its value and its name
    tell it from others.
    """
    meta = tensor.meta
    if not tensor.requires_grad or tensor.grad_fn is not None:
        return False
    return meta is None or (
        meta.grad is None
        and meta.base is None
        and not (meta.hooks or meta.accumulated_hooks or meta.is_parameter)
    )


class Input(NamedTuple):
    """What an iteration is given that may be another thing in every one.

    Attributes:
        is_leaf: whether it is a leaf, which a pass gives a gradient.
        is_detached: whether the iteration takes it out of whatever graph it has.
    """

    read: Callable[[Variables], Any]
    kind: Kind
    is_leaf: bool = False
    is_detached: bool = False

    def fits(self, variables: Variables) -> bool:
        """Whether it is of that kind now."""
        try:
            found = self.read(variables)
        except (LookupError, TypeError):
            return False
        if type(found) is Tensor:
            fits = is_new_leaf(found) if self.is_leaf else not found.requires_grad
            return (fits or self.is_detached) and kind_of(found.array) == self.kind
        return (type(found),) == self.kind


class Named(NamedTuple):
    """A tensor that an iteration leaves where the program can see it.

    Attributes:
        former: that of the iteration that was recorded, whose graph is like those of all others.
        version: how often an iteration writes to its memory.
    """

    location: Location
    former: Tensor
    version: int


class CompiledIteration(NamedTuple):
    """An iteration as straight-line Python.

    Attributes:
        run: does what an iteration does; returns what `finish` needs.
        finish: the arrays of the tensors that the iteration names, and those of gradients that it
            leaves to be seen only when the next one fails.
        leaves: those whose gradients it leaves as an interpreted iteration does.
        called: the objects of ours with methods that it calls as they are: schedules.
        steps: what it counts as steps, beside itself.
        since: the sequence number that the recorded iteration began with.
        settled: whether the leaves that have gradients at the end had some at the beginning.
        goes_back: whether it may be left when it has drawn random numbers, and had no other effect.
        undoes: whether it may be left behind other effects.
    """

    begin: Callable[[], None]
    run: Callable[[], Arrays]
    finish: Callable[[Arrays], Arrays]
    namespace: dict[str, Any]
    guard: Guard
    inputs: list[Input]
    named: list[Named]
    updated: list[Tensor]
    leaves: list[Tensor]
    unseen: list[Tensor]
    optimizers: list[Optimizer]
    counted: list[Location]
    grown: list[list[Any]]
    called: list[Any]
    draws: bool
    steps: int
    since: int
    side_exits: int
    settled: bool
    goes_back: bool
    undoes: bool

    def fits(self, variables: Variables, steps: Steps) -> bool:
        """Whether an iteration is given what this one is for, and will not end in its middle."""
        return steps.left >= self.steps and all(each.fits(variables) for each in self.inputs)

    def enter(self, variables: Variables) -> None:
        """Compiled iterations begin, after an interpreted one."""
        self.namespace["frame"] = variables
        self.begin()

    def execute(self, state: State) -> Arrays:
        """Run an iteration; raises SideExit, and whatever else it may raise, ahead of its effects
        unless it `undoes` them, with the random numbers as they were.
        """
        if not self.goes_back:
            return self.run()
        stands = [(each, each.snapshot()) for each in state.generators.values()]
        try:
            return self.run()
        except Exception:
            for generator, snapshot in stands:
                generator.restore(snapshot)
            raise

    def show(self, left: Arrays, variables: Variables) -> None:
        """Let a program see what an iteration left, with the recorded one's graph, whose values are
        freed.
        """
        arrays = self.finish(left)
        count = len(self.named)
        made: dict[Tensor, Tensor] = {}
        for (location, former, version), array in zip(self.named, arrays[:count], strict=True):
            if former not in made:
                if former.grad_fn is not None:
                    forget_values(former.grad_fn, self.since)
                made[former] = tensor = Tensor(array, former.requires_grad)
                tensor.grad_fn, tensor.output_nr = former.grad_fn, former.output_nr
                if type(former.storage) is InferenceStorage:
                    tensor.array, tensor.storage = np.asarray(array), InferenceStorage()
                if version:
                    storage_of(tensor).version = version
            location.store(variables, made[former])
        for leaf, array in zip(self.unseen, arrays[count:], strict=True):
            meta_of(leaf).grad = Tensor(kept(array, leaf.array))
