"""Compiles expression statements, `if`, and the statements that end a block."""

from __future__ import annotations

from typing import Any

from gradcli.errors import GradcliError
from gradcli.language.compiler.base import Compiler, Evaluate, compiles
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import BREAK, CONTINUE, Run
from gradcli.language.tree.scopes import Scope, Variables


@compiles(tree.ExpressionStatement)
def expression_statement(c: Compiler, node: tree.ExpressionStatement, scope: Scope) -> Run:
    """An expression whose value nobody wants."""
    value = c.expression(node.value, scope)

    def run(variables: Variables) -> None:
        value(variables)

    return run


@compiles(tree.Declare, tree.Global, tree.Pass)
def pass_statement(c: Compiler, node: tree.Statement, scope: Scope) -> Run:
    """`pass`; also `name: annotation`, and `global` and `nonlocal`, which did their work when names
    were resolved.
    """
    return lambda variables: None


@compiles(tree.Async)
def async_statement(c: Compiler, node: tree.Async, scope: Scope) -> Run:
    """`async def`, `async for`, `async with`; E007."""
    state, span = c.state, node.span

    def run(variables: Variables) -> None:
        state.place = span
        raise GradcliError(
            "E007",
            "`async` is outside the language: there is no event loop",
            help="leave `async` and `await` out: each call then runs to its end",
        )

    return run


@compiles(tree.Match)
def match_statement(c: Compiler, node: tree.Match, scope: Scope) -> Run:
    """`match subject:` with its cases."""
    from gradcli.language.compiler.statements.matching import match_closure  # lazy: start-up

    return match_closure(c, node, scope)


@compiles(tree.Await, tree.Yield, tree.YieldFrom)
def yield_elsewhere(c: Compiler, node: tree.Expression, scope: Scope) -> Evaluate:
    """`yield` and `await` where no function can wait; E006."""
    word = "await" if isinstance(node, tree.Await) else "yield"
    raise GradcliError("E006", f"`{word}` outside a function", span=node.span)


@compiles(tree.Break)
def break_statement(c: Compiler, node: tree.Break, scope: Scope) -> Run:
    """`break`."""
    return lambda variables: BREAK


@compiles(tree.Continue)
def continue_statement(c: Compiler, node: tree.Continue, scope: Scope) -> Run:
    """`continue`."""
    return lambda variables: CONTINUE


@compiles(tree.Return)
def return_statement(c: Compiler, node: tree.Return, scope: Scope) -> Run:
    """`return value`."""
    if node.value is None:
        return lambda variables: (None,)
    value = c.expression(node.value, scope)
    return lambda variables: (value(variables),)


@compiles(tree.If)
def if_statement(c: Compiler, node: tree.If, scope: Scope) -> Run:
    """`if`, `elif`, `else`."""
    state = c.state
    branches = [
        (c.test(test, scope, test.span), test.span, c.block(body, scope))
        for test, body in node.branches
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
