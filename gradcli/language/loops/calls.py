"""Calls in an iteration that is captured: what each kind of function comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.autograd.engine import backward
from gradcli.autograd.modes import GradMode
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language import tree
from gradcli.language.functions.calls import Function
from gradcli.language.library.builtins import BUILTINS
from gradcli.language.library.math import MATH
from gradcli.language.loops.holes import HOLES, Frame
from gradcli.language.loops.lower_backward import write_backward
from gradcli.language.loops.optimizers import check_optimizer, gradients_of, parts_of, write_step
from gradcli.language.loops.symbols import Symbol, concrete, is_symbolic
from gradcli.language.objects.attributes import Method, set_attribute
from gradcli.language.objects.attributes import Module as Namespace
from gradcli.language.objects.descriptors import BoundMethod
from gradcli.language.objects.instances import UserClass
from gradcli.language.objects.iteration import Iterator
from gradcli.language.objects.methods import METHODS
from gradcli.nn.module import Module
from gradcli.nn.traversal import Walk as ModuleWalk
from gradcli.ops.binding import catalogue
from gradcli.optim.optimizer import Optimizer
from gradcli.trace.graph_break import GraphBreak
from gradcli.trace.guards import same
from gradcli.trace.ir import Inline, Kernel

if TYPE_CHECKING:
    from gradcli.language.loops.capture import Capture

_OF_NUMBERS = frozenset(
    {"abs", "bool", "divmod", "float", "format", "int", "len", "max", "min", "pow", "repr"}
    | {"round", "str", "sum"}
)
"""The builtin functions that compute numbers and text of what they are given, and do no more."""

_OF_COLLECTIONS = frozenset(
    {"all", "any", "callable", "dict", "enumerate", "filter", "isinstance", "issubclass", "list"}
    | {"map", "range", "reversed", "set", "slice", "sorted", "tuple", "type", "zip"}
)
"""The builtin functions that go through what they are given, and do no more."""

_WALKS = frozenset(
    {"buffers", "children", "modules", "named_buffers", "named_children", "named_modules"}
    | {"named_parameters", "parameters"}
)
"""The methods of a module that go through what it holds."""

_SIZES = frozenset(
    {"dim", "element_size", "is_contiguous", "is_floating_point", "ndimension", "nelement"}
    | {"numel", "size", "stride", "__len__"}
)
"""The methods of a tensor that go by what is guarded of it."""


class Callee(NamedTuple):
    """A call with its operands.

    Attributes:
        node: the call.
        hole: the same, with holes for the operands.
        function: what is called.
        name: its name, where it is a method or of a module.
        receiver: what it is a method of, None for nothing.
        positional: the arguments, without the receiver.
        keywords: those by name.
        operands: everything that goes into the holes.
    """

    node: tree.Call
    hole: tree.Call
    function: Any
    name: str
    receiver: Any
    positional: list[Any]
    keywords: dict[str, Any]
    operands: list[Any]

    @property
    def arguments(self) -> list[Any]:
        """The arguments, the receiver of a method first."""
        return self.positional if self.receiver is None else [self.receiver, *self.positional]

    @property
    def given(self) -> list[Any]:
        """Everything that the function is given."""
        return [*self.arguments, *self.keywords.values()]


def call(walk: Capture, node: tree.Call, frame: Frame) -> Any:
    """`function(arguments)`."""
    if _is_super(node, frame):
        return walk.compiler.expression(node, frame.scope)(frame.variables)
    callee = _callee(walk, node, frame)
    walk.state.place = node.span
    for known, handler in _HANDLERS:
        if known(callee):
            return handler(walk, callee)
    return _host_call(walk, callee)


def _is_super(node: tree.Call, frame: Frame) -> bool:
    name = node.function
    return isinstance(name, tree.Name) and name.name == "super" and not node.arguments


def _callee(walk: Capture, node: tree.Call, frame: Frame) -> Callee:
    operands: list[Any] = []
    target = node.function
    receiver, name = None, ""
    if isinstance(target, tree.Attribute):
        owner = walk.value(target.value, frame)
        name = target.name
        operands.append(owner)
        hole: Any = tree.Attribute(
            target.span, tree.Name(target.value.span, "0"), name, target.name_span
        )
        function, receiver = _method(walk, owner, name, hole)
    else:
        function = walk.value(target, frame)
        name = target.name if isinstance(target, tree.Name) else ""
        operands.append(function)
        hole = tree.Name(target.span, "0")
        function = concrete(function)
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    arguments = []
    for each in node.arguments:
        value = walk.value(each.value, frame)
        place = tree.Name(each.value.span, str(len(operands)))
        operands.append(value)
        arguments.append(tree.Argument(each.span, each.kind, each.name, place))
        if each.kind == "*":
            walk.rely_on(value)
            positional += value if type(value) in (list, tuple) else list(walk.items(value))
        elif each.kind == "**":
            walk.rely_on(value)
            keywords.update(value)
        elif each.name:
            keywords[each.name] = value
        else:
            positional.append(value)
    whole = tree.Call(node.span, hole, arguments)
    return Callee(node, whole, function, name, receiver, positional, keywords, operands)


def _method(walk: Capture, owner: Any, name: str, hole: tree.Attribute) -> tuple[Any, Any]:
    """The function that `owner.name` calls, and what it is called on."""
    kind = type(concrete(owner))
    if kind is Tensor and name in catalogue.methods and name not in catalogue.properties:
        return catalogue.methods[name], owner
    if kind is Namespace:
        return walk.evaluate(hole, [owner]), None
    if kind in METHODS and name in METHODS[kind]:
        return METHODS[kind][name], owner
    found = walk.read_attribute(concrete(owner), name, lambda: walk.evaluate(hole, [owner]))
    found = concrete(found)
    if type(found) in (BoundMethod, Method):
        return found.function, found.receiver
    receiver = owner if isinstance(owner, (Module, Optimizer)) or _is_schedule(owner) else None
    return found, receiver


# --- functions of the program -----------------------------------------------------------------


def _inline(walk: Capture, callee: Callee) -> Any:
    """A function of the program: its body is walked."""
    function = callee.function
    walk.constant(function)
    try:
        bound = function.bind(callee.arguments, callee.keywords)
    except GradcliError:
        bound = {}
    return walk.called(function, bound, lambda: walk.evaluate(callee.hole, callee.operands))


def _module(walk: Capture, callee: Callee) -> Any:
    """A module that is called: the functions of the program in it are walked."""
    module = callee.function
    walk.rely_on_module(module)
    return _through_host(walk, callee)


def _through_host(walk: Capture, callee: Callee) -> Any:
    """A call of the host's that may call functions of the program."""
    if any(map(is_symbolic, callee.given)):
        walk.refuse("a number that varies is given to a module or to a wrapped function")
    return walk.called(None, None, lambda: walk.evaluate(callee.hole, callee.operands))


def _instance(walk: Capture, callee: Callee) -> Any:
    """A class of the program: an object is made."""
    cls = callee.function
    walk.walk_methods(cls)
    if issubclass(cls.host, Module) or any(map(is_symbolic, callee.given)):
        walk.refuse("an object is made in the iteration", "make it ahead of the loop")
    made = walk.evaluate(callee.hole, callee.operands)
    walk.local[id(made)] = made
    return made


def _callable_object(walk: Capture, callee: Callee) -> Any:
    """An object of the program's with `__call__`."""
    walk.walk_methods(type(callee.function).language_class)
    return _through_host(walk, callee)


# --- backward passes ----------------------------------------------------------------------------


def _without_recorder(walk: Capture, callee: Callee) -> Any:
    """What a call gives that is recorded otherwise."""
    if walk.broken is not None:
        return walk.evaluate(callee.hole, callee.operands)
    walk.recorder.remove()
    try:
        return walk.evaluate(callee.hole, callee.operands)
    finally:
        walk.recorder.install()


def _derivatives(walk: Capture, tensor: Any) -> dict[Tensor, Any]:
    """Record the backward pass from a tensor; the gradients of the leaves that it reaches."""
    if type(tensor) is not Tensor or tensor.grad_fn is None or tensor.output_nr:
        raise GraphBreak("B06", "a backward pass from something that has no graph")
    seed = tensor.array.dtype.type(1)
    if type(tensor.array) is not type(seed):
        raise GraphBreak("B06", "a backward pass from more than one element")
    arrived = write_backward(walk.builder, tensor.grad_fn, seed, walk.since)
    return {leaf.variable: gradient for leaf, gradient in arrived.items()}


def _backward(walk: Capture, callee: Callee) -> Any:
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


def _grad(walk: Capture, callee: Callee) -> Any:
    """`torch.autograd.grad(loss, x)`."""
    if callee.keywords.get("create_graph"):
        return _host_call(walk, callee)
    given = callee.positional
    options = {name for name in callee.keywords if name != "retain_graph"}
    if len(given) != 2 or options:
        walk.refuse("`torch.autograd.grad` with seeds or options")
    derivatives = walk.attempt(_derivatives, walk, given[0])
    found = _without_recorder(walk, callee)
    if derivatives is None or walk.broken is not None:
        return found
    leaves = given[1] if type(given[1]) in (list, tuple) else [given[1]]

    def know() -> None:
        for leaf, made in zip(leaves, found, strict=True):
            gradient = derivatives.get(leaf)
            if type(made) is not Tensor or gradient is None:
                raise GraphBreak("B06", "a gradient of something that is no leaf")
            if not same(made.array, gradient.array):
                raise GraphBreak("B02", "a gradient gave other bits when it was computed again")
            walk.builder.stand_for(made.array, gradient)

    walk.attempt(know)
    return found


# --- optimizers and schedules -------------------------------------------------------------------


def _zero_grad(walk: Capture, callee: Callee) -> Any:
    """`optimizer.zero_grad()`, `model.zero_grad()`."""
    if callee.positional or any(each is not True for each in callee.keywords.values()):
        walk.refuse("`zero_grad` that fills gradients with zeros", "leave set_to_none as it is")
    _rely_on(walk, callee.receiver)

    def record() -> None:
        for tensor in gradients_of(callee.receiver):
            walk.gradients.forget(tensor)

    walk.attempt(record)
    return _without_recorder(walk, callee)


def _rely_on(walk: Capture, target: Any) -> None:
    if isinstance(target, Module):
        walk.rely_on_module(target)
    elif id(target) not in walk.local:
        walk.guard.rely_on(lambda: parts_of(target))


def _optimize(walk: Capture, callee: Callee) -> Any:
    """`optimizer.step()`."""
    optimizer = callee.receiver
    if callee.given != [optimizer]:
        walk.refuse(
            "`step` with a closure runs it as often as it finds fit",
            "an optimizer that takes no closure: SGD, Adam",
        )
    else:
        walk.attempt(check_optimizer, optimizer)
    _rely_on(walk, optimizer)

    def record() -> None:
        walk.outside.updated += write_step(walk.gradients, optimizer)
        walk.optimizers.append(optimizer)

    walk.attempt(record)
    if walk.broken is not None and callee.given != [optimizer]:
        return walk.evaluate(callee.hole, callee.operands)
    return _without_recorder(walk, callee)


def _is_schedule(value: Any) -> bool:
    return type(value).__module__.startswith("gradcli.optim.") and hasattr(value, "get_last_lr")


def _schedule(walk: Capture, callee: Callee) -> Any:
    """A method of a learning rate's schedule, which is called in every iteration as it is."""
    schedule = callee.receiver
    functions = [*getattr(schedule, "lr_lambdas", ()), getattr(schedule, "_scale_fn_custom", None)]
    if callee.name not in ("step", "get_last_lr") or callee.keywords:
        walk.refuse(f"`{callee.name}` of a schedule")
    if any(type(each) is Function and not _is_closed(each) for each in functions):
        walk.refuse("a schedule's function reads names of the program")
    result = walk.evaluate(callee.hole, callee.operands)
    operands: list[Any] = []
    given = [walk.attempt(walk.builder.written, each, operands) for each in callee.positional]
    if walk.broken is not None:
        return result
    method = getattr(schedule, callee.name)
    op = Inline(f"{{{len(operands)}}}({', '.join(given)})", callee.name)
    if schedule not in walk.called_as_is:
        walk.called_as_is.append(schedule)
    if callee.name == "step":
        walk.attempt(lambda: walk.builder.effect(op, [*operands, method], state=()))
        return result
    symbol = walk.attempt(walk.builder.behind, op, [*operands, method], result)
    return result if symbol is None else symbol


def _is_closed(function: Function) -> bool:
    """Whether a function names nothing but its own variables and what the language has."""
    names = [each for each in tree.nodes_of(function.statements) if type(each) is tree.Name]
    return all(function.scope.distance(each.name) == 0 for each in names)


# --- modules ------------------------------------------------------------------------------------


def _mode(walk: Capture, callee: Callee) -> Any:
    """`model.train()`, `model.eval()`."""
    if any(map(is_symbolic, callee.given)):
        walk.refuse("a module's mode that varies")
    for _, each in callee.receiver.each_module():
        walk.training(each)
    return walk.evaluate(callee.hole, callee.operands)


def _walk_module(walk: Capture, callee: Callee) -> Any:
    """`model.parameters()` and its like."""
    walk.rely_on_module(callee.receiver)
    return walk.evaluate(callee.hole, callee.operands)


# --- output and lists ---------------------------------------------------------------------------


def _print(walk: Capture, callee: Callee) -> Any:
    """`print(…)`."""
    for each in callee.given:
        walk.rely_on(each)
    walk.evaluate(callee.hole, callee.operands)
    operands: list[Any] = []

    def record() -> None:
        given = [walk.builder.written(each, operands) for each in callee.positional]
        for name, each in callee.keywords.items():
            given.append(f"{name}={walk.builder.written(each, operands)}")
        op = Inline(f"{{{len(operands)}}}({', '.join(given)})", "print")
        walk.builder.effect(op, [*operands, callee.function], shows=())

    walk.attempt(record)


def _append_to(walk: Capture, callee: Callee) -> Any:
    """`values.append(value)`."""
    if id(callee.receiver) in walk.local or len(callee.positional) != 1:
        return _change_list(walk, callee)
    return _append(walk, callee)


def _append(walk: Capture, callee: Callee) -> None:
    """The same for a list from outside."""
    values, (value,) = callee.receiver, callee.positional
    walk.evaluate(callee.hole, callee.operands)
    operands: list[Any] = []

    def record() -> None:
        if id(values) in walk.guard.contents:
            raise GraphBreak("B06", "a list is gone through that the iteration appends to")
        escaping = _escaping(walk, value)
        text = walk.builder.written(escaping, operands)
        op = Inline(f"{{{len(operands)}}}({{{len(operands) + 1}}}, {text})", "append")
        walk.builder.effect(op, [*operands, callee.function, values], state=())
        walk.grown.append(values)

    walk.attempt(record)


def _escaping(walk: Capture, value: Any) -> Any:
    """A value that outlives the iteration, in memory of its own; raises GraphBreak for one with a
    graph.
    """
    if type(value) is tuple:
        return tuple([_escaping(walk, each) for each in value])
    if type(value) is not Tensor or not walk.builder.varies(value):
        if id(value) in walk.local and type(value) is not Tensor:
            raise GraphBreak("B06", "a list or object that the iteration makes is kept")
        return value
    if value.requires_grad:
        raise GraphBreak(
            "B06",
            "a tensor is kept with its graph, which grows from iteration to iteration",
            "keep `loss.item()` or `loss.detach()`",
        )
    walk.recorder.escaped.append(value)
    if not isinstance(value.array, np.ndarray):
        return value
    copied = Tensor(value.array.copy())
    made = walk.builder.call(Kernel("copy", np.copy), [walk.builder.of(value)], result=copied.array)
    del made
    return copied


def _change_list(walk: Capture, callee: Callee) -> Any:
    """A method of a list, dict or set that the iteration made, or that only reads."""
    owner = callee.receiver
    if id(owner) in walk.local:
        if any(is_symbolic(each) and _is_lost(each) for each in callee.given):
            walk.refuse("integers or strings that vary are put into a list or dict")
        return _drawn(walk, walk.evaluate(callee.hole, callee.operands))
    if callee.name in ("items", "keys", "values", "get", "copy", "index", "count"):
        walk.rely_on(owner)
        if any(map(is_symbolic, callee.given)):
            walk.refuse("an item at a place that varies")
        return _drawn(walk, walk.evaluate(callee.hole, callee.operands))
    walk.refuse(f"`{callee.name}` changes a {type(owner).__name__} from outside the iteration")
    return walk.evaluate(callee.hole, callee.operands)


def _is_lost(value: Any) -> bool:
    return not (type(value) is Symbol and type(value.now) is float)


def _drawn(walk: Capture, value: Any) -> Any:
    known = walk.builder.known(value)
    if known is value and type(value) in (list, dict, set):
        walk.local[id(value)] = value
    return known if type(known) is Symbol else walk.constant(value)


# --- builtin functions --------------------------------------------------------------------------


def _has(function: Any, names: frozenset[str]) -> bool:
    return any(function is BUILTINS.get(name) for name in names)


def _of_numbers(walk: Capture, callee: Callee) -> Any:
    """`abs`, `max`, `round`, functions of `math`, methods of strings."""
    for each in callee.given:
        walk.rely_on(each)
    if not any(map(walk.builder.varies, callee.given)):
        return walk.evaluate(callee.hole, callee.operands)
    tensors = [each for each in callee.given if _holds_tensor(each)]
    if callee.name == "len" and tensors:
        return walk.evaluate(callee.hole, callee.operands)  # which is a size
    if not tensors or callee.name in ("str", "repr", "format"):
        now = walk.evaluate(callee.hole, callee.operands)
        whole = walk.compiler.expression(callee.hole, HOLES)
        return walk.computed(
            lambda *given: whole({str(n): each for n, each in enumerate(given)}),
            callee.operands,
            now,
        )
    if any(map(is_symbolic, callee.given)) and callee.name != "sum":
        walk.refuse("tensors and numbers that vary, together in a builtin function")
    if callee.name in ("float", "int", "bool") and len(callee.given) == 1:
        return _taken(walk, callee)
    return _host_call(walk, callee)


def _holds_tensor(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(map(_holds_tensor, value))
    return type(value) is Tensor or type(value) is Iterator


def _taken(walk: Capture, callee: Callee) -> Any:
    """A number that is taken out of a tensor: `loss.item()`, `float(loss)`."""
    recorder = walk.recorder
    before, recorder.taken = recorder.taken, []
    try:
        number = walk.evaluate(callee.hole, callee.operands)
        found = recorder.taken
    finally:
        recorder.taken = before
    if walk.broken is not None:
        return number
    if len(found) != 1 or type(number) not in (int, float, bool):
        walk.refuse(f"`{callee.name}` of a tensor", span=callee.node.span)
        return number
    text = "{0}.item()"
    if type(number) is not type(found[0].item()):
        text = f"{type(number).__name__}({text})"

    def record() -> Any:
        array = walk.builder.value_of(found[0])
        return walk.builder.compute(Inline(text, "item"), [array], number)

    symbol = walk.attempt(record)
    return number if symbol is None else symbol


def _of_collections(walk: Capture, callee: Callee) -> Any:
    """`enumerate`, `zip`, `list`, `range`, `isinstance`."""
    for each in callee.given:
        walk.rely_on(each)
        if type(each) is Function:
            walk.walked(each)
        if isinstance(each, Module):
            walk.rely_on_module(each)
    if any(map(is_symbolic, callee.given)):
        if callee.name in ("isinstance", "type", "callable"):
            return walk.evaluate(callee.hole, callee.operands)
        walk.refuse(f"`{callee.name}` of numbers that vary")
    return _drawn(walk, walk.evaluate(callee.hole, callee.operands))


def _getattr(walk: Capture, callee: Callee) -> Any:
    """`getattr(value, name)`."""
    given = callee.positional
    if len(given) != 2 or any(map(is_symbolic, given)):
        walk.refuse("`getattr` with a default")
        return walk.evaluate(callee.hole, callee.operands)
    return walk.read_attribute(
        given[0], given[1], lambda: walk.evaluate(callee.hole, callee.operands)
    )


def _setattr(walk: Capture, callee: Callee) -> Any:
    """`setattr(value, name, new)`."""
    owner, name, new = callee.positional
    walk.put(owner, concrete(name), new, set_attribute)


# --- everything else of the host's --------------------------------------------------------------


def _host_call(walk: Capture, callee: Callee) -> Any:
    """A function of ours: what it does is heard; what it gives must be known then."""
    for each in callee.given:
        walk.rely_on(each)
        if isinstance(each, Module):
            walk.rely_on_module(each)
        if type(each) is ModuleWalk:
            pass
        if type(each) is Function:
            walk.walked(each)
    if any(map(is_symbolic, callee.given)):
        return _with_symbols(walk, callee)
    recorder = walk.recorder
    writes = recorder.write_count
    value = walk.evaluate(callee.hole, callee.operands)
    if walk.broken is not None:
        return value
    if type(value) is Tensor:
        if not walk.builder.has(value):
            if value.grad_fn is not None or recorder.write_count > writes or not _is_ours(callee):
                walk.refuse(f"`{_shown(callee)}` gives a tensor that was not recorded")
            else:
                walk.attempt(
                    recorder.on_tensors, callee.function, callee.arguments, callee.keywords, value
                )
    elif isinstance(value, (tuple, list)):
        _check_parts(walk, callee, value)
    elif isinstance(value, (int, float, str)) and not (
        type(callee.receiver) is Tensor and callee.name in _SIZES
    ):
        walk.refuse(f"`{_shown(callee)}` gives a value that may be another one in every iteration")
    elif value is None and recorder.write_count == writes:
        walk.refuse(f"what `{_shown(callee)}` does is not recorded")
    elif not isinstance(value, (GradMode, ModuleWalk, Iterator, int, type(None))):
        walk.refuse(f"`{_shown(callee)}` makes {type(value).__name__}")
    if walk.broken is None and recorder.drew():
        walk.refuse(f"`{_shown(callee)}` draws random numbers")
    return value


def _check_parts(walk: Capture, callee: Callee, values: Any) -> None:
    """What a call gives in a tuple or list must be known."""
    unknown = [each for each in values if type(each) is Tensor and not walk.builder.has(each)]
    others = [each for each in values if type(each) is not Tensor]
    if isinstance(values, tuple) and type(callee.receiver) is Tensor and callee.name in _SIZES:
        return
    for each in others:
        if isinstance(each, (tuple, list)):
            _check_parts(walk, callee, each)
        elif each is not None:
            walk.refuse(f"`{_shown(callee)}` gives more than tensors")
    if unknown and (len(unknown) < len(values) or any(each.requires_grad for each in unknown)):
        walk.refuse(f"`{_shown(callee)}` gives a tensor that was not recorded")
    elif unknown:
        walk.attempt(
            walk.recorder.on_tensors, callee.function, callee.arguments, callee.keywords, values
        )
    if type(values) is list:
        walk.local[id(values)] = values


def _with_symbols(walk: Capture, callee: Callee) -> Any:
    """A function of ours that is given numbers which vary."""
    recorder = walk.recorder
    writes, (muted, recorder.muted) = recorder.write_count, (recorder.muted, True)
    try:
        value = walk.evaluate(callee.hole, callee.operands)
    finally:
        recorder.muted = muted
    if (
        type(value) is not Tensor
        or value.requires_grad
        or recorder.write_count > writes
        or not _is_ours(callee)
    ):
        walk.refuse(f"`{_shown(callee)}` is given a number that varies")
    elif not walk.builder.has(value):
        walk.attempt(recorder.on_tensors, callee.function, callee.arguments, callee.keywords, value)
    return value


def _is_ours(callee: Callee) -> bool:
    home = getattr(callee.function, "__module__", None) or ""
    return callable(callee.function) and not home.startswith("gradcli.language.library.builtins")


def _shown(callee: Callee) -> str:
    return " ".join(callee.node.function.span.text.split())


# --- which is which -----------------------------------------------------------------------------

_Handler = Callable[["Capture", Callee], Any]
_MATH = {id(each) for each in MATH.values() if callable(each)}


def _is_of_module(callee: Callee, names: frozenset[str]) -> bool:
    return (
        isinstance(callee.receiver, Module)
        and callee.name in names
        and type(callee.function) is not Function
    )


_HANDLERS: list[tuple[Callable[[Callee], bool], _Handler]] = [
    (lambda c: type(c.function) is Function, _inline),
    (lambda c: isinstance(c.function, Module), _module),
    (lambda c: isinstance(c.function, UserClass), _instance),
    (lambda c: c.function is catalogue.methods.get("backward"), _backward),
    (lambda c: c.function is backward.grad, _grad),
    (lambda c: c.function is catalogue.methods.get("item"), _taken),
    (lambda c: isinstance(c.receiver, Optimizer) and c.name == "step", _optimize),
    (
        lambda c: isinstance(c.receiver, (Optimizer, Module)) and c.name == "zero_grad",
        _zero_grad,
    ),
    (lambda c: _is_schedule(c.receiver), _schedule),
    (lambda c: _is_of_module(c, frozenset({"train", "eval"})), _mode),
    (lambda c: _is_of_module(c, _WALKS), _walk_module),
    (lambda c: c.function is BUILTINS["print"], _print),
    (lambda c: c.function is BUILTINS["getattr"], _getattr),
    (lambda c: c.function is BUILTINS["setattr"], _setattr),
    (lambda c: c.function is METHODS[list]["append"], _append_to),
    (lambda c: type(c.receiver) in (list, dict, set), _change_list),
    (lambda c: _has(c.function, _OF_NUMBERS) or id(c.function) in _MATH, _of_numbers),
    (lambda c: type(concrete(c.receiver)) in (str, int, float, bool), _of_numbers),
    (lambda c: _has(c.function, _OF_COLLECTIONS), _of_collections),
    (lambda c: hasattr(type(c.function), "language_class"), _callable_object),
    (lambda c: bool(_functions_in(c.function)), _through_host),
]


def _functions_in(value: Any) -> list[Function]:
    cells = getattr(value, "__closure__", None) or ()
    found = [each.cell_contents for each in cells if type(each.cell_contents) is Function]
    inner = getattr(value, "func", None)
    return [*found, inner] if type(inner) is Function else found
