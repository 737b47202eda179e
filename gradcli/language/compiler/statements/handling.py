"""Compiles `try`, `raise`, `assert` and `with`."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any, NoReturn

from gradcli.errors import GradcliError, runtime_error, type_error
from gradcli.language.compiler.base import Compiler, Evaluate, Store, compiles
from gradcli.language.compiler.names import name_store, name_unbind
from gradcli.language.compiler.recipes import child, known, optional, place_of, recipe
from gradcli.language.functions.calls import call, call_failed, locate
from gradcli.language.objects.exceptions import Absent, Raised, Traceback, caught, handles
from gradcli.language.objects.repr import text
from gradcli.language.objects.types import is_exception, type_name, type_of
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.record import Record

if TYPE_CHECKING:
    from gradcli.errors import Span
    from gradcli.state import State

Handle = Callable[[GradcliError, Variables], Any]
"""What the clauses of a `try` do with an error, and how the statement ends."""


class Clause(Record):
    """One `except`, compiled.

    Attributes:
        store, unbind: bind the name of `except … as name`, and take its value away.
    """

    classes: Evaluate | None
    span: Span
    store: Store
    unbind: Run
    body: Run


def matching(
    clauses: list[Clause], error: GradcliError, variables: Variables, state: State
) -> Clause | None:
    """The first `except` that catches an error."""
    for clause in clauses:
        if clause.classes is None:
            return clause
        classes = clause.classes(variables)
        state.place = clause.span
        if handles(classes, error):
            return clause
    return None


def forget_frames(error: BaseException | None) -> None:
    """An error was handled: let go of the host's frames, which hold it, and the graphs and arrays
    that they worked on, until the host next looks for such cycles.
    """
    while error is not None and error.__traceback__ is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


@compiles(tree.Try)
def try_statement(c: Compiler, node: tree.Try, scope: Scope) -> Run:
    """`try`, with its `except`s, `else` and `finally`."""
    outer, c.in_try = c.in_try, c.in_try or bool(node.handlers)
    run = c.tried(c.block(node.body, scope))
    c.in_try = outer
    if node.handlers:
        run = _handled(c, run, node, scope)
    if not node.final:
        return run
    final = c.block(node.final, scope)
    if c.nodes is not None:
        return c.nodes.finished(0, c.state, None, run, final)
    return _finally(c, run, final)


def _handled(c: Compiler, body: Run, node: tree.Try, scope: Scope) -> Run:
    state, takes_groups = c.state, node.handlers[0].takes_groups
    clauses = [clause_of(c, each, scope, c.block(each.body, scope)) for each in node.handlers]
    if c.nodes is not None:
        orelse_or_none = c.block(node.orelse, scope) if node.orelse else None
        in_groups = _in_groups(c, clauses) if takes_groups else None
        parts = [part for clause in clauses for part in _parts(clause)]
        handled = c.interpreter.handled
        return c.nodes.tried(
            0, state, None, body, orelse_or_none, handled, handles, in_groups, *parts
        )
    orelse = c.block(node.orelse, scope)
    handle = (_in_groups if takes_groups else _by_the_first)(c, clauses)

    def run(variables: Variables) -> Any:
        try:
            ended = body(variables)
        except Exception as raised:
            error = locate(caught(raised), state)
        else:
            return orelse(variables) if ended is None else ended
        return handle(error, variables)

    return run


def _parts(clause: Clause) -> tuple[Any, ...]:
    """Those of a node, with room for what it learns."""
    named = clause.store is not unbound
    names = (clause.store, clause.unbind) if named else (None, None)
    return clause.classes, clause.span, *names, clause.body, None, None, None, None


def _by_the_first(c: Compiler, clauses: list[Clause]) -> Handle:
    """`except`: the first clause that takes the error handles it."""
    state, handled = c.state, c.interpreter.handled

    def handle(error: GradcliError, variables: Variables) -> Any:
        clause = matching(clauses, error, variables, state)
        if clause is None:
            raise error
        begin_handling(error, handled)
        try:
            clause.store(variables, error)
            ended = clause.body(variables)
            forget_frames(error)
            return ended
        except GradcliError as another:
            happened_while(another, error)
            raise
        finally:
            handled.pop()
            clause.unbind(variables)

    return handle


def _in_groups(c: Compiler, clauses: list[Clause]) -> Handle:
    """`except*`: each clause takes the exceptions of its classes out of the group."""
    from gradcli.language.objects.classes import exception_instances as groups  # lazy: start-up

    state, handled = c.state, c.interpreter.handled

    def handle(error: GradcliError, variables: Variables) -> Any:
        rest: groups.Group | None = groups.as_group(error)
        anew: list[GradcliError] = []
        for clause in clauses:
            assert clause.classes is not None
            classes = clause.classes(variables)
            state.place = clause.span
            if rest is None:
                break
            taken, rest = rest.split(lambda each, classes=classes: handles(classes, each))  # type: ignore[misc]
            if taken is None:
                continue
            handled.append(taken)
            try:
                clause.store(variables, taken)
                clause.body(variables)
            except GradcliError as another:
                anew.append(another)
            finally:
                handled.pop()
                clause.unbind(variables)
        left = groups.raised_again(error, rest, anew)
        if left is not None:
            raise left
        forget_frames(error)
        return None

    return handle


def clause_of(c: Compiler, node: tree.Handler, scope: Scope, body: Run) -> Clause:
    """An `except` with its body's closure."""
    named, caught_by = node.name, node.exception
    return Clause(
        None if caught_by is None else c.expression(caught_by, scope),
        node.span if caught_by is None else caught_by.span,
        unbound if named is None else name_store(c, named, scope),
        unbound if named is None else name_unbind(c, named, scope),
        body,
    )


def unbound(variables: Variables, value: Any = None) -> None:
    """There is no name to bind a value to."""


def _finally(c: Compiler, body: Run, final: Run) -> Run:
    state = c.state

    # A `return`, `break` or `continue` in `finally` replaces an error or a `return` of the body, as
    # in Python.
    def run(variables: Variables) -> Any:
        try:
            ended = body(variables)
        except BaseException as error:
            if isinstance(error, GradcliError):
                locate(error, state)
            try:
                ended = final(variables)
            except GradcliError as another:
                happened_while(another, error)
                raise
            # Ctrl-C and the end of time are no errors that a `return` here could take back.
            if ended is not None and isinstance(error, Exception):
                return ended
            raise
        override = final(variables)
        return ended if override is None else override

    return run


@compiles(tree.Raise)
def raise_statement(c: Compiler, node: tree.Raise, scope: Scope) -> Run:
    """`raise exception from cause`; alone, it raises again what is being handled."""
    state, span, handled = c.state, node.span, c.interpreter.handled
    if node.exception is None:

        def raise_again(variables: Variables) -> None:
            state.place = span
            if not handled:
                raise runtime_error(
                    "there is no error at hand to raise again",
                    text="No active exception to reraise",
                )
            raise handled[-1]

        return raise_again
    exception = c.expression(node.exception, scope)
    cause = None if node.cause is None else c.expression(node.cause, scope)
    from_none = type(node.cause) is tree.Constant and node.cause.value is None
    if c.nodes is not None and not from_none:
        nothing = c.nodes.constant(0, None)
        return c.nodes.raised(0, state, span, exception, cause or nothing, _exception)

    def run(variables: Variables) -> None:
        value = exception(variables)
        origin = None if cause is None else cause(variables)
        state.place = span
        error = _exception(value)
        if cause is not None:
            error.cause = None if origin is None else _exception(origin)
            error.suppressed = True
        raise error

    return run


def _exception(value: Any) -> GradcliError:
    """A value as an exception; a class is called without arguments."""
    if is_exception(value):
        value = value()
    if not isinstance(value, GradcliError):
        raise type_error(
            f"only exceptions can be raised, not {type_name(value)}",
            text="exceptions must derive from BaseException",
        )
    return value


@compiles(tree.Assert)
def assert_statement(c: Compiler, node: tree.Assert, scope: Scope) -> Run:
    """`assert test, message`; E701 if it does not hold."""
    state, span = c.state, node.test.span
    test = c.expression(node.test, scope)
    message = None if node.message is None else c.expression(node.message, scope)

    def run(variables: Variables) -> None:
        holds = test(variables)
        state.place = span
        if holds:
            return
        arguments = () if message is None else (message(variables),)
        state.place = span
        _fail(*arguments)

    return run


def _fail(*arguments: Any) -> NoReturn:
    """An assertion failed, with its message."""
    words = text(arguments[0]) if arguments else ""
    raise Raised("AssertionError", words, arguments, "E701")


recipe(
    tree.Assert,
    "asserted",
    *(place_of("test"), child("test"), optional("message"), known(_fail), known("AssertionError")),
)


@compiles(tree.With)
def with_statement(c: Compiler, node: tree.With, scope: Scope) -> Run:
    """`with context as target, …`: contexts are left in reverse, whatever happens."""
    run = c.block(node.body, scope)
    for context, target in reversed(node.items):
        store = unbound if target is None else c.store(target, scope)
        run = within(c, c.context(context, scope), context.span, store, run)
    return run


class Context(Record):
    """One `context as target` of a `with`, compiled."""

    state: State
    span: Span
    store: Store

    def enter(self, value: Any) -> tuple[Any, Any]:
        """What entering a context gives, and what leaves it; E202 for a value that is none."""
        self.state.place = self.span
        if type(value) is Absent:
            value.refuse()
        if not getattr(type(value), "language_context", False):
            raise type_error(
                f"a value of type {type_name(value)} is no context",
                text=f"'{type_name(value)}' object does not support the context manager protocol",
                help="call it: `with torch.no_grad():`" if callable(value) else None,
            )
        leave = getattr(value, "__exit__", None)
        if leave is None:
            raise type_error(
                f"the class {type_name(value)} has no `__exit__`",
                text=f"'{type_name(value)}' object does not support the context manager protocol"
                " (missed __exit__ method)",
            )
        enter = value.__enter__
        return (enter() if type(enter) is MethodType else call(enter, (), {})), leave

    def takes(self, leave: Any, error: BaseException) -> bool:
        """Leave after an error; whether the context takes the error on itself."""
        if not isinstance(error, GradcliError):
            leave(None, None, None)
            return False
        locate(error, self.state)
        self.state.place = self.span
        try:
            return bool(call(leave, (type_of(error), error, Traceback(error)), {}))
        except GradcliError as another:
            happened_while(another, error)
            raise

    def leave(self, leave: Any) -> None:
        """Leave after the end of the body."""
        self.state.place = self.span
        if type(leave) is MethodType:  # a context of ours
            leave(None, None, None)
        else:
            call(leave, (None, None, None), {})


_FINDS = "__enter__", "__exit__"


def _leaving_failed(error: Exception, value: Any, kind: Any, raised: Any) -> NoReturn:
    """Raise what a program sees of the failure of an object's `__exit__`."""
    failed = call_failed(error, value.__exit__, (kind, raised, Traceback(raised)), {})
    if isinstance(failed, GradcliError):
        happened_while(failed, raised)
    raise failed from error


def happened_while(another: GradcliError, error: BaseException) -> None:
    """Let an error have as its `__context__` the one that was handled when it was raised; what came
    ahead of that ends where it would come to the error itself.
    """
    if another is error or another.context is not None or not isinstance(error, GradcliError):
        return
    before = error
    while before.context is not None and before.context is not another:
        before = before.context
    before.context = None
    another.context = error


def begin_handling(error: GradcliError, handled: list[GradcliError]) -> None:
    """The `except` of an error begins, perhaps inside of that of another."""
    if handled:
        happened_while(error, handled[-1])
    handled.append(error)


def within(c: Compiler, context: Evaluate, span: Span, store: Store, body: Run) -> Run:
    """What runs a body within a context."""
    item = Context(c.state, span, store)
    if c.nodes is not None:
        bind = None if store is unbound else store
        methods = item.enter, item.leave, item.takes, type_of, Traceback, _leaving_failed
        parts: tuple[Any, ...] = (*methods, *_FINDS, *[None] * 6)
        return c.nodes.within(0, c.state, span, context, bind, body, *parts)

    def run(variables: Variables) -> Any:
        entered, leave = item.enter(context(variables))
        try:
            item.store(variables, entered)
            ended = body(variables)
        except BaseException as error:
            if item.takes(leave, error):
                return None
            raise
        item.leave(leave)
        return ended

    return run
