"""What a round does to the gradients of leaves, as straight-line Python."""

from __future__ import annotations

import numpy as np

from gradcli.autograd.engine import accumulate
from gradcli.autograd.tensor import Tensor, meta_of
from gradcli.language.loops.outside import Outside
from gradcli.language.loops.symbols import IterationBuilder
from gradcli.ops.codegen.runtime import EVERYDAY
from gradcli.trace.graph_break import GraphBreak
from gradcli.trace.guards import same_bits
from gradcli.trace.ir import Inline, Value

_ARRIVE = Inline("{0}.grad = {1}({2}({3}, {4}))", "arrive")
"""A leaf is given its first gradient."""


class Gradients:
    """The `.grad` of each leaf in the course of a round.

    Attributes:
        lasting: the gradients that are the same tensor in every round, which adds to them, and
            their leaves.
        forgotten: the leaves whose gradients the round forgets before it does anything with them.
        unseen: those whose gradients nobody looks at before they are forgotten.
        now: what each leaf has that the round gave or took a gradient, None for nothing.
    """

    def __init__(self, builder: IterationBuilder, outside: Outside) -> None:
        self.builder = builder
        self.outside = outside
        self.lasting: dict[Tensor, Tensor] = {}
        self.now: dict[Tensor, Value | None] = {}
        self.forgotten: set[Tensor] = set()
        self.unseen: dict[Tensor, Value] = {}

    def arrive(self, leaf: Tensor, gradient: Value) -> None:
        """A backward pass is about to give a leaf a gradient, or to add to the one it has."""
        old = leaf.grad
        if not self.outside.is_made(leaf):
            self.outside.tensor(leaf)
            self.find(leaf)
        if old is None:
            self.now[leaf] = gradient
        elif leaf in self.now and old not in self.lasting:
            self.now[leaf] = self.builder.call(
                accumulate.plus, (self.builder.value_of(old.array), gradient)
            )
        else:
            total = self._lasting(leaf, old)
            self.builder.effect(np.add, [total, gradient, total], writes=[total])
            if old.storage is not None:
                self._count_write(old)
            self.now[leaf] = self.builder.value_of(old.array)

    def find(self, leaf: Tensor) -> None:
        """Note whether the iteration found a leaf with a gradient."""
        self.outside.guard.gradients.setdefault(leaf, leaf.grad is not None)

    def _lasting(self, leaf: Tensor, gradient: Tensor) -> Value:
        """The array of a gradient that the text writes to."""
        array = gradient.array
        if type(array) is not np.ndarray or array.dtype not in EVERYDAY:
            raise GraphBreak("B04", "a gradient is no array of float32 or float64 on the host")
        self.outside.tensor(gradient)
        self.lasting[gradient] = leaf
        self.outside.guard.lasting[leaf] = gradient
        return self.builder.constant(array)

    def check_arrived(self) -> None:
        """Raise GraphBreak where the pass did not give what the text does."""
        for leaf, gradient in self.now.items():
            if gradient is None or not leaf.requires_grad:
                continue
            if leaf.grad is None or not same_bits(leaf.grad.array, gradient.array):
                raise GraphBreak("B06", "a leaf's gradient came out differently than was recorded")
            if leaf.grad not in self.lasting:
                self.builder.stand_for(leaf.grad.array, gradient)

    def read(self, leaf: Tensor) -> None:
        """`leaf.grad` of a leaf from outside was read."""
        self.outside.tensor(leaf)
        self.find(leaf)
        gradient = leaf.grad
        if leaf not in self.now and gradient is not None:
            self.outside.tensor(gradient)
            self.outside.guard.lasting[leaf] = gradient

    def forget(self, leaf: Tensor) -> None:
        """`leaf.grad = None` is about to run."""
        if self.outside.is_made(leaf):
            self.now[leaf] = None
            return
        self.outside.tensor(leaf)
        if leaf not in self.now:
            self.forgotten.add(leaf)
        self.find(leaf)
        self.now[leaf] = None

    def zero(self, leaf: Tensor) -> None:
        """`leaf.grad.zero_()` ran."""
        gradient = leaf.grad
        if gradient is None or (leaf in self.now and gradient not in self.lasting):
            raise GraphBreak(
                "B06", "a gradient is filled with zeros that the iteration itself made"
            )
        self.find(leaf)
        total = self._lasting(leaf, gradient)
        self.builder.effect(Inline("{0}.fill(0)"), [total], writes=[total])
        self._count_write(gradient)
        self.now[leaf] = self.builder.value_of(gradient.array)

    def _count_write(self, tensor: Tensor) -> None:
        self.outside.count_writes(self.outside.storage(tensor), 1)

    def finish(self, unseen: bool) -> None:
        """Write what leaves the leaves with their gradients; raises GraphBreak where a round does
        not end as it began.

        Args:
            unseen: whether nothing looks at a gradient before the next round forgets it, if it
                does so first of all.
        """
        builder = self.builder
        found = self.outside.guard.gradients
        for leaf, gradient in self.now.items():
            if leaf not in found:
                continue  # the iteration made it
            if found[leaf] is (gradient is None):
                raise GraphBreak(
                    "B06",
                    "a leaf has a gradient at one end of the iteration and none at the other",
                )
            if gradient is None or leaf.grad in self.lasting:
                continue
            if unseen and leaf in self.forgotten:
                self.unseen[leaf] = gradient
                continue
            array = builder.constant(leaf.array)
            builder.effect(
                _ARRIVE, [meta_of(leaf), Tensor, accumulate.kept, gradient, array], grad=[array]
            )
