"""What an iteration changes, seen from outside: to compare two ways of running it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor, meta_of
from gradcli.errors import GradcliError
from gradcli.language.tree.scopes import Variables
from gradcli.loops.compiled import CompiledIteration
from gradcli.loops.optimizers import memories_of
from gradcli.state import State
from gradcli.trace.ir import same

Seen = tuple[list[Any], list[Any]]
"""Arrays, and all else in a form to compare."""

_ABSENT = object()


class Effects:
    """All that an iteration may change, as it was before one."""

    def __init__(self, state: State, written: CompiledIteration, variables: Variables) -> None:
        self.state = state
        self.written = written
        self.variables = variables
        memories = [memory for each in written.optimizers for memory in memories_of(each)]
        remembered = [value for memory in memories for value in memory.values()]
        new_leaves = [each.read(variables) for each in written.inputs if each.is_leaf]
        self.leaves: list[Tensor] = [*written.leaves, *new_leaves]
        self.gradients = [leaf.grad for leaf in self.leaves]
        self.tensors = written.updated + [each for each in remembered if type(each) is Tensor]
        self.tensors += [each for each in self.gradients if each is not None]
        self.memories = [(memory, dict(memory)) for memory in memories]
        self.arrays = [(t, t.array, t.array.copy(), t.storage, t.version) for t in self.tensors]
        self.values = [self._read(each) for each in written.counted]
        self.lengths = [len(values) for values in written.grown]
        parts = [(vars(each), *each.optimizer.param_groups) for each in written.called]
        self.settings = [(part, _settings(part)) for every in parts for part in every]
        self.modes = [(module, module.training) for module in written.modes]
        self.stands = self._standing()
        self.counts = state.sequence_nr, state.steps.left
        self.emit = state.emit
        self.printed: list[str] = []

    def listen(self, shows: bool) -> None:
        """Keep what is printed from now on, and show it or not."""
        self.printed = []
        self.state.emit = partial(self._keep, shows)

    def _keep(self, shows: bool, event: Any) -> None:
        if not getattr(event, "by_clock", False):
            self.printed.append(getattr(event, "text", None) or repr(event))
        if shows:
            self.emit(event)

    def seen(self, named: Sequence[Any], copies: bool = False) -> Seen:
        """All of that as it is now, and the arrays of the tensors that the iteration named; as
        copies where it is to change.
        """
        self.state.emit = self.emit
        kept = partial(np.array if copies else np.asarray, order="C")
        gradients = [leaf.grad for leaf in self.leaves]
        grown = zip(self.written.grown, self.lengths, strict=True)
        return (
            [kept(tensor.array) for tensor in self.tensors]
            + [None if each is None else kept(each.array) for each in gradients]
            + list(named),
            [tensor.version for tensor in self.tensors]
            + [list(memory) for memory, _ in self.memories]
            + [repr(self._read(each)) for each in self.written.counted]
            + [repr(values[length:]) for values, length in grown]
            + [repr(_settings(part)) for part, _ in self.settings]
            + [self.printed, self._standing(), [module.training for module, _ in self.modes]]
            + [self.state.sequence_nr, self.state.steps.left],
        )

    def undo(self) -> None:
        """Bring everything back to what it was, once: the copies are let go."""
        self.state.emit = self.emit
        for memory, before in self.memories:
            memory.clear()
            memory.update(before)
        for tensor, array, values, storage, version in self.arrays:
            tensor.array, tensor.storage = array, storage  # which it may have got only now
            if type(array) is np.ndarray:
                array[...] = values
            if storage is not None:
                storage.version = version
        self.arrays = []
        for leaf, gradient in zip(self.leaves, self.gradients, strict=True):
            meta_of(leaf).grad = gradient
        for place, value in zip(self.written.counted, self.values, strict=True):
            if value is _ABSENT:
                place.remove(self.variables)
            else:
                place.store(self.variables, value)
        for values, length in zip(self.written.grown, self.lengths, strict=True):
            del values[length:]
        for part, settings in self.settings:
            part.update(settings)
        for module, mode in self.modes:
            object.__setattr__(module, "training", mode)
        for generator, stands in zip(self.written.generators, self.stands, strict=True):
            generator.restore(stands)
        self.state.sequence_nr, self.state.steps.left = self.counts

    def _read(self, place: Any) -> Any:
        try:
            return place.read(self.variables)
        except (GradcliError, LookupError):
            return _ABSENT

    def _standing(self) -> list[Any]:
        return [each.snapshot() for each in self.written.generators]


def _settings(values: dict[str, Any]) -> dict[str, Any]:
    """What a schedule keeps, or a group of its optimizer's, apart from what is compared itself."""
    own = {name: value for name, value in values.items() if name not in ("optimizer", "params")}
    return {name: list(v) if type(v) is list else v for name, v in own.items()}


def same_effects(effects: Seen, other: Seen) -> bool:
    """Whether two iterations did the same."""
    return effects[1] == other[1] and all(
        one is another if one is None or another is None else same(one, another)
        for one, another in zip(effects[0], other[0], strict=True)
    )
