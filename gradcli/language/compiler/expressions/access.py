"""Compiles attributes, items and slices as values."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.compiler.base import Compiler, Evaluate, compiles, label_operands
from gradcli.language.objects import borders
from gradcli.language.objects.attributes import get_attribute
from gradcli.language.objects.subscripts import get_item
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.functions import operators


@compiles(tree.Attribute)
def attribute(c: Compiler, node: tree.Attribute, scope: Scope) -> Evaluate:
    """`value.name`; E102 where the language has no such attribute."""
    state, span, name = c.state, node.span, node.name
    evaluate = c.expression(node.value, scope)
    getter = catalogue.properties.get(name)
    if getter is None:

        def read(variables: Variables) -> Any:
            value = evaluate(variables)
            state.place = span
            return get_attribute(value, name)

        return read

    def read_property(variables: Variables) -> Any:
        value = evaluate(variables)
        state.place = span
        return getter(value) if type(value) is Tensor else get_attribute(value, name)

    return read_property


@compiles(tree.Subscript)
def subscript(c: Compiler, node: tree.Subscript, scope: Scope) -> Evaluate:
    """`value[index]`."""
    state, span = c.state, node.span
    evaluate = c.expression(node.value, scope)
    index = c.expression(node.index, scope)

    def read(variables: Variables) -> Any:
        value = evaluate(variables)
        at = index(variables)
        state.place = span
        try:
            if type(value) is Tensor:
                return operators.getitem(value, borders.index(at))
            return get_item(value, at)
        except GradcliError as error:
            label_operands(error, ((node.value, value), (node.index, at)), "[]")
            raise

    return read


@compiles(tree.Slice)
def slice_expression(c: Compiler, node: tree.Slice, scope: Scope) -> Evaluate:
    """`lower:upper:step` inside a subscript."""
    parts = [
        None if part is None else c.expression(part, scope)
        for part in (node.lower, node.upper, node.step)
    ]
    if not any(parts):
        whole = slice(None)
        return lambda variables: whole
    return lambda variables: slice(*[None if part is None else part(variables) for part in parts])
