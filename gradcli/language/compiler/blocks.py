"""Statements in a row, expression statements, `if`, and the statements that end a block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradcli.language import tree
from gradcli.language.functions.control_flow import BREAK, CONTINUE, Run, signals
from gradcli.language.tree.scopes import Scope, Variables

if TYPE_CHECKING:
    from gradcli.language.compiler.base import Compiler


def block(c: Compiler, body: Sequence[tree.Statement], scope: Scope) -> Run:
    """The statements of a body; signals are looked for only where there can be one."""
    statements = [c.statement(statement, scope) for statement in body]
    if len(statements) == 1:
        return statements[0]
    if not signals(body):

        def run(variables: Variables) -> None:
            for statement in statements:
                statement(variables)

        return run

    def run_until_signal(variables: Variables) -> Any:
        for statement in statements:
            signal = statement(variables)
            if signal is not None:
                return signal
        return None

    return run_until_signal


def expression_statement(c: Compiler, node: tree.ExpressionStatement, scope: Scope) -> Run:
    """An expression whose value nobody wants."""
    value = c.expression(node.value, scope)

    def run(variables: Variables) -> None:
        value(variables)

    return run


def pass_statement(c: Compiler, node: tree.Statement, scope: Scope) -> Run:
    """`pass`; also `global` and `nonlocal`, which did their work when names were resolved."""
    return lambda variables: None


def break_statement(c: Compiler, node: tree.Break, scope: Scope) -> Run:
    """`break`."""
    return lambda variables: BREAK


def continue_statement(c: Compiler, node: tree.Continue, scope: Scope) -> Run:
    """`continue`."""
    return lambda variables: CONTINUE


def return_statement(c: Compiler, node: tree.Return, scope: Scope) -> Run:
    """`return value`."""
    if node.value is None:
        return lambda variables: (None,)
    value = c.expression(node.value, scope)
    return lambda variables: (value(variables),)


def if_statement(c: Compiler, node: tree.If, scope: Scope) -> Run:
    """`if`, `elif`, `else`."""
    state = c.state
    branches = [
        (c.expression(test, scope), test.span, c.block(body, scope)) for test, body in node.branches
    ]
    orelse = c.block(node.orelse, scope)
    if len(branches) == 1:
        ((test, span, body),) = branches

        def run_one(variables: Variables) -> Any:
            decision = test(variables)
            state.place = span
            return body(variables) if decision else orelse(variables)

        return run_one

    def run(variables: Variables) -> Any:
        for test, span, body in branches:
            decision = test(variables)
            state.place = span
            if decision:
                return body(variables)
        return orelse(variables)

    return run
