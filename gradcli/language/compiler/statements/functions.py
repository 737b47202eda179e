"""Compiles `def` and `lambda`."""

from __future__ import annotations

from typing import Any

from gradcli.language.compiler.base import Compiler, Evaluate, compiles
from gradcli.language.compiler.names import name_store
from gradcli.language.compiler.statements.annotations import values_of
from gradcli.language.functions.calls import Function, Signature, call
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import Scope, Variables, function_scope, has_yield


@compiles(tree.Lambda)
def lambda_expression(c: Compiler, node: tree.Lambda, scope: Scope) -> Evaluate:
    """`lambda parameters: body`."""
    returned = tree.Return(node.body.span, node.body)
    return _function(c, "<lambda>", node.parameters, [returned], scope)


@compiles(tree.Def)
def def_statement(c: Compiler, node: tree.Def, scope: Scope) -> Run:
    """`def name(parameters)`, with its decorators: the lowest is applied first."""
    state = c.state
    decorators = [(c.expression(d, scope), d.span) for d in node.decorators]
    make = _function(c, node.name, node.parameters, node.body, scope, node.returns)
    store = name_store(c, node.name, scope)

    def run(variables: Variables) -> None:
        applied = [(decorator(variables), span) for decorator, span in decorators]
        function = make(variables)
        for decorator, span in reversed(applied):
            state.place = span
            function = call(decorator, (function,), {})
        store(variables, function)

    return run


def _function(
    c: Compiler,
    name: str,
    parameters: tree.Parameters,
    body: list[tree.Statement],
    scope: Scope,
    returns: str = "",
) -> Evaluate:
    """What makes the function each time its definition is reached; defaults are evaluated then."""
    signature = _signature(f"{scope.prefix}{name}", parameters)
    defaults = [
        (parameter.name, c.expression(parameter.default, scope))
        for parameter in parameters.parameters
        if parameter.default is not None
    ]
    inside = function_scope(scope, name, parameters, body)
    if has_yield(body):
        from gradcli.language.compiler.statements.generators import generator_body  # lazy: start-up

        run = generator_body(c, name, body, inside)
    else:
        run = c.block(body, inside)
    state, steps = c.state, c.steps
    if state.frames is not None and name != "<lambda>":
        run = _kept(run, f"{scope.prefix}{name}", state.frames)
    texts = {each.name: each.annotation for each in parameters.parameters if each.annotation}
    if returns:
        texts["return"] = returns

    def make(variables: Variables) -> Any:
        values = {name: default(variables) for name, default in defaults}
        function = Function(name, signature, values, body, inside, run, variables, state, steps)
        if texts:
            function.annotate = values_of(c, texts, scope, variables)
        return function

    return make


def _kept(run: Run, name: str, frames: dict[str, Variables]) -> Run:
    """A body whose variables can be looked up while it runs and afterwards."""

    def run_and_keep(variables: Variables) -> Any:
        frames[name] = variables
        try:
            return run(variables)
        finally:
            if frames.pop(name, None) is not None:  # not forgotten by a call inside
                frames[name] = variables

    return run_and_keep


def _signature(qualified: str, parameters: tree.Parameters) -> Signature:
    by_kind: dict[str, list[str]] = {"": [], "*": [], "keyword": [], "**": []}
    by_position: list[str] = []
    for parameter in parameters.parameters:
        if parameter.kind == "/":
            by_position = list(by_kind[""])
        else:
            by_kind[parameter.kind].append(parameter.name)
    rest, keywords = "".join(by_kind["*"]), "".join(by_kind["**"])
    positional, keyword_only = tuple(by_kind[""]), tuple(by_kind["keyword"])
    simple = -1 if rest or keyword_only or keywords else len(positional)
    by_place = frozenset(by_position)
    return Signature(qualified, positional, rest, keyword_only, keywords, by_place, simple)
