"""What a round changes, seen from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor, meta_of
from gradcli.language.loops.compiled import Written
from gradcli.language.loops.optimizers import memories_of
from gradcli.language.tree.scopes import Variables
from gradcli.state import State
from gradcli.trace.guards import same

Seen = tuple[list[Any], list[Any]]
"""Arrays, and all else in a form to compare."""


class Effects:
    """Parameters, their versions and gradients, what optimizers remember, numbers, lists, counts:
    as they were before a round.
    """

    def __init__(self, state: State, written: Written, variables: Variables) -> None:
        self.state = state
        self.written = written
        self.variables = variables
        memories = [memory for each in written.optimizers for memory in memories_of(each)]
        remembered = [value for memory in memories for value in memory.values()]
        self.tensors = written.updated + [each for each in remembered if type(each) is Tensor]
        self.memories = [(memory, dict(memory)) for memory in memories]
        self.arrays = [(each.array, each.array.copy(), each.version) for each in self.tensors]
        self.gradients = [leaf.grad for leaf in written.leaves]
        self.numbers = {name: variables[name] for name in written.counted}
        self.lengths = [len(values) for values in written.grown]
        self.counts = state.sequence_nr, state.steps.left

    def seen(self, named: Sequence[Any]) -> Seen:
        """All of that as it is now, and the arrays of the tensors that the round named."""
        gradients = [leaf.grad for leaf in self.written.leaves]
        grown = zip(self.written.grown, self.lengths, strict=True)
        return (
            [tensor.array.copy() for tensor in self.tensors]
            + [None if each is None else each.array.copy() for each in gradients]
            + list(named),
            [tensor.version for tensor in self.tensors]
            + [list(memory) for memory, _ in self.memories]
            + [repr(self.variables[name]) for name in self.numbers]
            + [repr(values[length:]) for values, length in grown]
            + [self.state.sequence_nr, self.state.steps.left],
        )

    def undo(self) -> None:
        """Bring everything back to what it was."""
        for memory, before in self.memories:
            memory.clear()
            memory.update(before)
        for tensor, (array, values, version) in zip(self.tensors, self.arrays, strict=True):
            tensor.array = array
            if type(array) is np.ndarray:
                array[...] = values
            if tensor.storage is not None:
                tensor.storage.version = version
        for leaf, gradient in zip(self.written.leaves, self.gradients, strict=True):
            meta_of(leaf).grad = gradient
        self.variables.update(self.numbers)
        for values, length in zip(self.written.grown, self.lengths, strict=True):
            del values[length:]
        self.state.sequence_nr, self.state.steps.left = self.counts


def same_effects(found: Seen, other: Seen) -> bool:
    """Whether two rounds did the same."""
    return found[1] == other[1] and all(
        one is another if one is None or another is None else same(one, another)
        for one, another in zip(found[0], other[0], strict=True)
    )
