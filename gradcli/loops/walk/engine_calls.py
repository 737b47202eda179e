"""Backward passes, optimizers, schedules and modules in an iteration that is captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcli.autograd.engine import backward
from gradcli.autograd.modes import EnableGrad
from gradcli.autograd.tensor import Tensor
from gradcli.language.functions.calls import Function, call
from gradcli.language.objects.attributes import Module as Namespace
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import PARENT, names_around
from gradcli.loops.capture import Capture
from gradcli.loops.kinds import context_class, module_class, optimizer_class
from gradcli.loops.locations import Location
from gradcli.loops.lower_backward import write_backward
from gradcli.loops.optimizers import (
    check_optimizer,
    gradients_of,
    parameter_lists,
    parts_of,
    write_step,
)
from gradcli.loops.reach import led_to
from gradcli.loops.symbols import NUMBERS
from gradcli.loops.walk.builtin_calls import OF_NUMBERS
from gradcli.loops.walk.operation import Callee, Handlers, host_call
from gradcli.ops.creation import tensor_methods
from gradcli.state import active
from gradcli.trace.ir import GraphBreak, Inline, same

if TYPE_CHECKING:
    from gradcli.library.torch.nn.module import Module

_WALKS = frozenset(
    {"buffers", "children", "modules", "named_buffers", "named_children", "named_modules"}
    | {"named_parameters", "parameters"}
)
"""The methods of a module that go through what it holds."""


def _without_recorder(walk: Capture, callee: Callee) -> Any:
    """What a call gives that is recorded otherwise."""
    if walk.broken is not None:
        return walk.evaluate(callee.operation, callee.operands)
    walk.recorder.remove()
    try:
        return walk.evaluate(callee.operation, callee.operands)
    finally:
        walk.recorder.install()


def _derivatives(walk: Capture, tensor: Any) -> dict[Tensor, Any]:
    """Record the backward pass from a tensor; the gradients of the leaves that it reaches."""
    if type(tensor) is not Tensor or tensor.grad_fn is None or tensor.output_nr:
        raise GraphBreak("a backward pass from something that has no graph")
    seed = tensor.array.dtype.type(1)
    if tensor.array.shape != ():
        raise GraphBreak("a backward pass from more than one element")
    arrived = write_backward(walk.builder, tensor.grad_fn, seed, walk.since)
    return {leaf.variable: gradient for leaf, gradient in arrived.items()}


def _backward_call(walk: Capture, callee: Callee) -> Any:
    """`loss.backward()`."""
    if any(each not in ("retain_graph",) for each in callee.keywords) or callee.positional:
        walk.refuse("`backward` with a gradient, or a graph of the gradient")

    def record() -> None:
        for leaf, gradient in _derivatives(walk, callee.receiver).items():
            walk.gradients.arrive(leaf, gradient)

    walk.attempt(record)
    result = _without_recorder(walk, callee)
    walk.attempt(walk.gradients.check_arrived)
    return result


def _grad_call(walk: Capture, callee: Callee) -> Any:
    """`torch.autograd.grad(loss, x)`."""
    if callee.keywords.get("create_graph"):
        return host_call(walk, callee)
    arguments = callee.positional
    options = {name for name in callee.keywords if name != "retain_graph"}
    if len(arguments) != 2 or options:
        walk.refuse("`torch.autograd.grad` with seeds or options")
    derivatives = walk.attempt(_derivatives, walk, arguments[0])
    gradients = _without_recorder(walk, callee)
    if derivatives is None or walk.broken is not None:
        return gradients
    leaves = arguments[1] if type(arguments[1]) in (list, tuple) else [arguments[1]]

    def know() -> None:
        for leaf, tensor in zip(leaves, gradients, strict=True):
            gradient = derivatives.get(leaf)
            if type(tensor) is not Tensor or gradient is None:
                raise GraphBreak("a gradient of something that is no leaf")
            if not same(tensor.array, gradient.array):
                raise GraphBreak(
                    "a gradient gave other bits when it was computed again", code="B02"
                )
            walk.builder.stand_for(tensor.array, gradient)

    walk.attempt(know)
    return gradients


def _zero_grad(walk: Capture, callee: Callee) -> Any:
    """`optimizer.zero_grad()`, `model.zero_grad()`."""
    forgets = all(map(walk.exact, callee.passed[1:]))
    _rely_on(walk, callee.receiver, parameter_lists)

    def record() -> None:
        for tensor in gradients_of(callee.receiver):
            (walk.gradients.forget if forgets else walk.gradients.read)(tensor)

    walk.attempt(record)
    if forgets:
        return _without_recorder(walk, callee)
    return walk.evaluate(callee.operation, callee.operands)


def _rely_on(walk: Capture, target: Any, parts: Callable[[Any], list[Any]]) -> None:
    if isinstance(target, module_class()):
        walk.rely_on_module(target)
    elif id(target) not in walk.local:
        walk.guard.rely_on(lambda: parts(target))


def _optimizer_step(walk: Capture, callee: Callee) -> Any:
    """`optimizer.step()`, `optimizer.step(closure)`."""
    optimizer = callee.receiver
    closure = callee.positional[0] if callee.positional else callee.keywords.get("closure")
    if callee.passed not in ([optimizer], [optimizer, closure]):
        walk.refuse("`step` with more than a closure")
    elif closure is not None and type(closure) is not Function:
        walk.refuse("`step` with a closure that is no plain function of the program")
    walk.attempt(check_optimizer, optimizer)
    if walk.broken is not None:
        return walk.evaluate(callee.operation, callee.operands)
    loss = None if closure is None else _closed(walk, closure)
    _rely_on(walk, optimizer, parts_of)

    def record() -> None:
        walk.builder.updated += write_step(walk.gradients, optimizer)

    walk.attempt(record)
    if closure is None:
        return _without_recorder(walk, callee)
    walk.recorder.remove()
    try:
        call(callee.function, (), {})
    finally:
        if walk.broken is None:
            walk.recorder.install()
    return loss


def _closed(walk: Capture, closure: Function) -> Any:
    """What a closure gives that an optimizer calls once, ahead of its step."""
    walk.constant(closure)
    with EnableGrad():
        return walk.called({}, closure)


def is_schedule(value: Any) -> bool:
    return type(value).__module__.startswith("gradcli.library.torch.optim.") and hasattr(
        type(value), "get_last_lr"
    )


def _schedule_call(walk: Capture, callee: Callee) -> Any:
    """A method of a learning rate's schedule, which is called in every iteration as it is."""
    schedule = callee.receiver
    if callee.name not in ("step", "get_last_lr") or callee.keywords:
        walk.refuse(f"`{callee.name}` of a schedule")
    parts = led_to(schedule)
    functions = [each for each in parts if type(each) is Function]
    for each in functions:
        _rely_on_function(walk, each, set())
    if any(hasattr(type(each), "language_class") for each in parts):
        walk.refuse("a schedule calls an object of the program", "let it call a function")
    result = walk.recorded(callee.operation, callee.operands)
    operands: list[Any] = []
    method = getattr(schedule, callee.name)
    text = walk.attempt(walk.builder.written_call, operands, method, callee.positional)
    if text is None:
        return result
    if callee.name == "step":
        schedules = filter(is_schedule, parts)
        may_raise = bool(functions) or any(each.may_raise for each in schedules)
        raises = {"checks": ()} if may_raise else {}
        op = Inline(text, "step", may_raise)
        walk.attempt(lambda: walk.builder.effect(op, operands, state=(), **raises))
        return result
    op = Inline(text, callee.name, raises=False)
    return walk.either(result, walk.builder.behind, op, operands, result)


def _rely_on_function(walk: Capture, function: Function, seen: set[Function]) -> None:
    """Rely on what a function that is called as it is reads beside its own variables: numbers,
    functions of numbers, and functions that read no more. End recording for all else.

    Args:
        seen: the functions that were looked at.
    """
    if function in seen:
        return
    seen.add(function)
    outermost = walk.compiler.values
    if names_around(function.parent) is not outermost:
        walk.refuse(f"`{function.name}` is a function of another file")
    nodes = [*tree.nodes_of(function.statements)]
    if any(isinstance(node, tree.Global) for node in nodes):
        walk.refuse("a schedule's function sets a name outside of it")
    for node in nodes:
        if not isinstance(node, tree.Name) or function.scope.distance(node.name) == 0:
            continue
        distance = function.scope.distance(node.name)
        holder = outermost if distance is None else function.parent
        for _ in range((distance or 1) - 1):
            holder = holder[PARENT]
        if node.name not in holder:
            known = node.name in OF_NUMBERS
        else:
            place = walk.place_of(holder, node.name)
            known = _is_fixed(walk, place, holder[node.name], seen)
        if not known:
            reads = f"a schedule's function reads `{node.name}`, which is no number and no function"
            walk.refuse(reads, span=node.span)


def _is_fixed(walk: Capture, place: Location, value: Any, seen: set[Function]) -> bool:
    """Whether the value of a name is a number or the like that no iteration changes, or something
    to compute with, which is relied on.
    """
    if type(value) is Function:
        _rely_on_function(walk, value, seen)
    elif type(value) is Namespace:
        if value.name != "math" or value.assigned:
            return False
    elif value is not None and type(value) not in (*NUMBERS, str):
        return False
    walk.constants[place.key] = value
    walk.guard.values.setdefault(place.key, (place.read, value))
    return place.key not in walk.stored and place.key not in walk.carried


_KEPT = frozenset(
    {"mark_non_differentiable", "save_for_backward", "save_for_forward", "set_materialize_grads"}
)
"""The methods of a `ctx` that change nothing but what its node keeps."""


def _switch_mode(walk: Capture, callee: Callee) -> Any:
    """`model.train()`, `model.eval()`."""
    for _, each in callee.receiver.each_module():
        if each not in walk.guard.training:
            walk.switched.setdefault(each, each.training)
    return walk.evaluate(callee.operation, callee.operands)


def _state_of(walk: Capture, callee: Callee) -> Any:
    """`model.state_dict()`: a dict that the iteration makes, of views of what the module holds."""
    if len(callee.passed) > 1:
        walk.refuse("`state_dict` with settings")
    walk.rely_on_module(callee.receiver)
    state = walk.evaluate(callee.operation, callee.operands)
    if walk.broken is None and not all(
        type(each) is Tensor and walk.builder.has(each) for each in state.values()
    ):
        walk.refuse("`state_dict` gives more than tensors")
    module = callee.receiver
    walk.local[id(state)] = state
    walk.made[id(state)] = state, lambda variables: _state_again(module)
    return state


def _state_again(module: Module) -> dict[str, Tensor]:
    """The state of a module once more, whose steps were counted when it was taken."""
    state, steps = active.state, active.state.steps
    counts = state.sequence_nr, steps.left, steps.charged
    found = module.state_dict()
    state.sequence_nr, steps.left, steps.charged = counts
    return found


def _walk_module(walk: Capture, callee: Callee) -> Any:
    """`model.parameters()` and its like."""
    walk.rely_on_module(callee.receiver)
    found = walk.evaluate(callee.operation, callee.operands)
    walk.local[id(found)] = found
    return found


def _is_of_module(callee: Callee, names: frozenset[str]) -> bool:
    return (
        isinstance(callee.receiver, module_class())
        and callee.name in names
        and type(callee.function) is not Function
    )


ENGINE_CALLS: Handlers = [
    (lambda c: c.function is tensor_methods.backward, _backward_call),
    (lambda c: c.function is backward.grad, _grad_call),
    (lambda c: isinstance(c.receiver, optimizer_class()) and c.name == "step", _optimizer_step),
    (lambda c: isinstance(c.receiver, optimizer_class()) and c.name == "zero_grad", _zero_grad),
    (lambda c: isinstance(c.receiver, module_class()) and c.name == "zero_grad", _zero_grad),
    (lambda c: is_schedule(c.receiver), _schedule_call),
    (
        lambda c: isinstance(c.operands[0], context_class()) and c.name in _KEPT,
        lambda walk, callee: walk.evaluate(callee.operation, callee.operands),
    ),
    (lambda c: _is_of_module(c, frozenset({"train", "eval"})), _switch_mode),
    (lambda c: _is_of_module(c, _WALKS), _walk_module),
    (lambda c: _is_of_module(c, frozenset({"state_dict"})), _state_of),
]
