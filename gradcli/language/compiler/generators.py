"""Compiles the bodies of generators.

A generator stops in its middle, which a closure that runs to its end cannot. So the statements that
hold a `yield` have a second form, a generator of the host's, and only they: all others in the body
are compiled as everywhere, and functions without a `yield` are not touched. (A thread for each
generator would cost a switch of threads for each value, and share the session's state.)
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from gradcli.errors import GradcliError
from gradcli.language.compiler.assignment import target_store
from gradcli.language.compiler.base import Compiler, Evaluate
from gradcli.language.compiler.handling import Context, clause_of, matching
from gradcli.language.compiler.matching import case_test
from gradcli.language.functions.calls import locate
from gradcli.language.functions.control_flow import BREAK, CONTINUE, Run
from gradcli.language.functions.generators import Running
from gradcli.language.limits import too_many_steps
from gradcli.language.objects.exceptions import Raised, caught
from gradcli.language.objects.iteration import Iterator, iterate
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope, Variables, is_generator

Resume = Callable[[Variables], Generator[Any, Any, Any]]
"""A statement or block that can wait: what it yields are the program's values, its result is how it
ends the block around it.
"""

Maker = TypeVar("Maker", bound=Callable[..., Resume])

_RESUMABLE: dict[type[tree.Syntax], Callable[[Compiler, Any, Scope], Resume]] = {}


def _resumes(node: type[tree.Statement]) -> Callable[[Maker], Maker]:
    """Register the function below for statements of a class."""

    def register(maker: Maker) -> Maker:
        _RESUMABLE[node] = maker
        return maker

    return register


def generator_body(c: Compiler, name: str, body: list[tree.Statement], scope: Scope) -> Run:
    """What returns the generator that a call of the function makes."""
    run = _block(c, body, scope)
    state, handled = c.state, c.interpreter.handled

    def start(variables: Variables) -> Any:
        return (Iterator("generator", Running(name, run(variables), handled, state)),)

    return start


def _block(c: Compiler, body: list[tree.Statement], scope: Scope) -> Resume:
    parts: list[tuple[Resume | None, Run | None]] = []
    for statement in body:
        if is_generator([statement]):
            parts.append((_statement(c, statement, scope), None))
        else:
            parts.append((None, c.statement(statement, scope)))

    def run(variables: Variables) -> Generator[Any, Any, Any]:
        for resume, plain in parts:
            if resume is not None:
                ended = yield from resume(variables)
            else:
                assert plain is not None
                ended = plain(variables)
            if ended is not None:
                return ended
        return None

    return run


def _statement(c: Compiler, node: tree.Statement, scope: Scope) -> Resume:
    maker = _RESUMABLE.get(type(node))
    return _resumed(c, node, scope, c.statement) if maker is None else maker(c, node, scope)


# --- simple statements and expressions ------------------------------------------------------------


def _expression(c: Compiler, node: tree.Expression, scope: Scope) -> Resume:
    return _resumed(c, node, scope, c.expression)


def _resumed(
    c: Compiler, node: Any, scope: Scope, closure: Callable[[Any, Scope], Evaluate]
) -> Resume:
    """What runs the `yield`s in an expression or a simple statement, and then the rest of it."""
    yields, rewritten = _hoisted(c, node, scope)
    run = closure(rewritten, scope)

    def resume(variables: Variables) -> Generator[Any, Any, Any]:
        for name, wait in yields:
            variables[name] = yield from wait(variables)
        return run(variables)

    return resume


def _hoisted(c: Compiler, node: Any, scope: Scope) -> tuple[list[tuple[str, Resume]], Any]:
    """The `yield`s of a part of the tree, and that part with variables in their place."""
    hoist = _Hoist()
    rewritten = hoist.of(node)
    scope.bound |= {name for name, _ in hoist.found}
    return [(name, _yield(c, each, scope)) for name, each in hoist.found], rewritten


class _Hoist:
    """Takes the `yield`s out of a part of the tree, to be run before it.

    Attributes:
        found: the variables in their place, and they.
        passed: whether something with an effect is evaluated before what is looked at.
    """

    def __init__(self) -> None:
        self.found: list[tuple[str, tree.Yield | tree.YieldFrom]] = []
        self.passed = False

    def of(self, part: Any) -> Any:
        if isinstance(part, (list, tuple)):
            return type(part)(map(self.of, part))
        if not isinstance(part, tree.Syntax) or not _yields(part):
            self.passed = self.passed or not _is_plain(part)
            return part
        if isinstance(part, (tree.Yield, tree.YieldFrom)):
            if self.passed or _yields(part.value):
                raise _misplaced(part)
            # No program has a variable of this name.
            name = f"yield {part.span.start}"
            self.found.append((name, part))
            return tree.Name(part.span, name)
        if isinstance(part, _UNDECIDED):
            raise _misplaced(part)
        parts: dict[str, Any] = {name: getattr(part, name) for name in part.fields}
        order = sorted(parts, key=lambda name: _start(parts[name]))
        if isinstance(part, (tree.Assign, tree.AugmentedAssign)):
            order = ["value"]  # which is evaluated first, but for a name that nobody else sees
        parts.update((name, self.of(parts[name])) for name in order)
        return type(part)(*parts.values())


_UNDECIDED = (tree.Logical, tree.Conditional, tree.Comparison, tree.Comprehension, tree.Lambda)
"""Whose parts are evaluated now and then."""


def _misplaced(node: tree.Expression) -> GradcliError:
    return GradcliError(
        "E007",
        "a `yield` stands here where it is not the first to be evaluated",
        span=node.span,
        help="give it a name on a line of its own: `value = yield …`",
    )


def _yields(node: Any) -> bool:
    return is_generator([node])


def _start(part: Any) -> int:
    """Where a part stands in the text; what is no part comes first."""
    while isinstance(part, (list, tuple)) and part:
        part = part[0]
    return part.span.start if isinstance(part, tree.Syntax) else -1


def _is_plain(part: Any) -> bool:
    while isinstance(part, tree.Attribute):
        part = part.value
    return not isinstance(part, tree.Expression) or isinstance(part, (tree.Name, tree.Constant))


def _yield(c: Compiler, node: tree.Yield | tree.YieldFrom, scope: Scope) -> Resume:
    """`yield value` and `yield from value`; the result is what the expression gives."""
    state, span = c.state, node.span
    evaluate = (lambda variables: None) if node.value is None else c.expression(node.value, scope)

    def resume(variables: Variables) -> Generator[Any, Any, Any]:
        return (yield evaluate(variables))

    def delegate(variables: Variables) -> Generator[Any, Any, Any]:
        values = evaluate(variables)
        state.place = span
        if type(values) is Iterator and type(values.source) is Running:
            return (yield from values.source)
        yield from iterate(values)
        return None

    return delegate if isinstance(node, tree.YieldFrom) else resume


# --- compound statements --------------------------------------------------------------------------


@_resumes(tree.If)
def _if(c: Compiler, node: tree.If, scope: Scope) -> Resume:
    branches = [
        (_expression(c, test, scope), test.span, _block(c, body, scope))
        for test, body in node.branches
    ]
    orelse = _block(c, node.orelse, scope)
    state = c.state

    def run(variables: Variables) -> Generator[Any, Any, Any]:
        for test, span, body in branches:
            decision = yield from test(variables)
            state.place = span
            if decision:
                return (yield from body(variables))
        return (yield from orelse(variables))

    return run


@_resumes(tree.While)
def _while(c: Compiler, node: tree.While, scope: Scope) -> Resume:
    state, steps, span = c.state, c.steps, node.test.span
    test = _expression(c, node.test, scope)
    body = c.loop_body(node, lambda: _block(c, node.body, scope))
    orelse = _block(c, node.orelse, scope)

    def run(variables: Variables) -> Generator[Any, Any, Any]:
        while True:
            decision = yield from test(variables)
            state.place = span
            if not decision:
                return (yield from orelse(variables))
            steps.left -= 1
            if steps.left < 0:
                raise too_many_steps()
            ended = yield from body(variables)
            if ended is BREAK:
                return None
            if ended is not None and ended is not CONTINUE:
                return ended

    return run


@_resumes(tree.For)
def _for(c: Compiler, node: tree.For, scope: Scope) -> Resume:
    state, steps, span = c.state, c.steps, node.iterable.span
    iterable = _expression(c, node.iterable, scope)
    store = target_store(c, node.target, scope)
    body = c.loop_body(node, lambda: _block(c, node.body, scope))
    orelse = _block(c, node.orelse, scope)

    def run(variables: Variables) -> Generator[Any, Any, Any]:
        values = yield from iterable(variables)
        state.place = span
        for value in iterate(values):
            steps.left -= 1
            if steps.left < 0:
                raise too_many_steps()
            store(variables, value)
            ended = yield from body(variables)
            if ended is BREAK:
                return None
            if ended is not None and ended is not CONTINUE:
                return ended
            state.place = span
        return (yield from orelse(variables))

    return run


@_resumes(tree.Match)
def _match(c: Compiler, node: tree.Match, scope: Scope) -> Resume:
    subject = _expression(c, node.subject, scope)
    cases = [(*case_test(c, case, scope), _block(c, case.body, scope)) for case in node.cases]
    state = c.state

    def run(variables: Variables) -> Generator[Any, Any, Any]:
        value = yield from subject(variables)
        for fits, span, body in cases:
            state.place = span
            if fits(value, variables):
                return (yield from body(variables))
        return None

    return run


@_resumes(tree.Try)
def _try(c: Compiler, node: tree.Try, scope: Scope) -> Resume:
    run = _block(c, node.body, scope)
    if node.handlers:
        run = _handled(c, run, node, scope)
    return _finally(c, run, _block(c, node.final, scope)) if node.final else run


def _handled(c: Compiler, body: Resume, node: tree.Try, scope: Scope) -> Resume:
    state, handled = c.state, c.interpreter.handled
    clauses = [clause_of(c, each, scope, lambda variables: None) for each in node.handlers]
    bodies = [_block(c, each.body, scope) for each in node.handlers]
    orelse = _block(c, node.orelse, scope)

    def run(variables: Variables) -> Generator[Any, Any, Any]:
        try:
            ended = yield from body(variables)
        except (Exception, GeneratorExit) as raised:
            error = locate(_seen(raised), state)
        else:
            return (yield from orelse(variables)) if ended is None else ended
        found = matching(clauses, error, variables, state)
        if found is None:
            raise error from error.__cause__
        handled.append(error)
        try:
            found.begin(variables, error)
            return (yield from bodies[clauses.index(found)](variables))
        finally:
            handled.pop()
            found.end(variables)

    return run


def _seen(raised: Exception | GeneratorExit) -> GradcliError:
    """What a program sees of an error, and of the end that `close` brings."""
    if isinstance(raised, GeneratorExit):
        return Raised("GeneratorExit", "", ())
    return caught(raised)


def _finally(c: Compiler, body: Resume, final: Resume) -> Resume:
    state = c.state

    def run(variables: Variables) -> Generator[Any, Any, Any]:
        try:
            ended = yield from body(variables)
        except BaseException as error:
            if isinstance(error, GradcliError):
                locate(error, state)
            ended = yield from final(variables)
            if ended is not None and isinstance(error, Exception):
                return ended
            raise
        override = yield from final(variables)
        return ended if override is None else override

    return run


@_resumes(tree.With)
def _with(c: Compiler, node: tree.With, scope: Scope) -> Resume:
    run = _block(c, node.body, scope)
    for context, target in reversed(node.items):
        store = None if target is None else target_store(c, target, scope)
        run = _within(Context(c.state, context.span, store), _expression(c, context, scope), run)
    return run


def _within(context: Context, value: Resume, body: Resume) -> Resume:
    def run(variables: Variables) -> Generator[Any, Any, Any]:
        entered, leave = context.enter((yield from value(variables)))
        try:
            context.bind(variables, entered)
            ended = yield from body(variables)
        except BaseException as error:
            if context.takes(leave, error):
                return None
            raise
        context.leave(leave)
        return ended

    return run
