"""Watches each step of a PyTorch program, writes down a line of figures for each parameter, and
runs the first step again whose loss or gradients are not finite.

This file is loaded by `recorder.py`, beside which it stands, under the user's own Python: it needs
torch and NumPy, and nothing of gradcli. What a step needs to be run again is a list of its calls:
those of outermost modules, which `Module.__call__` hears, and those of PyTorch's functions between
them and the backward pass, which a `TorchFunctionMode` hears that is on for that long only. A call
keeps its operands by reference and the states of the generators; results are kept by nobody.

`gradcli help formats` has the format of the file.
"""

from __future__ import annotations

import array
import functools
import math
import os
import sys
import tempfile
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

torch: Any = None
np: Any = None
recorder: Any = None
rerunning: Any = None

SAMPLE, UPDATED = 1 << 16, 1 << 12
"""Elements of a gradient whose zeros are counted, and of a parameter whose update is measured; of a
larger one so many, at equal distances, stand for all.
"""

NONE = -1.0
"""The figure of a gradient that is none, and of an update that is not known."""

MOST_CALLS = 256
"""Calls without a backward pass after which those are dropped whose results nobody holds."""

MOST_REASONS = 4
"""So many reasons of a gradient that is none are kept for each parameter."""


def use(torch_module: Any, numpy: Any, recording: ModuleType, rerun: ModuleType) -> None:
    """Take the modules that this one works with."""
    global torch, np, recorder, rerunning
    torch, np, recorder, rerunning = torch_module, numpy, recording, rerun


# --- calls ----------------------------------------------------------------------------------------


class Result:
    """A tensor that a call gave, as an operand of a later one."""

    __slots__ = ("call", "position")

    def __init__(self, call: Call, position: int) -> None:
        self.call = call
        self.position = position


class Call:
    """A call of a step, with what it takes to make it again.

    Attributes:
        kind: "module", "function" or "backward".
        args, kwargs: its operands, with a `Result` for each tensor that an earlier call gave; None
            once they are forgotten.
        results: the tensors that it gave, while somebody holds them.
        outside: the tensors that no call gave, with their versions.
        place: the user's frame that it was called from, as its code and instruction.
        unknown: whether it took a tensor with a history that nobody heard.
    """

    __slots__ = ("args", "autocast", "function", "grad", "kind", "kwargs", "outside", "place",
                 "results", "serial", "state", "unknown")  # fmt: skip

    def __init__(self, kind: str, function: Any, place: Any) -> None:
        self.kind = kind
        self.function = function
        self.place = place
        self.args: Any = ()
        self.kwargs: Any = None
        self.results: list[Any] = []
        self.outside: list[tuple[Any, int]] = []
        self.serial = 0
        self.state: Any = None
        self.autocast: Any = None
        self.grad = True
        self.unknown = False


def tensors_in(value: Any) -> Iterator[Any]:
    """The tensors in what a call gave, in an order that is the same each time."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_in(each)
    elif hasattr(value, "__dataclass_fields__"):
        for each in vars(value).values():
            yield from tensors_in(each)


class Window:
    """The calls since an optimizer last stepped.

    Attributes:
        seen: the modules that ran since the last backward pass, with what each gave.
        flags: for each backward pass the norms of those results, and the modules.
        losses: what each backward pass began with.
        modules: the modules that ran.
        ungraded: those that ran under `no_grad()`, or in a checkpoint that made no graph, with the
            reason that this is of their gradients.
        reached: the leaves that the graph of a loss leads to, by `id`; None where nobody looked.
        buffers: what the buffers that change held before the first call that changes them.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.seen: list[tuple[Any, Any]] = []
        self.flags: list[tuple[list[tuple[Any, Any]], Any]] = []
        self.losses: list[Any] = []
        self.modules: set[int] = set()
        self.ungraded: dict[Any, str] = {}
        self.reached: set[int] | None = None
        self.buffers: dict[int, tuple[Any, Any]] = {}
        self.backwards = 0


class Registered:
    """A parameter that a module got.

    Attributes:
        kind, name: the module's class, and its name for it.
        place: where that was.
        optimizers: how many optimizers there were then.
    """

    def __init__(self, parameter: Any, kind: str, name: str, place: Any, optimizers: int) -> None:
        self.parameter = weakref.ref(parameter)
        self.kind = kind
        self.name = name
        self.place = place
        self.optimizers = optimizers


class Root:
    """An outermost module, with its name and its buffers.

    Attributes:
        versions: of each buffer, the version that it had last.
        changing: the buffers that have changed.
    """

    def __init__(self, module: Any, name: str) -> None:
        self.module = module
        self.name = name
        self.buffers = list(module.buffers())
        self.versions = [recorder.version_of(each) for each in self.buffers]
        # The kernels of batch norm write to these and count no version.
        norms = torch.nn.modules.batchnorm._NormBase
        self.changing = {
            id(each): each
            for part in module.modules()
            if isinstance(part, norms)
            for each in part.buffers(recurse=False)
        }
        self.is_new = True

    def keep(self, window: Window) -> None:
        """Keep what the buffers hold that change."""
        kept = self.buffers if self.is_new else self.changing.values()
        for each in kept:
            if id(each) not in window.buffers:
                window.buffers[id(each)] = each, each.detach().clone()

    def look(self, window: Window) -> None:
        """See which buffers have changed, and drop the copies of the others."""
        for place, each in enumerate(self.buffers):
            version = recorder.version_of(each)
            if version != self.versions[place]:
                self.versions[place] = version
                self.changing[id(each)] = each
            elif self.is_new and id(each) not in self.changing:
                window.buffers.pop(id(each), None)
        self.is_new = False


# --- figures --------------------------------------------------------------------------------------


class Table:
    """The figures of the parameters of one optimizer, a line for each step.

    Attributes:
        names: the parameters' names.
        optimizer, name: the optimizer's class, and the program's name for it; "" for none.
        has_closures: whether it calls a closure several times in a step: then a line is a call's.
        rows: for each step three figures a parameter, in a file without a name.
        none: for each parameter the reasons why its gradient was none, with the steps.
    """

    def __init__(self, parameters: list[Any], names: list[str], optimizer: str, name: str) -> None:
        self.parameters = parameters
        self.names = names
        self.optimizer = optimizer
        self.name = name
        self.has_closures = False
        self.steps = array.array("q")
        self.losses = array.array("d")
        self.rows = tempfile.TemporaryFile(prefix="gradcli-")  # noqa: SIM115  (open until the end)
        self.none: dict[int, list[list[Any]]] = {}
        self.absent: list[int] = []
        self.views: list[Any] = []
        self.before: list[Any] = []
        self.pending: list[Any] = []
        self.row: Any = None
        self.sampled: list[int] = []
        self._look_at()

    def _look_at(self) -> None:
        """Take the parts of the parameters that stand for their updates, where they lie now."""
        self.pointers = [each.data_ptr() for each in self.parameters]
        self.counted = np.array(
            [max(min(each.numel(), SAMPLE), 1) for each in self.parameters], np.float32
        )
        self.views, self.sampled = [], []
        for place, each in enumerate(self.parameters):
            view = _sample(each.detach(), UPDATED)
            shares = view.data_ptr() == each.data_ptr()
            if shares and view.numel() and view.is_floating_point():
                self.views.append(view)
                self.sampled.append(place)
        self.before = [each.clone() for each in self.views]

    def measured(self) -> tuple[list[int], list[Any]]:
        """The places of the gradients that are there, and their norms and shares of zeros, still on
        their devices.
        """
        places, grads = [], []
        for place, each in enumerate(self.parameters):
            grad = each.grad
            if grad is not None:
                places.append(place)
                grads.append(grad.coalesce().values() if grad.is_sparse else grad.detach())
        if not grads:
            return places, []
        zeros = []
        for grad in grads:
            part = grad if grad.numel() <= SAMPLE else _sample(grad, SAMPLE)
            zeros.append(torch.count_nonzero(part))
        return places, [*norms_of(grads), *zeros]

    def begin(self, step: int, loss: float, places: list[int], figures: list[float]) -> None:
        """Enter the figures of the gradients of a step."""
        count = len(places)
        row = self.row = np.full((len(self.parameters), 3), NONE, np.float32)
        if count == len(self.parameters):
            row[:, 0] = figures[:count]
            row[:, 1] = figures[count:]
        else:
            row[places, 0] = figures[:count]
            row[places, 1] = figures[count:]
        row[:, 1] = np.where(row[:, 0] == NONE, NONE, 1.0 - row[:, 1] / self.counted)
        self.steps.append(step)
        self.losses.append(loss)

    def before_step(self) -> None:
        """Keep what an optimizer is about to change."""
        if [each.data_ptr() for each in self.parameters] != self.pointers:
            self._look_at()
        elif self.views and hasattr(torch, "_foreach_copy_"):
            torch._foreach_copy_(self.before, self.views)
        else:  # PyTorch 2.0
            for before, view in zip(self.before, self.views, strict=True):
                before.copy_(view)

    def after_step(self) -> None:
        """Measure what an optimizer changed; the numbers are read at the next step."""
        if self.views and self.row is not None:
            changes = torch._foreach_sub(self.views, self.before)
            self.pending = norms_of([*changes, *self.before])

    def flush(self, values: list[float]) -> None:
        """Write the figures of the last step, with the numbers that were pending."""
        if self.row is None:
            return
        if values:
            held = np.array(values, np.float32).reshape(2, -1)
            with np.errstate(all="ignore"):
                ratios = np.where(held[0] == 0, np.float32(0.0), held[0] / held[1])
            if len(ratios) == len(self.row):
                self.row[:, 2] = ratios
            else:
                self.row[self.sampled, 2] = ratios
            self.row[(self.row[:, 0] == NONE) & (self.row[:, 2] == 0), 2] = NONE
        self.pending = []
        self.rows.write(self.row.tobytes())
        self.row = None

    def figures(self) -> Any:
        """All figures as an array of steps, parameters and three figures."""
        self.flush(read(self.pending))
        self.rows.flush()
        shape = len(self.steps), len(self.parameters), 3
        if not math.prod(shape):
            return np.zeros(shape, np.float32)
        return np.memmap(self.rows, np.float32, "r", shape=shape)

    def missed(self, place: int, step: int, reason: str) -> None:
        """Note why a gradient is none."""
        rows = self.none.setdefault(place, [])
        if rows and rows[-1][0] == reason:
            rows[-1][2] = step
        elif len(rows) < MOST_REASONS:
            rows.append([reason, step, step])


def _sample(tensor: Any, most: int) -> Any:
    """A tensor's elements in a row, or so many of them as stand for all."""
    dense = tensor.is_contiguous() or (
        tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
    )
    if not dense:
        tensor = tensor.contiguous()
    count, offset = tensor.numel(), tensor.storage_offset()
    if count <= most:
        return tensor.as_strided((count,), (1,), offset)
    return tensor.as_strided((most,), (count // most,), offset)


def norms_of(tensors: list[Any]) -> list[Any]:
    """The norms of tensors, in float32 at least."""
    halves = (torch.float16, torch.bfloat16)
    if any(each.dtype in halves for each in tensors):
        return [torch.linalg.vector_norm(each, dtype=torch.float32)
                if each.dtype in halves else torch.linalg.vector_norm(each)
                for each in tensors]  # fmt: skip
    return list(torch._foreach_norm(tensors))


def read(scalars: list[Any]) -> list[float]:
    """Numbers that lie on devices, read at once from each."""
    values = [0.0] * len(scalars)
    kinds: dict[Any, list[int]] = {}
    for place, each in enumerate(scalars):
        kinds.setdefault((each.device, each.dtype), []).append(place)
    for places in kinds.values():
        numbers = torch.stack([scalars[place] for place in places]).tolist()
        for place, value in zip(places, numbers, strict=True):
            values[place] = value
    return values


# --- hearing a step -------------------------------------------------------------------------------


class Watcher:
    """Hears the calls of each step, looks at its gradients, and keeps the figures.

    Attributes:
        inside: 1 in an outermost module's call, 2 where nothing is heard, 0 elsewhere.
        applying: how many custom functions are running.
        ungraded_as: what a module that runs without a graph says of its gradients; "" where it runs
            once more in the backward pass.
        scaled: what a GradScaler scaled, by the result's `id`, with the result.
        optimizing: the class of each optimizer that was made, and where.
        registered: what is known of parameters that modules got, by the parameter's `id`.
        substituted: the parameters that a functional call put other tensors in the place of.
        closures: how often the optimizer that steps has called its closure.
        rerun: what hears the modules of a step that is run again.
        always: whether functions are heard outside of the part between a module's call and the
            backward pass too: then a step's operands are made there.
        report: what was found of the first step that is not finite.
    """

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.window = Window()
        self.former = Window()
        self.known: dict[int, tuple[Any, Result]] = {}
        self.roots: dict[int, Root] = {}
        self.tables: dict[int, Table] = {}
        self.all_tables: list[Table] = []
        self.optimizers: list[Any] = []
        self.optimizing: list[tuple[str, Any]] = []
        self.registered: dict[int, Registered] = {}
        self.inside = 0
        self.applying = 0
        self.ungraded_as = UNGRADED
        self.scaled: dict[int, tuple[Any, Any]] = {}
        self.substituted: set[int] = set()
        self.closures = 0
        self.rerun: Any = None
        self.always = True
        self.zone = False
        self.steps = 0
        self.serial = 0
        self.skipped = 0
        self.backwards = 0
        self.stepping = 0
        self.report: dict[str, Any] | None = None
        self.notes: list[str] = []
        self.failure = ""
        self.is_done = False
        self.process = os.getpid()
        self.thread = threading.get_ident()
        self.internal: dict[str, bool] = {}
        self.drawing: dict[str, bool] = {}
        self.replaced = recorder.Replacements()
        self.handles: list[Any] = []
        self.absent: tuple[int, ...] = ()
        self.looks = 2
        self.is_on = False
        self.mode = recorder.mode_of("Watching", self._hears)

    # --- beginning and end ------------------------------------------------------------------------

    def begin(self) -> None:
        """Hear everything from now on."""
        optimizers = sys.modules[torch.optim.Optimizer.__module__]
        self.handles = [
            optimizers.register_optimizer_step_pre_hook(self._guarded(self._step_begins)),
            optimizers.register_optimizer_step_post_hook(self._guarded(self._step_ends)),
            torch.nn.modules.module.register_module_parameter_registration_hook(
                self._guarded(self._registering)
            ),
        ]
        put = self.replaced.put
        put(warnings, "warn", recorder.warning_past_own_frames)
        put(torch.nn.Module, "__call__", self._calling)
        put(torch.Tensor, "backward", self._differentiating)
        put(torch.autograd, "backward", self._differentiating)
        put(torch.autograd.Function, "apply", self._applying)
        put(torch.optim.Optimizer, "__init__", self._optimizing)
        put(torch.func, "functional_call", self._substituting)
        for room, names in (
            (torch.optim.Optimizer, ("zero_grad",)),
            (torch.nn.Module, ("zero_grad",)),
            (torch.nn.utils, ("clip_grad_norm_", "clip_grad_value_")),
        ):
            for name in names:
                put(room, name, self._silent)
        scaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
        put(scaler, "scale", self._noting_scaled)
        put(scaler, "step", self._scaling)
        put(scaler, "unscale_", self._silent)
        recorder.let_hear_indexing(self.mode, self.replaced)
        if torch.distributed.is_available():
            put(torch.distributed, "init_process_group", recorder.grouping(self.settings))
        self.listen(True)

    def end(self) -> None:
        """Look at a step that was not ended, and hear nothing any more."""
        if not self.is_done:
            try:
                self._look_at_the_rest()
            except Exception as error:
                self._fail(error)
        self.listen(False)
        self.replaced.restore()
        for handle in self.handles:
            handle.remove()
        self.handles.clear()

    def _fail(self, error: Exception) -> None:
        """Give up, and leave the program alone."""
        self.is_done = True
        self.failure = f"{type(error).__name__}: {error}"
        if os.environ.get("GRADCLI_DEBUG"):
            traceback.print_exc()

    def _guarded(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        """A hook whose failures are the watcher's own."""

        def call(*args: Any) -> Any:
            if self.is_done or self.is_elsewhere():
                return None
            try:
                return hook(*args)
            except Exception as error:
                self._fail(error)
                return None

        return call

    def is_elsewhere(self) -> bool:
        """Whether this is another thread than the one that is watched."""
        return threading.get_ident() != self.thread

    # --- functions --------------------------------------------------------------------------------

    def listen(self, wanted: bool) -> None:
        """Hear PyTorch's functions, or hear them no more."""
        if wanted and not self.is_on and not self.is_done:
            self.mode.__enter__()
            self.is_on = True
        elif not wanted and self.is_on and recorder.is_on_top(self.mode):
            # A mode that the program entered since stays where it is, and this one below it.
            self.mode.__exit__(None, None, None)
            self.is_on = False

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Hear nothing in a block."""
        was, inside = self.is_on, self.inside
        self.listen(False)
        self.inside = 2
        try:
            yield
        finally:
            self.inside = inside
            if was:
                self.listen(True)

    def _silent(self, former: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.is_elsewhere():
                return former(*args, **kwargs)
            with self.quiet():
                return former(*args, **kwargs)

        return call

    def _applying(self, apply: Any) -> Any:
        watcher = self

        def hear(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if watcher.inside == 2 or watcher.is_done or watcher.is_elsewhere():
                return apply(cls, *args, **kwargs)
            former, inner = watcher.ungraded_as, functools.partial(apply, cls)
            if cls.__name__ == "CheckpointFunction" and torch.is_grad_enabled():
                reached = any(map(recorder.needs_grad, tensors_in(args)))
                watcher.ungraded_as = "" if reached else UNREACHED
            watcher.applying += 1
            try:
                if watcher.inside:
                    return inner(*args, **kwargs)
                return watcher._function(inner, args, kwargs, recorder.call_plainly, cls.__name__)
            finally:
                watcher.applying -= 1
                watcher.ungraded_as = former

        return hear

    def _substituting(self, former: Any) -> Any:
        """A functional call, which puts other tensors into the place of parameters."""

        def call(module: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if self.inside or self.is_done or self.is_elsewhere():
                return former(module, tensors, *args, **kwargs)
            roots = tensors if isinstance(tensors, (list, tuple)) else [tensors]
            names = {name for each in roots for name in each}
            own = module.named_parameters()
            self.substituted.update(id(each) for name, each in own if name in names)
            self._known_root(module)
            self.inside = 1
            try:
                operands = module, tensors, *args
                plainly = recorder.call_plainly
                return self._function(former, operands, kwargs, plainly, former.__name__)
            finally:
                self.inside = 0

        return call

    def _note_ungraded(self, module: Any) -> None:
        """Note a module that runs without a graph."""
        if self.ungraded_as and not torch.is_grad_enabled():
            self.window.ungraded[module] = self.ungraded_as

    def _hears(self, function: Any, args: Any, kwargs: Any, make: Callable[..., Any]) -> Any:
        name = getattr(function, "__name__", "")
        if self.inside or self.is_done or name in UNHEARD:
            return make(function, args, kwargs)
        if name == "__get__" and getattr(function.__self__, "__name__", "") not in VIEWS:
            return make(function, args, kwargs)
        return self._function(function, args, kwargs, make, name)

    def _function(
        self, function: Any, args: Any, kwargs: Any, make: Callable[..., Any], name: str
    ) -> Any:
        call = None
        try:
            if self._concerns(args) or self._concerns(kwargs):
                place = self._place(sys._getframe(2))
                call = self._call("function", function, args, kwargs, place)
        except Exception as error:
            self._fail(error)
        result = make(function, args, kwargs)
        if call is None:
            return result
        try:
            written = args[0] if name in WRITING and args else result
            tensors = [each for each in tensors_in(written) if recorder.node_of(each) is not None]
            if tensors or name in ATTACHING:
                self._enter(call, written)
                self.always = self.always or not self.zone
        except Exception as error:
            self._fail(error)
        return result

    def _concerns(self, value: Any, depth: int = 0) -> bool:
        """Whether an operand belongs to a graph."""
        if isinstance(value, torch.Tensor):
            return recorder.needs_grad(value)
        if isinstance(value, (list, tuple)) and depth < 2:
            return any(self._concerns(each, depth + 1) for each in value)
        if type(value) is dict and depth < 2:
            return any(self._concerns(each, depth + 1) for each in value.values())
        return False

    def _call(self, kind: str, function: Any, args: Any, kwargs: Any, place: Any) -> Call:
        """A call that is about to be made, with its operands."""
        call = Call(kind, function, place)
        call.args = self._frozen(args, call)
        call.kwargs = self._frozen(kwargs, call)
        draws = kind == "module" or self._draws(function)
        call.state = generators() if draws else None
        call.grad = torch.is_grad_enabled()
        call.autocast = recorder.autocast_regions()
        return call

    def _draws(self, function: Any) -> bool:
        """Whether a function may take random numbers."""
        name = getattr(function, "__name__", "")
        draws = self.drawing.get(name)
        if draws is None:
            # One without a name is a custom function, which may call anything.
            words = ("functional_call", *recorder.DRAWING)
            draws = self.drawing[name] = not name or any(word in name for word in words)
        return draws

    def _frozen(self, value: Any, call: Call) -> Any:
        """An operand, with a `Result` for each tensor that a call gave."""
        if isinstance(value, torch.Tensor):
            known = self.known.get(id(value))
            if known is not None and known[0]() is value:
                return known[1]
            if recorder.node_of(value) is not None:
                call.unknown = True
            call.outside.append((value, recorder.version_of(value)))
            return value
        kind = type(value)
        if kind is tuple or kind is list:
            return kind([self._frozen(each, call) for each in value])
        if kind is dict:
            return {key: self._frozen(each, call) for key, each in value.items()}
        for each in tensors_in(value):
            if recorder.needs_grad(each) and id(each) in self.known:
                call.unknown = True
            call.outside.append((each, recorder.version_of(each)))
        return value

    def _enter(self, call: Call, result: Any) -> None:
        """Put a call into the step that has been made."""
        self.serial += 1
        call.serial = self.serial
        for position, each in enumerate(tensors_in(result)):
            if recorder.node_of(each) is None:
                continue  # data, whoever made it
            call.results.append(weakref.ref(each))
            self.known[id(each)] = weakref.ref(each), Result(call, position)
        self.window.calls.append(call)

    # --- modules ----------------------------------------------------------------------------------

    def _calling(self, former: Any) -> Any:
        watcher = self

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if watcher.inside and not watcher.is_elsewhere():
                if watcher.rerun is not None:
                    return watcher.rerun.call(former, module, args, kwargs)
                result = former(module, *args, **kwargs)
                if watcher.inside == 1:
                    watcher.window.seen.append((module, result))
                    watcher._note_ungraded(module)
                return result
            return watcher._root(former, module, args, kwargs)

        return call

    def _root(self, former: Any, module: Any, args: Any, kwargs: Any) -> Any:
        if self.is_done or self.is_elsewhere() or self.process != os.getpid():
            return former(module, *args, **kwargs)
        was, call = self.is_on, None
        self.listen(False)
        watched = torch.is_grad_enabled()
        try:
            if self.applying:  # as in a checkpointed region
                self._known_root(module)
            if watched:
                place = self._place(sys._getframe(2))
                call = self._call("module", module, args, kwargs, place)
                self._known_root(module).keep(self.window)
            else:
                self._known_root(module)
                self._note_ungraded(module)
        except Exception as error:
            self._fail(error)
        self.inside = 1 if watched else 2
        try:
            result = former(module, *args, **kwargs)
        except BaseException:
            self.inside = 0
            self.listen(was)
            raise
        self.inside = 0
        try:
            if call is not None:
                self.window.seen.append((module, result))
                self._enter(call, result)
                if len(self.window.calls) > MOST_CALLS:
                    self._drop()
                if any(recorder.needs_grad(each) for each in tensors_in(result)):
                    self.zone = was = True
        except Exception as error:
            self._fail(error)
        self.listen(was)
        return result

    def _drop(self) -> None:
        """Drop the calls whose results nobody holds: what is only evaluated has no end."""
        window = self.window
        if window.backwards:
            return
        held = [each for each in window.calls if any(r() is not None for r in each.results)]
        if len(held) < len(window.calls):
            window.calls[:] = held
            window.seen.clear()

    def _known_root(self, module: Any) -> Root:
        root = self.roots.get(id(module))
        if root is None:
            *_, own = recorder.layers_of(module)
            frame = sys._getframe(2)
            holder, name = recorder.holder_of(own, module, frame, self.is_internal)
            root = self.roots.get(id(holder)) or self._new_root(holder, name)
            self.roots[id(module)] = root
        return root

    def _new_root(self, holder: Any, name: str) -> Root:
        """Enter an outermost module under a name that no other one has."""
        taken = {root.name for root in self.roots.values()}
        number = 2
        while name in taken:
            name, number = f"{name.rstrip('0123456789_')}_{number}", number + 1
        root = self.roots[id(holder)] = Root(holder, name)
        return root

    # --- backward passes --------------------------------------------------------------------------

    def _differentiating(self, former: Any) -> Any:
        def backward(*args: Any, **kwargs: Any) -> Any:
            if self.is_elsewhere():
                return former(*args, **kwargs)
            if self.inside or self.is_done:
                if self.rerun is not None:
                    self.rerun.differentiates(args, kwargs)
                return former(*args, **kwargs)
            self.listen(False)
            try:
                self._before_backward(former, args, kwargs, self._place(sys._getframe(1)))
            except Exception as error:
                self._fail(error)
            self.inside = 2
            try:
                result = former(*args, **kwargs)
            finally:
                self.inside = 0
                self.listen(self.always)
            try:
                if not self.optimizers and not self.stepping:
                    self._window_ends(None)
                    self._next_window()
            except Exception as error:
                self._fail(error)
            return result

        return backward

    def _before_backward(self, former: Any, args: Any, kwargs: Any, place: Any) -> None:
        window = self.window
        roots = args[0] if args else kwargs.get("tensors", kwargs.get("self"))
        losses = list(tensors_in(roots))
        # What a pass begins with is heard in full, or functions are heard from now on.
        self.always = self.always and not self._is_complete()
        call = self._call("backward", former, args, kwargs, place)
        if call.unknown:
            self.always = True
        self._enter(call, None)
        window.backwards += 1
        self.backwards += 1
        self.zone = False
        window.losses.append([self._unscaled(each).detach() for each in losses])
        self.scaled.clear()
        results = [
            (module, each)
            for module, result in window.seen
            for each in tensors_in(result)
            if each.is_floating_point() and each.numel()
        ]
        if results:
            names = [(module, tuple(each.shape)) for module, each in results]
            window.flags.append((names, norms_of([each.detach() for _, each in results])))
        window.modules.update(id(module) for module, _ in window.seen)
        window.seen = []
        if self.looks:
            reached = window.reached = window.reached or set()
            reached.update(leaves_of(losses))

    def _unscaled(self, loss: Any) -> Any:
        """A loss as it was before a GradScaler scaled it."""
        scaled, former = self.scaled.get(id(loss), (None, None))
        return former if scaled is not None and scaled() is loss else loss

    def _is_complete(self) -> bool:
        """Whether the first call of the step is a module's, so that functions before it matter
        nothing.
        """
        calls = self.window.calls
        first = next((each for each in calls if each.kind != "backward"), None)
        return first is not None and first.kind == "module" and not any(c.unknown for c in calls)

    # --- optimizers -------------------------------------------------------------------------------

    def _optimizing(self, former: Any) -> Any:
        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            self.optimizers.append(weakref.ref(optimizer))
            self.optimizing.append((type(optimizer).__name__, self._place(sys._getframe(1))))
            former(optimizer, *args, **kwargs)

        return init

    def _registering(self, module: Any, name: str, parameter: Any) -> None:
        """Note a parameter that a module gets, the first time."""
        if parameter is not None and self.registered_as(parameter) is None:
            self.registered[id(parameter)] = Registered(
                parameter, type(module).__name__, name, self._place(sys._getframe(1)),
                len(self.optimizing),
            )  # fmt: skip

    def registered_as(self, parameter: Any) -> Registered | None:
        """What is known of a parameter that a module got; None for nothing."""
        known = self.registered.get(id(parameter))
        return known if known is not None and known.parameter() is parameter else None

    def _noting_scaled(self, former: Any) -> Any:
        def scale(scaler: Any, outputs: Any) -> Any:
            result = former(scaler, outputs)
            if isinstance(result, torch.Tensor) and not self.is_done:
                self.scaled[id(result)] = weakref.ref(result), outputs.detach()
            return result

        return scale

    def _scaling(self, former: Any) -> Any:
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if self.inside or self.is_done or self.is_elsewhere():
                return former(scaler, optimizer, *args, **kwargs)
            steps = self.steps
            with self.quiet():
                result = former(scaler, optimizer, *args, **kwargs)
            try:
                if self.steps == steps and scaler.is_enabled() and self.window.backwards:
                    self._left_out(scaler, optimizer)
            except Exception as error:
                self._fail(error)
            return result

        return step

    def _left_out(self, scaler: Any, optimizer: Any) -> None:
        """A step that a GradScaler left out: that is its way, where the forward pass is finite and
        the scale can still become smaller.
        """
        scale = float(scaler.get_scale())
        finite = all(math.isfinite(each) for each in read(self._loss_norms()))
        if finite and scale > 1.0:
            self.skipped += 1
            self._window_ends(optimizer, looks=False)
        else:
            self._window_ends(optimizer)
        self._next_window()

    def _step_begins(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        was = self.is_on
        self.listen(False)
        self.stepping += 1
        self.closures = 0
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if closure is None:
            self._window_ends(optimizer)
            self.inside = 2
            return None
        rest = {name: each for name, each in kwargs.items() if name != "closure"}

        def heard() -> Any:
            self.closures += 1
            around = self.window
            self._next_window()
            self.inside = 0
            self.listen(was)
            try:
                result = closure()
            finally:
                self.listen(False)
                self.inside = 2
            if around.backwards and not self.window.backwards:
                self.window, self.former = around, Window()  # it ran no pass of its own
            try:
                if not self.is_done:
                    self._window_ends(optimizer)
            except Exception as error:
                self._fail(error)
            return result

        self.inside = 2
        return (args[0], recorder.hidden(heard)), rest

    def _step_ends(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        self.inside = 0
        if self.stepping:
            self.stepping -= 1
        table = self.tables.get(id(optimizer))
        if table is not None:
            table.after_step()
        self._next_window()
        self.listen(self.always)

    def _next_window(self) -> None:
        """Begin another step; the calls of the one before the last are forgotten."""
        for call in self.former.calls:
            call.args = None
            call.outside = []
        if self.window.calls:
            self.former = self.window
        self.window = Window()
        self.zone = False
        self.known = {
            key: held
            for key, held in self.known.items()
            if held[0]() is not None and held[1].call.args is not None
        }

    # --- the end of a step ------------------------------------------------------------------------

    def _loss_norms(self) -> list[Any]:
        losses = [each for losses in self.window.losses for each in losses]
        return [each.norm() if each.dim() else each for each in losses if each.is_floating_point()]

    def _window_ends(self, optimizer: Any, looks: bool = True) -> None:
        """Read the figures of a step, and run it again where they are not finite."""
        window = self.window
        if not window.backwards:
            return
        with torch.no_grad():
            self.steps += 1
            for root in dict.fromkeys(self.roots.values()):
                root.look(window)
            table = self._table_of(optimizer)
            places, scalars = table.measured()
            losses = self._loss_norms()
            values = read([*scalars, *losses, *table.pending])
            figures = values[: len(scalars)]
            of_losses = values[len(scalars) : len(scalars) + len(losses)]
            table.flush(values[len(scalars) + len(losses) :])
            table.begin(self.steps, of_losses[-1] if of_losses else math.nan, places, figures)
            self._note_absent(table, places)
            table.has_closures = table.has_closures or self.closures > 1
            if self.closures <= 1:
                table.before_step()
            if looks and self.report is None:
                norms = figures[: len(places)]
                if not all(map(math.isfinite, norms)):
                    norms = [_finite(table.parameters[place].grad) for place in places]
                bad = [table.names[p] for p, n in zip(places, norms, strict=True) if n != n or n in
                       (math.inf, -math.inf)]  # fmt: skip
                if bad or not all(map(math.isfinite, of_losses)):
                    self._run_again(bad, of_losses)

    def _note_absent(self, table: Table, places: list[int]) -> None:
        """Note which gradients are none, and why; the graph is looked at where that changes."""
        if len(places) == len(table.parameters):
            absent: list[int] = []
        else:
            present = set(places)
            absent = [each for each in range(len(table.parameters)) if each not in present]
        if absent != table.absent and self.window.reached is None:
            self.looks = 2
        elif self.looks:
            self.looks -= 1
        if absent == table.absent and self.window.reached is None:
            for place in absent:
                rows = table.none.get(place)
                if rows:
                    rows[-1][2] = self.steps
            return
        table.absent = absent
        owners = self._owners() if absent else {}
        for place in absent:
            parameter = table.parameters[place]
            reason = self._reason(parameter, owners.get(id(parameter)))
            table.missed(place, self.steps, reason)

    def _owners(self) -> dict[int, Any]:
        """The module that holds each parameter, by the parameter's `id`."""
        return {
            id(parameter): (module, name)
            for root in dict.fromkeys(self.roots.values())
            for name, module in root.module.named_modules()
            for parameter in module._parameters.values()
            if parameter is not None
        }

    def _reason(self, parameter: Any, owner: Any) -> str:
        """Why a parameter has no gradient."""
        window = self.window
        if not parameter.requires_grad:
            return "it does not require grad"
        if window.reached is not None and id(parameter) in window.reached:
            return "the graph of the loss reaches it, and gave it no gradient"
        if id(parameter) in self.substituted:
            return "functional_call() put another tensor in its place"
        known = self.registered_as(parameter)
        if owner is None and known is not None:
            place = rerunning.placed(known.place)
            at = f" made at {place[0]}:{place[1]}" if place else ""
            return f"no module that ran has it: it was the {known.name} of a {known.kind}{at}"
        if owner is None:
            return "the loss does not come of it"
        kind = f"its {type(owner[0]).__name__}"
        if owner[0] in window.ungraded:
            return f"{kind} {window.ungraded[owner[0]]}"
        around = next((each for each in window.ungraded if holds(each, owner[0])), None)
        if around is not None:
            return f"its {type(around).__name__} {window.ungraded[around]}"
        if id(owner[0]) not in window.modules:
            return f"{kind} was not called"
        return (
            f"{kind} was called, and the loss does not come of that: its result is unused, or"
            " detached"
        )

    def _table_of(self, optimizer: Any) -> Table:
        """The table of an optimizer; of what was seen of modules where there is none."""
        key = id(optimizer)
        if optimizer is None:
            parameters = [
                each
                for root in dict.fromkeys(self.roots.values())
                for each in root.module.parameters()
            ] or [each for each in leaf_tensors(self.window) if each.requires_grad]
            kind = name = ""
        else:
            parameters = [each for group in optimizer.param_groups for each in group["params"]]
            kind, name = type(optimizer).__name__, self.name_of(optimizer)
        table = self.tables.get(key)
        if table is None or [*map(id, table.parameters)] != [*map(id, parameters)]:
            if table is not None:
                table.flush(read(table.pending))
            table = Table(parameters, self.names_of(parameters), kind, name)
            self.tables[key] = table
            self.all_tables.append(table)
        return table

    def names_of(self, parameters: Sequence[Any]) -> list[str]:
        """The names of parameters: their paths from the modules that hold them."""
        paths = self.paths()
        if any(id(each) not in paths for each in parameters):
            self._enter_holders(parameters, paths)
            paths = self.paths()
        names = []
        for number, each in enumerate(parameters):
            name = paths.get(id(each))
            if name is None:
                name = self.name_of(each) or self._element_of(each) or f"parameter {number}"
            names.append(name)
        return names

    def _element_of(self, tensor: Any) -> str:
        """The text of the element that a list or dict of the program's has for a tensor."""
        frame: Any = sys._getframe(1)
        while frame is not None:
            if not self.is_internal(frame.f_code.co_filename):
                for name, held in recorder._objects_of(frame):
                    if type(held) in (list, tuple):
                        pairs: Any = enumerate(held)
                    else:
                        pairs = held.items() if type(held) is dict else ()
                    for key, each in pairs:
                        if each is tensor:
                            return f"{name}[{key!r}]"
            frame = frame.f_back
        return ""

    def _enter_holders(self, parameters: Sequence[Any], paths: dict[int, str]) -> None:
        """Enter the modules of the program's frames that hold parameters which no module that ran
        has.
        """
        wanted = {id(each) for each in parameters} - paths.keys()
        frame: Any = sys._getframe(1)
        while frame is not None:
            if not self.is_internal(frame.f_code.co_filename):
                for name, held in recorder._objects_of(frame):
                    if isinstance(held, torch.nn.Module) and any(
                        id(each) in wanted for each in held.parameters()
                    ):
                        *_, own = recorder.layers_of(held)
                        if id(own) not in self.roots:
                            self._new_root(own, name)
                        wanted -= {id(each) for each in own.parameters()}
            frame = frame.f_back

    def paths(self) -> dict[int, str]:
        """The path of each module and parameter, by its `id`."""
        paths: dict[int, str] = {}
        for root in dict.fromkeys(self.roots.values()):
            for path, module in root.module.named_modules():
                whole = spelled(root.name, path)
                paths.setdefault(id(module), whole)
                for name, parameter in module._parameters.items():
                    if parameter is not None:
                        paths.setdefault(id(parameter), f"{whole}.{name}")
                for name, buffer in module._buffers.items():
                    if buffer is not None:
                        paths.setdefault(id(buffer), f"{whole}.{name}")
        return paths

    # --- a step that is not finite ----------------------------------------------------------------

    def _look_at_the_rest(self) -> None:
        """Look at what ran since the last step: a program may have ended for what it saw there."""
        window = self.window
        if self.report is not None:
            return
        with self.quiet(), torch.no_grad():
            if window.backwards:
                self._window_ends(None if not self.optimizers else self._last_optimizer())
                return
            ends = [
                each
                for call in window.calls
                for each in (reference() for reference in call.results)
                if each is not None and each.is_floating_point() and each.numel() == 1
            ]
            if ends and not math.isfinite(read([ends[-1].detach().reshape(())])[0]):
                self.steps += 1
                window.losses.append([ends[-1].detach()])
                self._run_again([], [math.nan], ends[-1])

    def _last_optimizer(self) -> Any:
        alive = [each() for each in self.optimizers]
        return next((each for each in reversed(alive) if each is not None), None)

    def _run_again(self, bad: list[str], losses: list[float], end: Any = None) -> None:
        """Run this step again, and keep what is found."""
        with self.quiet():
            self.report = rerunning.report(self, bad, losses, end)
            self.report["step"] = self.steps
            self.report["backward"] = self.backwards

    # --- places and names -------------------------------------------------------------------------

    def is_internal(self, file: str) -> bool:
        """Whether a file belongs to PyTorch, to Python's own machinery, or to the watcher."""
        known = self.internal.get(file)
        if known is None:
            own = os.path.dirname(torch.__file__) + os.sep
            ours = (__file__, recorder.__file__, rerunning.__file__)
            known = file.startswith((own, "<frozen ")) or file in ours
            known = self.internal[file] = known or os.path.basename(file) == "contextlib.py"
        return known

    def _place(self, frame: Any) -> Any:
        """The user's frame that a call was made from."""
        while frame is not None:
            if not self.is_internal(frame.f_code.co_filename):
                return frame.f_code, frame.f_lasti
            frame = frame.f_back
        return None

    def name_of(self, tensor: Any) -> str:
        """The name that the outermost of the user's frames has for a tensor, or an optimizer."""
        frame: Any = sys._getframe(1)
        name = ""
        while frame is not None:
            if not self.is_internal(frame.f_code.co_filename):
                name = recorder._held_name(frame, tensor) or name
            frame = frame.f_back
        return name


UNGRADED = "ran under no_grad()"
UNREACHED = (
    "ran in checkpoint(use_reentrant=True), none of whose inputs requires grad:"
    " use_reentrant=False reaches it"
)
"""Why a module gives its parameters no gradient."""


def holds(module: Any, part: Any) -> bool:
    """Whether a module has another one as a part."""
    return any(each is part for each in module.modules())


VIEWS = frozenset({"T", "mT", "H", "mH", "real", "imag"})
"""Attributes that are tensors of the graph."""

UNHEARD = frozenset(
    {"size", "dim", "item", "tolist", "numpy", "detach", "detach_", "__len__", "__bool__", "numel",
     "__float__", "__int__", "__repr__", "__format__", "__hash__", "backward", "__index__",
     "stride", "is_floating_point", "untyped_storage", "data_ptr", "zero_", "__set__",
     "__delete__"}
)  # fmt: skip
"""Functions that give no tensor of a graph."""

WRITING = frozenset({"__setitem__"})
"""Functions that return nothing, and change their first operand."""

ATTACHING = frozenset({"register_hook", "retain_grad"})
"""Functions that give no tensor, and change how gradients flow."""


def spelled(root: str, path: str) -> str:
    """The path of a part of a module as a program spells it."""
    for part in path.split(".") if path else ():
        root += f"[{part}]" if part.isdigit() else f".{part}"
    return root


def leaves_of(losses: list[Any]) -> set[int]:
    """The leaves that the graphs of tensors lead to, by `id`."""
    nodes = [node for node in map(recorder.node_of, losses) if node is not None]
    seen, leaves = set(nodes), {id(each) for each in losses if recorder.node_of(each) is None}
    while nodes:
        node = nodes.pop()
        variable = getattr(node, "variable", None)
        if variable is not None:
            leaves.add(id(variable))
        for follower, _ in node.next_functions:
            if follower is not None and follower not in seen:
                seen.add(follower)
                nodes.append(follower)
    return leaves


def leaf_tensors(window: Window) -> list[Any]:
    """The tensors from outside that a step's calls took, each once."""
    outside = {id(each): each for call in window.calls for each, _ in call.outside}
    return [each for each in outside.values() if recorder.node_of(each) is None]


def generators() -> Any:
    """The states of PyTorch's generators."""
    states = [torch.get_rng_state()]
    if torch.cuda.is_initialized():
        states += torch.cuda.get_rng_state_all()
    return states


def set_generators(states: Any) -> None:
    """Set PyTorch's generators to former states."""
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state_all(states[1:])


def _finite(grad: Any) -> float:
    """0 where all elements are finite, whose norm may not be; NaN elsewhere."""
    values = grad.coalesce().values() if grad.is_sparse else grad
    return 0.0 if bool(torch.isfinite(values).all()) else math.nan


# --- the file -------------------------------------------------------------------------------------


def save(watcher: Watcher, settings: Any) -> bool:
    """Write what was watched; False where there was no step."""
    if not watcher.all_tables and watcher.report is None:
        return False
    arrays: dict[str, Any] = {}
    tables = []
    names: dict[str, int] = {}
    parameters: list[list[Any]] = []

    def number_of(name: str, tensor: Any) -> int:
        if name not in names:
            names[name] = len(parameters)
            dtype = str(tensor.dtype).removeprefix("torch.")
            parameters.append([name, list(tensor.shape), dtype])
        return names[name]

    for number, table in enumerate(watcher.all_tables):
        held = [number_of(n, p) for n, p in zip(table.names, table.parameters, strict=True)]
        arrays[f"#figures {number}"] = table.figures()
        arrays[f"#steps {number}"] = np.array(table.steps, np.int64)
        arrays[f"#losses {number}"] = np.array(table.losses, np.float64)
        none = [[held[place], *row] for place, rows in table.none.items() for row in rows]
        tables.append({"optimizer": table.optimizer, "name": table.name, "parameters": held,
                       "closures": table.has_closures, "none": none})  # fmt: skip
    paths = watcher.paths()
    unheld, late = [], []
    for root in dict.fromkeys(watcher.roots.values()):
        for each in root.module.parameters():
            if paths[id(each)] in names:
                continue
            unheld.append(number_of(paths[id(each)], each))
            known = watcher.registered_as(each)
            if known is not None and known.optimizers:
                kind, place = watcher.optimizing[known.optimizers - 1]
                places = rerunning.placed(known.place), rerunning.placed(place)
                late.append([unheld[-1], places[0], kind, places[1]])
    index = {
        "kind": "watch",
        "made": {"python": sys.version.split()[0], "torch": str(torch.__version__),
                 "numpy": str(np.__version__)},
        "argv": settings.argv,
        "parameters": parameters,
        "tables": tables,
        "unheld": unheld if any(table.optimizer for table in watcher.all_tables) else [],
        "late": late,
        "steps": watcher.steps,
        "skipped": watcher.skipped,
        "nonfinite": watcher.report,
        "notes": watcher.notes,
        "dtypes": {},
        "arrays": [],
    }  # fmt: skip
    recorder.write_recording(settings.output, index, arrays)
    return True


class Session:
    """One run of a script with a watcher, which begins when torch is imported."""

    def __init__(self, settings: Any, recording: ModuleType, rerun: ModuleType) -> None:
        self.settings = settings
        self.recording = recording
        self.rerun = rerun
        self.watcher: Watcher | None = None
        self.passed_on = False

    def begin(self) -> None:
        """Watch from now on."""
        import numpy
        import torch as imported

        use(imported, numpy, self.recording, self.rerun)
        self.recording.use(imported, numpy)
        self.rerun.use(imported, self.recording)
        self.watcher = Watcher(self.settings)
        self.watcher.begin()

    def end(self) -> str:
        """Write the file; what is to be said of it."""
        watcher = self.watcher
        if watcher is None:
            return "" if self.passed_on else self.recording.unbegun()
        if watcher.process != os.getpid():
            return ""
        watcher.end()
        if watcher.failure:
            watcher.notes.append(f"the watcher failed at step {watcher.steps}: {watcher.failure}")
        if not save(watcher, self.settings):
            if self.passed_on:
                return ""
            reason = watcher.failure or "there was no backward pass in the main thread"
            return f"nothing was recorded: {reason}"
        path = self.settings.output
        if watcher.report is None:
            many = "step" if watcher.steps == 1 else "steps"
            said = f"{watcher.steps:,} {many}, all finite"
            if watcher.skipped:
                said += f" but {watcher.skipped} that the GradScaler left out"
            if watcher.failure:
                said += f"; then the watcher failed: {watcher.failure}"
            return f"{said}; wrote {path}"
        return f"{rerunning.summary(watcher.report)}; wrote {path}"
