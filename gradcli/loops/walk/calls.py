"""Calls in an iteration that is captured: what each kind of function comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.compiler.base import Evaluate
from gradcli.language.compiler.expressions.calling import NAMES_IN_USE, is_bare
from gradcli.language.compiler.over_operands import Operation
from gradcli.language.functions.calls import Function
from gradcli.language.objects.attributes import Method
from gradcli.language.objects.attributes import Module as Namespace
from gradcli.language.objects.classes.descriptors import BoundMethod
from gradcli.language.objects.classes.user_classes import UserClass
from gradcli.language.objects.iteration import Iterator
from gradcli.language.objects.methods import METHODS
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.loops.capture import Capture
from gradcli.loops.kinds import distribution_class, module_class, optimizer_class
from gradcli.loops.symbols import concrete
from gradcli.loops.walk.builtin_calls import BUILTIN_CALLS, READING
from gradcli.loops.walk.engine_calls import ENGINE_CALLS, is_schedule
from gradcli.loops.walk.operation import (
    Callee,
    Handlers,
    host_call,
    is_of_pull,
    pull_call,
)
from gradcli.loops.walk.reading import functions_in
from gradcli.ops.binding import catalogue
from gradcli.state import charge_steps


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
                passed += [tree.Argument(each.span, "", None, part) for part in stand_ins]
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
