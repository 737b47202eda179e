"""Calls in an iteration that is captured: what each kind of function comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcli.autograd.engine import backward
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.functions.calls import Function
from gradcli.language.objects.attributes import Method
from gradcli.language.objects.attributes import Module as Namespace
from gradcli.language.objects.classes.descriptors import BoundMethod
from gradcli.language.objects.classes.user_classes import UserClass
from gradcli.language.objects.iteration import Iterator
from gradcli.language.objects.methods import METHODS
from gradcli.language.tree import syntax as tree
from gradcli.library.builtins import BUILTINS
from gradcli.library.python.numbers.math import MATH
from gradcli.loops.holes import Frame
from gradcli.loops.holes import hole as make_hole
from gradcli.loops.kinds import (
    context_class,
    distribution_class,
    module_class,
    optimizer_class,
)
from gradcli.loops.symbols import concrete
from gradcli.loops.walk.builtin_calls import (
    OF_COLLECTIONS,
    OF_NUMBERS,
    append_to,
    change_list,
    getattr_call,
    is_one_of,
    of_collections,
    of_numbers,
    print_call,
    setattr_call,
    taken_number,
)
from gradcli.loops.walk.callee import Callee, functions_in
from gradcli.loops.walk.engine_calls import (
    KEPT,
    WALKS,
    backward_call,
    grad_call,
    is_schedule,
    keep_for_backward,
    optimizer_step,
    schedule_call,
    switch_mode,
    walk_module,
    zero_grad,
)
from gradcli.loops.walk.host_calls import host_call
from gradcli.ops.binding import catalogue
from gradcli.state import charge_steps

if TYPE_CHECKING:
    from gradcli.loops.capture import Capture


def call(walk: Capture, node: tree.Call, frame: Frame) -> Any:
    """`function(arguments)`."""
    if _is_super(node):
        return walk.compiler.expression(node, frame.scope)(frame.variables)
    callee = _callee(walk, node, frame)
    walk.state.place = node.span
    for known, handler in _HANDLERS:
        if known(callee):
            return handler(walk, callee)
    return host_call(walk, callee)


def _is_super(node: tree.Call) -> bool:
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
        hole: Any = tree.Attribute(target.span, make_hole(target.value, 0), name, target.name_span)
        function, receiver = _method(walk, owner, name, hole)
    else:
        function = walk.value(target, frame)
        name = target.name if isinstance(target, tree.Name) else ""
        function = walk.exact(function)
        operands.append(function)
        hole = make_hole(target, 0)
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    arguments = []
    for each in node.arguments:
        value = walk.value(each.value, frame)
        if each.kind == "*" and type(value) in _DRAWN_ONCE:
            walk.state.place = node.span
            parts = _drawn(walk, value)
            for part in parts:
                place = make_hole(each.value, len(operands))
                operands.append(part)
                arguments.append(tree.Argument(each.span, "", None, place))
            positional += parts
            continue
        place = make_hole(each.value, len(operands))
        operands.append(value)
        arguments.append(tree.Argument(each.span, each.kind, each.name, place))
        if each.kind == "*":
            walk.rely_on(value)
            parts = walk.either(value, walk.builder.parts_of, value)
            positional += parts if type(parts) in (list, tuple) else list(walk.items(value))
        elif each.kind == "**":
            walk.rely_on(value)
            keywords.update({name: walk.builder.known(part) for name, part in value.items()})
        elif each.name:
            keywords[each.name] = value
        else:
            positional.append(value)
    whole = tree.Call(node.span, hole, arguments)
    return Callee(node, whole, function, name, receiver, positional, keywords, operands)


_DRAWN_ONCE = (Tensor, Iterator)
"""What is drawn from in a way that counts, as nodes and values that are gone: no second time."""


def _drawn(walk: Capture, values: Any) -> list[Any]:
    """The parts of `*values`, each a step as in a call, where an iterator gives them."""
    parts = list(walk.items(values))
    if type(values) is Iterator:
        charge_steps(len(parts))
    return parts


def _method(walk: Capture, owner: Any, name: str, hole: tree.Attribute) -> tuple[Any, Any]:
    """The function that `owner.name` calls, and what it is called on."""
    kind = type(concrete(owner))
    if kind is Tensor and name in catalogue.methods and name not in catalogue.properties:
        return catalogue.methods[name], owner
    if kind is Namespace:
        return walk.moved(hole, [owner]), None
    if kind in METHODS and name in METHODS[kind]:
        return METHODS[kind][name], owner
    owner = walk.exact(owner, looks=False)
    found = walk.exact(walk.read_attribute(owner, name, lambda: walk.moved(hole, [owner])))
    if type(found) in (BoundMethod, Method):
        return found.function, found.receiver
    known = isinstance(owner, (module_class(), optimizer_class(), distribution_class()))
    known = known or is_schedule(owner)
    return found, owner if known else None


def _inline(walk: Capture, callee: Callee) -> Any:
    """A function of the program: its body is walked."""
    function = callee.function
    walk.constant(function)
    try:
        bound = function.bind(callee.arguments, callee.keywords)
    except GradcliError:
        bound = {}
    return walk.called(function, bound, lambda: walk.recorded(callee.hole, callee.operands))


def _module(walk: Capture, callee: Callee) -> Any:
    """A module that is called: the functions of the program in it are walked."""
    module = callee.function
    walk.rely_on_module(module)
    return _through_host(walk, callee)


def _through_host(walk: Capture, callee: Callee) -> Any:
    """A call of the host's that may call functions of the program."""
    for function in functions_in(callee.function):
        walk.constant(function)
    return walk.called(None, None, lambda: walk.evaluate(callee.hole, callee.operands))


def _instance(walk: Capture, callee: Callee) -> Any:
    """A class of the program: an object is made."""
    cls = callee.function
    walk.walk_methods(cls)
    if issubclass(cls.host, module_class()):
        walk.refuse("a module is made in the iteration", "make it ahead of the loop")
    made = walk.moved(callee.hole, callee.operands)
    walk.local[id(made)] = made
    return made


def _callable_object(walk: Capture, callee: Callee) -> Any:
    """An object of the program's with `__call__`."""
    walk.walk_methods(type(callee.function).language_class)
    return _through_host(walk, callee)


_Handler = Callable[["Capture", Callee], Any]


_MATH = {id(each) for each in MATH.values() if callable(each)}


def _is_of_module(callee: Callee, names: frozenset[str]) -> bool:
    return (
        isinstance(callee.receiver, module_class())
        and callee.name in names
        and type(callee.function) is not Function
    )


_HANDLERS: list[tuple[Callable[[Callee], bool], _Handler]] = [
    (lambda c: type(c.function) is Function, _inline),
    (lambda c: isinstance(c.function, module_class()), _module),
    (lambda c: isinstance(c.function, UserClass), _instance),
    (lambda c: c.function is catalogue.methods.get("backward"), backward_call),
    (lambda c: c.function is backward.grad, grad_call),
    (lambda c: c.function is catalogue.methods.get("item"), taken_number),
    (lambda c: isinstance(c.receiver, optimizer_class()) and c.name == "step", optimizer_step),
    (
        lambda c: (
            isinstance(c.receiver, (optimizer_class(), module_class())) and c.name == "zero_grad"
        ),
        zero_grad,
    ),
    (lambda c: is_schedule(c.receiver), schedule_call),
    (lambda c: isinstance(c.operands[0], context_class()) and c.name in KEPT, keep_for_backward),
    (lambda c: _is_of_module(c, frozenset({"train", "eval"})), switch_mode),
    (lambda c: _is_of_module(c, WALKS), walk_module),
    (lambda c: c.function is BUILTINS["print"], print_call),
    (lambda c: c.function is BUILTINS["getattr"], getattr_call),
    (lambda c: c.function is BUILTINS["setattr"], setattr_call),
    (lambda c: c.function is METHODS[list]["append"], append_to),
    (lambda c: type(c.receiver) in (list, dict, set), change_list),
    (lambda c: is_one_of(c.function, OF_NUMBERS) or id(c.function) in _MATH, of_numbers),
    (lambda c: type(concrete(c.receiver)) in (str, int, float, bool), of_numbers),
    (lambda c: is_one_of(c.function, OF_COLLECTIONS), of_collections),
    (lambda c: hasattr(type(c.function), "language_class"), _callable_object),
    (lambda c: bool(functions_in(c.function)), _through_host),
]
