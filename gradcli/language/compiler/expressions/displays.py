"""Compiles tuples, lists, sets and dicts as they are written, f-strings, comprehensions and
generator expressions, the last two each with a scope of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from collections.abc import Iterator as HostIterator
from functools import partial
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.language.compiler.base import Compiler, Evaluate, Store, compiles
from gradcli.language.compiler.names import NOWHERE, constant, direct
from gradcli.language.compiler.recipes import (
    Made,
    Step,
    ask,
    by_table,
    child,
    compilers,
    each_of,
    given,
    inner_child,
    inner_each,
    inner_target,
    known,
    made_by,
    own_name,
    place_of,
    recipe,
)
from gradcli.language.compiler.waiting import BEGIN, NEXT, STAND, TEST, YIELD, Code, in_loops
from gradcli.language.functions import hot_bodies
from gradcli.language.functions.hot_bodies import HotList, before_hot
from gradcli.language.limits import check_text, enter_host_call, too_many_steps
from gradcli.language.objects.exceptions import converted
from gradcli.language.objects.iteration import (
    bounded,
    check_key,
    drawing,
    enter,
    iterate,
    unlike_host,
)
from gradcli.language.objects.repr import convert, display, format_value, is_checked
from gradcli.language.objects.types import check_kind
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import BREAK, CONTINUE
from gradcli.language.tree.scopes import PARENT, Scope, Variables, comprehension_scope
from gradcli.record import Record

if TYPE_CHECKING:
    from gradcli.errors import Span
    from gradcli.language.native.nodes import Nodes
    from gradcli.limits import Steps
    from gradcli.state import State


def _elements(c: Compiler, elements: list[tree.Expression], scope: Scope) -> Evaluate:
    """The closure that returns a new list of the elements, with `*values` unpacked."""
    if not any(type(element) is tree.Starred for element in elements):
        parts = [c.expression(element, scope) for element in elements]
        return lambda variables: [part(variables) for part in parts]
    state = c.state
    starred = [each.value if isinstance(each, tree.Starred) else None for each in elements]
    mixed = [
        (inner is not None, c.expression(inner or each, scope), each.span)
        for each, inner in zip(elements, starred, strict=True)
    ]

    def collect(variables: Variables) -> list[Any]:
        values: list[Any] = []
        for starred, part, span in mixed:
            value = part(variables)
            if starred:
                state.place = span
                values.extend(bounded(value))
            else:
                values.append(value)
        return values

    return collect


@compiles(tree.List)
def list_display(c: Compiler, node: tree.List, scope: Scope) -> Evaluate:
    """`[a, b]`."""
    return _elements(c, node.elements, scope)


for _kind, _name in ((tree.List, "list"), (tree.Tuple, "tuple")):
    _is_plain = ask("none is", "elements", of=tree.Starred)
    recipe(_kind, _name, each_of("elements"), asks=(_is_plain,))


@compiles(tree.Tuple)
def tuple_display(c: Compiler, node: tree.Tuple, scope: Scope) -> Evaluate:
    """`a, b`."""
    is_plain = not any(type(element) is tree.Starred for element in node.elements)
    if len(node.elements) == 2 and is_plain:
        first, second = [c.expression(element, scope) for element in node.elements]
        return lambda variables: (first(variables), second(variables))
    elements = _elements(c, node.elements, scope)
    return lambda variables: tuple(elements(variables))


@compiles(tree.Set)
def set_display(c: Compiler, node: tree.Set, scope: Scope) -> Evaluate:
    """`{a, b}`; E202 for an element that cannot be hashed."""
    state, span = c.state, node.span
    if c.nodes is None:
        elements = _elements(c, node.elements, scope)
    else:
        elements = c.expression(tree.List(span, node.elements), scope)

    def collect(variables: Variables) -> set[Any]:
        values = elements(variables)
        state.place = span
        for value in values:
            check_key(value)
        try:
            return set(values)
        except TypeError as error:
            raise converted(error) from error

    return collect


@compiles(tree.Dict)
def dict_display(c: Compiler, node: tree.Dict, scope: Scope) -> Evaluate:
    """`{key: value, **more}`; E202 for a key that cannot be hashed."""
    state, enter = c.state, c.enter
    items = [
        (None if key is None else c.expression(key, scope), c.expression(value, scope), value.span)
        for key, value in node.items
    ]
    if c.nodes is not None and all(key is not None for key, _ in node.items):
        return c.nodes.dict(0, state, enter, *[part for item in items for part in item])

    def collect(variables: Variables) -> dict[Any, Any]:
        entries: dict[Any, Any] = {}
        for key, evaluate, span in items:
            if key is None:
                more = evaluate(variables)
                state.place = span
                check_kind(more, dict, "`**` takes a dict")
                entries.update(more)
                continue
            at = key(variables)
            value = evaluate(variables)
            state.place = span
            enter(entries, at, value)
        return entries

    return collect


@compiles(tree.FormattedString)
def formatted_string(c: Compiler, node: tree.FormattedString, scope: Scope) -> Evaluate:
    """An f-string."""
    state = c.state
    parts = [part if isinstance(part, str) else field(c, part, scope) for part in node.parts]
    span = node.span

    def write(variables: Variables) -> str:
        pieces = [part if isinstance(part, str) else part(variables) for part in parts]
        state.place = span
        return joined(state, pieces)

    return write


@compiles(tree.Replacement)
def replacement(c: Compiler, node: tree.Replacement, scope: Scope) -> Evaluate:
    """A field of an f-string."""
    return field(c, node, scope)


def joined(state: State, pieces: list[str]) -> str:
    """The text of an f-string; raises E602 for one that is too long."""
    length = sum(map(len, pieces))
    if length > state.limits.elements:
        check_text(length)
    return "".join(pieces)


def field(c: Compiler, node: tree.Replacement, scope: Scope) -> Evaluate:
    """`{value!conversion:format}`; `{value=}` shows its own text and the value's repr."""
    state, span, debug = c.state, node.span, node.debug
    conversion = node.conversion or ("r" if debug and node.format is None else "")
    evaluate = c.expression(node.value, scope)
    constant = _constant_text(node.format)
    spec = c.expression(node.format, scope) if constant is None and node.format else None

    def write(variables: Variables) -> str:
        value = evaluate(variables)
        form: str = constant or "" if spec is None else spec(variables)
        state.place = span
        if conversion == "r" and not form:
            return debug + display(value)
        if conversion:
            value = convert(value, conversion)
        return debug + format_value(value, form)

    return write


recipe(tree.FormattedString, "formatted", place_of(), known(joined), each_of("parts"))
_PLAIN = ask("length", "conversion", of=0), ask("length", "debug", of=0)
recipe(
    tree.Replacement,
    "field",
    *(place_of(), child("value"), known(""), known(format_value)),
    asks=(*_PLAIN, ask("is", "format", of=type(None))),
)
recipe(
    tree.Replacement,
    "field",
    *(place_of(), child("value"), given("format", "parts", 0), known(format_value)),
    number=by_table(Made(is_checked), "format", "parts", 0),
    asks=(
        *_PLAIN,
        ask("is", "format", of=tree.FormattedString),
        ask("length", "format", "parts", of=1),
        ask("is", "format", "parts", 0, of=str),
    ),
)


def _constant_text(format: tree.FormattedString | None) -> str | None:
    """The text of a format in which nothing is replaced; None for any other."""
    if format is None:
        return ""
    parts = [part for part in format.parts if isinstance(part, str)]
    return "".join(parts) if len(parts) == len(format.parts) else None


# --- comprehensions -------------------------------------------------------------------------------


class _Clause(Record):
    """One `for target in iterable if …`, compiled."""

    iterable: Evaluate
    store: Store
    name: str
    conditions: list[Evaluate]
    span: Span


@compiles(tree.Comprehension)
def comprehension(c: Compiler, node: tree.Comprehension, scope: Scope) -> Evaluate:
    """`[element for …]` and its relatives; only a generator waits until it is drawn from."""
    inner = comprehension_scope(scope, node.clauses)
    clauses = _clauses(c, node, scope, inner)
    element = c.expression(node.element, inner)
    if node.kind == "generator":
        return _generator(c, clauses, element)
    if node.kind == "dict":
        assert node.value is not None
        return _dict(c, clauses, element, c.expression(node.value, inner), node.span)

    if node.kind == "set":
        nothing = constant(c, tree.Constant(node.span, None), inner)
        members = _dict(c, clauses, element, nothing, node.span)
        return lambda variables: set(iter(members(variables)))  # one by one, for its order
    if len(clauses) == 1:
        return _single(c, node, scope, clauses[0], element)
    return lambda variables: [element(inside) for inside in _iterations(c, clauses, variables)]


def _clauses(c: Compiler, node: tree.Comprehension, scope: Scope, inner: Scope) -> list[_Clause]:
    return [
        _Clause(
            # The first iterable is evaluated outside, as in Python.
            c.expression(clause.iterable, inner if number else scope),
            c.store(clause.target, inner),
            direct(c, clause.target, inner)[1],
            [c.test(condition, inner, None) for condition in clause.conditions],
            clause.iterable.span,
        )
        for number, clause in enumerate(node.clauses)
    ]


def _whole(c: Compiler, node: tree.Comprehension, scope: Scope) -> Callable[..., list[Any]]:
    """What makes the list of a node that has counted so many elements."""
    return partial(_collect, [], c, node, scope, c.loop, c.in_try)


def _collect(
    made: list[Callable[[Variables, Any], list[Any]]],
    c: Compiler,
    node: tree.Comprehension,
    scope: Scope,
    loop: tree.Statement | None,
    in_try: bool,
    variables: Variables,
    values: Any,
) -> list[Any]:
    if not made:
        own, inner = c.alike(loop, in_try), comprehension_scope(scope, node.clauses)
        (clause,) = _clauses(own, node, scope, inner)
        made.append(_collecting(own, node, scope, clause, own.expression(node.element, inner)))
    return made[0](variables, values)


def _single(
    c: Compiler, node: tree.Comprehension, scope: Scope, clause: _Clause, element: Evaluate
) -> Evaluate:
    """`[element for target in iterable if condition]`, the common case."""
    state, iterable, span = c.state, clause.iterable, clause.span
    collect_from = _collecting(c, node, scope, clause, element)

    def collect(variables: Variables) -> list[Any]:
        values = iterable(variables)
        state.place = span
        return collect_from(variables, values)

    return collect


def _collecting(
    c: Compiler, node: tree.Comprehension, scope: Scope, clause: _Clause, element: Evaluate
) -> Callable[[Variables, Any], list[Any]]:
    """What makes the list of an iterable's values, written once it is hot."""
    state, steps, iterate, loop, in_try = c.state, c.steps, c.iterate, c.loop, c.in_try
    store, name, conditions, span = clause.store, clause.name, clause.conditions, clause.span
    hot: HotList | None = None
    made = 0 if c.nodes is not None else before_hot(hot_bodies.HOT_ITERATIONS, False)

    def collect_from(variables: Variables, values: Any) -> list[Any]:
        nonlocal hot
        if hot is None:
            write = partial(c.interpreter.write_list, c.alike(loop, in_try), node, scope)
            hot = HotList(write, type(c) is Compiler, made)
        if hot.may_be and hot.takes(values):
            return hot.run(variables, iterate(values))
        inside: Variables = {PARENT: variables}
        elements = []
        for value in iterate(values):
            steps.left -= 1
            if steps.left < 0:
                raise too_many_steps()
            if name is NOWHERE or type(value) is Tensor:
                store(inside, value)
            else:
                inside[name] = value
            for condition in conditions:
                if not condition(inside):
                    break
            else:
                elements.append(element(inside))
            state.place = span
        hot.made += len(elements)
        return elements

    return collect_from


_FIRST = ("clauses", 0)
_DRAWN = (
    *(place_of(*_FIRST, "iterable"), child(*_FIRST, "iterable")),
    *(own_name(*_FIRST, "target"), inner_target(*_FIRST, "target")),
    *(compilers("steps"), known(iterate)),
)
_IS_SINGLE = (ask("length", "clauses", of=1),)
recipe(
    tree.Comprehension,
    "items",
    *(*_DRAWN, known(enter), inner_child("element"), inner_child("value"), given("span")),
    inner_each(*_FIRST, "conditions"),
    number=by_table({"dict": 0}, "kind"),
    asks=_IS_SINGLE,
)


def _instruction(kind: int, part: Step, where: Step, to: int = 0) -> tuple[Step, ...]:
    return known(kind), part, where, known(to), known(0)


for _tests in range(2):  # a generator expression of one loop, as `_generator_node` makes it
    _test = _instruction(TEST, inner_child(*_FIRST, "conditions", 0), known(None), 3)
    recipe(
        tree.Comprehension,
        "drawn",
        *(place_of(*_FIRST, "iterable"), compilers("steps"), known(iterate), known(unlike_host)),
        *(known(BREAK), known(CONTINUE), child(*_FIRST, "iterable")),
        *(known(drawing("generator", iter(()), None)), known(partial(drawing, "generator"))),
        *_instruction(NEXT, inner_target(*_FIRST, "target"), known(None), 3 + _tests),
        *(_test if _tests else ()),
        *_instruction(YIELD, inner_child("element"), known(None)),
        *_instruction(STAND, known(None), given(*_FIRST, "iterable", "span")),
        number=by_table({"generator": 1}, "kind"),
        asks=(*_IS_SINGLE, ask("length", *_FIRST, "conditions", of=_tests)),
    )


class _Many(dict[str, int]):
    """How many elements a list has before it is hot, as that stands when its node is made."""

    def __missing__(self, kind: str) -> int:
        if kind != "list":
            raise KeyError(kind)
        return -before_hot(hot_bodies.HOT_ITERATIONS, True)


recipe(
    tree.Comprehension,
    "comprehension",
    *(*_DRAWN, made_by(_whole), inner_child("element"), inner_each(*_FIRST, "conditions")),
    number=by_table(_Many(), "kind"),
    asks=_IS_SINGLE,
)


def _iterations(
    c: Compiler, clauses: list[_Clause], variables: Variables
) -> Generator[Variables, None, None]:
    """The comprehension's variables, once for each iteration."""
    first = clauses[0].iterable(variables)
    c.state.place = clauses[0].span
    return _inner_iterations(c, clauses, 0, {PARENT: variables}, c.iterate(first))


def _inner_iterations(
    c: Compiler,
    clauses: list[_Clause],
    number: int,
    inside: Variables,
    values: HostIterator[Any],
) -> Generator[Variables, None, None]:
    clause = clauses[number]
    store, conditions, span = clause.store, clause.conditions, clause.span
    following = clauses[number + 1] if number + 1 < len(clauses) else None
    state, steps = c.state, c.steps
    for value in values:
        steps.left -= 1
        if steps.left < 0:
            raise too_many_steps()
        store(inside, value)
        for condition in conditions:
            if not condition(inside):
                break
        else:
            if following is None:
                yield inside
            else:
                more = following.iterable(inside)
                state.place = following.span
                yield from _inner_iterations(c, clauses, number + 1, inside, c.iterate(more))
        state.place = span


def _dict(
    c: Compiler, clauses: list[_Clause], key: Evaluate, value: Evaluate, span: Span
) -> Evaluate:
    state, enter = c.state, c.enter
    if c.nodes is not None and len(clauses) == 1:
        (only,) = clauses
        drawn = only.iterable, None if only.name is NOWHERE else only.name, only.store
        by = (*drawn, c.steps, c.iterate, enter, key, value, span)
        return c.nodes.items(0, state, only.span, *by, *only.conditions)

    def collect(variables: Variables) -> dict[Any, Any]:
        items: dict[Any, Any] = {}
        for inside in _iterations(c, clauses, variables):
            at = key(inside)
            new = value(inside)
            state.place = span
            enter(items, at, new)
        return items

    return collect


def _generator(c: Compiler, clauses: list[_Clause], element: Evaluate) -> Evaluate:
    if c.nodes is not None:
        return _generator_node(c, c.nodes, clauses, element)
    state, steps = c.state, c.steps
    single = clauses[0] if len(clauses) == 1 else None

    def start(variables: Variables) -> Any:
        first = clauses[0].iterable(variables)
        state.place = clauses[0].span
        values = c.iterate(first)
        inside: Variables = {PARENT: variables}
        if single is not None:
            drawn = _drawn_of_one(c, single, element, inside, values)
        else:
            drawn = _drawn(_inner_iterations(c, clauses, 0, inside, values), element, steps)
        return c.drawing("generator", drawn, first)

    return start


def _generator_node(
    c: Compiler, nodes: Nodes, clauses: list[_Clause], element: Evaluate
) -> Evaluate:
    """A generator expression as a node: the loops as instructions, each in the one before it. The
    place of a loop is noted where it goes on; the first time what evaluates the iterable did it.
    """
    code = Code()
    loops: list[tuple[int, list[list[Any]]]] = []  # where each draws, and what goes on with it
    for number, clause in enumerate(clauses):
        if number:
            code.add(BEGIN, clause.iterable, clause.span, 0, number)
        here = code.here()
        drawn = code.add(NEXT, clause.store, None, 0, number)
        if number:
            loops[-1][1].append(drawn)
        loops.append((here, [code.add(TEST, condition) for condition in clause.conditions]))
    code.add(YIELD, element)
    for clause, (here, waiting) in zip(reversed(clauses), reversed(loops), strict=True):
        for each in waiting:
            each[3] = code.here()
        code.add(STAND, None, clause.span, here)
    code.instructions[0][3] = code.here()
    first = clauses[0]
    like = drawing("generator", iter(()), None)
    parts = first.iterable, like, partial(drawing, "generator"), *code.flat()
    return nodes.drawn(len(clauses), c.state, first.span, *in_loops(c), *parts)


def _drawn_of_one(
    c: Compiler,
    clause: _Clause,
    element: Evaluate,
    inside: Variables,
    values: HostIterator[Any],
) -> Generator[Any, None, None]:
    """The elements of a generator expression of one clause, the common case."""
    state, steps = c.state, c.steps
    store, conditions, span = clause.store, clause.conditions, clause.span
    while True:
        enter_host_call(steps)
        try:
            for value in values:
                steps.left -= 1
                if steps.left < 0:
                    raise too_many_steps()
                store(inside, value)
                for condition in conditions:
                    if not condition(inside):
                        break
                else:
                    break
                state.place = span
            else:
                return
            drawn = element(inside)
        except StopIteration:
            return
        finally:
            steps.nested -= 1
        yield drawn
        state.place = span


def _drawn(
    iterations: HostIterator[Variables], element: Evaluate, steps: Steps
) -> Generator[Any, None, None]:
    """The elements of a generator expression."""
    while True:
        enter_host_call(steps)
        try:
            value = element(next(iterations))
        except StopIteration:
            return
        finally:
            steps.nested -= 1
        yield value
