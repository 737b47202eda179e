"""What an iteration does to the gradients of leaves, as straight-line Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.autograd.engine import accumulate
from gradcli.autograd.tensor import Tensor, TensorMeta, meta_of, storage_of
from gradcli.loops.guards import Input
from gradcli.loops.lower_backward import ADD
from gradcli.loops.symbols import IterationBuilder
from gradcli.ops.codegen.promotion import EVERYDAY
from gradcli.trace.ir import GraphBreak, Inline, Kernel, Value, kind_of, same_bits

_ARRIVE = Inline("{0}.grad = {1}({2}({3}, {4}))", "arrive")
"""A leaf is given its first gradient."""

_ARRIVE_WRITTEN = Inline("{0}.grad = {1}({2}, {3}, {4})", "arrive")
"""The same with one that has been written to, as when it was clipped."""

_ARRIVE_AT = Inline("{0}({1}).grad = {2}({3}({4}, {5}))", "arrive")
"""A leaf that every iteration loads anew gets its gradient."""

_FORGET = Inline("{0}.grad = None", "forget")
"""A leaf's gradient is forgotten."""

_LOAD = Inline("{0}.grad.array")
"""The array of the gradient that a leaf has."""

_SHARE = Inline("{0}({1}.grad)", "share")
"""Whatever gradient a leaf has gets a version."""

_COUNT_WRITE = Inline("{0}({1})", "count_write")
"""The version of whatever gradient a leaf has goes up."""


_KEPT = Kernel("kept", accumulate.kept, raises=False)


class Gradients:
    """The `.grad` of each leaf in the course of an iteration.

    Attributes:
        lasting: the gradients that are the same tensor in every iteration, which adds to them.
        used: those whose gradients it reads as it finds them.
        settled: whether the leaves have gradients at the end that had some at the beginning.
        new_leaves: those that every iteration loads anew.
        now: what each leaf has that the iteration gave or took a gradient, None for nothing.
    """

    def __init__(
        self,
        builder: IterationBuilder,
        carried: set[Any],
        inputs: list[Any],
    ) -> None:
        self.builder = builder
        self.carried = carried
        self.inputs = inputs
        self.lasting: set[Tensor] = set()
        self.new_leaves: dict[Tensor, Value] = {}
        self.now: dict[Tensor, Value | None] = {}
        self.forgotten: set[Tensor] = set()
        self.unseen: dict[Tensor, Value] = {}
        self.used: set[Tensor] = set()
        self.loaded: set[Value] = set()
        self.settled = True

    def arrive(self, leaf: Tensor, gradient: Value) -> None:
        """A backward pass is about to give a leaf a gradient, or to add to the one it has."""
        old = leaf.grad
        if not self.builder.is_of_iteration(leaf):
            self.builder.tensor(leaf)
            self.find(leaf)
        if old is None:
            self.now[leaf] = gradient
        elif leaf in self.now and old not in self.lasting:
            self.now[leaf] = self.builder.call(ADD, (self.builder.value_of(old.array), gradient))
        else:
            if type(old.array) is not np.ndarray or old.array.dtype not in EVERYDAY:
                reason = "a gradient is no array of float32 or float64 on the host"
                raise GraphBreak(reason, code="B04")
            self.lasting.add(old)
            total = self._old_gradient(leaf, old)
            self.builder.effect(np.add, [total, gradient, total], writes=[total])
            self.count_write(leaf, old, total)
            self.now[leaf] = self.builder.value_of(old.array)

    def find(self, leaf: Tensor) -> None:
        """Note whether a leaf had a gradient when the iteration began."""
        self.builder.guard.gradients.setdefault(leaf, leaf.grad is not None)

    def _old_gradient(self, leaf: Tensor, gradient: Tensor) -> Value:
        """The array of a gradient from before the iteration; whether it is always the same tensor,
        or another one each time, depends on its place.
        """
        if ("gradient", id(leaf)) not in self.carried:
            self.builder.guard.lasting[leaf] = gradient
            return self.builder.tensor(gradient)
        if not self.builder.knows(gradient.array):
            value = self.builder.load(_LOAD, [meta_of(leaf)], gradient.array)
            self.loaded.add(value)
            self.inputs.append(Input(lambda variables: leaf.grad, kind_of(gradient.array)))
        return self.builder.value_of(gradient.array)

    def check_arrived(self) -> None:
        """Raise GraphBreak where the pass gave other gradients than the recorded instructions."""
        for leaf in self.now:
            self.check(leaf)

    def check(self, leaf: Tensor) -> None:
        """The same of one leaf."""
        gradient = self.now.get(leaf)
        if gradient is None or not leaf.requires_grad:
            return
        if leaf.grad is None or not same_bits(leaf.grad.array, gradient.array):
            raise GraphBreak("a leaf's gradient came out differently than was recorded")
        if leaf.grad in self.lasting:
            return
        if leaf.grad.array.strides == gradient.array.strides:
            self.builder.stand_for(leaf.grad.array, gradient)
        else:  # it lies in memory as the leaf does
            operands = [gradient, self.builder.constant(leaf.array)]
            self.now[leaf] = self.builder.call(_KEPT, operands, result=leaf.grad.array)

    def read(self, leaf: Tensor) -> None:
        """`leaf.grad` of a leaf from outside was read."""
        self.builder.tensor(leaf)
        self.find(leaf)
        gradient = leaf.grad
        if leaf not in self.now:
            self.used.add(leaf)
            if gradient is not None:
                self._old_gradient(leaf, gradient)

    def forget(self, leaf: Tensor) -> None:
        """`leaf.grad = None` is about to run."""
        if self.builder.is_of_iteration(leaf):
            self.now[leaf] = None
            return
        self.builder.tensor(leaf)
        if leaf not in self.now and leaf not in self.used:
            self.forgotten.add(leaf)
        self.find(leaf)
        self.now[leaf] = None

    def count_write(self, leaf: Tensor, gradient: Tensor, target: Value) -> None:
        """Record that the version of a gradient goes up, if it has one."""
        if target in self.loaded:
            self.builder.effect(_COUNT_WRITE, [_count_write, meta_of(leaf)], state=())
        elif gradient.storage is not None:
            self.builder.count_writes(self.builder.storage(gradient), 1)
        else:
            self.builder.guard.storages[gradient] = None

    def share(self, leaf: Tensor) -> None:
        """Record that the gradient of a leaf gets a version, as one does that is written to."""
        self.builder.effect(_SHARE, [storage_of, meta_of(leaf)], state=())

    def finish(self) -> None:
        """Write the instructions that set the gradients of leaves, but for those never read."""
        builder = self.builder
        had_gradient = self.builder.guard.gradients
        for leaf, gradient in self.now.items():
            if leaf in self.new_leaves and gradient is not None:
                operands = [Tensor, accumulate.kept, gradient, builder.value_of(leaf.array)]
                builder.effect(_ARRIVE_AT, [meta_of, self.new_leaves[leaf], *operands], grad=())
            if leaf not in had_gradient:
                continue  # the iteration made it, or is given it
            if had_gradient[leaf] is (gradient is None):
                if leaf in self.forgotten:
                    raise GraphBreak("a leaf got its first gradient")
                self.settled = False
                if gradient is None:
                    builder.effect(_FORGET, [meta_of(leaf)], grad=())
            if gradient is None or leaf.grad in self.lasting:
                continue
            if leaf in self.forgotten:
                self.unseen[leaf] = gradient
                continue
            array = builder.constant(leaf.array)
            arrives, operands = _ARRIVE, [meta_of(leaf), Tensor, accumulate.kept, gradient, array]
            if leaf.grad is not None and leaf.grad.version:
                arrives = _ARRIVE_WRITTEN
                operands = [meta_of(leaf), gradient_of, gradient, array, leaf.grad.version]
            builder.effect(arrives, operands, grad=[array])


def gradient_of(gradient: Any, array: Any, version: int) -> Tensor:
    """The gradient of a leaf with an array, which has been written to so often."""
    tensor = Tensor(accumulate.kept(gradient, array))
    if version:
        storage_of(tensor).version = version
    return tensor


def _count_write(meta: TensorMeta) -> None:
    gradient = meta.grad
    if gradient is not None and gradient.storage is not None:
        gradient.storage.version += 1
