"""Compiles attributes, items and slices, and calls, with fast paths for few arguments and for
methods of tensors and modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from gradcli.autograd.batched import NeedsExamples
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, Label, runtime_error
from gradcli.language.compiler.base import Compiler, Evaluate, compiles, label_operands
from gradcli.language.compiler.names import GLOBAL, NOWHERE, OWN, constant, direct
from gradcli.language.compiler.recipes import (
    Made,
    arguments_of,
    ask,
    child,
    get,
    given,
    item,
    known,
    nothing,
    place_of,
    recipe,
    words_of,
)
from gradcli.language.functions.calls import Function, call_failed, for_op
from gradcli.language.functions.calls import call as call_value
from gradcli.language.limits import PLAIN
from gradcli.language.objects import borders
from gradcli.language.objects.attributes import Method, get_attribute
from gradcli.language.objects.borders import FOREIGN
from gradcli.language.objects.classes.definition import Super
from gradcli.language.objects.classes.instance_attributes import written_property
from gradcli.language.objects.classes.user_classes import BoundMethod, Instance, UserClass
from gradcli.language.objects.exceptions import HOST_ERRORS
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.methods import METHODS
from gradcli.language.objects.operators import get_item
from gradcli.language.objects.types import LanguageType, check_kind
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import CLASS, PARENT, Scope, Variables
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.functions import operators
from gradcli.state import State, active


@compiles(tree.Attribute)
def attribute(c: Compiler, node: tree.Attribute, scope: Scope) -> Evaluate:
    """`value.name`; E102 where the language has no such attribute."""
    state, span, name = c.state, node.span, node.name
    evaluate = c.expression(node.value, scope)
    getter = catalogue.properties.get(name)
    (where, owner), values = direct(c, node.value, scope), c.values

    def read(variables: Variables) -> Any:
        held = variables if where == OWN else values if where == GLOBAL else variables[PARENT]
        value = held[owner] if owner in held else evaluate(variables)
        state.place = span
        if isinstance(value, Instance):
            reads = value.language_reads
            if reads is not None and name in reads:
                own = value.values
                if name in own:
                    return own[name]
        elif getter is not None and type(value) is Tensor:
            return getter(value)
        return get_attribute(value, name)

    return read


_PROPERTY_FINDERS = Made(lambda name: partial(written_property, name))
"""What finds the function that reads a property of a name of the objects of a class."""

recipe(
    tree.Attribute,
    "attribute",
    *(place_of(), child("value"), given("name"), get(catalogue.properties, "name")),
    *(known(get_attribute), item(_PROPERTY_FINDERS, "name"), nothing(5)),
)


@compiles(tree.Subscript)
def subscript(c: Compiler, node: tree.Subscript, scope: Scope) -> Evaluate:
    """`value[index]`."""
    state, span = c.state, node.span
    evaluate = c.expression(node.value, scope)
    index = c.expression(node.index, scope)
    (where, owner), values = direct(c, node.value, scope), c.values
    at_name = _own(c, node.index, scope)

    def read(variables: Variables) -> Any:
        held = variables if where == OWN else values if where == GLOBAL else variables[PARENT]
        value = held[owner] if owner in held else evaluate(variables)
        at = variables[at_name] if at_name in variables else index(variables)
        state.place = span
        return _picked(value, at, node.value, node.index)

    return read


def _picked(
    value: Any, index: Any, value_node: tree.Expression, index_node: tree.Expression
) -> Any:
    """`value[index]`, of two nodes of the tree that label a failure."""
    kind = type(value)
    try:
        if kind is Tensor:
            return operators.getitem(value, borders.index(index))
        if kind is list or kind is tuple or (kind is dict and type(index) in PLAIN):
            try:
                return value[index]
            except HOST_ERRORS:
                pass
        return get_item(value, index)
    except GradcliError as error:
        return _not_picked(error, value, index, value_node, index_node)


def _not_picked(
    error: Exception,
    value: Any,
    index: Any,
    value_node: tree.Expression,
    index_node: tree.Expression,
) -> Any:
    """Raise the error of `value[index]`, labelled."""
    if isinstance(error, GradcliError):
        label_operands(error, ((value_node, value), (index_node, index)), "[]")
    raise error


recipe(
    tree.Subscript,
    "item",
    *(place_of(), child("value"), child("index"), given("value"), given("index")),
    *(
        known(_picked),
        known(_not_picked),
        known("__getitem__"),
        nothing(3),
    ),
)


@compiles(tree.Slice)
def slice_expression(c: Compiler, node: tree.Slice, scope: Scope) -> Evaluate:
    """`lower:upper:step` inside a subscript."""
    parts = [
        None if part is None else c.expression(part, scope)
        for part in (node.lower, node.upper, node.step)
    ]
    if not any(parts):
        return constant(c, tree.Constant(node.span, slice(None)), scope)
    if c.nodes is not None:
        return c.nodes.slice(0, *parts)
    return lambda variables: slice(*[None if part is None else part(variables) for part in parts])


@compiles(tree.Call)
def call(c: Compiler, node: tree.Call, scope: Scope) -> Evaluate:
    """`function(arguments)`."""
    for argument in node.arguments:
        if argument.name or argument.kind:
            return _with_keywords(c, node, scope)
    own = [c.expression(argument.value, scope) for argument in node.arguments]
    if isinstance(node.function, tree.Attribute):
        return _method(c, node, node.function, own, scope)
    if not own and type(node.function) is tree.Name and node.function.name in _OF_ITS_PLACE:
        if is_bare(node, scope, "super"):
            return _super_call(c, node, scope)
        for word in NAMES_IN_USE:
            if is_bare(node, scope, word):
                return _names_in_use(c, word, scope)
    state, span = c.state, node.span
    function = c.expression(node.function, scope)
    arguments = _positional(_named(c, node, own, scope))
    (where, name), of_program = direct(c, node.function, scope), c.values

    def run(variables: Variables) -> Any:
        held = variables if where == OWN else of_program if where == GLOBAL else variables[PARENT]
        called = held[name] if name in held else function(variables)
        values = arguments(variables)
        state.place = span
        if type(called) is Function:
            return called.invoke(values, {})
        return finished_call(node, called, values)

    return run


NAMES_IN_USE = ("dir", "globals", "locals", "vars")
"""What gives all names, without arguments."""


_OF_ITS_PLACE = frozenset({"super", *NAMES_IN_USE})
"""What without arguments depends on where it stands."""


def is_bare(node: tree.Call, scope: Scope, word: str) -> bool:
    """Whether a call is `word()`."""
    name = node.function
    return (
        isinstance(name, tree.Name)
        and name.name == word
        and not node.arguments
        and scope.distance(word) is None
    )


def _names_in_use(c: Compiler, word: str, scope: Scope) -> Evaluate:
    """`globals()`, `locals()`, `vars()` and `dir()`: the names and their values, to be read."""
    values = c.values

    def names(variables: Variables) -> Any:
        held = values if word == "globals" or scope.is_program else variables
        known = {name: each for name, each in held.items() if name not in (PARENT, CLASS)}
        if held is values:
            known = {"__name__": known.get("__name__", "__main__"), **known}
        return sorted(known) if word == "dir" else known

    return names


def failed(error: Exception, node: tree.Call, called: Any, values: Iterable[Any]) -> Any:
    """Raise what a program sees of the failure of a call with positional arguments, the operands
    labelled; the result for one example after the other, where it reads the values of one.
    """
    values = tuple(values)
    if type(error) is NeedsExamples:
        return active.state.batch.looped(called, values, {})
    of = node.function
    on_value = len(values) > len(node.arguments)
    method = of.name if on_value and isinstance(of, tree.Attribute) else None
    failure = call_failed(error, called, values, {}, method)
    if isinstance(failure, GradcliError):
        nodes = [argument.value for argument in node.arguments]
        if len(values) > len(nodes):  # a method: what it is called on comes first
            assert isinstance(node.function, tree.Attribute)
            nodes.insert(0, node.function.value)
        if not callable(called):
            failure.help = failure.help or _not_callable(node.function, called)
        label_operands(failure, zip(nodes, values, strict=False), node.function.span.text)
    if failure is error:
        raise error
    raise failure from error


def _not_callable(function: tree.Expression, called: Any) -> str | None:
    """What was likely meant by the call of a value that is no function."""
    if isinstance(function, tree.Attribute):
        return f"`.{function.name}` is a value and no method: leave the parentheses out"
    if type(called) in (int, float):
        return "a product needs its sign: `*`"
    if type(called) in (Tensor, list, tuple, dict):
        return f"an item is picked with brackets: `{function.span.text}[…]`"
    return None


Part = tuple[Evaluate, str]
"""The closure of an argument, and its name where that is one of the running code's own."""


def _named(c: Compiler, node: tree.Call, own: list[Evaluate], scope: Scope) -> list[Part]:
    """The arguments of a call, of which there are the closures."""
    names = [_own(c, argument.value, scope) for argument in node.arguments]
    return list(zip(own, names, strict=True))


def _own(c: Compiler, node: tree.Expression, scope: Scope) -> str:
    where, name = direct(c, node, scope)
    return name if where == OWN else NOWHERE


def _positional(arguments: list[Part]) -> Evaluate:
    """What evaluates the arguments to a tuple."""
    if not arguments:
        return lambda variables: ()
    if len(arguments) == 1:
        ((only, name),) = arguments
        return lambda variables: (variables[name] if name in variables else only(variables),)
    if len(arguments) == 2:
        (first, name), (second, other) = arguments
        return lambda variables: (
            variables[name] if name in variables else first(variables),
            variables[other] if other in variables else second(variables),
        )
    return lambda variables: tuple(
        [
            variables[name] if name in variables else argument(variables)
            for argument, name in arguments
        ]
    )


NO_RECEIVER: Any = object()
"""In place of the receiver where a function is called that is no method."""


def _behind_receiver(arguments: list[Part]) -> Callable[[Any, Variables], tuple[Any, ...]]:
    """What evaluates the arguments to a tuple, behind a receiver where there is one."""
    if not arguments:
        return lambda value, variables: () if value is NO_RECEIVER else (value,)
    if len(arguments) == 1:
        ((only, name),) = arguments

        def one(value: Any, variables: Variables) -> tuple[Any, ...]:
            argument = variables[name] if name in variables else only(variables)
            return (argument,) if value is NO_RECEIVER else (value, argument)

        return one

    def all_of(value: Any, variables: Variables) -> tuple[Any, ...]:
        values = [
            variables[name] if name in variables else argument(variables)
            for argument, name in arguments
        ]
        return tuple(values) if value is NO_RECEIVER else (value, *values)

    return all_of


def _method(
    c: Compiler,
    node: tree.Call,
    target: tree.Attribute,
    own: list[Evaluate],
    scope: Scope,
) -> Evaluate:
    """`receiver.name(arguments)`: no bound method is made where a table holds the function."""
    state, span, name = c.state, node.span, target.name
    receiver = c.expression(target.value, scope)
    methods = catalogue.methods
    is_tensor_method = _is_tensor_method(name)
    if (
        c.nodes is not None
        and len(own) <= c.nodes.MOST_ARGUMENTS
        and isinstance(target.value, tree.Call)
        and is_bare(target.value, scope, "super")
    ):
        first, distance = _method_around(scope)
        called = (finished_call, failed, _CALL, None, None, None)
        above = (receiver, name, node, *called, target, find_method, NO_RECEIVER, first)
        return c.nodes.super_method(distance, state, span, *above, None, None, None, None, *own)
    (where, owner), of_program = direct(c, target.value, scope), c.values
    arguments = _behind_receiver(_named(c, node, own, scope))

    def run(variables: Variables) -> Any:
        held = variables if where == OWN else of_program if where == GLOBAL else variables[PARENT]
        value = held[owner] if owner in held else receiver(variables)
        kind = type(value)
        called: Any
        # As `find_method` does, whose call costs a tenth of a method of the library's.
        if kind is Tensor and is_tensor_method:
            called = methods[name]
        elif kind in METHODS and name in METHODS[kind]:
            called = METHODS[kind][name]
        else:
            called, value = find_method(state, target, value)
        values = arguments(value, variables)
        state.place = span
        return finished_call(node, called, values)

    return run


def _is_tensor_method(name: str) -> bool:
    return name in catalogue.methods and name not in catalogue.properties


def find_method(state: State, target: tree.Attribute, value: Any) -> tuple[Any, Any]:
    """The function that `value.name(…)` calls, and its receiver."""
    kind, name = type(value), target.name
    if kind is Tensor and _is_tensor_method(name):
        return catalogue.methods[name], value
    if kind in METHODS and name in METHODS[kind]:
        return METHODS[kind][name], value
    state.place = target.span
    reads = value.language_reads if isinstance(value, Instance) else None
    called = None if reads is None else reads.get(name)
    if type(called) is Function and name not in value.values:
        return called, value
    called = get_attribute(value, name)
    if type(called) is BoundMethod:
        return called.function, called.receiver
    return called, NO_RECEIVER


def finished_call(node: tree.Call, called: Any, values: tuple[Any, ...]) -> Any:
    """Call what a call's function gave with its arguments, a method with its receiver first."""
    if type(called) is Function:
        return called.invoke(values, {})
    if FOREIGN and not FOREIGN.isdisjoint(map(type, values)):
        values = tuple(for_op(called, values))
    try:
        if type(called) is UserClass:
            return called.make(values)
        if type(called) is LanguageType and called.construct is not None:
            return called.construct(*values)
        return called(*values)
    except Exception as error:
        return failed(error, node, called, values)


_CALL = "__call__"
_CALLING = (known(finished_call), known(failed), known(_CALL), nothing(3))
"""What a node calls values by, and what it learns."""

_METHODS = Made(lambda name: catalogue.methods if _is_tensor_method(name) else None)
"""The methods of tensors, where a name is one of them."""

recipe(
    tree.Call,
    "call",
    *(place_of(), child("function"), given(), *_CALLING, arguments_of("arguments")),
    asks=(
        ask("is no", "function", of=tree.Attribute),
        ask("plain", "arguments"),
        ask("no call of", of=_OF_ITS_PLACE),
    ),
)
recipe(
    tree.Call,
    "method",
    *(place_of(), child("function", "value"), given("function", "name"), given(), *_CALLING),
    *(given("function"), known(find_method), known(NO_RECEIVER)),
    *(item(_METHODS, "function", "name"), known(METHODS), nothing(3), arguments_of("arguments")),
    asks=(
        ask("is", "function", of=tree.Attribute),
        ask("plain", "arguments"),
        ask("no call of", "function", "value", of=frozenset({"super"})),
    ),
)


def _with_keywords(c: Compiler, node: tree.Call, scope: Scope) -> Evaluate:
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
            if name is None and not kind:
                values.append(value)
                continue
            if kind:
                state.place = place
            if kind == "*":
                _spread(values, value)
            else:
                _merge(named, name or kind, value)
        state.place = span
        return _finished_with(node, called, values, named)

    return run


def _finished_with(node: tree.Call, called: Any, values: list[Any], named: dict[str, Any]) -> Any:
    """Call any value with arguments by position and by keyword."""
    try:
        return call_value(called, values, named)
    except GradcliError as error:
        _label_with(error, node, called, values, named)
        raise


def _failed_with(
    error: Exception, node: tree.Call, called: Any, values: list[Any], named: dict[str, Any]
) -> Any:
    """Raise what a program sees of the failure of such a call of a function or class of its own."""
    failure = error
    if type(called) is UserClass:
        failure = call_failed(error, called, values, named)
    if isinstance(failure, GradcliError):
        _label_with(failure, node, called, values, named)
    if failure is error:
        raise error
    raise failure from error


def _label_with(
    error: GradcliError, node: tree.Call, called: Any, values: list[Any], named: dict[str, Any]
) -> None:
    """Label the operands of such a call in its error."""
    if error.code == "E201" and error.span is None:
        for argument in node.arguments:
            if argument.name and f"has no argument {argument.name!r}" in error.message:
                error.labels = (Label(argument.span, "no such argument"),)
    operands = _operands(node, called, values, named)
    label_operands(error, operands, node.function.span.text)


def _operands(
    node: tree.Call, called: Any, values: Sequence[Any], named: dict[str, Any]
) -> list[tuple[tree.Expression, Any]]:
    """The syntax and value of each argument, the receiver first; none behind `*values`."""
    operands: list[tuple[tree.Expression, Any]] = []
    if type(called) is Method and isinstance(node.function, tree.Attribute):
        operands.append((node.function.value, called.receiver))
    positional = iter(values)
    for argument in node.arguments:
        if argument.kind:
            return operands
        value = named[argument.name] if argument.name else next(positional)
        operands.append((argument.value, value))
    return operands


def _spread(values: list[Any], more: Any) -> None:
    """Add the arguments of `*more`."""
    values.extend(bounded(more))


def _merge(named: dict[str, Any], word: str, value: Any) -> None:
    """Add an argument by its name, or those of `**value`; raises E201 for a name that is there."""
    if word != "**":
        if word in named:
            raise _passed_twice(word)
        named[word] = value
        return
    check_kind(value, dict, "`**` takes a dict")
    for name, each in value.items():
        check_kind(name, str, "keywords are strings")
        if name in named:
            raise _passed_twice(name)
        named[name] = each


for _asked, _called, _named_place in (
    (
        ask("is", "function", of=tree.Attribute),
        (child("function", "value"), given("function", "name")),
        given("function", "span"),
    ),
    (ask("is no", "function", of=tree.Attribute), (child("function"), nothing(1)), nothing(1)),
):
    recipe(
        tree.Call,
        "call_with",
        *(place_of(), *_called, given(), known(_finished_with), known(_failed_with), _named_place),
        *(known(get_attribute), nothing(3), known(_spread), known(_merge), words_of("arguments")),
        asks=(ask("named", "arguments"), _asked),
    )


def _passed_twice(name: str) -> GradcliError:
    return GradcliError("E201", f"the keyword argument {name!r} is given twice")


def _method_around(scope: Scope) -> tuple[str, int]:
    """The first parameter of the method around code, and how many functions outward that is."""
    steps = 0
    while scope.parent is not None and not scope.parent.is_class:
        scope = scope.parent
        steps += 1
    return scope.first_parameter, steps


def _super_call(c: Compiler, node: tree.Call, scope: Scope) -> Evaluate:
    """`super()` inside a method, on the method's class and first parameter."""
    state, span = c.state, node.span
    receiver, steps = _method_around(scope)

    def run(variables: Variables) -> Super:
        state.place = span
        for _ in range(steps):
            variables = variables[PARENT]
        if not receiver or receiver not in variables:
            raise runtime_error(
                "super() without arguments belongs in a method that has a parameter",
                text="super(): no arguments",
                help="name the class and the object: `super(Name, self)`",
            )
        return Super(variables[PARENT][CLASS], variables[receiver])

    return run
