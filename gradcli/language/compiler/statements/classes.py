"""Compiles `class` and `super()`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradcli.errors import GradcliError
from gradcli.language.compiler.base import Compiler, compiles
from gradcli.language.compiler.names import name_store
from gradcli.language.compiler.statements.annotations import values_of
from gradcli.language.functions.calls import call, docstring
from gradcli.language.objects.classes.definition import Cell, define_class, metaclass_of
from gradcli.language.objects.classes.user_classes import UserClass
from gradcli.language.objects.methods import dict_of
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import CLASS, PARENT, Scope, Variables, class_scope, target_names


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
