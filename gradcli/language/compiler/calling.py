"""Calls, specialised for few positional arguments and for methods of tensors and modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language import syntax
from gradcli.language.attributes import Module, get_attribute
from gradcli.language.calls import Function, call_failed
from gradcli.language.classes import type_name
from gradcli.language.iteration import bounded
from gradcli.language.methods import METHODS
from gradcli.language.scopes import Scope, Variables
from gradcli.ops import catalogue

if TYPE_CHECKING:
    from gradcli.language.compiler import Compiler, Evaluate


def call(c: Compiler, node: syntax.Call, scope: Scope) -> Evaluate:
    """`function(arguments)`."""
    arguments = node.arguments
    if any(argument.name or argument.kind for argument in arguments):
        return _with_keywords(c, node, scope)
    positional = [c.expression(argument.value, scope) for argument in arguments]
    if type(node.function) is syntax.Attribute:
        return _method(c, node, node.function, positional, scope)
    state, span = c.state, node.span
    function = c.expression(node.function, scope)
    if len(positional) == 1:
        (only,) = positional

        def run_one(variables: Variables) -> Any:
            called = function(variables)
            argument = only(variables)
            state.place = span
            if type(called) is Function:
                return called.invoke((argument,), {})
            try:
                return called(argument)
            except GradcliError:
                raise
            except Exception as error:
                raise call_failed(error, called, (argument,), {}) from error

        return run_one

    def run(variables: Variables) -> Any:
        called = function(variables)
        values = [argument(variables) for argument in positional]
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


def _method(
    c: Compiler,
    node: syntax.Call,
    target: syntax.Attribute,
    positional: list[Evaluate],
    scope: Scope,
) -> Evaluate:
    """`receiver.name(arguments)`: no bound method is made for tensors and modules."""
    state, span, name = c.state, node.span, target.name
    receiver = c.expression(target.value, scope)
    methods = catalogue.methods
    properties = catalogue.properties

    def run(variables: Variables) -> Any:
        value = receiver(variables)
        kind = type(value)
        if kind is Tensor and name in methods and name not in properties:
            called = methods[name]
            values = [value]
        elif kind is Module and name in value.names:
            called = value.names[name]
            values = []
        elif kind in METHODS and name in METHODS[kind]:
            called = METHODS[kind][name]
            values = [value]
        else:
            state.place = target.span
            called = get_attribute(value, name)
            values = []
        for argument in positional:
            values.append(argument(variables))
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
        if type(called) is Function:
            return called.invoke(values, named)
        try:
            return called(*values, **named)
        except GradcliError:
            raise
        except Exception as error:
            raise call_failed(error, called, values, named) from error

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
