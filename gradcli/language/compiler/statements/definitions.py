"""Compiles `def`, `lambda` and `class`, with their annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from gradcli.errors import GradcliError, Source
from gradcli.language.compiler.base import Compiler, Evaluate, compiles
from gradcli.language.compiler.names import name_store
from gradcli.language.functions import hot_bodies
from gradcli.language.functions.calls import Function, Signature, call, docstring
from gradcli.language.functions.hot_bodies import HotBody, before_hot
from gradcli.language.objects.classes.definition import Cell, define_class, metaclass_of
from gradcli.language.objects.classes.user_classes import UserClass
from gradcli.language.objects.methods import dict_of
from gradcli.language.objects.type_forms import TypeForm
from gradcli.language.parser.parser import parse_program
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import (
    CLASS,
    PARENT,
    Scope,
    Variables,
    class_scope,
    function_scope,
    has_yield,
    reads_around,
    target_names,
)

Values = Callable[[], dict[str, Any]]
"""What evaluates annotations: their values by name."""


def values_of(c: Compiler, texts: dict[str, str], scope: Scope, variables: Variables) -> Values:
    """What gives the values that the texts have in a scope; a text that has none, such as a name
    that is bound later, stands for itself, as all do after `from __future__ import annotations`.
    """

    def values() -> dict[str, Any]:
        kept = c.values.get("annotations")
        if type(kept) is TypeForm and kept.text.startswith("__future__"):
            return dict(texts)
        return {name: _value(c, text, scope, variables) for name, text in texts.items()}

    return values


def _value(c: Compiler, text: str, scope: Scope, variables: Variables) -> Any:
    place = c.state.place
    try:
        (statement,) = parse_program(Source("annotation", text))
        assert isinstance(statement, tree.ExpressionStatement)
        return c.expression(statement.value, scope)(variables)
    except GradcliError:
        return text
    finally:
        c.state.place = place


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
    make = function_of(c, node, scope)
    store = name_store(c, node.name, scope)
    if c.nodes is not None and not decorators:
        return c.nodes.assigned(0, make, store)

    def run(variables: Variables) -> None:
        applied = [(decorator(variables), span) for decorator, span in decorators]
        function = make(variables)
        for decorator, span in reversed(applied):
            state.place = span
            function = call(decorator, (function,), {})
        store(variables, function)

    return run


def function_of(c: Compiler, node: tree.Def, scope: Scope) -> Evaluate:
    """What makes the function of a `def`, apart from its decorators."""
    return _function(c, node.name, node.parameters, node.body, scope, node.returns)


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
    defaults: list[tuple[str, Evaluate]] = []
    texts: dict[str, str] = {}
    for parameter in parameters.parameters:
        if parameter.default is not None:
            defaults.append((parameter.name, c.expression(parameter.default, scope)))
        if parameter.annotation:
            texts[parameter.name] = parameter.annotation
    inside = function_scope(scope, name, parameters, body)
    waits = has_yield(body)
    if waits:
        from gradcli.language.compiler.statements.generators import generator_body  # lazy: start-up

        run = generator_body(c, name, body, inside)
    else:
        run = c.block(body, inside)
    state, steps = c.state, c.steps
    if state.frames is not None and name != "<lambda>":
        run = _kept(run, f"{scope.prefix}{name}", state.frames)
    hot = None if waits else _hot(c, signature, parameters, body, inside, run, len(defaults))
    if returns:
        texts["return"] = returns
    # One that reads nothing around it keeps nothing alive: an object that holds its own `lambda: 0`
    # would be in a cycle by the variables of the method that made it.
    keeps = bool(texts) or reads_around(inside, body)
    if c.nodes is not None:
        like = Function(name, signature, {}, body, inside, run, c.values, state, steps, hot=hot)
        new = c.nodes.function(keeps, like, *[part for default in defaults for part in default])
        return _annotated_function(c, new, texts, scope) if texts else new

    def make(variables: Variables) -> Any:
        values = {name: default(variables) for name, default in defaults} if defaults else {}
        around = variables if keeps else c.values
        function = Function(name, signature, values, body, inside, run, around, state, steps)
        if hot is not None:
            function.hot = hot
            if hot.run is not None:
                function.enter_by(run)
        return function

    return _annotated_function(c, make, texts, scope) if texts else make


def _annotated_function(
    c: Compiler, make: Evaluate, texts: dict[str, str], scope: Scope
) -> Evaluate:
    """What makes a function whose annotations have these texts."""

    def make_annotated(variables: Variables) -> Any:
        function = make(variables)
        function.annotate = values_of(c, texts, scope, variables)
        return function

    return make_annotated


def _hot(
    c: Compiler,
    signature: Signature,
    parameters: tree.Parameters,
    body: list[tree.Statement],
    scope: Scope,
    run: Run,
    optional: int,
) -> HotBody | None:
    """What counts the calls of a function's body; None for one whose closures are to run, or that
    has other parameters than by position.

    Args:
        optional: how many of these have a default.
    """
    if type(c) is not Compiler or c.state.frames is not None or signature.simple < 0:
        return None
    write = partial(_write, c, c.loop, c.in_try, signature, parameters, body, scope)
    calls = before_hot(hot_bodies.HOT_AFTER, c.nodes is not None)
    return HotBody(run, signature.simple - optional, signature.simple, write, calls)


def _write(
    c: Compiler,
    loop: tree.Statement | None,
    in_try: bool,
    signature: Signature,
    parameters: tree.Parameters,
    body: list[tree.Statement],
    scope: Scope,
) -> Callable[..., Any] | None:
    """The body of a function as one of the host's, in the loop and the `try` that it stands in."""
    defaults = [each.name for each in parameters.parameters if each.default is not None]
    return c.interpreter.write_body(c.alike(loop, in_try), signature, defaults, body, scope)


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
    plain = tuple([each.name for each in parameters.parameters if not each.kind])
    if len(plain) == len(parameters.parameters):
        return Signature(qualified, plain, "", (), "", _NO_NAMES, len(plain))
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


_NO_NAMES: frozenset[str] = frozenset()


@compiles(tree.Class)
def class_statement(c: Compiler, node: tree.Class, scope: Scope) -> Run:
    """`class name(bases)`, with its decorators: what its body binds is the class's."""
    state, span = c.state, node.span
    decorators = [(c.expression(d, scope), d.span) for d in node.decorators]
    bases = [c.expression(base, scope) for base in node.bases]
    inside = class_scope(scope, node.name, node.body)
    body = c.block(node.body, inside)
    store = name_store(c, node.name, scope)
    text, fields = docstring(node.body), dict(_annotated(node.body))
    keywords = _keywords(c, node, scope)

    def run(variables: Variables) -> None:
        applied = [(decorator(variables), place) for decorator, place in decorators]
        derived_from = [base(variables) for base in bases]
        arguments = keywords(variables)
        names: Variables = {PARENT: variables}
        body(names)
        state.place = span
        bound = {name: value for name, value in names.items() if name != PARENT}
        if text is not None:
            bound.setdefault("__doc__", text)

        def known(cls: Any) -> None:
            names[CLASS] = cls
            cls.annotate = values_of(c, fields, inside, names) if fields else None

        metaclass, named = arguments
        if metaclass is None and not any(isinstance(each, UserClass) for each in derived_from):
            new_class: Any = define_class(node.name, derived_from, bound, fields, named, known)
        else:
            new_class = _by_metaclass(
                node.name, metaclass, derived_from, bound, fields, named, known
            )
        names[CLASS] = new_class
        for decorator, place in reversed(applied):
            state.place = place
            new_class = call(decorator, (new_class,), {})
        store(variables, new_class)

    return run


def _by_metaclass(
    name: str,
    metaclass: Any,
    bases: list[Any],
    names: dict[str, Any],
    fields: dict[str, str],
    keywords: dict[str, Any],
    known: Callable[[Any], None],
) -> Any:
    """The class that the metaclass makes, the one named or that of a base."""
    maker = metaclass_of(metaclass, bases)
    if maker is None:
        return define_class(name, bases, names, fields, keywords, known)
    names = {"__module__": "__main__", "__qualname__": name, **names, "__classcell__": Cell(known)}
    if fields:
        names["__annotations__"] = fields
    make = maker if isinstance(maker, UserClass) else maker.hosts[0].language_new
    arguments = (name, tuple(bases), names) if make is maker else (maker, name, tuple(bases), names)
    return call(make, arguments, keywords)


def _annotated(body: list[tree.Statement]) -> Iterator[tuple[str, str]]:
    """The names that a body annotates, with the text of the annotation."""
    for statement in body:
        if isinstance(statement, tree.Declare) and statement.name:
            yield statement.name, statement.annotation
        elif isinstance(statement, tree.Assign) and statement.annotation:
            for name in target_names(statement.targets[0]):
                yield name, statement.annotation


def _keywords(c: Compiler, node: tree.Class, scope: Scope) -> Callable[[Variables], Any]:
    """What stands among the bases by name, the metaclass first."""
    parts = [
        (each.kind, each.name, c.expression(each.value, scope), each.span) for each in node.keywords
    ]
    for kind, _, _, span in parts:
        if kind == "*":
            raise GradcliError("E007", "`*` among the bases is outside the language", span=span)
    if not parts:
        return lambda variables: (None, {})

    def keywords(variables: Variables) -> tuple[Any, dict[str, Any]]:
        named: dict[str, Any] = {}
        for kind, name, value, _ in parts:
            named.update(dict_of(value(variables)) if kind else {name or "": value(variables)})
        return named.pop("metaclass", None), named

    return keywords
