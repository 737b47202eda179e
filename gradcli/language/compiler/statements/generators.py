"""Compiles the bodies of generators.

A generator stops in its middle, which a closure that runs to its end cannot. So the statements that
hold a `yield` have a second form, a generator of the host's, and only they: all others in the body
are compiled as everywhere, and functions without a `yield` are not touched. (A thread for each
generator would cost a switch of threads for each value, and share the session's state.)
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from gradcli.errors import GradcliError, Span
from gradcli.language.compiler.base import Compiler, Evaluate
from gradcli.language.compiler.statements.handling import (
    Context,
    begin_handling,
    clause_of,
    forget_frames,
    happened_while,
    matching,
    unbound,
)
from gradcli.language.compiler.statements.matching import case_test
from gradcli.language.compiler.waiting import (
    BEGIN,
    DELEGATE,
    JUMP,
    LEAVE,
    NEXT,
    RUN,
    STEP,
    TEST,
    WAIT,
    WAITING_BEGIN,
    WAITING_TEST,
    YIELD,
    Code,
    in_loops,
)
from gradcli.language.functions.calls import locate
from gradcli.language.functions.generators import Running, delegate
from gradcli.language.limits import too_many_steps
from gradcli.language.objects.exceptions import caught
from gradcli.language.objects.iteration import Iterator, iterate
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import BREAK, CONTINUE, Run
from gradcli.language.tree.scopes import Scope, Variables, has_yield

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
    if c.nodes is not None:
        like = Iterator("generator", iter(()))
        return c.nodes.generator(0, state, None, c.steps, handled, name, run, like)

    def start(variables: Variables) -> Any:
        return (Iterator("generator", Running(name, run(variables), handled, state)),)

    return start


def _block(c: Compiler, body: list[tree.Statement], scope: Scope) -> Resume:
    """Statements in a row, `if` and loops among them with all that stands in them: one program of
    instructions, which one generator of the host's runs. So a value passes through no more of
    these than there are `try` and `with` around its `yield`.
    """
    code = _Block(c, scope)
    code.block(body, None)
    return code.resumed()


def _in_python(c: Compiler, instructions: list[tuple[Any, ...]]) -> Resume:
    """What runs the instructions of a block in a generator of the host's."""
    state, steps, end = c.state, c.steps, len(instructions)

    def run(variables: Variables) -> Generator[Any, Any, Any]:
        iterators: dict[int, Any] = {}
        at = 0
        while at != end:
            kind, part, where, to, otherwise = instructions[at]
            at += 1
            if kind is YIELD:
                yield part(variables)
            elif kind is RUN or kind is WAIT:
                ended = part(variables) if kind is RUN else (yield from part(variables))
                if ended is not None:
                    at = to if ended is BREAK else otherwise if ended is CONTINUE else _OUTSIDE
                    if at == _OUTSIDE:
                        return ended
            elif kind is TEST or kind is WAITING_TEST:
                decision = part(variables) if kind is TEST else (yield from part(variables))
                state.place = where
                if not decision:
                    at = to
                decision = None
            elif kind is STEP:
                steps.left -= 1
                if steps.left < 0:
                    raise too_many_steps()
            elif kind is NEXT:
                state.place = where
                value = next(iterators[otherwise], _NO_MORE)
                if value is _NO_MORE:
                    at = to
                    continue
                steps.left -= 1
                if steps.left < 0:
                    raise too_many_steps()
                part(variables, value)
                value = None
            elif kind is JUMP:
                at = to
            elif kind is LEAVE:
                del iterators[otherwise]
            elif kind is DELEGATE:
                values = part(variables)
                state.place = where
                values = yield from delegate(values)
                if to == _OUTSIDE:
                    return values
                values = None
            else:
                values = part(variables) if kind is BEGIN else (yield from part(variables))
                state.place = where
                iterators[otherwise] = iterate(values)
                values = None
        return None

    return run


_OUTSIDE = -1
"""Where the end of a block goes on that is no part of the program."""

_NO_MORE = object()


class _Loop:
    """A loop: where its iterations begin, and the instructions that a `break` may end."""

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.broken: list[list[Any]] = []


class _Block(Code):
    """The instructions of a block. One has two places to go on for a statement that ends with
    `break` or `continue`, and that of a `for` loop has the loop's number in the last place.
    """

    def __init__(self, c: Compiler, scope: Scope) -> None:
        super().__init__()
        self.c = c
        self.scope = scope
        self.loops = 0

    def resumed(self) -> Resume:
        """What runs them."""
        c = self.c
        if c.nodes is not None:
            parts = *in_loops(c), None, None, None, *self.flat()
            return c.nodes.frame(self.loops, c.state, None, *parts)
        return _in_python(c, [tuple(each) for each in self.instructions])

    def block(self, body: list[tree.Statement], loop: _Loop | None) -> None:
        """The statements of a block, in a loop of the program or none."""
        for node in body:
            if not has_yield([node]):
                self._statement(RUN, self.c.statement(node, self.scope), loop)
            elif isinstance(node, tree.If):
                self._if(node, loop)
            elif isinstance(node, tree.While):
                self._while(node, loop)
            elif isinstance(node, tree.For):
                self._for(node, loop)
            elif not self._yields(node):
                self._statement(WAIT, _statement(self.c, node, self.scope), loop)

    def _yields(self, node: tree.Statement) -> bool:
        """Add a `yield` whose own value nobody wants; whether the statement is one."""
        if not isinstance(node, tree.ExpressionStatement):
            return False
        own = node.value
        if not isinstance(own, (tree.Yield, tree.YieldFrom)) or _yields(own.value):
            return False
        value = tree.Constant(own.span, None) if own.value is None else own.value
        kind = YIELD if isinstance(own, tree.Yield) else DELEGATE
        self.add(kind, self.c.expression(value, self.scope), own.span)
        return True

    def _statement(self, kind: int, part: Any, loop: _Loop | None) -> None:
        added = self.add(kind, part, None, _OUTSIDE, _OUTSIDE if loop is None else loop.begin)
        if loop is not None:
            loop.broken.append(added)

    def _either(self, kind: int, waiting: int, node: tree.Expression) -> tuple[int, Any]:
        """The kind and the closure of an instruction that evaluates an expression."""
        if _yields(node):
            return waiting, _expression(self.c, node, self.scope)
        return kind, self.c.expression(node, self.scope)

    def _if(self, node: tree.If, loop: _Loop | None) -> None:
        leaving = []
        for test, body in node.branches:
            tested = self.add(*self._either(TEST, WAITING_TEST, test), test.span)
            self.block(body, loop)
            leaving.append(self.add(JUMP))
            tested[3] = self.here()
        self.block(node.orelse, loop)
        for each in leaving:
            each[3] = self.here()

    def _while(self, node: tree.While, around: _Loop | None) -> None:
        loop = _Loop(self.here())
        tested = self.add(*self._either(TEST, WAITING_TEST, node.test), node.test.span)
        self.add(STEP)
        self._body(node, loop)
        tested[3] = self.here()
        self.block(node.orelse, around)
        for each in loop.broken:
            each[3] = self.here()

    def _for(self, node: tree.For, around: _Loop | None) -> None:
        number, span = self.loops, node.iterable.span
        self.loops += 1
        self.add(*self._either(BEGIN, WAITING_BEGIN, node.iterable), span, 0, number)
        loop = _Loop(self.here())
        drawn = self.add(NEXT, self.c.store(node.target, self.scope), span, 0, number)
        self._body(node, loop)
        drawn[3] = self.here()
        self.add(LEAVE, otherwise=number)
        self.block(node.orelse, around)
        ended = self.add(JUMP)
        for each in loop.broken:
            each[3] = self.here()
        self.add(LEAVE, otherwise=number)
        ended[3] = self.here()

    def _body(self, node: tree.For | tree.While, loop: _Loop) -> None:
        self.c.loop_body(node, lambda: self.block(node.body, loop))
        self.add(JUMP, to=loop.begin)


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
    hoist = _Hoist(c, scope)
    run = closure(hoist.of(node), scope)

    def resume(variables: Variables) -> Generator[Any, Any, Any]:
        for name, wait in hoist.steps:
            variables[name] = yield from wait(variables)
        return run(variables)

    return resume


class _Hoist:
    """Takes the `yield`s out of a part of the tree, to be run before it, and with them whatever is
    evaluated before the last of them: in the same order, each into a variable.

    Attributes:
        steps: the variables, and what they hold.
    """

    def __init__(self, c: Compiler, scope: Scope) -> None:
        self.c = c
        self.scope = scope
        self.steps: list[tuple[str, Resume]] = []

    def of(self, part: Any, followed: bool = False) -> Any:
        """The part without its `yield`s; `followed` says that another one comes behind it."""
        if isinstance(part, (list, tuple)):
            later = self._later(part)
            return type(part)(
                [self.of(p, followed or yes) for p, yes in zip(part, later, strict=True)]
            )
        if not isinstance(part, tree.Syntax):
            return part
        if not _yields(part):
            return self._taken(part) if followed else part
        if isinstance(part, (tree.Yield, tree.YieldFrom)):
            inner = type(part)(part.span, self.of(part.value))
            return self._kept(part.span, _yield(self.c, inner, self.scope))
        if isinstance(part, (tree.Logical, tree.Conditional)):
            return self._kept(part.span, _decided(self.c, part, self.scope))
        if isinstance(part, (tree.Assign, tree.AugmentedAssign)):
            return self._assignment(part)
        if isinstance(part, tree.Comprehension):
            return self._comprehension(part)
        if isinstance(part, tree.Lambda) or (
            isinstance(part, tree.Comparison) and _yields(part.rest[1:])
        ):
            raise _misplaced(part)
        return self._rebuilt(part, followed)

    def _rebuilt(self, part: Any, followed: bool) -> Any:
        """The part with its own parts looked at in their order in the text."""
        parts = {name: getattr(part, name) for name in part.fields}
        order = sorted(parts, key=lambda name: _start(parts[name]))
        for name, later in zip(order, self._later([parts[each] for each in order]), strict=True):
            if isinstance(part, tree.Call) and name == "function":
                parts[name] = self._function(part.function, followed or later)
            elif not isinstance(part, tree.NamedExpression) or name != "name":
                parts[name] = self.of(parts[name], followed or later)
        return type(part)(*parts.values())

    @staticmethod
    def _later(parts: Sequence[Any]) -> list[bool]:
        """For each part, whether there is a `yield` behind it."""
        return [_yields(parts[number + 1 :]) for number in range(len(parts))]

    def _function(self, function: tree.Expression, followed: bool) -> Any:
        """What is called, which keeps its form: a name, or a method of a value."""
        if isinstance(function, tree.Name):
            return function
        if isinstance(function, tree.Attribute):
            return self._rebuilt(function, followed)
        return self.of(function, followed)

    def _assignment(self, part: tree.Assign | tree.AugmentedAssign) -> Any:
        """The value comes before the targets; but what is changed in place comes first."""
        parts = {name: getattr(part, name) for name in part.fields}
        if isinstance(part, tree.Assign):
            parts["value"] = self.of(part.value, _yields(part.targets))
            later = self._later(part.targets)
            parts["targets"] = [
                self._target(target, followed)
                for target, followed in zip(part.targets, later, strict=True)
            ]
        else:
            parts["target"] = self._target(part.target, _yields(part.value))
            parts["value"] = self.of(part.value)
        return type(part)(*parts.values())

    def _target(self, target: Any, followed: bool) -> Any:
        if isinstance(target, tree.Name) or not (followed or _yields(target)):
            return target
        if isinstance(target, (tree.Tuple, tree.List)):
            later = self._later(target.elements)
            elements = zip(target.elements, later, strict=True)
            return type(target)(
                target.span, [self._target(e, followed or yes) for e, yes in elements]
            )
        return self._rebuilt(target, followed)

    def _comprehension(self, part: tree.Comprehension) -> Any:
        """The first iterable is evaluated outside of a comprehension, all else inside."""
        first, *others = part.clauses
        if _yields([part.element, part.value, first.conditions, first.target, others]):
            raise _misplaced(part)
        outside = tree.ComprehensionFor(
            first.span, first.target, self.of(first.iterable), first.conditions
        )
        return tree.Comprehension(
            part.span, part.kind, part.element, part.value, [outside, *others]
        )

    def _taken(self, part: Any) -> Any:
        """A part without `yield` that is evaluated before one."""
        if isinstance(part, (tree.Constant, tree.Lambda)):
            return part
        if isinstance(part, _IN_OTHERS):
            return self._rebuilt(part, followed=True)
        evaluate = self.c.expression(part, self.scope)

        def resume(variables: Variables) -> Generator[Any, Any, Any]:
            return evaluate(variables)
            yield  # what makes it a generator

        return self._kept(part.span, resume)

    def _kept(self, span: Span, resume: Resume) -> tree.Name:
        """A variable that holds what is run ahead."""
        name = f"yield {span.start} {span.end} {len(self.steps)}"  # no name of a program's
        self.scope.bound |= {name}
        self.steps.append((name, resume))
        return tree.Name(span, name)


_IN_OTHERS = (tree.Argument, tree.Replacement, tree.Slice, tree.Starred)
"""Expressions that have a value only inside of others."""


def _decided(c: Compiler, node: tree.Logical | tree.Conditional, scope: Scope) -> Resume:
    """`a and b`, `a or b`, `a if test else b`, of which one part decides whether another runs."""
    state, span = c.state, node.span
    if isinstance(node, tree.Conditional):
        nodes, stops_at = [node.test, node.body, node.orelse], None
    else:
        nodes, stops_at = node.operands, node.operator == "or"
    parts = [_expression(c, each, scope) for each in nodes]

    def value_of(number: int, variables: Variables) -> Generator[Any, Any, Any]:
        value = yield from parts[number](variables)
        state.place = span
        return value

    def run(variables: Variables) -> Generator[Any, Any, Any]:
        value = yield from value_of(0, variables)
        if stops_at is None:
            return (yield from value_of(1 if value else 2, variables))
        for number in range(1, len(parts)):
            if bool(value) is stops_at:
                return value
            value = yield from value_of(number, variables)
        return value

    return run


def _misplaced(node: tree.Expression) -> GradcliError:
    return GradcliError(
        "E007",
        "a `yield` stands where it may be evaluated more than once, or not at all",
        span=node.span,
        help="give it a name on a line of its own: `value = yield …`",
    )


def _yields(part: Any) -> bool:
    """Whether there is a `yield` of the function's own in a part of the tree."""
    if isinstance(part, (list, tuple)):
        return any(map(_yields, part))
    return isinstance(part, tree.Syntax) and has_yield([part])


def _start(part: Any) -> float:
    """Where a part stands in the text; what is no part comes first."""
    if isinstance(part, (list, tuple)):
        starts = [start for start in map(_start, part) if start >= 0]
        return min(starts, default=-1)
    return part.span.start if isinstance(part, tree.Syntax) else -1


def _yield(c: Compiler, node: tree.Yield | tree.YieldFrom, scope: Scope) -> Resume:
    """`yield value` and `yield from value`; the result is what the expression gives."""
    evaluate = (lambda variables: None) if node.value is None else c.expression(node.value, scope)
    if isinstance(node, tree.YieldFrom):
        code = _Block(c, scope)
        code.add(DELEGATE, evaluate, node.span, _OUTSIDE)
        return code.resumed()

    def resume(variables: Variables) -> Generator[Any, Any, Any]:
        return (yield evaluate(variables))

    return resume


# --- compound statements --------------------------------------------------------------------------


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
        if node.handlers[0].takes_groups:
            raise GradcliError(
                "E205", "`yield` inside a `try` with `except*` is left out", span=node.span
            )
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
        except Exception as raised:
            error = locate(caught(raised), state)
        else:
            return (yield from orelse(variables)) if ended is None else ended
        clause = matching(clauses, error, variables, state)
        if clause is None:
            raise error from error.__cause__
        begin_handling(error, handled)
        try:
            clause.store(variables, error)
            ended = yield from bodies[clauses.index(clause)](variables)
            forget_frames(error)
            return ended
        except GradcliError as another:
            happened_while(another, error)
            raise
        finally:
            handled.pop()
            clause.unbind(variables)

    return run


def _finally(c: Compiler, body: Resume, final: Resume) -> Resume:
    state = c.state

    def run(variables: Variables) -> Generator[Any, Any, Any]:
        try:
            ended = yield from body(variables)
        except GeneratorExit:  # the host's: nobody is left who could go on with it
            raise
        except BaseException as error:
            if isinstance(error, GradcliError):
                locate(error, state)
            try:
                ended = yield from final(variables)
            except GradcliError as another:
                happened_while(another, error)
                raise
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
        store = unbound if target is None else c.store(target, scope)
        run = _within(Context(c.state, context.span, store), _expression(c, context, scope), run)
    return run


def _within(context: Context, value: Resume, body: Resume) -> Resume:
    def run(variables: Variables) -> Generator[Any, Any, Any]:
        entered, leave = context.enter((yield from value(variables)))
        try:
            context.store(variables, entered)
            ended = yield from body(variables)
        except GeneratorExit:  # the host's, as in `_finally`
            raise
        except BaseException as error:
            if context.takes(leave, error):
                return None
            raise
        context.leave(leave)
        return ended

    return run
