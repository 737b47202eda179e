"""`torch.utils.checkpoint`: activations are recomputed in the backward pass.

Without re-entry the graph is the one that the function records, and the first saved value that the
backward pass reads makes the function run again, up to the last value that is needed. With
re-entry the function is recorded as one node, which runs it again and differentiates that run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from gradcli.autograd.engine import backward
from gradcli.autograd.modes import EnableGrad, GradMode, NoGrad
from gradcli.autograd.node import Node, freed
from gradcli.autograd.tensor import Tensor, alias, join_graph, refresh
from gradcli.errors import GradcliError, value_error
from gradcli.library.torch.func.graph import PackingListener
from gradcli.ops.binding.catalogue import function, modules
from gradcli.ops.creation.autocast import Casting
from gradcli.ops.creation.random import generator_of
from gradcli.record import Record
from gradcli.state import active

_MODULE = "torch.utils.checkpoint"


_EARLY_STOP = "checkpoint.early_stop"


class SetCheckpointEarlyStop:
    """`torch.utils.checkpoint.set_checkpoint_early_stop(enable)`: the context in which calls of
    checkpoint end their second run early, or not, whatever they say themselves.
    """

    __slots__ = ("before", "enable")

    language_name: ClassVar[str] = "torch.utils.checkpoint.set_checkpoint_early_stop"
    language_context: ClassVar[bool] = True

    def __init__(self, enable: bool) -> None:
        self.enable = bool(enable)

    def __enter__(self) -> None:
        self.before = active.state.library.get(_EARLY_STOP)
        active.state.library[_EARLY_STOP] = self.enable

    def __exit__(self, *exception: object) -> None:
        active.state.library.pop(_EARLY_STOP)
        if self.before is not None:
            active.state.library[_EARLY_STOP] = self.before


modules[_MODULE]["set_checkpoint_early_stop"] = SetCheckpointEarlyStop


class _Call(Record):
    """A function with its arguments, and the random numbers and the autocast that it will see.

    Attributes:
        snapshot: the state of the generator, None where it need not be restored.
        casting: what cast operands when it ran first.
        stops: whether it runs again only until every value is there.
    """

    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: dict[str, Any]
    snapshot: Any
    casting: Casting | None
    stops: bool

    def again(self, args: Sequence[Any]) -> Any:
        """Run the function with other arguments, the same random numbers and the same autocast."""
        generator = generator_of(None)
        now, casting = generator.snapshot(), active.state.autocast
        active.state.autocast = None if self.casting is None else self.casting.anew()
        if self.snapshot is not None:
            generator.restore(self.snapshot)
        try:
            return self.function(*args, **self.kwargs)
        finally:
            active.state.autocast = casting
            if self.snapshot is not None:
                generator.restore(now)


def _detached(values: Sequence[Any]) -> list[Any]:
    """Arguments of their own for a second run: tensors without history, other values as they
    are.
    """
    result = []
    for value in values:
        if isinstance(value, Tensor):
            new = alias(value)
            new.requires_grad = value.requires_grad
            value = new
        result.append(value)
    return result


# --- without re-entry ---------------------------------------------------------------------------


class _Complete(BaseException):
    """Every value is there again: the rest of the function need not run.

    It is no Exception, so that no handler on the path catches it as an error.
    """


class _Recomputation:
    """The values that one call saved, by the order in which it saved them.

    Attributes:
        count: how many there were.
        values: those that were recomputed and not yet returned.
    """

    __slots__ = ("call", "count", "grad_enabled", "values")

    def __init__(self, call: _Call) -> None:
        self.call = call
        self.count = 0
        self.grad_enabled = active.state.grad_enabled
        self.values: dict[int, Tensor] = {}

    def pack(self, tensor: Tensor) -> int:
        """Drop a saved value, and keep its number."""
        self.count += 1
        return self.count - 1

    def unpack(self, number: int) -> Tensor:
        """A saved value, for which the function runs again if need be; raises E403 where it does
        not save the same values as before.
        """
        if number not in self.values:
            self._recompute()
        if number not in self.values:
            raise GradcliError(
                "E403",
                "the function of a checkpoint saved other values when it ran again:"
                f" {len(self.values)} in place of {self.count}",
                help="it has to do the same each time it runs",
            )
        return self.values.pop(number)

    def _recompute(self) -> None:
        self.values.clear()
        numbers = iter(range(self.count))

        def keep(tensor: Tensor) -> None:
            number = next(numbers, None)
            if number is not None:
                self.values[number] = alias(tensor)
            if self.call.stops and (number is None or number == self.count - 1):
                raise _Complete

        hooks = PackingListener(keep, lambda nothing: nothing)
        with suppress(_Complete), hooks, GradMode(self.grad_enabled):
            self.call.again(_detached(self.call.args))


# --- with re-entry ------------------------------------------------------------------------------


class CheckpointFunctionBackward(Node):
    """The one node of a function that runs again, and is differentiated, when gradients reach
    it.
    """

    __slots__ = ("call",)

    node_name = "CheckpointFunctionBackward"
    multiple = True

    def __init__(self, call: _Call, tensors: list[Tensor]) -> None:
        join_graph(self, [arg for arg in call.args if isinstance(arg, Tensor)], tensors)
        self.call: _Call | None = call

    def name(self) -> str:
        return self.node_name

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{super().__repr__()[1:]}"

    def run(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        if self.call is None:
            raise freed(self)
        if active.state.backward_pass.targets is not None:
            raise GradcliError(
                "E403",
                "a checkpoint with re-entry accumulates gradients: it runs in backward() without"
                " inputs, and not in grad()",
                text="When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad()"
                " or passing an `inputs` parameter to .backward(). To resolve this error, you can"
                " either set use_reentrant=False, or call .backward() without passing the `inputs`"
                " argument.",
                help="say checkpoint(…, use_reentrant=False)",
            )
        call = self.call
        args = _detached(call.args)
        with EnableGrad():
            results, _ = _tensors(call.again(args))
        outputs = [result for result in results if isinstance(result, Tensor)]
        pairs = [
            (output, Tensor(grad))
            for output, grad in zip(outputs, grads, strict=True)
            if grad is not None and output.requires_grad
        ]
        if pairs:
            backward.backward([output for output, _ in pairs], [grad for _, grad in pairs])
        if not keep:
            self.call = None
        return tuple(
            None if arg.grad is None else arg.grad.array for arg in args if isinstance(arg, Tensor)
        )

    def run_recorded(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        arrays = [None if grad is None else grad.array for grad in grads]
        return tuple(
            None if gradient is None else Tensor(gradient) for gradient in self.run(arrays, keep)
        )


def _tensors(result: Any) -> tuple[list[Any], bool]:
    """What a function returned, and whether it was several values."""
    several = isinstance(result, (tuple, list))
    values = list(result) if several else [result]
    for value in values:
        if isinstance(value, Tensor):
            refresh(value)
    return values, several


def _with_reentry(call: _Call) -> Any:
    if call.kwargs:
        raise value_error(
            f"checkpoint(): unexpected keyword arguments {', '.join(call.kwargs)}",
            text=f"Unexpected keyword arguments: {','.join(call.kwargs)}",
        )
    requires_grad = any(isinstance(arg, Tensor) and arg.requires_grad for arg in call.args)
    if not requires_grad and any(isinstance(arg, Tensor) for arg in call.args):
        text = "None of the inputs have requires_grad=True. Gradients will be None"
        active.state.warn("W009", text, text=text, help="say `use_reentrant=False`")
    with NoGrad():
        results, several = _tensors(call.function(*call.args))
    wanted = active.state.grad_enabled and requires_grad
    if wanted:
        arguments = {id(arg) for arg in call.args}
        results = [alias(r) if id(r) in arguments else r for r in results]
        tensors = [result for result in results if isinstance(result, Tensor)]
        node = CheckpointFunctionBackward(call, tensors)
        for number, tensor in enumerate(tensors):
            if tensor.array.dtype.kind in "fcV":
                tensor.grad_fn = node
                tensor.output_nr = number
                tensor.requires_grad = True
    return tuple(results) if several else results[0]


# --- what programs call -------------------------------------------------------------------------


@function(module=_MODULE)
def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Any = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """The function's result; what the function saves for gradients is computed again in the
    backward pass.

    Args:
        function: run once now, and once for each backward pass.
        args, kwargs: its arguments; no keywords with re-entry.
        use_reentrant: whether the graph holds one node for the function, which PyTorch takes for
            None too, or those that the function records.
        early_stop: whether the second run ends when all that is saved is there.
        preserve_rng_state: whether a second run sees the random numbers of the first one.

    Raises E205 for `context_fn`, which is outside the language.
    """
    if context_fn is not None:
        raise GradcliError("E205", "checkpoint(): `context_fn` is outside the language")
    snapshot = generator_of(None).snapshot() if preserve_rng_state else None
    stops = bool(active.state.library.get(_EARLY_STOP, early_stop))
    call = _Call(function, args, kwargs, snapshot, active.state.autocast, stops)
    if use_reentrant is None or use_reentrant:
        return _with_reentry(call)
    recomputation = _Recomputation(call)
    with PackingListener(recomputation.pack, recomputation.unpack):
        return function(*args, **kwargs)


@function(module=_MODULE)
def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """The result of functions run one after the other, in segments: each but the last is a
    checkpoint.

    Args:
        functions: a list of them, or an `nn.Sequential`.
        segments: into how many parts to cut the list.
        input: what the first function gets.
    """
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(steps) // segments

    def segment(start: int, end: int) -> Callable[[Any], Any]:
        def run_segment(value: Any) -> Any:
            for step in steps[start:end]:
                value = step(value)
            return value

        return run_segment

    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(
            segment(start, end),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve_rng_state,
        )
    return segment(end, len(steps))(input)
