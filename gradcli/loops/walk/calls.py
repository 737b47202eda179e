"""Calls in an iteration that is captured: what each kind of function comes to; backward passes,
optimizers, schedules and modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcli.autograd.engine import backward
from gradcli.autograd.modes import EnableGrad
from gradcli.autograd.node import Node, RemovableHandle
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.compiler.base import Evaluate
from gradcli.language.compiler.expressions.calling import NAMES_IN_USE, is_bare
from gradcli.language.compiler.over_operands import Operation
from gradcli.language.functions import calls
from gradcli.language.functions.calls import Function
from gradcli.language.objects.attributes import Method
from gradcli.language.objects.attributes import Module as Namespace
from gradcli.language.objects.classes.user_classes import BoundMethod, UserClass
from gradcli.language.objects.iteration import Iterator
from gradcli.language.objects.methods import METHODS
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import PARENT, Scope, Variables, names_around
from gradcli.loops.capture import Capture
from gradcli.loops.guards import hooks_of
from gradcli.loops.kinds import (
    backward_hooks_class,
    context_class,
    distribution_class,
    module_class,
    optimizer_class,
)
from gradcli.loops.locations import Location
from gradcli.loops.lower_backward import hooks_below, nodes_of, write_backward
from gradcli.loops.reach import led_to
from gradcli.loops.symbols import NUMBERS, concrete
from gradcli.loops.walk.builtin_calls import BUILTIN_CALLS, OF_NUMBERS, READING
from gradcli.loops.walk.operation import (
    Callee,
    Handlers,
    host_call,
    is_of_pull,
    pull_call,
)
from gradcli.loops.walk.reading import functions_in
from gradcli.ops.binding import catalogue
from gradcli.ops.creation import tensor_methods
from gradcli.state import active, charge_steps
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


def _root_of(tensor: Any) -> Node:
    """The node that a backward pass from a tensor begins with."""
    if type(tensor) is not Tensor or tensor.grad_fn is None or tensor.output_nr:
        raise GraphBreak("a backward pass from something that has no graph")
    if tensor.array.shape != ():
        raise GraphBreak("a backward pass from more than one element")
    return tensor.grad_fn


def _derivatives(walk: Capture, tensor: Any) -> dict[Tensor, Any]:
    """Record the backward pass from a tensor; the gradients of the leaves that it reaches."""
    root, seed = _root_of(tensor), tensor.array.dtype.type(1)
    arrived = write_backward(walk.builder, root, seed, walk.since)
    return {leaf.variable: gradient for leaf, gradient in arrived.items()}


def _hooks_below(walk: Capture, tensor: Any) -> list[Any]:
    """The hooks that a pass from a tensor calls."""
    root = _root_of(tensor)
    hooks = hooks_below(root)
    if hooks:
        nodes_of(root, walk.since)
        if walk.state.batch is not None or walk.state.backward_pass is not None:
            raise GraphBreak("a backward pass with hooks inside `vmap`, or inside another pass")
    return hooks


def _heard_backward(walk: Capture, callee: Callee, hooks: list[Any]) -> Any:
    """The same where hooks are called, or gradients retained: it is recorded while it runs."""
    for each in hooks:
        if each is not None and not _is_of_module_call(each):
            walk.hook(each)
    walk.recorder.awaits_pass = True
    try:
        return walk.evaluate(callee.operation, callee.operands)
    finally:
        walk.recorder.end_pass()


def _is_of_module_call(hook: Any) -> bool:
    """Whether a hook is what calls the backward hooks of a module, whose call was recorded."""
    return isinstance(getattr(hook, "__self__", None), backward_hooks_class())


def _backward_call(walk: Capture, callee: Callee) -> Any:
    """`loss.backward()`."""
    if any(each not in ("retain_graph",) for each in callee.keywords) or callee.positional:
        walk.refuse("`backward` with a gradient, or a graph of the gradient")
    hooks = walk.attempt(_hooks_below, walk, callee.receiver)
    if hooks and walk.broken is None:
        return _heard_backward(walk, callee, hooks)

    def record() -> None:
        for leaf, gradient in _derivatives(walk, callee.receiver).items():
            walk.gradients.arrive(leaf, gradient)

    walk.attempt(record)
    result = _without_recorder(walk, callee)
    walk.attempt(walk.gradients.check_arrived)
    return result


_PLAIN = {"only_inputs": True, "grad_outputs": None} | dict.fromkeys(
    ("allow_unused", "create_graph", "is_grads_batched", "materialize_grads"), False
)
"""The options of `torch.autograd.grad` that change nothing."""


def _grad_call(walk: Capture, callee: Callee) -> Any:
    """`torch.autograd.grad(loss, x)`."""
    if callee.keywords.get("create_graph"):
        return host_call(walk, callee)
    arguments = callee.positional
    options = {name: each for name, each in callee.keywords.items() if name != "retain_graph"}
    is_plain = all(each is _PLAIN.get(name, ...) for name, each in options.items())
    if len(arguments) != 2 or not is_plain:
        walk.refuse("`torch.autograd.grad` with seeds or options")
    if walk.attempt(_hooks_below, walk, arguments[0]):
        walk.refuse("`torch.autograd.grad` through a graph with hooks, or with retained gradients")
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
    from gradcli.loops import optimizers  # lazy: start-up: few loops have one

    forgets = all(map(walk.exact, callee.passed[1:]))
    _rely_on(walk, callee.receiver, optimizers.parameter_lists)

    def record() -> None:
        for tensor in optimizers.gradients_of(callee.receiver):
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
    from gradcli.loops import optimizers  # lazy: start-up: few loops have one

    optimizer = callee.receiver
    closure = callee.positional[0] if callee.positional else callee.keywords.get("closure")
    if callee.passed not in ([optimizer], [optimizer, closure]):
        walk.refuse("`step` with more than a closure")
    elif closure is not None and type(closure) is not Function:
        walk.refuse("`step` with a closure that is no plain function of the program")
    walk.attempt(optimizers.check_optimizer, optimizer)
    if walk.broken is not None:
        return walk.evaluate(callee.operation, callee.operands)
    loss = None if closure is None else _closed(walk, closure)
    _rely_on(walk, optimizer, optimizers.parts_of)

    def record() -> None:
        walk.builder.updated += optimizers.write_step(walk.gradients, optimizer)

    walk.attempt(record)
    if closure is None:
        return _without_recorder(walk, callee)
    walk.recorder.remove()
    try:
        calls.call(callee.function, (), {})
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
        is_own = getattr(each.own_train(), "__func__", None) is not module_class().train
        if is_own and (each is not callee.receiver or callee.name == "eval"):
            walk.refuse("a module that is switched by a `train` of its own")
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
    if callee.receiver.names_its_own:
        walk.refuse("a module that has a `named_parameters` of its own")
    walk.rely_on_module(callee.receiver)
    found = walk.evaluate(callee.operation, callee.operands)
    walk.local[id(found)] = found
    return found


def _register_hook(walk: Capture, callee: Callee) -> Any:
    """`tensor.register_hook(function)`: of a tensor that the iteration has not made, it has to be
    removed before the iteration ends.
    """
    for each in callee.passed[1:]:
        walk.hook(each)
    if not walk.is_own(callee.receiver):
        if callee.receiver.grad_fn is not None:
            walk.refuse(f"`{callee.name}` of a tensor that the iteration has not made")
        walk.hooked.setdefault(callee.receiver, hooks_of(callee.receiver))
    handle = walk.evaluate(callee.operation, callee.operands)
    walk.local[id(handle)] = handle
    return handle


def _remove_hook(walk: Capture, callee: Callee) -> Any:
    """`handle.remove()` of a hook that the iteration registered."""
    if id(callee.function.__self__) not in walk.local:
        walk.refuse("a hook is removed that was registered before the iteration")
    return walk.evaluate(callee.operation, callee.operands)


def _retain_grad(walk: Capture, callee: Callee) -> Any:
    """`tensor.retain_grad()`."""
    if not (walk.is_own(callee.receiver) or callee.receiver.grad_fn is None):
        walk.refuse("`retain_grad` of a tensor that the iteration has not made")
    return walk.evaluate(callee.operation, callee.operands)


_REGISTER = frozenset({"register_hook", "register_post_accumulate_grad_hook"})


def _is_of_tensor(callee: Callee, names: frozenset[str]) -> bool:
    return type(callee.receiver) is Tensor and callee.name in names


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
    (lambda c: _is_of_tensor(c, _REGISTER), _register_hook),
    (lambda c: _is_of_tensor(c, frozenset({"retain_grad"})), _retain_grad),
    (
        lambda c: (
            c.name == "remove" and type(getattr(c.function, "__self__", None)) is RemovableHandle
        ),
        _remove_hook,
    ),
]


def call(walk: Capture, node: tree.Call, scope: Scope) -> Evaluate | None:
    """`function(arguments)`."""
    if is_bare(node, scope, "super"):
        return walk.compiler.expression(node, scope)
    if any(is_bare(node, scope, each) for each in NAMES_IN_USE):
        return None
    evaluate = _callee(walk, node, scope)

    def run(variables: Variables) -> Any:
        callee = evaluate(variables)
        walk.state.place = node.span
        if walk.pulls and is_of_pull(walk, callee):
            return pull_call(walk, callee)
        record = next(record for applies, record in _HANDLERS if applies(callee))
        if record not in _OF_PROGRAM:
            walk.note_passed(callee.operands)
        return record(walk, callee)

    return run


def _callee(walk: Capture, node: tree.Call, scope: Scope) -> Callable[[Variables], Callee]:
    """What evaluates the operands of a call."""
    target = node.function
    is_method = isinstance(target, tree.Attribute)
    name = target.name if isinstance(target, (tree.Attribute, tree.Name)) else ""
    first: Any = target.value if isinstance(target, tree.Attribute) else target
    evaluate = walk.expression(first, scope)
    arguments = [(each, walk.expression(each.value, scope)) for each in node.arguments]
    method = Operation(walk, target, scope, [first]) if is_method else None

    def operation(passed: list[tree.Argument]) -> Operation:
        called = tree.Call(node.span, target, passed)
        return Operation(walk, called, scope, [first, *[each.value for each in passed]])

    whole = operation(node.arguments)

    def run(variables: Variables) -> Callee:
        owner, receiver = evaluate(variables), None
        if method is not None:
            function, receiver = _method(walk, owner, name, method)
        else:
            owner = function = walk.exact(owner)
        operands, passed = [owner], []
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for each, read in arguments:
            value = read(variables)
            if each.kind == "*" and type(value) in _DRAWN_ONCE:
                walk.state.place = node.span
                parts = list(walk.iterate(value))
                if type(value) is Iterator:
                    charge_steps(len(parts))
                stand_ins = [tree.Starred(each.value.span, each.value) for _ in parts]
                passed += [tree.Argument(each.span, part) for part in stand_ins]
                operands += parts
                positional += parts
                continue
            operands.append(value)
            passed.append(each)
            if each.kind == "*":
                walk.rely_on(value)
                parts = walk.either(value, walk.builder.parts_of, value)
                positional += parts if type(parts) in (list, tuple) else walk.iterate(value)
            elif each.kind == "**":
                walk.rely_on(value)
                parts = walk.either(value, walk.builder.parts_of, value)
                keywords.update({name: walk.builder.known(part) for name, part in parts.items()})
            elif each.name:
                keywords[each.name] = value
            else:
                positional.append(value)
        own = whole if passed == node.arguments else operation(passed)
        return Callee(node, own, function, name, receiver, positional, keywords, operands)

    return run


_DRAWN_ONCE = (Tensor, Iterator)
"""What is drawn from in a way that counts, as nodes and values that are gone: no second time."""


def _method(walk: Capture, owner: Any, name: str, read: Operation) -> tuple[Any, Any]:
    """The function that `owner.name` calls, and what it is called on."""
    kind = type(concrete(owner))
    if kind is Tensor and name in catalogue.methods and name not in catalogue.properties:
        return catalogue.methods[name], owner
    if kind is Namespace:
        walk.guard.rely_on_contents(owner.assigned)
        return walk.moved(read, [owner]), None
    if kind in METHODS and name in METHODS[kind]:
        return METHODS[kind][name], owner
    owner = walk.exact(owner, looks=False)
    method = walk.exact(walk.read_attribute(owner, name, lambda: walk.moved(read, [owner])))
    if type(method) in (BoundMethod, Method):
        return method.function, method.receiver
    known = isinstance(owner, (module_class(), optimizer_class(), distribution_class()))
    known = known or is_schedule(owner)
    return method, owner if known else None


def _inline(walk: Capture, callee: Callee) -> Any:
    """A function of the program: its body is walked."""
    function = callee.function
    walk.constant(function)
    try:
        bound = function.bind(callee.arguments, callee.keywords)
    except GradcliError:
        bound = {}
    return walk.called(bound, lambda: walk.recorded(callee.operation, callee.operands))


def _through_host(walk: Capture, callee: Callee) -> Any:
    """A call of the host's that may call functions of the program: of a module, an object with
    `__call__`, a function of others.
    """
    called = callee.function
    if isinstance(called, module_class()):
        walk.rely_on_module(called)
    walk.rely_on_fields(called)
    walk.walk_methods(getattr(type(called), "language_class", None))
    for function in functions_in(called):
        walk.constant(function)
    return walk.called(None, lambda: walk.evaluate(callee.operation, callee.operands))


def _instance(walk: Capture, callee: Callee) -> Any:
    """A class of the program: an object is made."""
    cls = callee.function
    walk.walk_methods(cls)
    if issubclass(cls.host, module_class()):
        walk.refuse("a module is made in the iteration", "make it ahead of the loop")
    instance = walk.moved(callee.operation, callee.operands)
    walk.local[id(instance)] = instance
    return instance


_OF_PROGRAM = frozenset({_inline, _instance, *READING})
"""What records calls that change what they are given only as the program's own statements do."""

_HANDLERS: Handlers = [
    (lambda c: type(c.function) is Function, _inline),
    (lambda c: isinstance(c.function, module_class()), _through_host),
    (lambda c: isinstance(c.function, UserClass), _instance),
    *ENGINE_CALLS,
    *BUILTIN_CALLS,
    (lambda c: hasattr(type(c.function), "language_class"), _through_host),
    (lambda c: bool(functions_in(c.function)), _through_host),
    (lambda c: True, host_call),
]
