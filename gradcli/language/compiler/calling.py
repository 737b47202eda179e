"""Calls, specialised for few positional arguments and for methods of tensors and modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language import syntax
from gradcli.language.attributes import Module, get_attribute
from gradcli.language.calls import Function, call_failed
from gradcli.language.calls import call as call_value
from gradcli.language.classes import type_name
from gradcli.language.iteration import bounded
from gradcli.language.methods import METHODS
from gradcli.language.scopes import Scope, Variables
from gradcli.ops import catalogue

if TYPE_CHECKING:
    from gradcli.language.compiler import Compiler, Evaluate


def call(c: Compiler, node: syntax.Call, scope: Scope) -> Evaluate:
    """`function(arguments)`."""
    if any(argument.name or argument.kind for argument in node.arguments):
        return _with_keywords(c, node, scope)
    arguments = _positional([c.expression(argument.value, scope) for argument in node.arguments])
    if isinstance(node.function, syntax.Attribute):
        return _method(c, node, node.function, arguments, scope)
    state, span = c.state, node.span
    function = c.expression(node.function, scope)

    def run(variables: Variables) -> Any:
        called = function(variables)
        values = arguments(variables)
        state.place = span
        if type(called) is Function:
            return called.invoke(values, {})
        try:
            return called(*values)
        except GradcliError:
            raise
        except Exception as error:
            raise call_failed(error, called, values, {}) from error

    return run


def _positional(arguments: list[Evaluate]) -> Evaluate:
    """What evaluates the arguments to a tuple."""
    if not arguments:
        return lambda variables: ()
    if len(arguments) == 1:
        (only,) = arguments
        return lambda variables: (only(variables),)
    if len(arguments) == 2:
        first, second = arguments
        return lambda variables: (first(variables), second(variables))
    return lambda variables: tuple([argument(variables) for argument in arguments])


def _method(
    c: Compiler, node: syntax.Call, target: syntax.Attribute, arguments: Evaluate, scope: Scope
) -> Evaluate:
    """`receiver.name(arguments)`: no bound method is made where a table holds the function."""
    state, span, name = c.state, node.span, target.name
    receiver = c.expression(target.value, scope)
    methods = catalogue.methods
    is_tensor_method = name in methods and name not in catalogue.properties

    def run_on(value: Any, variables: Variables) -> Any:
        kind = type(value)
        if kind is Tensor and is_tensor_method:
            called = methods[name]
            values = (value, *arguments(variables))
        elif kind is Module and name in value.names:
            called = value.names[name]
            values = arguments(variables)
        elif kind in METHODS and name in METHODS[kind]:
            called = METHODS[kind][name]
            values = (value, *arguments(variables))
        else:
            state.place = target.span
            called = get_attribute(value, name)
            values = arguments(variables)
        state.place = span
        if type(called) is Function:
            return called.invoke(values, {})
        try:
            return called(*values)
        except GradcliError:
            raise
        except Exception as error:
            raise call_failed(error, called, values, {}) from error

    if node.arguments or not is_tensor_method:
        return lambda variables: run_on(receiver(variables), variables)

    def run_bare(variables: Variables) -> Any:
        value = receiver(variables)
        if type(value) is not Tensor:
            return run_on(value, variables)
        state.place = span
        try:
            return methods[name](value)
        except GradcliError:
            raise
        except Exception as error:
            raise call_failed(error, methods[name], (value,), {}) from error

    return run_bare


def _with_keywords(c: Compiler, node: syntax.Call, scope: Scope) -> Evaluate:
    """A call with keywords, `*values` or `**named`."""
    state, span = c.state, node.span
    function = c.expression(node.function, scope)
    parts = [
        (argument.kind, argument.name, c.expression(argument.value, scope), argument.span)
        for argument in node.arguments
    ]

    def run(variables: Variables) -> Any:
        called = function(variables)
        values: list[Any] = []
        named: dict[str, Any] = {}
        for kind, name, evaluate, place in parts:
            value = evaluate(variables)
            if name is not None:
                if name in named:
                    raise _given_twice(name)
                named[name] = value
            elif not kind:
                values.append(value)
            else:
                state.place = place
                if kind == "*":
                    values.extend(bounded(value))
                else:
                    _merge(named, value)
        state.place = span
        return call_value(called, values, named)

    return run


def _merge(named: dict[str, Any], more: Any) -> None:
    """Add the keywords of `**more`."""
    if type(more) is not dict:
        raise GradcliError("E202", f"`**` takes a dict, not {type_name(more)}")
    for name, value in more.items():
        if not isinstance(name, str):
            raise GradcliError("E202", f"keywords are strings, not {type_name(name)}")
        if name in named:
            raise _given_twice(name)
        named[name] = value


def _given_twice(name: str) -> GradcliError:
    return GradcliError("E201", f"the keyword argument {name!r} is given twice")
