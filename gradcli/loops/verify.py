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
from gradcli.trace.guards import same

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
        given = [each.read(variables) for each in written.inputs if each.is_leaf]
        self.leaves: list[Tensor] = [*written.leaves, *given]
        self.gradients = [leaf.grad for leaf in self.leaves]
        self.tensors = written.updated + [each for each in remembered if type(each) is Tensor]
        self.tensors += [each for each in self.gradients if each is not None]
        self.memories = [(memory, dict(memory)) for memory in memories]
        self.arrays = [(each.array, each.array.copy(), each.version) for each in self.tensors]
        self.storages = [each.storage for each in self.tensors]
        self.values = [self._read(each) for each in written.counted]
        self.lengths = [len(values) for values in written.grown]
        self.objects = [(each, _parts_of(each)) for each in written.called]
        self.stands = self._standing()
        self.counts = state.sequence_nr, state.steps.left
        self.emit = state.emit
        self.printed: list[str] = []

    def hush(self) -> None:
        """Keep what is printed from now on, and show nothing."""
        self.state.emit = self._keep

    def overhear(self) -> None:
        """Keep what is printed from now on, and show it."""
        self.printed = []
        self.state.emit = self._tell

    def _keep(self, event: Any) -> None:
        self.printed.append(getattr(event, "text", None) or repr(event))

    def _tell(self, event: Any) -> None:
        self._keep(event)
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
            + [repr(_parts_of(each)) for each, _ in self.objects]
            + [self.printed, self._standing()]
            + [self.state.sequence_nr, self.state.steps.left],
        )

    def undo(self) -> None:
        """Bring everything back to what it was, once: the copies are let go."""
        self.state.emit = self.emit
        for memory, before in self.memories:
            memory.clear()
            memory.update(before)
        for tensor, storage in zip(self.tensors, self.storages, strict=True):
            tensor.storage = storage  # which it may have got only now
        for tensor, (array, values, version) in zip(self.tensors, self.arrays, strict=True):
            tensor.array = array
            if type(array) is np.ndarray:
                array[...] = values
            if tensor.storage is not None:
                tensor.storage.version = version
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
        for each, parts in self.objects:
            _restore(each, parts)
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


def _parts_of(schedule: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What a schedule keeps, and the settings of its optimizer's groups."""
    groups = schedule.optimizer.param_groups
    kept = {name: _copied(value) for name, value in vars(schedule).items() if name != "optimizer"}
    settings = [{k: _copied(v) for k, v in group.items() if k != "params"} for group in groups]
    return kept, settings


def _restore(schedule: Any, parts: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    kept, settings = parts
    vars(schedule).update(kept)
    for group, before in zip(schedule.optimizer.param_groups, settings, strict=True):
        group.update(before)


def _copied(value: Any) -> Any:
    return list(value) if type(value) is list else value


def same_effects(found: Seen, other: Seen) -> bool:
    """Whether two iterations did the same."""
    return found[1] == other[1] and all(
        one is another if one is None or another is None else same(one, another)
        for one, another in zip(found[0], other[0], strict=True)
    )
