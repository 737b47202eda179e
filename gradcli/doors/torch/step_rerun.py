"""Runs a step of a PyTorch program again, and finds the operation whose result is the first that is
not finite.

This file is loaded by `recorder.py`, beside which it stands, under the user's own Python: it needs
torch, and nothing of gradcli. The calls of the step are made again under a `TorchDispatchMode`,
which sees each operation of both passes below autograd, in the order in which they run. From what
is not finite in the end, a loss or a gradient, a walk over the operands leads to the operation that
it began with; a second run keeps that one's operands, on which cures are tried.
"""

from __future__ import annotations

import io
import linecache
import math
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

torch: Any = None
recorder: Any = None

MOST_CHAIN = 8
ROUNDS, FEWEST_ROUNDS, GROWING, LARGE = 10, 5, 1.3, 1e3
MOST_NAMED = 12
MOST_VALUES = 1 << 24
"""Elements of the operands that cures are tried on."""


def use(torch_module: Any, recording: ModuleType) -> None:
    """Take the modules that this one works with."""
    global torch, recorder
    torch, recorder = torch_module, recording


REPEATED, UNREPEATED = "run again, ", "could not be run again: "
"""How the reason begins for a step that was run again and is finite, and what stands before others.
"""


class Unrepeatable(Exception):
    """A step that cannot be run again, and why."""


# --- what ran -------------------------------------------------------------------------------------


class Parent:
    """An operand that is not finite.

    Attributes:
        producer: the number of the operation that wrote it, -1 for a tensor from outside.
        tensor: that tensor, None for a result.
    """

    __slots__ = ("has_inf", "has_nan", "only_negative", "producer", "tensor")

    def __init__(self, producer: int, tensor: Any, operand: Any) -> None:
        self.producer = producer
        self.tensor = tensor
        self.has_nan = bool(torch.isnan(operand).any())
        infinite = operand[torch.isinf(operand)] if not operand.is_complex() else operand[:0]
        self.has_inf = bool(infinite.numel())
        self.only_negative = self.has_inf and bool((infinite < 0).all())


class Step:
    """An operation that ran: its name, place and module, and the node of the graph it served.

    Attributes:
        node: in the backward pass the name of the node, else "".
        sequence: the number of the node, counted from the beginning of the step.
        source: the operation that made its first tensor; -1 for none.
        parents: the operands that are not finite; None where the result is finite.
        constants: the numbers among its operands that are not finite.
    """

    __slots__ = ("constants", "has_nan", "module", "name", "node", "parents", "place", "sequence",
                 "source")  # fmt: skip

    def __init__(self, name: str, place: Any, module: Any, node: str, sequence: int) -> None:
        self.name = name
        self.place = place
        self.module = module
        self.node = node
        self.sequence = sequence
        self.source = -1
        self.parents: list[Parent] | None = None
        self.constants: list[float] = []
        self.has_nan = False

    @property
    def line(self) -> tuple[Any, ...]:
        """What it has in common with those of the same line, in other rounds of a loop."""
        return self.name, self.node, self.module, self.place and self.place[0]


class Kept:
    """The operands and results of the operation in question, copied."""

    def __init__(self, function: Any, args: Any, kwargs: Any) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.results: list[Any] = []


class Nodes:
    """Numbers the nodes of the graph in the order in which they are made, from 0.

    PyTorch 2.0 does not show the numbers that it gives them. There the anomaly mode, which notes a
    stack in each node that is made, notes a number.
    """

    def __init__(self) -> None:
        self.shows = hasattr(torch._C._autograd, "_get_sequence_nr")
        self.base = torch._C._autograd._get_sequence_nr() if self.shows else 0
        self.nodes = 0

    def last(self) -> int:
        """The number of the node that was made last, -1 for none."""
        number = torch._C._autograd._get_sequence_nr() - self.base if self.shows else self.nodes
        return int(number) - 1

    def of(self, node: Any) -> int:
        """The number of a node; a negative one for what was made before."""
        if self.shows:
            return int(node._sequence_nr()) - self.base
        noted = (node.metadata or {}).get(_NOTED, ())
        return noted[0] if noted and type(noted[0]) is int else -1

    @contextmanager
    def counted(self) -> Iterator[None]:
        """A block in which the nodes that are made are counted."""
        if self.shows:
            yield
            return

        def count() -> list[int]:
            self.nodes += 1
            return [self.nodes - 1]

        stacks = torch.fx.traceback
        former = stacks.format_stack
        stacks.format_stack = count
        try:
            with torch.autograd.set_detect_anomaly(True, check_nan=False):
                yield
        finally:
            stacks.format_stack = former


_NOTED = "traceback_"
"""Under what the anomaly mode notes a stack in a node."""


class Scan:
    """One run of a step, operation by operation.

    Attributes:
        wanted: the numbers of the operations whose operands are kept.
        alike: the operation that is looked at, None in the first run; in `sizes` is for each line
            the largest element of its result, each time that it ran.
        status: for each memory that was seen the operation that wrote what is not finite there,
            -1 where all is finite, `OUTSIDE` for what came so from outside.
        writers: for each memory the operation that wrote to it last.
        forward: for each node of the graph, by its number, the operation that it belongs to.
    """

    def __init__(self, rerun: Rerun, wanted: frozenset[int]) -> None:
        self.rerun = rerun
        self.wanted = wanted
        self.steps: list[Step] = []
        self.status: dict[int, int] = {}
        self.writers: dict[int, int] = {}
        self.outside: dict[int, Any] = {}
        self.forward: dict[int, int] = {}
        self.kept: dict[int, Kept] = {}
        self.sizes: dict[Any, list[tuple[int, float]]] = {}
        self.alike: Step | None = None
        self.nodes = Nodes()
        hears = self._hears
        modes = torch.utils._python_dispatch
        body = {
            "__torch_dispatch__": lambda _, f, types, args=(), kwargs=None: hears(f, args, kwargs)
        }
        self.mode = type("Scanning", (modes.TorchDispatchMode,), body)()

    def _hears(self, function: Any, args: Any, kwargs: Any) -> Any:
        kwargs = kwargs or {}
        number = len(self.steps)
        node = torch._C._current_autograd_node()
        if self.rerun.modules and torch.is_grad_enabled():
            node = None  # a checkpointed region, which is computed once more in the backward pass
        if node is None:
            sequence = self.nodes.last()
            self.forward.setdefault(sequence, number)
        else:
            sequence = self.nodes.of(node)
        step = Step(
            function.name(),
            self.rerun.place(sys._getframe(2)),
            self.rerun.modules[-1] if self.rerun.modules else None,
            "" if node is None else type(node).__name__,
            sequence,
        )
        self.steps.append(step)
        operands = list(recorder.tensors_in([args, kwargs]))
        if operands:
            step.source = self.writers.get(recorder._storage(operands[0]), -1)
        parents = [each for each in map(self._parent, operands) if each is not None]
        if number in self.wanted:
            self.kept[number] = Kept(function, _copied(args), _copied(kwargs))
        result = function(*args, **kwargs)
        shared = {recorder._storage(each) for each in operands}
        if self.alike is not None:
            parts = [each for each in recorder.tensors_in(result) if _is_floating(each)]
            if parts:
                size = number, float(parts[0].abs().max())
                self.sizes.setdefault(step.line, []).append(size)
        for each in recorder.tensors_in(result):
            self._take(each, number, function, shared, parents, (args, kwargs))
        if number in self.wanted:
            self.kept[number].results = _copied(list(recorder.tensors_in(result)))
        return result

    def _parent(self, operand: Any) -> Parent | None:
        """What is not finite in an operand; None where all is."""
        if not _is_floating(operand):
            return None
        storage = recorder._storage(operand)
        status = self.status.get(storage)
        if status is None:
            status = -1 if _is_finite(operand) else OUTSIDE
            self.status[storage] = status
            if status == OUTSIDE:
                self.outside[storage] = operand
        if status == -1 or _is_finite(operand):
            return None
        outside = self.outside.get(storage) if status == OUTSIDE else None
        return Parent(-1 if status == OUTSIDE else status, outside, operand)

    def _take(
        self, result: Any, number: int, function: Any, shared: set[int], parents: Any, written: Any
    ) -> None:
        """Note whether a result is finite."""
        storage = recorder._storage(result)
        if storage not in shared or function._schema.is_mutable:
            self.writers[storage] = number
        if not _is_floating(result) or (storage in shared and not function._schema.is_mutable):
            return
        step = self.steps[number]
        if step.name.startswith(("aten::empty", "aten::new_empty")):
            self.status[storage] = -1
            return
        if _is_finite(result):
            former = self.status.get(storage, -1)
            whole = result.numel() * result.element_size() >= result.untyped_storage().nbytes()
            self.status[storage] = -1 if whole else former
            return
        self.status[storage] = number
        self.outside.pop(storage, None)
        step.parents = parents
        step.constants = [each for each in _numbers(written) if not math.isfinite(each)]
        step.has_nan = step.has_nan or bool(torch.isnan(result).any())

    def producer_of(self, tensor: Any) -> int:
        """The operation that wrote what is not finite in a tensor; -1 for none."""
        return self.status.get(recorder._storage(tensor), -1)


OUTSIDE = -2


class Origin:
    """Where something that is not finite came from.

    Attributes:
        kind: "op", "constant" or "outside".
        number: the operation, which for "constant" has the number, and for "outside" reads it.
        chain: the operations from there to what is not finite in the end, last first.
    """

    def __init__(self, kind: str, number: int, tensor: Any, chain: list[int]) -> None:
        self.kind = kind
        self.number = number
        self.tensor = tensor
        self.chain = chain
        self.source: Origin | None = None


def origin_of(steps: list[Step], number: int) -> Origin:
    """The operation that a result that is not finite began with.

    An infinity that a constant brings in, as for a mask, is no fault: then it is the operation that
    makes NaN of it.
    """
    chain = [number]
    while True:
        step = steps[chain[-1]]
        parents = step.parents or []
        same = [each for each in parents if each.has_nan] if step.has_nan else parents
        if step.has_nan and not same:
            return _born(steps, chain, [each for each in parents if each.has_inf])
        if not same:
            kind = "constant" if step.constants else "op"
            return Origin(kind, chain[-1], None, chain)
        first = min(same, key=lambda each: each.producer)
        if first.producer < 0:
            return Origin("outside", chain[-1], first.tensor, chain)
        chain.append(first.producer)


def _born(steps: list[Step], chain: list[int], infinite: list[Parent]) -> Origin:
    """The origin of a NaN that an operation made of infinities, or of finite operands."""
    origin = Origin("op", chain[-1], None, chain)
    if steps[chain[-1]].constants:
        origin.source = Origin("constant", chain[-1], None, [])
    if not infinite:
        return origin
    first = min(infinite, key=lambda each: each.producer)
    if first.producer < 0:
        source = Origin("outside", chain[-1], first.tensor, [])
    else:
        source = origin_of(steps, first.producer)
    is_mask = first.only_negative and "softmax" in steps[chain[-1]].name
    if source.kind == "constant" or (source.kind == "outside" and is_mask):
        origin.source = source
        return origin
    source.chain = [*chain, *source.chain]
    return source


def _is_floating(tensor: Any) -> bool:
    return bool(
        (tensor.is_floating_point() or tensor.is_complex())
        and tensor.layout is torch.strided
        and tensor.numel()
        and tensor.device.type != "meta"
    )


def _is_finite(tensor: Any) -> bool:
    return bool(torch.isfinite(tensor).all())


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, dict):
        yield from _numbers(list(value.values()))


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_copied, value)) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return value


# --- the run --------------------------------------------------------------------------------------


class Rerun:
    """Makes the calls of a step again.

    Attributes:
        modules: the modules that are running.
        current: the call that is made.
    """

    def __init__(self, watcher: Any, end: Any) -> None:
        self.watcher = watcher
        self.modules: list[Any] = []
        self.current: Any = None
        self.end = end
        self.calls = self._needed()
        self._check()
        self.leaves = self._leaves()
        self.losses: list[Any] = []
        self.grads: dict[str, Any] = {}
        self.nodes: dict[int, Any] = {}

    def _needed(self) -> list[Any]:
        """The calls that the backward passes of the step depend on, in their order."""
        window = self.watcher.window
        wanted = [each for each in window.calls if each.kind == "backward"]
        if self.end is not None:
            known = self.watcher.known.get(id(self.end))
            wanted = [known[1].call] if known is not None else []
        if not wanted:
            raise Unrepeatable("what the loss was computed by was not heard")
        needed = {id(each): each for each in wanted}
        while wanted:
            call = wanted.pop()
            if call.args is None:
                raise Unrepeatable("the loss depends on a step before the last one")
            if call.unknown:
                raise Unrepeatable("a part of what the loss was computed by was not heard")
            for result in _results_in([call.args, call.kwargs]):
                if id(result.call) not in needed:
                    needed[id(result.call)] = result.call
                    wanted.append(result.call)
        attached = [
            each
            for each in window.calls
            if each.kind == "function"
            and getattr(each.function, "__name__", "") in ("register_hook", "retain_grad")
            and all(id(r.call) in needed for r in _results_in([each.args]))
        ]
        needed.update((id(each), each) for each in attached)
        return sorted(needed.values(), key=lambda each: each.serial)

    def _check(self) -> None:
        """Raise `Unrepeatable` where a step would not be the same, or do more than compute."""
        for call in self.calls:
            for tensor, version in call.outside:
                if recorder.version_of(tensor) != version and not isinstance(
                    tensor, torch.nn.Parameter
                ):
                    name = self.watcher.name_of(tensor) or "an operand"
                    raise Unrepeatable(f"{name} was written to since")
            if call.kind == "module" and "FullyShardedDataParallel" in type(call.function).__name__:
                raise Unrepeatable("its parameters are sharded over several processes")

    def _leaves(self) -> dict[int, tuple[Any, str]]:
        """The tensors that gradients are collected in, with their names."""
        watcher = self.watcher
        paths = watcher.paths()
        tensors = [
            each
            for root in dict.fromkeys(watcher.roots.values())
            for each in root.module.parameters()
        ]
        tensors += [each for table in watcher.all_tables for each in table.parameters]
        outside = [each for call in self.calls for each, _ in call.outside]
        tensors += [each for each in outside if recorder.node_of(each) is None]
        leaves: dict[int, tuple[Any, str]] = {}
        for each in tensors:
            if each.requires_grad and id(each) not in leaves:
                name = paths.get(id(each)) or watcher.name_of(each) or "a tensor"
                leaves[id(each)] = each, name
                if getattr(each, "_post_accumulate_grad_hooks", None):
                    raise Unrepeatable("a hook behind the gradients, which may change parameters")
        return leaves

    def call(self, former: Any, module: Any, args: Any, kwargs: Any) -> Any:
        """A module that is called while the step runs."""
        self.modules.append(module)
        try:
            return former(module, *args, **kwargs)
        finally:
            self.modules.pop()

    def place(self, frame: Any) -> Any:
        """The user's innermost frame of an operation; that of the call where it has none."""
        while frame is not None:
            file = frame.f_code.co_filename
            if file == __file__ and frame.f_code.co_name == "_make":
                break
            if not self.watcher.is_internal(file):
                return frame.f_code, frame.f_lasti
            frame = frame.f_back
        return self.current.place if self.current is not None else None

    def scanned(
        self,
        wanted: frozenset[int] = frozenset(),
        node: int = -1,
        alike: Step | None = None,
    ) -> Scan:
        """One run of the step; everything is afterwards as it was before.

        Args:
            alike: an operation whose results are measured each time that it runs.
            node: the number of a node of the graph whose gradients are kept in `nodes`.
        """
        self.losses, self.grads, self.nodes = [], {}, {}
        self.node = node
        self.values: dict[int, list[Any]] = {}
        with self._restored():
            scan = self.scan = Scan(self, wanted)
            scan.alike = alike
            with scan.nodes.counted(), scan.mode:
                for call in self.calls:
                    self._make(call)
            if self.end is not None:
                self.losses.append(self.values[id(self.calls[-1])][0].detach())
            self.producers = [scan.producer_of(each) for each in self.losses]
            self.grads = {
                name: leaf.grad for leaf, name in self.leaves.values() if leaf.grad is not None
            }
            self.spoilt = {
                name: scan.producer_of(grad)
                for name, grad in self.grads.items()
                if _is_floating(grad) and not _is_finite(grad)
            }
            self.grads = {}
        return scan

    def _make(self, call: Any) -> None:
        """Make a call again."""
        self.current = call
        args, kwargs = self._thawed(call.args), self._thawed(call.kwargs)
        if call.kind == "backward":
            losses = list(recorder.tensors_in(args[:1] or list(kwargs.values())[:1]))
            self.losses += [each.detach() for each in losses]
        function = call.function
        if call.kind == "module":
            *_, function = recorder.layers_of(function)
        if call.state is not None:
            self.watcher_module().set_generators(call.state)
        with torch.set_grad_enabled(call.grad), _autocast(call.autocast):
            result = function(*args, **kwargs)
        if getattr(function, "__name__", "") in self.watcher_module().WRITING:
            result = args[0]
        self.values[id(call)] = list(self.watcher_module().tensors_in(result))

    def watcher_module(self) -> Any:
        """The module of the watcher."""
        return sys.modules[type(self.watcher).__module__]

    def _thawed(self, value: Any) -> Any:
        """Operands with the results of this run."""
        kind = type(value)
        if kind.__name__ == "Result" and hasattr(value, "position"):
            return self.values[id(value.call)][value.position]
        if kind is tuple or kind is list:
            return kind([self._thawed(each) for each in value])
        if kind is dict:
            return {key: self._thawed(each) for key, each in value.items()}
        return value

    def differentiates(self, args: Any, kwargs: Any) -> None:
        """Keep the gradients that a node of the graph takes and gives, when a pass begins."""
        if self.node < 0:
            return
        losses = recorder.tensors_in(args[:1] or list(kwargs.values())[:1])
        nodes = [node for node in map(recorder.node_of, losses) if node is not None]
        seen = set(nodes)
        while nodes:
            node = nodes.pop()
            if self.scan.nodes.of(node) == self.node and getattr(node, "variable", None) is None:

                def hook(leaving: Any, arrived: Any) -> None:
                    self.nodes[0] = _copied(list(arrived)), _copied(list(leaving))

                node.register_hook(hook)
                self.node = -1
            for follower, _ in node.next_functions:
                if follower is not None and follower not in seen:
                    seen.add(follower)
                    nodes.append(follower)

    @contextmanager
    def _restored(self) -> Iterator[None]:
        """Buffers, gradients, generators and streams as they are when the block begins."""
        watcher = self.watcher
        module = self.watcher_module()
        states = module.generators(), random.getstate()
        numbers = sys.modules.get("numpy.random")
        numpy_state = None if numbers is None else numbers.get_state()
        grads = [(leaf, leaf.grad) for leaf, _ in self.leaves.values()]
        buffers = [(each, each.detach().clone()) for each, _ in watcher.window.buffers.values()]
        streams = sys.stdout, sys.stderr
        enabled = torch.is_grad_enabled()
        for leaf, _ in grads:
            leaf.grad = None
        with torch.no_grad():
            for each, before in watcher.window.buffers.values():
                each.copy_(before)
        watcher.rerun = self
        sys.stdout = sys.stderr = io.StringIO()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        finally:
            sys.stdout, sys.stderr = streams
            watcher.rerun = None
            torch.set_grad_enabled(enabled)
            with torch.no_grad():
                for each, after in buffers:
                    each.copy_(after)
            for leaf, grad in grads:
                leaf.grad = grad
            module.set_generators(states[0])
            random.setstate(states[1])
            if numbers is not None:
                numbers.set_state(numpy_state)


def _results_in(value: Any) -> Iterator[Any]:
    if type(value).__name__ == "Result" and hasattr(value, "position"):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _results_in(each)
    elif type(value) is dict:
        yield from _results_in(list(value.values()))


@contextmanager
def _autocast(regions: Any) -> Iterator[None]:
    """The autocast regions that a call was made in."""
    held = [torch.autocast(device, dtype=dtype) for device, dtype in regions]
    for each in held:
        each.__enter__()
    try:
        yield
    finally:
        for each in reversed(held):
            each.__exit__(None, None, None)


# --- the report -----------------------------------------------------------------------------------


def report(watcher: Any, bad: list[str], losses: list[float], end: Any) -> dict[str, Any]:
    """What is found of a step whose loss or gradients are not finite.

    Args:
        bad: the parameters whose gradients are not finite.
        end: what the program computed last, where no backward pass ran.
    """
    shown: dict[str, Any] = {
        "spoilt": (["the loss"] if any(not math.isfinite(each) for each in losses) else [])
        + [f"{name}.grad" for name in bad[:MOST_NAMED]],
        "more": max(len(bad) - MOST_NAMED, 0),
        "seen": _seen(watcher),
        "again": False,
        "reason": "",
    }
    try:
        rerun = Rerun(watcher, end)
        scan = rerun.scanned()
        origin = _target(rerun, scan)
        if origin is None:
            raise Unrepeatable(
                f"{REPEATED}the step is finite in this process: its gradients are averaged with"
                " those of others, whose recordings say where it began"
                if watcher.settings.rank is not None and not shown["seen"]
                else f"{REPEATED}the step is finite: something that is not kept took part, as"
                " NumPy's random numbers, or what a module changes as it runs"
            )
        shown.update(Facts(rerun, scan, origin).written())
        shown["again"] = True
    except Exception as error:
        shown["reason"] = (
            str(error)
            if isinstance(error, Unrepeatable)
            else f"running the step again failed: {type(error).__name__}: {error}"[:500]
        )
    return shown


def _seen(watcher: Any) -> list[list[Any]]:
    """The modules whose results were not finite, in the order in which they ran."""
    paths = watcher.paths()
    module = sys.modules[type(watcher).__module__]
    rows: list[list[Any]] = []
    for names, norms in watcher.window.flags:
        for (each, shape), norm in zip(names, module.read(norms), strict=True):
            if not math.isfinite(norm) and len(rows) < MOST_NAMED:
                rows.append([paths.get(id(each), ""), type(each).__name__, list(shape)])
    return rows


def _target(rerun: Rerun, scan: Scan) -> Origin | None:
    """The origin of what is not finite first: of a loss, or else of a gradient."""
    losses = [each for each in rerun.producers if each != -1]
    if losses:
        number = losses[0]
        if number == OUTSIDE:
            return Origin("outside", -1, rerun.losses[0], [])
        return origin_of(scan.steps, number)
    origins = [origin_of(scan.steps, each) for each in rerun.spoilt.values() if each >= 0]
    return min(origins, key=lambda each: each.number, default=None)


class Facts:
    """What a report says of an operation: its place, its element, its operands there, the cure."""

    def __init__(self, rerun: Rerun, scan: Scan, origin: Origin) -> None:
        self.rerun = rerun
        self.watcher = rerun.watcher
        self.scan = scan
        self.origin = origin
        self.step = scan.steps[origin.number] if origin.number >= 0 else None
        self.paths = self.watcher.paths()

    def written(self) -> dict[str, Any]:
        """The facts as what the file holds."""
        facts = {**self._where(self.origin.number), **self._chain()}
        if self.origin.kind == "outside":
            return {**facts, **self._entered()}
        assert self.step is not None
        if self.step.node:
            return {**facts, **self._backward()}
        return {**facts, **self._forward()}

    # --- places -----------------------------------------------------------------------------------

    def _where(self, number: int) -> dict[str, Any]:
        """The operation, its module and its place; of the backward pass those of the operation
        whose derivative it is.
        """
        if number < 0:
            return {"op": "", "node": "", "module": None, "place": None, "called": None}
        step = self.scan.steps[number]
        forward = step
        if step.node:
            first = self.scan.forward.get(step.sequence)
            forward = self.scan.steps[first] if first is not None else step
        module = forward.module
        return {
            "op": forward.name.replace("::", "."),
            "node": step.node,
            "module": None
            if module is None
            else [self.paths.get(id(module), type(module).__name__), type(module).__name__],
            "place": placed(forward.place),
        }

    def _chain(self) -> dict[str, Any]:
        """The operations that handed it on, in their order."""
        rows: list[list[Any]] = []
        for number in reversed(self.origin.chain[:-1]):
            where = self._where(number)
            row = [where["node"] or where["op"], where["module"], where["place"]]
            if not rows or rows[-1] != row:
                rows.append(row)
        if len(rows) > MOST_CHAIN:
            rows = [*rows[: MOST_CHAIN - 1], rows[-1]]
        return {"chain": rows}

    def _name(self, tensor: Any) -> tuple[str, str]:
        """What a tensor from outside is, and its name."""
        storage = recorder._storage(tensor)
        for root in dict.fromkeys(self.watcher.roots.values()):
            for kind, held in (
                ("parameter", root.module.parameters()),
                ("buffer", root.module.buffers()),
            ):
                for each in held:
                    if recorder._storage(each) == storage:
                        return kind, self.paths.get(id(each), kind)
        for call in self.rerun.calls:
            for each, _ in call.outside:
                if recorder._storage(each) == storage:
                    name = self.watcher.name_of(each)
                    if each.requires_grad and each.is_leaf:
                        return "parameter", name or "a leaf"
                    return "data", name or self._operand_name(call)
        return "constant", "a tensor that is made there"

    def _operand_name(self, call: Any) -> str:
        name = self.paths.get(id(call.function)) if call.kind == "module" else None
        return f"what {name or 'a function'} is called with"

    # --- what entered -----------------------------------------------------------------------------

    def _entered(self) -> dict[str, Any]:
        tensor = self.origin.tensor
        for call in self.rerun.calls:  # what the program holds, not the part that was read first
            for each, _ in call.outside:
                if recorder._storage(each) == recorder._storage(tensor):
                    tensor = each
        kind, name = self._name(tensor)
        rows = int((~torch.isfinite(tensor)).flatten(1).any(1).sum()) if tensor.dim() > 1 else 0
        return {
            "phase": kind,
            "called": name,
            **_facts_at(tensor, _first_bad(tensor)),
            "rows": rows,
            "operands": [],
            "cure": _without_rows(tensor) if kind == "data" else None,
        }

    # --- passes -----------------------------------------------------------------------------------

    def _forward(self) -> dict[str, Any]:
        number = self.origin.number
        facts: dict[str, Any] = {"phase": "forward", "called": "", "operands": [], "cure": None}
        inner = joined_with(self.scan.steps, number)
        scan = self.rerun.scanned(frozenset({number, inner} - {-1}), alike=self.step)
        facts.update(self._growth(scan))
        kept = scan.kept.get(number)
        result = next((r for r in kept.results if not _is_finite(r)), None) if kept else None
        if kept is None or result is None:
            return facts
        element = _first_bad(result)
        facts.update(
            **_facts_at(result, element),
            operands=operands_at(kept, result, element),
            cure=self._joined(scan, inner) or cure_of(kept, None),
        )
        if self.origin.source is not None:
            facts["source"] = self._source(self.origin.source)
        return facts

    def _source(self, source: Origin) -> dict[str, Any]:
        """Where the infinities of the operands came from."""
        where = self._where(source.number)
        kind, name = ("constant", "") if source.kind == "constant" else self._name(source.tensor)
        return {"kind": kind, "name": name, "op": where["op"], "place": where["place"]}

    def _backward(self) -> dict[str, Any]:
        step = self.step
        assert step is not None
        facts: dict[str, Any] = {"phase": "backward", "called": "", "operands": [], "cure": None}
        first = self.scan.forward.get(step.sequence)
        inner = -1 if first is None else joined_with(self.scan.steps, first)
        wanted = frozenset({-1 if first is None else first, inner} - {-1})
        scan = self.rerun.scanned(wanted, step.sequence, step)
        facts.update(self._growth(scan))
        kept = scan.kept.get(first) if first is not None else None
        arrived, leaving = self.rerun.nodes.get(0, ([], []))
        bad = next((g for g in leaving if g is not None and not _is_finite(g)), None)
        if bad is None:
            return facts
        element = _first_bad(bad)
        facts.update(_facts_at(bad, element))
        incoming = next((g for g in arrived if g is not None), None)
        if incoming is not None and incoming.shape == bad.shape:
            facts["incoming"] = spelled(incoming[tuple(element)])
        elif incoming is not None:
            facts["incoming_range"] = _range(incoming)
        if kept is not None:
            facts["operands"] = operands_at(kept, bad, element)
            facts["cure"] = self._joined(scan, inner) or cure_of(kept, incoming)
        return facts

    def _growth(self, scan: Scan) -> dict[str, Any]:
        """What grew from round to round: the operation itself, or else what it took, as a state
        that an operation behind the loop squares.
        """
        assert self.step is not None
        number = self.origin.number
        own = growth_of(scan.sizes.get(self.step.line, []), number)
        if own is not None:
            return {"growth": own}
        grown = [
            (sizes[-1][1], growth, sizes[-1][0])
            for sizes in ([row for row in rows if row[0] < number] for rows in scan.sizes.values())
            if sizes and (growth := growth_of(sizes, number)) is not None
        ]
        if not grown:
            return {"growth": None}
        most, growth, last = max(grown)
        at = self.scan.steps[last].place
        return {"growth": growth, "growing": placed(at)} if most > LARGE else {"growth": None}

    def _joined(self, scan: Scan, number: int) -> dict[str, Any] | None:
        """The one function that is the logarithm of another one's result, which was tried."""
        kept = scan.kept.get(number)
        if kept is None:
            return None
        place = self._where(number)["place"]
        at = f" at {place[0]}:{place[1]}" if place else ""
        return joined_cure(kept, at)


def growth_of(sizes: list[tuple[int, float]], until: int) -> list[float] | None:
    """How many times a line had run when an operation began what is not finite, and by how much its
    result grew each time; None where it did not.
    """
    finite = [size for number, size in sizes if number < until and math.isfinite(size)]
    recent = [each for each in finite[-ROUNDS:] if each > 0]
    if len(recent) < FEWEST_ROUNDS:
        return None
    factor = (recent[-1] / recent[0]) ** (1 / (len(recent) - 1))
    return [len(finite) + 1, factor] if factor > GROWING else None


def placed(place: Any) -> list[Any] | None:
    """A place as file, line, function and text of the line."""
    if place is None:
        return None
    code, at = place
    line = recorder.line_of(code, at)
    text = linecache.getline(code.co_filename, line).strip()[:500]
    return [recorder._relative(code.co_filename), line, code.co_name, text]


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _facts_at(tensor: Any, element: list[int]) -> dict[str, Any]:
    """What is told of a tensor that is not finite, and of one such element."""
    return {
        "element": element,
        "shape": list(tensor.shape),
        "dtype": _dtype(tensor),
        "value": spelled(tensor[tuple(element)]),
        "count": int((~torch.isfinite(tensor)).sum()),
    }


def _first_bad(tensor: Any) -> list[int]:
    """The first element that is NaN, or else infinite."""
    bad = torch.isnan(tensor)
    if not bool(bad.any()):
        bad = ~torch.isfinite(tensor)
    flat = int(bad.flatten().to(torch.uint8).argmax())
    element: list[int] = []
    for size in reversed(tensor.shape):
        element.insert(0, flat % size)
        flat //= size
    return element


def spelled(value: Any) -> Any:
    """A number as JSON has it: those that are not finite as a word."""
    value = value.item() if isinstance(value, torch.Tensor) else value
    if isinstance(value, complex):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _range(tensor: Any) -> list[Any]:
    """The smallest and the largest number, those that are not NaN."""
    values = tensor[~torch.isnan(tensor)].to(torch.float64)
    if not values.numel():
        return ["NaN", "NaN"]
    return [spelled(values.min()), spelled(values.max())]


def operands_at(kept: Kept, result: Any, element: list[int]) -> list[dict[str, Any]]:
    """The operands at an element of the result: their number there, or the range of those that it
    is computed from.
    """
    rows = []
    named = zip(kept.function._schema.arguments, kept.args, strict=False)
    operands = [(each.name, value) for each, value in named] + list(kept.kwargs.items())
    for name, value in operands:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if isinstance(value, float) or name in ("other", "exponent", "value"):
                rows.append({"parameter": name, "value": spelled(value)})
        elif isinstance(value, torch.Tensor) and _is_floating(value) and not value.is_complex():
            rows.append({"parameter": name, **_at(kept.function.name(), name, value, result,
                                                  element)})  # fmt: skip
    return rows[:8]


def _at(op: str, name: str, operand: Any, result: Any, element: list[int]) -> dict[str, Any]:
    try:
        whole = operand.expand(result.shape)
        return {"value": spelled(whole[tuple(element)])}
    except RuntimeError:
        pass
    short = op.removeprefix("aten::").partition(".")[0]
    part = operand
    if short in ("mm", "addmm", "bmm", "baddbmm") and len(element) >= 2:
        if (name in ("self", "mat1", "batch1") and short != "addmm") or name == "mat1":
            part = operand[tuple(element[:-1])] if operand.dim() == len(element) else operand
        elif name in ("mat2", "batch2"):
            column = operand[..., element[-1]]
            part = column[element[0]] if operand.dim() == 3 else column
    low, high = _range(part)
    return {"low": low, "high": high}


# --- cures ----------------------------------------------------------------------------------------


def joined_with(steps: list[Step], number: int) -> int:
    """The operation whose result a logarithm takes, whole or some elements of it, where one
    function computes both; -1 for none.
    """
    if steps[number].name not in ("aten::log", "aten::log2", "aten::log10"):
        return -1
    at = steps[number].source
    while at >= 0 and steps[at].name in SELECTING:
        at = steps[at].source
    return at if at >= 0 and steps[at].name in JOINED else -1


SELECTING = frozenset(
    {"aten::gather", "aten::index.Tensor", "aten::index_select", "aten::clone", "aten::squeeze",
     "aten::select.int", "aten::slice.Tensor", "aten::view", "aten::_to_copy", "aten::take"}
)  # fmt: skip
"""Operations whose result holds elements of their first operand, as they are."""

JOINED: dict[str, tuple[str, Callable[..., Any]]] = {
    "aten::_softmax": ("F.log_softmax(x, dim={})", lambda x, dim, *_: x.log_softmax(dim)),
    "aten::sigmoid": (
        "F.logsigmoid(x), and F.logsigmoid(-x) for log(1 - p)",
        lambda x: torch.nn.functional.logsigmoid(x),
    ),
}
"""What the logarithm of an operation's result is, as a text and as a function."""


def joined_cure(kept: Kept, at: str) -> dict[str, Any] | None:
    """One function in the place of a logarithm of an operation's result, tried on that operation's
    operand; None where it does not help.

    Args:
        at: where the operation stands, " at FILE:LINE".
    """
    name = kept.function.name()
    text, compute = JOINED[name]
    args = [_leaf(each) for each in kept.args]
    with torch.enable_grad():
        result = compute(*args)
        (grad,) = torch.autograd.grad(result, args[:1], torch.ones_like(result))
    close = torch.isclose(result.detach().exp(), kept.results[0], rtol=1e-2, atol=1e-6)
    if not _is_finite(result) or not _is_finite(grad) or not bool(close.all()):
        return None
    short = name.removeprefix("aten::").strip("_")
    return {
        "text": text.format(*kept.args[1:]),
        "reason": f"one function computes {short}{at} and its log, and takes no log of 0",
        "proof": f"run on the operand of {short} in this step: all {result.numel():,} results are"
        f" finite, their exponentials are those of {short}, and all gradients are finite",
    }


class Cure:
    """Another way to compute an operation.

    Attributes:
        text: how a program writes it, with the operation's own names for its operands.
        reason: what it does.
        compute: computes it of the operands.
        choosing: whether it gives a number where mathematics has none.
    """

    def __init__(
        self, text: str, reason: str, compute: Callable[..., Any], choosing: bool = True
    ) -> None:
        self.text = text
        self.reason = reason
        self.compute = compute
        self.choosing = choosing


def cures_of(kept: Kept) -> Iterator[Cure]:
    """The cures that may help an operation, the best first."""
    x = next(recorder.tensors_in(kept.args), None)
    if x is None or not _is_floating(x):
        return
    short = kept.function.name().removeprefix("aten::").partition(".")[0].strip("_")
    for names, find in CURES:
        if short in names:
            yield from find(kept, short, x)
    yield from _wider(kept, x)


def _open_rows(kept: Kept, _short: str, _x: Any) -> Iterator[Cure]:
    dim = kept.args[1]

    def compute(x: Any, *rest: Any) -> Any:
        opened = x.masked_fill(x.isneginf().all(dim, keepdim=True), 0.0)
        return kept.function(opened, *rest, **kept.kwargs)

    yield Cure(
        f"self.masked_fill(self.isneginf().all({dim}, keepdim=True), 0.0)",
        "open the rows that are masked whole before the softmax, and leave out what comes of them",
        compute,
    )


def _above_zero(kept: Kept, short: str, x: Any) -> Iterator[Cure]:
    if not bool((x >= 0).all()):
        return
    half = x.dtype is torch.float16
    bound = torch.finfo(x.dtype).tiny if short.startswith("log") else 1e-4 if half else 1e-12
    kept_above = f"self.clamp_min({bound:.3g})"
    yield Cure(
        f"{kept_above} ** exponent" if short == "pow" else f"torch.{short}({kept_above})",
        "keep what goes in above 0",
        lambda x, *rest: kept.function(x.clamp_min(bound), *rest, **kept.kwargs),
    )


def _off_the_edge(kept: Kept, short: str, x: Any) -> Iterator[Cure]:
    edge = 1.0 - torch.finfo(x.dtype).eps
    high = math.inf if short == "log1p" else edge
    bounds = f"{-edge:.9g}" if short == "log1p" else f"{-edge:.9g}, {edge:.9g}"
    yield Cure(
        f"torch.{short}(self.clamp({bounds}))",
        "keep what goes in off the edge",
        lambda x, *rest: kept.function(x.clamp(-edge, high), *rest, **kept.kwargs),
    )


def _without_zeros(kept: Kept, _short: str, _x: Any) -> Iterator[Cure]:
    if len(kept.args) > 1 and isinstance(kept.args[1], torch.Tensor):
        yield Cure(
            "self / torch.where(other == 0, 1.0, other)",
            "divide by 1 where the divisor is 0",
            lambda x, other, *rest: kept.function(
                x, torch.where(other == 0, torch.ones_like(other), other), *rest, **kept.kwargs
            ),
        )


def _uncorrected(kept: Kept, short: str, _x: Any) -> Iterator[Cure]:
    yield Cure(
        f"torch.{short}(self, correction=0)",
        "one number has no deviation with correction=1; with correction=0 it is 0, which is another"
        " function",
        lambda x, *rest: kept.function(x, *rest, **{**kept.kwargs, "correction": 0}),
    )


def _summed(kept: Kept, _short: str, _x: Any) -> Iterator[Cure]:
    ignored = kept.args[4] if len(kept.args) > 4 else -100
    yield Cure(
        "F.cross_entropy(…, reduction='sum') / (target != ignore_index).sum().clamp_min(1)",
        "a batch whose targets are all ignored has no mean; its sum is 0",
        lambda x, target, weight, *_: (
            kept.function(x, target, weight, 2, ignored)[0] / (target != ignored).sum().clamp_min(1)
        ),
    )


CURES: tuple[tuple[tuple[str, ...], Callable[[Kept, str, Any], Iterator[Cure]]], ...] = (
    (("softmax", "log_softmax"), _open_rows),
    (("log", "log2", "log10", "rsqrt", "reciprocal", "sqrt", "pow"), _above_zero),
    (("acos", "asin", "atanh", "log1p"), _off_the_edge),
    (("div",), _without_zeros),
    (("std", "var"), _uncorrected),
    (("nll_loss_forward",), _summed),
)
"""The cures by the names of operations."""


def _wider(kept: Kept, x: Any) -> Iterator[Cure]:
    """The same operation in a wider dtype."""
    half = x.dtype in (torch.float16, torch.bfloat16)
    wider = torch.float32
    if not half:
        return

    def compute(*args: Any) -> Any:
        held = [
            each.to(wider) if isinstance(each, torch.Tensor) and each.dtype == x.dtype else each
            for each in args
        ]
        return kept.function(*held, **kept.kwargs)

    yield Cure(
        f'with torch.autocast("{x.device.type}", enabled=False): … self.float()',
        "compute it in float32, which holds the result",
        compute,
        False,
    )


def cure_of(kept: Kept, incoming: Any) -> dict[str, Any] | None:
    """The first cure that is finite on the operands, in both passes, and is the operation's own
    result wherever that is finite.

    Args:
        incoming: the gradient that arrived, of an operation whose derivative is not finite.
    """
    operands = list(recorder.tensors_in([kept.args, kept.kwargs]))
    if sum(each.numel() for each in operands) > MOST_VALUES or kept.function._schema.is_mutable:
        return None
    tried = 0
    for cure in cures_of(kept):
        tried += 1
        try:
            with torch.enable_grad():
                proof = _tried(kept, cure, incoming)
        except Exception:  # the operation takes other operands than the cure is for
            continue
        if proof:
            return {"text": cure.text, "reason": cure.reason, "proof": proof}
    return None


def _tried(kept: Kept, cure: Cure, incoming: Any) -> str:
    """What a cure gives on the operands; "" where it does not help."""
    args = [_leaf(each) for each in kept.args]
    leaves = [each for each in args if isinstance(each, torch.Tensor) and each.requires_grad]
    result = next(recorder.tensors_in(cure.compute(*args)))
    former = kept.results[0]
    if not _is_finite(result):
        return ""
    if cure.choosing is False and incoming is None and _is_finite(former):
        return ""
    seed = incoming if incoming is not None else torch.ones_like(result)
    if seed.shape != result.shape:
        return ""
    grads = torch.autograd.grad(result, leaves, seed.to(result.dtype), allow_unused=True)
    if not all(each is None or _is_finite(each) for each in grads):
        return ""
    finite = torch.isfinite(former)
    close = torch.isclose(result.detach().to(former.dtype), former, rtol=1e-3, atol=0.0)
    agree, total = int((close & finite).sum()), former.numel()
    if former.shape == result.shape and int(finite.sum()) > agree + int(
        (finite & ~close).sum() if incoming is not None else 0
    ):
        return ""
    said = f"run on the operands of this step: {total:,} of {total:,} results are finite"
    if agree:
        said += f", {agree:,} are those of the run"
    return f"{said}, and so are all gradients"


def _leaf(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and _is_floating(value):
        return value.detach().clone().requires_grad_()
    return value


def _without_rows(tensor: Any) -> dict[str, Any] | None:
    """Leaving out the rows of a batch that are not finite, tried on it."""
    if not tensor.dim():
        return None
    good = torch.isfinite(tensor.detach()).flatten(1).all(1) if tensor.dim() > 1 else (
        torch.isfinite(tensor.detach())
    )  # fmt: skip
    kept = int(good.sum())
    if not kept:
        return None
    part = ".flatten(1).all(1)" if tensor.dim() > 1 else ""
    return {
        "text": f"keep = torch.isfinite(x){part}; x, y = x[keep], y[keep]",
        "reason": "leave out the rows that are not finite",
        "proof": f"run on this batch: {kept:,} of {len(good):,} rows are finite",
    }


def summary(shown: dict[str, Any]) -> str:
    """A report in a line."""
    step = f"step {shown['step']:,} is not finite"
    if not shown["again"]:
        reason = shown["reason"]
        before = "; " if reason.startswith(REPEATED) else f", and {UNREPEATED}"
        return f"{step}{before}{reason}"
    place = shown.get("place")
    at = f" at {place[0]}:{place[1]}" if place else ""
    inside = f" in {shown['module'][0]}," if shown.get("module") else ""
    if shown["phase"] in ("forward", "backward"):
        return f"{step}:{inside} the {shown['phase']} pass of {shown['op']}{at}"
    return f"{step}: the {shown['phase']} {shown['called']} holds {shown['value']}"
