"""A round that was traced: the function that does the same, and what it relies on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradcli.autograd.engine.accumulate import kept
from gradcli.autograd.tensor import Tensor, meta_of
from gradcli.language.loops.guards import Guard
from gradcli.language.loops.lower_backward import forget_values
from gradcli.language.tree.scopes import Variables
from gradcli.limits import Steps
from gradcli.optim.optimizer import Optimizer

Arrays = tuple[Any, ...]

Kind = tuple[Any, ...]
"""How an array lies in memory: its type, dtype, shape and strides."""


class Departure(Exception):
    """The `if` of a round holds that does not hold in most: nothing has happened so far."""


class Written(NamedTuple):
    """A round as straight-line Python.

    Attributes:
        begin: makes what is the same in all rounds until an ordinary one comes.
        round: does what a round does; returns what `finish` needs.
        finish: the arrays of the tensors that the round names, and those of gradients that it
            leaves to be seen only when the next round fails.
        guard: what must still hold for that.
        inputs: the kinds of the tensors that it is given, by name.
        named: the names of the tensors that it makes.
        updated: the tensors that it writes to.
        leaves: those whose gradients it leaves as an ordinary round does.
        unseen: the others.
        optimizers: those that step.
        counted: the names of numbers that it binds.
        grown: the lists that it appends to.
        steps: what it counts as steps, beside itself.
        since: the sequence number that the round began with.
    """

    begin: Callable[[], None]
    round: Callable[[], Arrays]
    finish: Callable[[Arrays], Arrays]
    guard: Guard
    inputs: dict[str, Kind]
    named: list[str]
    updated: list[Tensor]
    leaves: list[Tensor]
    unseen: list[Tensor]
    optimizers: list[Optimizer]
    counted: list[str]
    grown: list[list[Any]]
    steps: int
    since: int

    def fits(self, variables: Variables, steps: Steps) -> bool:
        """Whether a round is given what this one is for, and will not end in its middle."""
        return steps.left >= self.steps and all(
            type(given := variables[name]) is Tensor
            and not given.requires_grad
            and kind_of(given.array) == kind
            for name, kind in self.inputs.items()
        )

    def show(self, left: Arrays, variables: Variables) -> None:
        """Let a program see what a round left, which returned this, as if it had been an ordinary
        one: the graphs of two rounds differ in nothing but values, which are freed; those that are
        not, after an error or an interruption, are forgotten, as they are of a round before.
        """
        arrays = self.finish(left)
        count = len(self.named)
        made: dict[Tensor, Tensor] = {}
        for name, array in zip(self.named, arrays[:count], strict=True):
            former = variables[name]
            if former.array is array:
                continue  # another name of what is there anyway
            if former not in made:
                if former.grad_fn is not None:
                    forget_values(former.grad_fn, self.since)
                made[former] = tensor = Tensor(array, former.requires_grad)
                tensor.grad_fn, tensor.output_nr = former.grad_fn, former.output_nr
                tensor.set_name(name)
            variables[name] = made[former]
        for leaf, array in zip(self.unseen, arrays[count:], strict=True):
            meta_of(leaf).grad = Tensor(kept(array, leaf.array))


def kind_of(array: Any) -> Kind:
    """The kind of an array."""
    return type(array), array.dtype, array.shape, array.strides
