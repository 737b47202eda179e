"""What a round does to the gradients of leaves, as straight-line Python."""

from __future__ import annotations

import numpy as np

from gradcli.autograd.engine import accumulate
from gradcli.autograd.tensor import Tensor, meta_of
from gradcli.language.loops.capture import Watch
from gradcli.ops.codegen.promotion import EVERYDAY
from gradcli.trace.builder import StraightLine, Untraceable, same_bits
from gradcli.trace.ufuncs import Variable


class Gradients:
    """The `.grad` of each leaf in the course of a round.

    Attributes:
        lasting: the gradients that are the same tensor in every round, which adds to them, and
            their leaves.
        forgotten: the leaves whose gradients the round forgets before it does anything with them.
        unseen: those whose gradients nobody looks at before they are forgotten.
        now: what each leaf has that the round gave or took a gradient, None for nothing.
    """

    def __init__(self, text: StraightLine, watch: Watch) -> None:
        self.text = text
        self.watch = watch
        self.lasting: dict[Tensor, Tensor] = {}
        self.now: dict[Tensor, Variable | None] = {}
        self.forgotten: set[Tensor] = set()
        self.unseen: dict[Tensor, Variable] = {}

    def arrive(self, leaf: Tensor, gradient: Variable) -> None:
        """A backward pass is about to give a leaf a gradient, or to add to the one it has."""
        self.watch.tensor(leaf)
        old = leaf.grad
        self._found(leaf)
        if old is None:
            self.now[leaf] = gradient
        elif leaf in self.now and old not in self.lasting:
            self.now[leaf] = self.text.call(
                accumulate.plus, (self.text.variable_of(old.array), gradient)
            )
        else:
            total = self._lasting(leaf, old)
            self.text.write(
                f"{self.text.refer(np.add)}({total}, {gradient.name}, {total})", gradient
            )
            if old.storage is not None:
                self._count_write(old)
            self.now[leaf] = self.text.variable_of(old.array)

    def _found(self, leaf: Tensor) -> None:
        """Note whether the round found a leaf with a gradient."""
        self.watch.guard.gradients.setdefault(leaf, leaf.grad is not None)

    def _lasting(self, leaf: Tensor, gradient: Tensor) -> str:
        """How the text refers to the array of a gradient that it writes to."""
        array = gradient.array
        if type(array) is not np.ndarray or array.dtype not in EVERYDAY:
            raise Untraceable
        self.watch.tensor(gradient)
        self.lasting[gradient] = leaf
        self.watch.guard.lasting[leaf] = gradient
        return self.text.constant(array).name

    def check_arrived(self) -> None:
        """Raise Untraceable where the pass did not give what the text does."""
        for leaf, gradient in self.now.items():
            if gradient is None:
                continue
            if leaf.grad is None or not same_bits(leaf.grad.array, gradient.value):
                raise Untraceable
            if leaf.grad not in self.lasting:
                self.text.stand_for(leaf.grad.array, gradient)

    def forget(self, leaf: Tensor) -> None:
        """`leaf.grad = None` is about to run."""
        self.watch.tensor(leaf)
        if leaf not in self.now:
            self.forgotten.add(leaf)
        self._found(leaf)
        self.now[leaf] = None

    def zero(self, leaf: Tensor) -> None:
        """`leaf.grad.zero_()` ran."""
        gradient = leaf.grad
        if gradient is None or (leaf in self.now and gradient not in self.lasting):
            raise Untraceable  # the next round begins otherwise than this one did
        self._found(leaf)
        self.text.write(f"{self._lasting(leaf, gradient)}.fill(0)")
        self._count_write(gradient)
        self.now[leaf] = self.text.variable_of(gradient.array)

    def _count_write(self, tensor: Tensor) -> None:
        self.text.write(f"{self.watch.version(tensor)} += 1")

    def finish(self, unseen: bool) -> None:
        """Write what leaves the leaves with their gradients; raises Untraceable where a round does
        not end as it began.

        Args:
            unseen: whether nothing looks at a gradient before the next round forgets it, if it
                does so first of all.
        """
        text = self.text
        for leaf, gradient in self.now.items():
            if self.watch.guard.gradients[leaf] is (gradient is None):
                raise Untraceable
            if gradient is None or leaf.grad in self.lasting:
                continue
            if unseen and leaf in self.forgotten:
                self.unseen[leaf] = gradient
                continue
            keep, wrap = text.refer(accumulate.kept), text.refer(Tensor)
            array = text.constant(leaf.array).name
            text.write(
                f"{text.refer(meta_of(leaf))}.grad = {wrap}({keep}({gradient.name}, {array}))",
                gradient,
            )
