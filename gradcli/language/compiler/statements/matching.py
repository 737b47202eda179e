"""Compiles `match`: its patterns are read as expressions, and their names are bound."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from gradcli.errors import GradcliError, type_error
from gradcli.language.compiler.base import Compiler
from gradcli.language.compiler.names import name_store
from gradcli.language.objects.iteration import iterate
from gradcli.language.objects.operators import binary
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import Scope, Variables, captured_names

Bound = dict[str, Any]
Matches = Callable[[Any, Variables, Bound], bool]
"""Whether a value fits a pattern; the names that the pattern binds are entered."""


def match_closure(c: Compiler, node: tree.Match, scope: Scope) -> Run:
    """`match subject:`: the first case that fits runs."""
    state, subject = c.state, c.expression(node.subject, scope)
    cases = [(*case_test(c, case, scope), c.block(case.body, scope)) for case in node.cases]

    def run(variables: Variables) -> Any:
        value = subject(variables)
        for fits, span, body in cases:
            state.place = span
            if fits(value, variables):
                return body(variables)
        return None

    return run


def case_test(
    c: Compiler, case: tree.Case, scope: Scope
) -> tuple[Callable[[Any, Variables], bool], Any]:
    """Whether a case fits a value, its names bound and its guard asked; and its span."""
    matches = _pattern(c, case.pattern, scope)
    guard = None if case.guard is None else c.expression(case.guard, scope)
    names = [*captured_names(case.pattern), *([case.name] if case.name else [])]
    stores = {name: name_store(c, name, scope) for name in names}

    def fits(value: Any, variables: Variables) -> bool:
        bound: Bound = {case.name: value} if case.name else {}
        if not matches(value, variables, bound):
            return False
        for name, each in bound.items():
            stores[name](variables, each)
        return guard is None or bool(guard(variables))

    return fits, case.pattern.span


def _pattern(c: Compiler, node: tree.Expression, scope: Scope) -> Matches:
    if isinstance(node, tree.Name):
        return _capture(node.name)
    if isinstance(node, tree.Constant) and isinstance(node.value, (bool, type(None))):
        only = node.value
        return lambda value, variables, bound: value is only
    if isinstance(node, tree.Binary) and all(symbol == "|" for symbol, _ in node.rest):
        choices = [_pattern(c, each, scope) for each in (node.first, *[r for _, r in node.rest])]
        return lambda value, variables, bound: any(m(value, variables, bound) for m in choices)
    if isinstance(node, (tree.Tuple, tree.List)):
        return _sequence(c, node.elements, scope)
    if isinstance(node, tree.Dict):
        return _mapping(c, node, scope)
    if isinstance(node, tree.Call):
        return _class(c, node, scope)
    if not isinstance(node, (tree.Constant, tree.Attribute, tree.Unary, tree.Binary)):
        raise GradcliError("E001", "this is no pattern", span=node.span)
    expected = c.expression(node, scope)
    return lambda value, variables, bound: bool(binary("==", value, expected(variables)))


def _capture(name: str) -> Matches:
    def capture(value: Any, variables: Variables, bound: Bound) -> bool:
        if name != "_":
            bound[name] = value
        return True

    return capture


def _sequence(c: Compiler, elements: list[tree.Expression], scope: Scope) -> Matches:
    """`[a, *rest, b]`: of a list, a tuple or a range."""
    star = next((n for n, each in enumerate(elements) if isinstance(each, tree.Starred)), -1)
    parts = [
        _pattern(c, each.value if isinstance(each, tree.Starred) else each, scope)
        for each in elements
    ]
    least = len(parts) - (star >= 0)
    after = len(parts) - star - 1

    def matches(value: Any, variables: Variables, bound: Bound) -> bool:
        if not isinstance(value, (list, tuple, range)):
            return False
        if len(value) < least or (star < 0 and len(value) > least):
            return False
        items = list(iterate(value))
        if star >= 0:
            end = len(items) - after
            items = [*items[:star], items[star:end], *items[end:]]
        return all(part(item, variables, bound) for part, item in zip(parts, items, strict=True))

    return matches


def _mapping(c: Compiler, node: tree.Dict, scope: Scope) -> Matches:
    """`{"key": pattern, **rest}`."""
    keys = [
        (c.expression(key, scope), _pattern(c, value, scope))
        for key, value in node.items
        if key is not None
    ]
    rest = [_pattern(c, value, scope) for key, value in node.items if key is None]

    def matches(value: Any, variables: Variables, bound: Bound) -> bool:
        if not isinstance(value, dict):
            return False
        left = dict(value)
        for key, part in keys:
            at = key(variables)
            if at not in left or not part(left.pop(at), variables, bound):
                return False
        return all(part(left, variables, bound) for part in rest)

    return matches


_WHOLE = ("bool", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple")
"""The classes whose one pattern by position is for the value itself."""


def _class(c: Compiler, node: tree.Call, scope: Scope) -> Matches:
    """`Point(x, y=pattern)`: by position the names of `__match_args__`."""
    function = c.expression(node.function, scope)
    by_place = [_pattern(c, a.value, scope) for a in node.arguments if a.name is None]
    by_name = [(a.name, _pattern(c, a.value, scope)) for a in node.arguments if a.name]
    builtins = c.predefined.BUILTINS
    get = builtins["getattr"]

    def matches(value: Any, variables: Variables, bound: Bound) -> bool:
        cls = function(variables)
        if not builtins["isinstance"](value, cls):
            return False
        if len(by_place) == 1 and any(cls is builtins.get(name) for name in _WHOLE):
            whole = by_place[0](value, variables, bound)
            return whole and _named(get, by_name, value, variables, bound)
        known = get(cls, "__match_args__", ()) if by_place else ()
        if len(by_place) > len(known):
            raise type_error(
                f"a pattern of this class takes {len(known)} parts by position, not {len(by_place)}"
            )
        placed = zip(known, by_place, strict=False)
        return _named(get, chain(placed, by_name), value, variables, bound)

    return matches


def _named(get: Any, parts: Any, value: Any, variables: Variables, bound: Bound) -> bool:
    missing = object()
    for name, part in parts:
        attribute = get(value, name, missing)
        if attribute is missing or not part(attribute, variables, bound):
            return False
    return True
