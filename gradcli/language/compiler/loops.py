"""`for` and `while`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.language import syntax
from gradcli.language.compiler.assignment import target_store
from gradcli.language.compiler.names import is_direct
from gradcli.language.iteration import iterate
from gradcli.language.limits import too_many_steps
from gradcli.language.scopes import Scope, Variables
from gradcli.language.signals import BREAK, CONTINUE, Run, signals

if TYPE_CHECKING:
    from gradcli.language.compiler import Compiler

_COUNTED = frozenset({range, list, tuple})
"""What a loop goes through whose rounds are known to be the last or not."""

_MANY = 100
"""Rounds of a loop, as often as it runs, from which on tracing one may be worth its while."""


def for_statement(c: Compiler, node: syntax.For, scope: Scope) -> Run:
    """`for target in iterable`, with its `else`."""
    state, steps, span = c.state, c.steps, node.iterable.span
    iterable = c.expression(node.iterable, scope)
    store = target_store(c, node.target, scope)
    # A plain name is bound right here, unless the value is a tensor, which has a name to learn.
    direct = node.target.name if is_direct(node.target, scope) else None
    body = c.loop_body(node, scope)
    orelse = c.block(node.orelse, scope)
    traced = c.traced_loop(node, scope, body)
    rounds = 0

    # The place is set at the end of a round too: the next value may fail to come.
    def run(variables: Variables) -> Any:
        values = iterable(variables)
        state.place = span
        run_round = body
        if type(values) in _COUNTED:
            nonlocal rounds
            rounds += len(values)
            loop = traced() if rounds > _MANY else None
            if loop is not None:
                run_round = loop.begin(variables, values)
        for value in iterate(values):
            steps.left -= 1
            if steps.left < 0:
                raise too_many_steps()
            if direct is None or type(value) is Tensor:
                store(variables, value)
            else:
                variables[direct] = value
            run_round(variables)
            state.place = span
        return orelse(variables)

    def run_until_signal(variables: Variables) -> Any:
        values = iterable(variables)
        state.place = span
        for value in iterate(values):
            steps.left -= 1
            if steps.left < 0:
                raise too_many_steps()
            if direct is None or type(value) is Tensor:
                store(variables, value)
            else:
                variables[direct] = value
            signal = body(variables)
            if signal is not None:
                if signal is BREAK:
                    return None
                if signal is not CONTINUE:
                    return signal
            state.place = span
        return orelse(variables)

    return run_until_signal if signals(node.body) else run


def while_statement(c: Compiler, node: syntax.While, scope: Scope) -> Run:
    """`while test`, with its `else`."""
    state, steps, span = c.state, c.steps, node.test.span
    test = c.expression(node.test, scope)
    body = c.loop_body(node, scope)
    orelse = c.block(node.orelse, scope)

    def run(variables: Variables) -> Any:
        while True:
            decision = test(variables)
            state.place = span
            if not decision:
                return orelse(variables)
            steps.left -= 1
            if steps.left < 0:
                raise too_many_steps()
            signal = body(variables)
            if signal is not None:
                if signal is BREAK:
                    return None
                if signal is not CONTINUE:
                    return signal

    return run
