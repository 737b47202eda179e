"""Compiles expression statements, `if`, `for`, `while`, and the statements that end a block."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from operator import length_hint
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.compiler.base import (
    Between,
    Compiler,
    Evaluate,
    HotLoop,
    Iterations,
    compiles,
)
from gradcli.language.compiler.names import is_direct
from gradcli.language.compiler.recipes import (
    ask,
    block_of,
    branches_of,
    by_table,
    child,
    compilers,
    given,
    known,
    loop_block_of,
    loop_target_of,
    nothing,
    place_of,
    recipe,
    session,
    the_compiler,
    the_scope,
)
from gradcli.language.compiler.statements.short_loops import ShortLoop, TimedLoop, may_pay
from gradcli.language.functions import hot_bodies
from gradcli.language.functions.hot_bodies import HotBlock, before_hot
from gradcli.language.limits import too_many_steps
from gradcli.language.objects.iteration import Iterator, unlike_host
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import BREAK, CONTINUE, Run
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.limits import length_of
from gradcli.record import Record

if TYPE_CHECKING:
    from gradcli.state import State


@compiles(tree.ExpressionStatement)
def expression_statement(c: Compiler, node: tree.ExpressionStatement, scope: Scope) -> Run:
    """An expression whose value nobody wants."""
    value = c.expression(node.value, scope)

    def run(variables: Variables) -> None:
        value(variables)

    return run


recipe(tree.ExpressionStatement, "effect", child("value"))


@compiles(tree.Declare, tree.Global, tree.Pass)
def pass_statement(c: Compiler, node: tree.Statement, scope: Scope) -> Run:
    """`pass`; also `name: annotation`, and `global` and `nonlocal`, which did their work when names
    were resolved.
    """
    return (lambda variables: None) if c.nodes is None else c.nodes.constant(0, None)


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
    return (lambda variables: BREAK) if c.nodes is None else c.nodes.constant(0, BREAK)


@compiles(tree.Continue)
def continue_statement(c: Compiler, node: tree.Continue, scope: Scope) -> Run:
    """`continue`."""
    return (lambda variables: CONTINUE) if c.nodes is None else c.nodes.constant(0, CONTINUE)


@compiles(tree.Return)
def return_statement(c: Compiler, node: tree.Return, scope: Scope) -> Run:
    """`return value`."""
    if node.value is None:
        nothing = (None,)
        return (lambda variables: nothing) if c.nodes is None else c.nodes.constant(0, nothing)
    value = c.expression(node.value, scope)
    return lambda variables: (value(variables),)


recipe(tree.Return, "returned", child("value"), asks=(ask("has", "value"),))


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


recipe(tree.If, "branches", session(), branches_of("branches"), block_of("orelse"))


def _otherwise(c: Compiler, body: list[tree.Statement], scope: Scope) -> Run | None:
    """The block behind an `else` as a node; None for no such."""
    return c.block(body, scope) if body else None


# --- loops ----------------------------------------------------------------------------------------


_COUNTED = frozenset({range, list, tuple})
"""What a loop goes through whose iterations are known to be the last or not."""

_DRAWING = frozenset({"enumerate", "zip"})
"""What draws from such values as long as they all last."""


_QUIET = frozenset({range, list, tuple, str, dict, Tensor}) | {
    type({}.keys()),
    type({}.values()),
    type({}.items()),
}
"""What gives its values without running anything."""

_QUIET_CALLS = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "round", "sum"})
"""The builtin functions that a test calls without running anything else."""


def _behind_bars(values: Any) -> Any:
    """What values are drawn from that are shown on their way, by a bar or several."""
    while hasattr(type(values), "drawn_from"):
        values = values.drawn_from
    return values


def between_values(values: Any) -> Between:
    """What may run where a value is drawn."""
    values = _behind_bars(values)
    kind = type(values)
    if kind in _QUIET or (hasattr(kind, "runs_program") and not values.runs_program):
        return Between.NOTHING
    if kind is not Iterator or values.kind == "generator":
        return Between.COUNTED
    if values.kind not in _DRAWING:
        return Between.ANYTHING
    drawn = {between_values(each) for each in values.values}
    order = (Between.ANYTHING, Between.COUNTED)
    return next((each for each in order if each in drawn), Between.NOTHING)


def between_tests(test: tree.Expression) -> Between:
    """What may run where a `while` loop makes its test."""
    between = Between.NOTHING
    for each in tree.nodes_of(test):
        if isinstance(each, (tree.NamedExpression, tree.Comprehension)):
            return Between.ANYTHING
        if isinstance(each, tree.Call):
            name = each.function.span.text
            if name not in _QUIET_CALLS and not name.startswith("math."):
                return Between.ANYTHING
            between = Between.COUNTED
        elif isinstance(each, (tree.Attribute, tree.Subscript)):
            between = Between.COUNTED
    return between


_MANY = 64
"""Iterations of a loop, as often as it runs, from which on it is hot: compiling one may pay."""


def for_statement(c: Compiler, node: tree.For, scope: Scope) -> Run:
    """`for target in iterable`, with its `else`."""
    state, steps, span, iterate = c.state, c.steps, node.iterable.span, c.iterate
    iterable = c.expression(node.iterable, scope)
    store = c.store(node.target, scope)
    # A plain name is bound right here, unless the value is a tensor, which has a name to learn.
    directly = c.binds_directly and is_direct(node.target, scope)
    direct = node.target.name if directly and isinstance(node.target, tree.Name) else None
    body = c.loop_body(node, lambda: c.block(node.body, scope))
    orelse = c.block(node.orelse, scope)
    begin = _BeginningFor(c, node, scope, body, c.loop or node, c.in_try).begin

    # The place is set at the end of an iteration too: the next value may fail to come.
    def run(variables: Variables) -> Any:
        values = iterable(variables)
        state.place = span
        run_iteration, leave, run_alike = begin(variables, values)
        outer = state.outermost
        try:
            iterator = iterate(values)
            state.outermost = _outermost(state, iterator, values)
            for value in iterator:
                steps.left -= 1
                if steps.left < 0:
                    raise too_many_steps()
                if direct is None or type(value) is Tensor:
                    store(variables, value)
                else:
                    variables[direct] = value
                ended = run_iteration(variables)
                if ended is None and run_alike is not None:
                    ended = run_alike(variables, iterator, store)
                if ended is not None:
                    if ended is BREAK:
                        return None
                    if ended is not CONTINUE:
                        return ended
                state.place = span
        finally:
            state.outermost = outer
            leave(variables)
        return orelse(variables)

    return run


def _outermost(state: State, iterator: Any, values: Any) -> tuple[Any, int] | None:
    """The outermost loop that tells its length, where one over some values begins."""
    if state.outermost is not None or type(values) not in _COUNTED:
        return state.outermost
    return iterator, length_of(values)


def _nothing(variables: Variables) -> None:
    """There is nothing to do after the last iteration."""


Length = Callable[[], int]
"""How many iterations a loop has, as far as is known now."""


class _Beginning(Record):
    """Begins a loop each time it runs. What that takes is made when the loop first is hot: few are,
    and many statements are loops that run once.

    Attributes:
        node: the `For` or `While`.
        loop, in_try: the outermost loop around the loop, or itself, and whether a `try` is.
        made: what begins it once it is hot.
        ran: how many iterations a node counts of a loop that nothing compiles; -1 for others.
    """

    c: Compiler
    node: Any
    scope: Scope
    body: Run
    loop: tree.Statement
    in_try: bool
    made: Callable[..., Iterations] | None = None
    ran: int = -1

    def begin_hot(
        self, variables: Variables, length: Length | None, between: Between, done: int = 0
    ) -> Iterations:
        """The loop is hot, and begins, with so many iterations done."""
        if self.made is None:
            own = self.c.alike(self.loop, self.in_try)
            ran = max(self.ran, 0)
            self.made = _beginning_hot(self.c, self.node, self.scope, self.body, own, ran)
        return self.made(variables, length, between, done)


def _beginning_hot(
    c: Compiler, node: tree.For | tree.While, scope: Scope, body: Run, own: Compiler, ran: int
) -> Callable[..., Iterations]:
    """What begins it: with how many iterations of it are done, if any. A node gets two values, or
    one of a `while` loop, where nothing will ever begin.

    Args:
        own: a compiler for the code as it stands in the program.
        ran: how many iterations count already.
    """

    def is_alone() -> bool:
        hot = hot_loop()
        return type(c) is Compiler and (hot is None or hot.is_refused)

    write = partial(c.interpreter.write_block, own, node.body, scope)
    runs = min(before_hot(hot_bodies.HOT_ITERATIONS, c.nodes is not None) + ran, 0)
    block = HotBlock(body, is_alone, write, runs)
    run: Run = block.run
    if c.nodes is not None:
        run = c.nodes.hot_block(1 - runs, body, hot_bodies.HOT_ITERATIONS, block.look)
    hot_loop = c.hot_loop(node, scope, run, own.in_try)

    def begin(variables: Variables, length: Length | None, between: Between, done: int) -> Any:
        hot = hot_loop()
        begun = None if hot is None else hot.begin(variables, length, between, done)
        if begun is not None or c.nodes is None or done or (hot is not None and not hot.is_refused):
            return begun or (run, _nothing, None)
        told = None if hot is None else partial(_interpreted, hot)
        return (run, told) if isinstance(node, tree.For) else (run,)

    return begin


def _interpreted(hot: HotLoop, values: Any) -> None:
    """A loop over these values that nothing compiles was interpreted."""
    hot.interpreted_count += length_of(values)


class _BeginningFor(_Beginning):
    """Begins a `for` loop over some values. A node tells how many more iterations are not hot; it
    gets None where it is to count them itself, and to come again once none is left, or how many
    more it is to count.

    Attributes:
        drawn: what reads the values that its iterable draws from; None until that is asked.
        iterations: how many ran.
    """

    drawn: list[Evaluate] | None = None
    iterations: int = 0
    is_hot: bool = False

    def begin(self, variables: Variables, values: Any, left: int = sys.maxsize) -> Any:
        """The loop begins over some values: its `Iterations`, or None for a node."""
        c = self.c
        self.iterations = max(self.iterations, _MANY - left)
        if c.nodes is not None and self.ran < 0 and c.interpreter.make_hot_loop is None:
            self.ran = -before_hot(hot_bodies.HOT_ITERATIONS, True)  # until it may be written
            return self.ran
        length = self.length(variables, values)
        if length is not None:
            self.iterations += length()
        elif self.iterations <= _MANY:
            return None if c.nodes is not None else self._begin_later(values)
        may_wait = length is not None and may_pay(c.interpreter, length())
        if self.iterations > _MANY and not (may_wait and c.state.outermost is not None):
            self.is_hot = True
        if self.is_hot:
            return self.begin_hot(variables, length, between_values(values))
        if length is None or not may_wait:
            return self.body, _nothing, None
        later = _later(c.state, self.iterations) if self.iterations > _MANY else 0
        begin = partial(self._begin_short, between_values(values))
        short = ShortLoop(c.interpreter, self.body, length, begin, later, self._stays)
        return short.run, lambda variables: short.leave(variables), short.run_alike

    def length(self, variables: Variables, values: Any) -> Length | None:
        """What finds how many iterations there are; None for values that do not tell."""
        if type(values) in _COUNTED:
            return lambda: length_of(values)
        values = _behind_bars(values)
        if type(values) in _COUNTED:
            return lambda: length_of(values)
        if type(values) is not Iterator or values.kind not in _DRAWING:
            return None
        if self.drawn is None:
            self.drawn = _drawn(self.c, self.node.iterable, self.scope)
        sized = [read(variables) for read in self.drawn]
        if not sized or not all(type(each) in _COUNTED for each in sized):
            return None
        return lambda: min(map(length_of, sized))

    def _begin_short(
        self, between: Between, variables: Variables, length: Length, done: int
    ) -> Iterations:
        self.is_hot = True  # the next time, from the first iteration on
        return self.begin_hot(variables, length, between, done)

    def _stays(self, count: int) -> None:
        timed = self.c.interpreter.timed_loops
        timed.setdefault(id(self.node), TimedLoop(self.node)).interpreted_count += count

    def _begin_later(self, values: Any) -> Iterations:
        hot: Iterations | None = None

        def run(variables: Variables) -> Any:
            nonlocal hot
            self.iterations += 1
            if hot is None and self.iterations > _MANY:
                hot = self.begin_hot(variables, None, between_values(values))
            return (self.body if hot is None else hot[0])(variables)

        return run, lambda variables: None if hot is None else hot[1](variables), None


def _later(state: State, iterations: int) -> int:
    """How many iterations of a loop will come when it runs again in the rounds that are left of the
    outermost loop, if they are like those that have begun.
    """
    if state.outermost is None:
        return 0
    iterator, total = state.outermost
    left = length_hint(iterator)
    return iterations * left // max(total - left, 1)


def _drawn(c: Compiler, iterable: tree.Expression, scope: Scope) -> list[Evaluate]:
    """What reads the values that a call draws from, where each of them has a name."""
    if isinstance(iterable, tree.Call) and iterable.function.span.text in _DRAWING:
        arguments = [argument.value for argument in iterable.arguments]
        if all(isinstance(each, tree.Name) for each in arguments):
            return [c.expression(each, scope) for each in arguments]
    return []


def beginning_for(
    c: Compiler, node: tree.For, scope: Scope, body: Run, loop: tree.For | None, in_try: bool
) -> Callable[..., Any]:
    """What begins a loop that is a node."""
    return _BeginningFor(c, node, scope, body, loop or node, in_try).begin


class _NotHot(dict[Any, int]):
    """How many iterations of any loop are not hot, as that stands when its node is made."""

    def __missing__(self, node: tree.For) -> int:
        return _MANY


NOT_HOT = by_table(_NotHot())
"""The number of a `for` loop's node."""

OF_FOR_LOOPS = (
    *(place_of("iterable"), compilers("steps"), child("iterable"), loop_target_of("target")),
    *(loop_block_of("body"), block_of("orelse"), compilers("iterate"), known(unlike_host)),
    *(known(BREAK), known(CONTINUE)),
)
"""The parts of a `for` loop's node up to what makes what watches it."""

BEGINNINGS_OF_LOOPS = (
    *(compilers("interpreter"), the_compiler(), given(), the_scope(), compilers("loop")),
    *(compilers("in_try"), known(beginning_for), nothing(4)),
)
"""Those behind it."""


@compiles(tree.While)
def while_statement(c: Compiler, node: tree.While, scope: Scope) -> Run:
    """`while test`, with its `else`."""
    state, steps, span = c.state, c.steps, node.test.span
    test = c.test(node.test, scope, span)
    body = c.loop_body(node, lambda: c.block(node.body, scope))
    begin = partial(_begin_while, _Beginning(c, node, scope, body, c.loop or node, c.in_try))
    if c.nodes is not None:
        orelse_or_none = _otherwise(c, node.orelse, scope)
        return c.nodes.while_loop(
            _MANY,
            state,
            span,
            steps,
            test,
            body,
            orelse_or_none,
            begin,
            BREAK,
            CONTINUE,
            None,
        )
    orelse = c.block(node.orelse, scope)
    iterations = 0

    def run(variables: Variables) -> Any:
        nonlocal iterations
        run_iteration: Run = body
        leave: Callable[[Variables], None] = _nothing
        waits = True
        try:
            while True:
                decision = test(variables)
                state.place = span
                if not decision:
                    break
                steps.left -= 1
                if steps.left < 0:
                    raise too_many_steps()
                if waits:
                    iterations += 1
                    if iterations > _MANY:
                        waits = False
                        run_iteration, leave, _ = begin(variables, body)
                ended = run_iteration(variables)
                if ended is not None:
                    if ended is BREAK:
                        return None
                    if ended is not CONTINUE:
                        return ended
        finally:
            leave(variables)
        return orelse(variables)

    return run


def _begin_while(beginning: _Beginning, variables: Variables, body: Run) -> Iterations:
    beginning.body = body  # of the node that runs, which may be another than was made first
    return beginning.begin_hot(variables, None, between_tests(beginning.node.test))
