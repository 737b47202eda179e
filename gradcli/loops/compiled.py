"""A compiled iteration: the functions that do the same as an interpreted one, and what they rely
on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.arrays.storage import InferenceStorage, Storage
from gradcli.autograd.tensor import Tensor, meta_of, storage_of
from gradcli.errors import GradcliError
from gradcli.language.tree.scopes import PARENT, Variables
from gradcli.limits import Steps
from gradcli.loops.capture import Capture
from gradcli.loops.gradients import gradient_of
from gradcli.loops.guards import hooks_of
from gradcli.loops.locations import Attribute, Item, Location, Name, Part, Returned
from gradcli.loops.lower_backward import forget_values, is_setting
from gradcli.loops.reach import Seen, Snapshot
from gradcli.loops.symbols import on_memory_of
from gradcli.loops.walk.reading import described
from gradcli.state import State
from gradcli.trace.codegen import functions_of
from gradcli.trace.flat import Rounds, flattened, let_large_go, rounds_of
from gradcli.trace.ir import Effect, Inline, Instruction, Kernel, Value
from gradcli.trace.passes import commits

if TYPE_CHECKING:
    from gradcli.trace.codegen import Runs
    from gradcli.trace.ir import Trace

Arrays = tuple[Any, ...]


class FailedInEffects(Exception):
    """An iteration failed in the middle of its effects, where nothing may raise."""


class Named(NamedTuple):
    """A tensor that an iteration leaves where the program can see it.

    Attributes:
        former: that of the iteration that was recorded, whose graph is like those of all others.
    """

    location: Location | Part
    former: Tensor


def has_more(tensor: Tensor) -> bool:
    """Whether a tensor has a gradient or hooks, which what stands for it would not have."""
    meta = tensor.meta
    return meta is not None and bool(meta.grad is not None or meta.retains_grad or hooks_of(tensor))


class Remade(NamedTuple):
    """A function of constants alone that an iteration leaves where the program can see it.

    Attributes:
        make: makes it anew, given the variables of the code with the loop.
    """

    location: Location
    make: Callable[[Variables], Any]


class Shown:
    """The tensors that stand for those of the recorded iteration: with like graphs, and on memory
    that they share as those do.

    Args:
        arrays: those that the iteration made, by the recorded tensor; tensors that it was given.
        lasting: the storages of tensors from outside.
    """

    def __init__(self, arrays: dict[Tensor, Any], lasting: set[Storage]) -> None:
        self.arrays = arrays
        self.lasting = lasting
        self.stand_ins: dict[Tensor, Tensor] = {}
        self.storages: dict[Storage, Storage] = {}
        inputs = [each for each, array in arrays.items() if type(array) is Tensor]
        self.inputs = {each.storage: each for each in inputs if each.storage is not None}

    def tensor(self, former: Tensor) -> Tensor:
        """The tensor that stands for a recorded one; one from outside stands for itself."""
        known = self.stand_ins.get(former, self.arrays.get(former, former))
        if type(known) is Tensor:
            return known
        tensor = self.stand_ins[former] = Tensor(self.arrays[former], former.requires_grad)
        tensor.grad_fn, tensor.output_nr = former.grad_fn, former.output_nr
        storage, base = former.storage, former.base
        if type(storage) is InferenceStorage:
            tensor.array, tensor.storage = np.asarray(tensor.array), InferenceStorage()
        elif base is not None and former.meta is not None:
            on_memory_of(tensor, self.tensor(base), former.meta, storage)
        elif storage is not None and (storage.version or storage in self.inputs):
            self._share(tensor, storage)
        return tensor

    def _share(self, tensor: Tensor, former: Storage) -> None:
        """Give a tensor the storage that stands for a recorded one."""
        known = former if former in self.lasting else self.storages.get(former)
        if known is None and former in self.inputs:
            known = storage_of(self.arrays[self.inputs[former]])
        if known is None:
            known = self.storages[former] = storage_of(tensor)
            known.version = former.version
        tensor.storage, tensor.array = known, np.asarray(tensor.array)


class CompiledIteration:
    """A way through the body as straight-line Python.

    Attributes:
        run: does what an iteration does; returns what `finish` needs.
        finish: the arrays of the tensors that the iteration names, those of their bases, and those
            of gradients that it leaves to be seen only when the next one fails.
        bases: what named tensors are views of, and the iteration made too.
        lasting: the storages of tensors from outside.
        leaves: those whose gradients it leaves as an interpreted iteration does.
        modes: the modules that it leaves switched to training, or to evaluation.
        given: the objects that its code is given, which it may change, and whatever they lead to.
        changing: those of them that its effects are given.
        spared: the ids of the arrays among them that it only reads.
        holders: the variables, of functions around it and of the program, that its code is given.
        owners: the objects and collections that it sets attributes and items of.
        grown: the lists that it appends to.
        steps: what it counts as steps, beside itself.
        nodes: how many nodes it makes.
        since: the sequence number that the recorded iteration began with.
        settled: whether the leaves that have gradients at the end had some at the beginning.
        generators: those that it draws from.
        goes_back: whether it may be left when it has drawn random numbers.
        undoes: whether it may be left behind other effects.
        clock: reads the clocks that it asks.
        forgotten: the named tensors whose graphs have been freed of their values.
        stored: the places that it leaves values in.
        relied: those that it takes for constant.
        loaded: those whose values it is given.
        changed: the lists and dicts that it changes, by their ids.
        verified: whether it was found to do what the interpreter does.
        entered: whether nothing has run since that it does not know of.
        undo: what brings back what the last iteration found, where one that fails is undone.
        rounds: runs many in one call, where nothing has to be looked at in between.
    """

    def __init__(
        self,
        walk: Capture,
        trace: Trace,
        named: list[Named],
        bases: list[Tensor],
        counted: list[Location],
        remade: list[Remade],
        updated: list[Tensor],
        steps: int,
        nodes: int,
        goes_back: bool,
        undoes: bool,
    ) -> None:
        self._use(functions_of(trace))
        self._trace: Trace | None = trace if _weight(trace) <= _LIGHT else None
        self.guard, self.inputs = walk.guard, walk.inputs
        self.named, self.bases, self.counted, self.updated = named, bases, counted, updated
        self.remade = remade
        self.lasting = {each.storage for each in walk.guard.tensors if each.storage is not None}
        arrived = [(leaf, leaf.grad) for leaf in walk.gradients.unseen]
        self.unseen = {leaf: 0 if grad is None else grad.version for leaf, grad in arrived}
        self.leaves = [leaf for leaf in walk.guard.gradients if leaf not in self.unseen]
        self.modes, self.generators = walk.modes, walk.recorder.generators
        self.grown = walk.grown
        self._find_given(walk, trace)
        self.steps, self.nodes, self.since = steps, nodes, walk.since
        self.side_exits, self.settled = walk.builder.side_exits, walk.gradients.settled
        self.goes_back, self.undoes = goes_back, undoes
        self.clock = walk.clock
        self.forgotten: set[Tensor] = set()
        stored, known = walk.stored, walk.constants
        kept = {key for key, (_, value) in stored.items() if value is known.get(key, key)}
        self.stored = stored.keys() - kept  # `w -= …` stores the `w` that it found
        self.relied = {*known, *walk.guard.values}
        self.loaded = set(walk.loads)
        owners = [place for place, _ in stored.values() if isinstance(place, (Attribute, Item))]
        self.owners = [each.owner for each in owners]
        items = [each.owner for each in owners if isinstance(each, Item)]
        self.changed = {id(each) for each in (*walk.grown, *items)}
        self.names = {each.location.key for each in named} | {each.location.key for each in remade}
        self.verified = self.entered = False
        self.undo: Undo | None = None
        self.served = 0
        self.rounds: Rounds | None = None
        if self.may_be_flat:
            let_large_go(trace)

    def _find_given(self, walk: Capture, trace: Trace) -> None:
        """Find what the code of the trace is given, and what the program reads."""
        instructions = [*trace.prologue, *trace.instructions, *trace.epilogue]
        written = [value for each in instructions for value in each.effects.get(Effect.WRITES, ())]
        arrays = {id(value.array): value.array for value in written if value.array is not None}
        self.spared = {id(value.array) for value in trace.constants} - arrays.keys()
        given = _given_to(instructions)
        names = [each for each in given.values() if type(each) is dict and PARENT in each]
        self.holders = [*names, walk.values]
        around = {id(each) for each in (*self.holders, walk.state)}
        changing = _given_to(filter(commits, instructions)) | arrays
        self.changing = [each for key, each in changing.items() if key not in around]
        self.changing += self.generators
        self.given = [each for key, each in given.items() if key not in around]
        self.given += (*self.changing, *walk.passed.values())
        self._places = [*walk.met.values()]
        self._constants = [*walk.constants.values()]
        self.is_call = any(type(place) is Returned for place, _ in walk.stored.values())
        unread = [each for each in self.named if has_more(each.former)]
        places = [*[each.location for each in unread], *[each.location for each in self.remade]]
        self._unread = {each.name for each in places if isinstance(each, Name)}

    def known(self, variables: Variables) -> list[Any]:
        """What the program reads from outside in an iteration."""
        read = []
        for each in self._places:
            with suppress(GradcliError, LookupError):
                read.append(each.read(variables))
        return read + self._constants

    def is_read(self, name: str) -> bool:
        """Whether the program may read what a variable beside the loop holds after an iteration."""
        return name not in self._unread and not (self.is_call and name != Returned.name)

    def _use(self, functions: Runs) -> None:
        self.begin, self.run, self.finish = functions
        self.namespace: dict[str, Any] = self.begin.__globals__

    @property
    def may_be_flat(self) -> bool:
        """Whether flat programs may still be made of it."""
        return self._trace is not None

    def flatten(self) -> None:
        """Run as flat programs what can be, once it is found to do what the interpreter does."""
        assert self._trace is not None
        trace = flattened(self._trace, self.generators)
        self._use(functions_of(trace))
        if not (self.goes_back or self.undoes or self.inputs):
            self.rounds = rounds_of(trace, self.namespace)
        self._trace = None
        self.verified = self.entered = False

    def covers(self, other: CompiledIteration) -> bool:
        """Whether this one binds and forgets anew all that the other leaves unseen."""
        return self is other or (
            other.names <= self.names and other.unseen.keys() <= self.unseen.keys()
        )

    def switches(self, other: CompiledIteration) -> set[Any]:
        """The keys of the modules that this one switches, and that the other relies on."""
        return {("training", id(each)) for each in self.modes if each in other.guard.training}

    def disturbs(self, other: CompiledIteration) -> bool:
        """Whether this one changes what the other takes for constant."""
        if self.changed & other.guard.contents.keys():
            return True
        looked_at = [each for check in other.guard.checks for each in check.inputs]
        return overlap(self.updated, looked_at)

    def fits(self, variables: Variables, steps: Steps) -> bool:
        """Whether the inputs are of the kinds that were recorded, and the steps last to the end."""
        return steps.left >= self.steps and all(each.fits(variables) for each in self.inputs)

    def enter(self, variables: Variables) -> None:
        """Compiled iterations begin, after an interpreted one."""
        self.namespace["frame"] = variables
        self.begin()

    def execute(self) -> Arrays:
        """Run an iteration; raises SideExit, and whatever else it may raise, ahead of its effects
        unless it `undoes` them, with the random numbers as they were.
        """
        if not self.goes_back:
            return self.run()
        stands = [(each, each.snapshot()) for each in self.generators]
        try:
            return self.run()
        except BaseException:
            for generator, snapshot in stands:
                generator.restore(snapshot)
            raise

    def show(self, left: Arrays, variables: Variables) -> None:
        """Store the results of an iteration where the program reads them. Tensors get the graph of
        the recorded iteration, without its saved values.
        """
        for former in (*[each.former for each in self.named], *self.bases):
            if former.grad_fn is not None and former not in self.forgotten:
                forget_values(former.grad_fn, self.since)
                self.forgotten.add(former)
        self.place(left, variables)

    def place(self, left: Arrays, variables: Variables) -> None:
        """Store the results, while the recorded iteration's graph may still be needed."""
        arrays = self.finish(left)
        formers = [*[each.former for each in self.named], *self.bases]
        shown = Shown(dict(zip(formers, arrays, strict=False)), self.lasting)
        for location, former in self.named:
            location.store(variables, shown.tensor(former))
        for each in self.remade:
            each.location.store(variables, each.make(variables))
        unseen = zip(self.unseen.items(), arrays[len(formers) :], strict=True)
        for (leaf, version), array in unseen:
            meta_of(leaf).grad = gradient_of(array, leaf.array, version)

    def release(self) -> None:
        """Let go of the recorded iteration's graphs: this one does not run any more."""
        self._trace = self.rounds = self.undo = None
        held: Any = (self.named, self.bases, self.forgotten, self.namespace, self.given)
        for each in (*held, self.changing, self._constants):
            each.clear()


def _given_to(instructions: Iterable[Instruction]) -> dict[int, Any]:
    """The objects that some instructions are given, and the functions they call, by their ids."""
    given: dict[int, Any] = {}
    for each in instructions:
        op = each.op.function if isinstance(each.op, Kernel) else each.op
        if not isinstance(op, Inline):
            given[id(op)] = op
        given.update((id(literal), literal) for literal in literals_in(each.inputs))
    return given


def literals_in(operands: Any) -> Iterator[Any]:
    """The objects among some operands that are no values of the trace."""
    for each in operands:
        if type(each) in (list, tuple) and any(isinstance(part, Value) for part in each):
            yield from literals_in(each)
        elif not isinstance(each, Value):
            yield each


_LIGHT = 1 << 24
"""Bytes of the arrays of the largest iteration that is kept until it has served often."""


def _weight(trace: Trace) -> int:
    """The bytes of the arrays that a trace holds, beside its constants."""
    arrays = {id(v.array): v.array for each in trace.instructions for v in each.results}
    return sum(each.nbytes for each in arrays.values() if each is not None)


def overlap(updated: Sequence[Tensor], looked_at: Sequence[Any]) -> bool:
    """Whether what is written to lies where something is looked at."""
    arrays = [each for each in looked_at if not is_setting(each)]
    return any(np.may_share_memory(t.array, each) for t in updated for each in arrays)


class Undo:
    """What the effects of a compiled iteration may change, as it was before one."""

    def __init__(self, state: State, path: CompiledIteration, variables: Variables) -> None:
        self.path = path
        self.before = Snapshot(path.changing, grown=path.grown, alone=[state], most=inf)
        self._read(variables)

    def _read(self, variables: Variables) -> None:
        self.variables = variables
        self.values = []
        for place in self.path.counted:
            try:
                self.values.append(place.read(variables))
            except (GradcliError, LookupError):
                self.values.append(_ABSENT)

    @staticmethod
    def before_one(state: State, path: CompiledIteration, variables: Variables) -> Undo:
        """The same of an iteration that is about to run; most is as it was before the last one."""
        undo = path.undo
        if undo is None or undo.before.is_stale:
            undo = path.undo = Undo(state, path, variables)
        else:
            undo.before.renew()
            undo._read(variables)
        return undo

    def run(self) -> None:
        """Bring everything back."""
        self.before.restore()
        for place, value in zip(self.path.counted, self.values, strict=True):
            if value is _ABSENT:
                place.remove(self.variables)
            else:
                place.store(self.variables, value)


_ABSENT = object()


class Effects:
    """All that an iteration may change, as it was before one."""

    def __init__(self, state: State, path: CompiledIteration, variables: Variables) -> None:
        self.state = state
        self.emit = state.emit
        self.printed: list[str] = []
        holders = [(variables, path.is_read), *[(each, _is_any) for each in path.holders]]
        while PARENT in variables:
            variables = variables[PARENT]
            holders.append((variables, _is_any))
        known = [state, *path.owners, *path.known(holders[0][0])]
        self.before = Snapshot(path.given, known, holders, path.spared, path.grown)

    @property
    def closed(self) -> str | None:
        """What the iteration may change and can neither be read nor be brought back, if any."""
        return described(self.before.closed[0]) if self.before.closed else None

    def listen(self, shows: bool) -> None:
        """Keep what is printed from now on, and show it or not."""
        self.printed = []
        self.state.emit = partial(self._keep, shows)

    def _keep(self, shows: bool, event: Any) -> None:
        if not getattr(event, "by_clock", False):
            self.printed.append(getattr(event, "text", None) or repr(event))
        if shows:
            self.emit(event)

    def seen(self, copies: bool = False) -> tuple[Seen, list[str]]:
        """What has changed, and what was printed; as copies where it is to change."""
        self.state.emit = self.emit
        return self.before.changes(copies), self.printed

    def undo(self) -> None:
        """Bring everything back to what it was."""
        self.state.emit = self.emit
        self.before.restore()

    def difference(self, one: tuple[Seen, list[str]], other: tuple[Seen, list[str]]) -> str | None:
        """What two iterations did not do alike, None for nothing."""
        if one[1] != other[1]:
            return "what is printed"
        different = next(self.before.differences(one[0], other[0]), None)
        return None if different is None else described(different)


def _is_any(name: str) -> bool:
    """Of all variables of functions around, and of the program."""
    return True
