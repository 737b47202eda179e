"""Writes statements, and of these the body of a function of a program as one of the host's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from types import CodeType
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.compiler.assignment import unpacked, with_star
from gradcli.language.compiler.base import Compiler
from gradcli.language.compiler.expressions.calling import NO_RECEIVER, failed, finished_call
from gradcli.language.compiler.expressions.displays import joined
from gradcli.language.compiler.over_operands import Operation
from gradcli.language.compiler.statements.lints import is_watched
from gradcli.language.compiler.written import (  # noqa: F401  each writer registers itself
    calling,
    expressions,
)
from gradcli.language.compiler.written.calling import read_part, write_part
from gradcli.language.compiler.written.expressions import counted, guard
from gradcli.language.compiler.written.writer import (
    UNBOUND,
    CannotWrite,
    Writer,
    attempted,
    binds,
    writes,
)
from gradcli.language.functions.calls import Function, Signature, locate, too_many_calls
from gradcli.language.limits import DEEPEST_CALL, PLAIN, too_many_steps
from gradcli.language.objects.classes.user_classes import UserClass, init_returned
from gradcli.language.objects.iteration import bounded, enter, iterate
from gradcli.language.objects.operators import HASHING, changing, get_item, set_item
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import CONTINUE, Run
from gradcli.language.tree.scopes import PARENT, Scope


@writes(tree.ExpressionStatement)
def expression_statement(w: Writer, node: tree.ExpressionStatement, scope: Scope) -> None:
    """An expression whose value nobody wants."""
    if type(node.value) is not tree.Constant:
        w.expression(node.value, scope)


@writes(tree.Declare, tree.Global, tree.Pass)
def pass_statement(w: Writer, node: tree.Statement, scope: Scope) -> None:
    """What does nothing."""


@writes(tree.Return)
def return_statement(w: Writer, node: tree.Return, scope: Scope) -> None:
    """`return value`."""
    value = "None" if node.value is None else w.expression(node.value, scope)
    w.line(f"return {value}" if w.is_function else f"return ({value},)")


@writes(tree.Break)
def break_statement(w: Writer, node: tree.Break, scope: Scope) -> None:
    """`break`."""
    w.line(w.leaving)


@writes(tree.Continue)
def continue_statement(w: Writer, node: tree.Continue, scope: Scope) -> None:
    """`continue`; the next value is drawn at the place of the loop."""
    if w.is_in_loop:
        w.line(f"state.place = {w.loop_place}")
        w.line("continue")
    else:
        w.line(f"return {w.constant('b', CONTINUE)}")


@writes(tree.If)
def if_statement(w: Writer, node: tree.If, scope: Scope) -> None:
    """`if`, `elif`, `else`."""
    _branches(w, node.branches, node.orelse, scope)


def _branches(w: Writer, branches: list[Any], orelse: list[tree.Statement], scope: Scope) -> None:
    (test, body), *rest = branches
    value = w.test(test, scope)
    before = set(w.sure)
    with w.block(f"if {value}:"):
        w.block_of(body, scope)
        first = w.ended_sure(body)
    w.sure = before
    if not rest and not orelse:
        w.sure = before & first if first is not None else before
        return
    with w.block("else:"):
        if rest:
            _branches(w, rest, orelse, scope)
            second: set[str] | None = set(w.sure)
        else:
            w.block_of(orelse, scope)
            second = w.ended_sure(orelse)
    w.sure = _both(before, first, second)


def _both(before: set[str], first: set[str] | None, second: set[str] | None) -> set[str]:
    """What has a value behind two blocks, of which one may never end normally (None)."""
    if first is None:
        return before if second is None else second
    return first if second is None else first & second


@writes(tree.Assign)
def assign(w: Writer, node: tree.Assign, scope: Scope) -> None:
    """`target = target = value`."""
    if w.compiler.loop is not None and is_watched(node, w.compiler.loop):
        w.statement_closure(node, scope)
        return
    value = w.expression(node.value, scope)
    for target in node.targets:
        w.bind(target, scope, value)


@binds(tree.Tuple, tree.List)
def bind_sequence(w: Writer, target: tree.Tuple | tree.List, scope: Scope, value: str) -> None:
    """`a, b = values`."""
    stars = [n for n, each in enumerate(target.elements) if isinstance(each, tree.Starred)]
    if stars:
        parts = f"with_star(state, {w.constant('d', target)}, {stars[-1]}, {value})"
    else:
        w.place(target)
        is_tuple = f"type({value}) is tuple and len({value}) == {len(target.elements)}"
        parts = f"{value} if {is_tuple} else unpacked(state, {w.constant('d', target)}, {value})"
    names = [w.reserved() for _ in target.elements]
    if names:
        w.line(f"{', '.join(names)}, = {parts}")
    else:
        w.line(parts)
    for name, element in zip(names, target.elements, strict=True):
        w.bind(element.value if isinstance(element, tree.Starred) else element, scope, name)


@writes(tree.AugmentedAssign)
def augmented_assign(w: Writer, node: tree.AugmentedAssign, scope: Scope) -> None:
    """`target op= value`: owner and index of the target are evaluated once."""
    if w.compiler.loop is not None and is_watched(node, w.compiler.loop):
        w.statement_closure(node, scope)
        return
    target, symbol = node.target, node.operator
    if isinstance(target, tree.Name):
        left = w.expression(target, scope)
        right = w.expression(node.value, scope)
        holds = guard(symbol, left, right, (target, node.value))
        change = w.later(partial(_changing, w, node, scope))
        new = f"{change}({left}, {right})"
        if holds is not None:
            new = f"{left} {symbol} {right} if {holds} else {new}"
        w.bind(target, scope, w.temporary(new))
        return
    assert isinstance(target, (tree.Attribute, tree.Subscript))
    owner = w.expression(target.value, scope)
    at = None if isinstance(target, tree.Attribute) else w.expression(target.index, scope)
    left = read_part(w, target, owner, at)
    right = w.expression(node.value, scope)
    w.place(node)
    holds = guard(symbol, left, right, (target, node.value))
    new = f"{w.constant('k', changing(symbol))}({left}, {right})"
    if holds is not None:
        new = f"{left} {symbol} {right} if {holds} else {new}"
    write_part(w, target, owner, at, w.temporary(new))


def _changing(w: Writer, node: tree.AugmentedAssign, scope: Scope) -> Callable[..., Any]:
    """What gives the new value of `name op= value`."""
    return Operation(w.compiler, node, scope, (node.target, node.value))


@writes(tree.Raise)
def raise_statement(w: Writer, node: tree.Raise, scope: Scope) -> None:
    """`raise exception from cause`; alone, it raises again what is being handled."""
    nodes = [each for each in (node.exception, node.cause) if each is not None]
    values = [w.expression(each, scope) for each in nodes]
    w.line(w.over(node, scope, nodes, values))


# --- loops ----------------------------------------------------------------------------------------


@writes(tree.For)
def for_statement(w: Writer, node: tree.For, scope: Scope) -> None:
    """`for target in iterable`, which no loop compiler takes."""
    if not w.may_loop(node):
        w.statement_closure(node, scope)
        return
    values = w.expression(node.iterable, scope)
    place = w.constant("p", node.iterable.span)
    w.line(f"state.place = {place}")
    w.begin_loop(node, values)
    each = w.reserved()
    with w.block(f"for {each} in iterate({values}):"):
        counted(w, place)
        w.assigns = False
        w.bind(node.target, scope, each)
        w.assigns = True
        with w.loop(node, place):
            w.block_of(node.body, scope)
        w.line(f"state.place = {place}")
    if node.orelse:
        with w.block("else:"):
            w.block_of(node.orelse, scope)


@writes(tree.While)
def while_statement(w: Writer, node: tree.While, scope: Scope) -> None:
    """`while test`, the same."""
    if not w.may_loop(node):
        w.statement_closure(node, scope)
        return
    place = w.constant("p", node.test.span)
    left = w.temporary("False") if node.orelse else ""
    with w.block("while True:"):
        value = w.test(node.test, scope)
        w.line(f"if not {value}: break")
        counted(w, place)
        with w.loop(node, place, f"{left} = True; break" if left else "break"):
            w.block_of(node.body, scope)
    if node.orelse:
        with w.block(f"if not {left}:"):
            w.block_of(node.orelse, scope)


_LARGEST = 2000
"""Nodes of a body that is written."""

_NAMES: dict[str, Any] = {
    "DEEPEST_CALL": DEEPEST_CALL,
    "Function": Function,
    "GradcliError": GradcliError,
    "HASHING": HASHING,
    "NO_RECEIVER": NO_RECEIVER,
    "PARENT": PARENT,
    "PLAIN": PLAIN,
    "Tensor": Tensor,
    "UNBOUND": UNBOUND,
    "bounded": bounded,
    "UserClass": UserClass,
    "enter": enter,
    "failed": failed,
    "finished_call": finished_call,
    "get_item": get_item,
    "init_returned": init_returned,
    "iterate": iterate,
    "joined": joined,
    "locate": locate,
    "new_instance": object.__new__,
    "set_item": set_item,
    "too_many_calls": too_many_calls,
    "too_many_steps": too_many_steps,
    "unpacked": unpacked,
    "with_star": with_star,
    **expressions.NAMES,
}
"""What every text may refer to."""

_HEAD = """\
def run({parameters}):
 steps.left -= 1
 if steps.left < 0: raise too_many_steps()
 place = state.place
 if len(stack) >= DEEPEST_CALL: raise too_many_calls(f.name)
 stack.append((f.name, place))
 try:
"""

_FOOT = """
 except GradcliError as error:
  locate(error, state)
  raise
 except RecursionError as error:
  raise locate(too_many_calls(f.name, len(stack)), state) from error
 finally:
  stack.pop()
  state.place = place
"""


def written(
    compiler: Compiler,
    signature: Signature,
    defaults: Sequence[str],
    body: Sequence[tree.Statement],
    scope: Scope,
) -> Callable[..., Any] | None:
    """The body as a function of the `Function` that is called and of its arguments; None where that
    cannot be.
    """
    if not _may_write(body):
        return None
    kept: frozenset[str] = frozenset()
    while True:
        writer = Writer(compiler, scope, kept)
        try:
            text = _text(writer, signature, defaults, body)
        except CannotWrite:
            return None
        if writer.wanted <= kept:
            break
        kept |= writer.wanted
    return _made(writer, text)


def written_block(compiler: Compiler, body: Sequence[tree.Statement], scope: Scope) -> Run | None:
    """The body of a loop as a function of the variables, which are where closures have them, and
    which ends as a closure does; None where that cannot be.
    """
    if scope.is_class or not _may_write(body):
        return None
    writer = Writer(compiler, scope, scope.bound, is_function=False)
    writer.has_variables = True
    try:
        writer.block_of(body, scope)
    except CannotWrite:
        return None
    return _over_variables(writer, "variables", "None")


def written_list(
    compiler: Compiler, node: tree.Comprehension, scope: Scope
) -> Callable[..., list[Any]] | None:
    """A list comprehension of one clause as a function of the variables around it and of the
    iterator that it draws from; None where that cannot be.
    """
    if scope.is_class or not _may_write([node]):
        return None
    writer = Writer(compiler, scope, scope.bound)
    writer.has_variables = True
    try:
        result = attempted(
            writer, lambda: expressions.listed(writer, node, scope, "drawn"), lambda: None
        )
    except CannotWrite:
        return None
    if result is None:
        return None
    return _over_variables(writer, "variables, drawn", result)


def _over_variables(writer: Writer, parameters: str, result: str) -> Callable[..., Any]:
    """What was written as a function of the variables of closures."""
    lines = [f"def run({parameters}):"]
    if writer.has_parent:
        lines.append(" parent = variables[PARENT]")
    if writer.unsure:
        lines.append(f" {' = '.join(sorted(writer.unsure))} = UNBOUND")
    return _made(writer, "\n".join([*lines, *writer.lines, f" return {result}"]))


def _may_write(body: Sequence[tree.Syntax]) -> bool:
    """Whether a body is of a size to be written, and has no `:=`: operands of an expression would
    change behind it.
    """
    for number, each in enumerate(tree.nodes_of(list(body))):
        if number > _LARGEST or isinstance(each, tree.NamedExpression):
            return False
    return True


def _made(writer: Writer, text: str) -> Callable[..., Any]:
    """The function that a text defines."""
    state = writer.compiler.state
    namespace = writer.names  # whose cells change
    namespace.update(_NAMES, state=state, steps=writer.compiler.steps, stack=state.stack)
    exec(_code(text), namespace)
    run: Callable[..., Any] = namespace["run"]
    return run


@lru_cache(maxsize=1000)
def _code(text: str) -> CodeType:
    """The code of a text, which functions share that differ in names and constants alone."""
    return compile(text, "<a function of the program>", "exec")


def _text(
    w: Writer, signature: Signature, defaults: Sequence[str], body: Sequence[tree.Statement]
) -> str:
    own = [w.variable(each, w.scope) for each in signature.positional]
    parameters = ["f"]
    first: list[str] = []
    for name, variable in zip(signature.positional, own, strict=True):
        parameters.append(f"{variable}=UNBOUND" if name in defaults else variable)
        if name in defaults:
            default = f"f.defaults[{w.constant('n', name)}]"
            first.append(f"if {variable} is UNBOUND: {variable} = {default}")
    w.sure.update(own)
    w.indent("  ")
    w.block_of(body, w.scope)
    pairs = zip(signature.positional, own, strict=True)
    held = [f"{w.constant('n', name)}: {own}" for name, own in pairs if name in w.kept]
    if w.has_parent or w.has_variables:
        first.append("parent = f.parent")
    if w.has_variables:
        first.append(f"variables = {{{', '.join([*held, 'PARENT: parent'])}}}")
    if w.unsure:
        first.append(f"{' = '.join(sorted(w.unsure))} = UNBOUND")
    lines = [*[f"  {each}" for each in first], *w.lines] or ["  pass"]
    return _HEAD.format(parameters=", ".join(parameters)) + "\n".join(lines) + _FOOT
