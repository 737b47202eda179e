"""Writes the body of a function of a program as the text of one function of the host's.

Each class of nodes that is common has a function here that writes it (`@writes`); of any other the
closure is called, as it stands. What is written tests the types of its operands by what can neither
fail nor run anything of the program's, such as a sum of two floats; for all else it calls the
closure of the node over the operands, which has the meaning, the places and the errors.

The text holds names that are made up here, and nothing of the program's: its names and constants
are values of the namespace. A variable is a local one of the host's, unless a closure, or a
function inside, reads or binds it: those are in the `variables` that closures have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Iterator as HostIterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from gradcli.language.compiler.base import HANDLERS, Compiler
from gradcli.language.compiler.over_operands import OverOperands
from gradcli.language.compiler.statements.lints import check_evaluations, evaluated
from gradcli.language.objects.iteration import Iterator
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import BREAK, CONTINUE, control_flow
from gradcli.language.tree.scopes import Scope, bound_by
from gradcli.limits import length_of

WRITERS: dict[type[tree.Syntax], Callable[[Writer, Any, Scope], Any]] = {}
"""What writes the nodes of each class: an expression's gives the name that has its value."""

BINDERS: dict[type[tree.Syntax], Callable[[Writer, Any, Scope, str], None]] = {}
"""What writes the binding of a target to the value that a name has."""

Written = TypeVar("Written", bound=Callable[..., Any])

UNBOUND: Any = object()
"""What a variable of the host's holds that the program has not bound."""

_DEEPEST = 60
"""Blocks in blocks; the host has 100."""

_DEEPEST_LOOPS = 15
"""Loops in loops; the host has 20, with `try`."""

_ALL_NAMES = frozenset({"dir", "eval", "exec", "globals", "locals", "vars"})
"""What gives all names of the code that calls it."""


class CannotWrite(Exception):
    """A body that stays closures."""


def writes(*nodes: type[tree.Syntax]) -> Callable[[Written], Written]:
    """Register the function below as the one that writes nodes of these classes."""

    def register(writer: Written) -> Written:
        WRITERS.update(dict.fromkeys(nodes, writer))
        return writer

    return register


def binds(*targets: type[tree.Syntax]) -> Callable[[Written], Written]:
    """Register the function below as the one that binds targets of these classes."""

    def register(binder: Written) -> Written:
        BINDERS.update(dict.fromkeys(targets, binder))
        return binder

    return register


class Writer:
    """Writes one body.

    Attributes:
        compiler: what makes the closures.
        kept: the names of the function that are in the `variables` of closures.
        wanted: those that have to be.
        names: what the text refers to.
        sure: the variables of the host's that have a value here.
        tested: the names whose values are tested for truth with nothing to set before.
        is_function: whether the body is a function's, and not a loop's, which says how it ends.
        assigns: whether what is bound is assigned, and not a loop's target.
        has_variables, has_parent: whether the text needs those of closures, and of the function
            around.
    """

    assigns = True

    def __init__(
        self, compiler: Compiler, scope: Scope, kept: frozenset[str], is_function: bool = True
    ) -> None:
        self.is_function = is_function
        self.compiler = compiler
        self.scope = scope
        self.kept = kept
        self.wanted: set[str] = set()
        self.names: dict[str, Any] = {}
        self.lines: list[str] = []
        self.sure: set[str] = set()
        self.unsure: set[str] = set()
        self.tested: set[str] = set()
        self.has_variables = False
        self.has_parent = False
        self._loops: list[tuple[str, str]] = []
        self.scopes: list[Scope] = [scope]
        self._indent = " "
        self._nested = 0
        self._known: dict[tuple[str, int], str] = {}
        self._own: dict[tuple[int, str], str] = {}
        self._owners: list[Scope] = []  # whose numbers stand there
        self._temporaries = 0

    # --- text -------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append(f"{self._indent}{text}")

    def indent(self, spaces: str) -> None:
        """Write further lines behind so many spaces."""
        self._indent = spaces

    @contextmanager
    def block(self, head: str) -> HostIterator[None]:
        """Write a line with others below it; what they bind may be unbound behind them."""
        self.line(head)
        self._indent += " "
        if len(self._indent) > _DEEPEST:
            raise CannotWrite
        loops = head.startswith(("for ", "while "))
        self._nested += loops
        if self._nested > _DEEPEST_LOOPS:
            raise CannotWrite
        sure = set(self.sure)
        count = len(self.lines)
        yield
        self._nested -= loops
        if len(self.lines) == count:
            self.line("pass")
        self._indent = self._indent[1:]
        self.sure = sure

    def temporary(self, text: str) -> str:
        """A new name that has the value of a text."""
        self._temporaries += 1
        name = f"t{self._temporaries}"
        self.line(f"{name} = {text}")
        return name

    def reserved(self) -> str:
        """A new name."""
        self._temporaries += 1
        return f"t{self._temporaries}"

    def constant(self, letter: str, value: Any) -> str:
        """The name of a value that the text refers to."""
        known = self._known.get((letter, id(value)))
        if known is None:
            known = self._known[letter, id(value)] = self.cell(letter, value)
        return known

    def cell(self, letter: str, value: Any) -> str:
        """A name of the namespace's that nothing else has."""
        name = f"{letter}{len(self.names)}"
        self.names[name] = value
        return name

    def place(self, node: tree.Syntax) -> None:
        """Write that the program is at a node."""
        self.line(f"state.place = {self.constant('p', node.span)}")

    # --- nodes ------------------------------------------------------------------------------------

    def expression(self, node: tree.Expression, scope: Scope) -> str:
        """Write what evaluates an expression; gives the name that has its value."""
        writer = WRITERS.get(type(node))
        if writer is None:
            return self.temporary(self.closure(node, scope))
        name: str = writer(self, node, scope)
        return name

    def test(self, node: tree.Expression, scope: Scope) -> str:
        """Write what evaluates a test, up to where its truth is asked for."""
        value = self.expression(node, scope)
        if value not in self.tested:
            self.place(node)
        return value

    def block_of(self, body: Sequence[tree.Statement], scope: Scope) -> None:
        """Write statements in a row."""
        for statement in body:
            writer = WRITERS.get(type(statement))
            if writer is None:
                self.statement_closure(statement, scope)
            else:
                writer(self, statement, scope)

    def bind(self, target: tree.Expression, scope: Scope, value: str) -> None:
        """Write what binds a target to the value that a name has."""
        BINDERS[type(target)](self, target, scope, value)

    # --- closures ---------------------------------------------------------------------------------

    def closure(self, node: tree.Expression, scope: Scope) -> str:
        """The call of a node's own closure."""
        return f"{self.later(self._closure_of(node, scope))}(variables)"

    def statement_closure(self, node: tree.Statement, scope: Scope) -> None:
        """Write the call of a statement's own closure, and how that ends the block around it."""
        run = self.later(self._closure_of(node, scope))
        ends = control_flow([node])
        if not ends:
            self.line(f"{run}(variables)")
            return
        ended = self.temporary(f"{run}(variables)")
        if not (self.is_function or self.is_in_loop):
            self.line(f"if {ended} is not None: return {ended}")
            return
        if "loop" in ends:
            self.line(f"if {ended} is {self.constant('b', BREAK)}: {self.leaving}")
            self.line(f"if {ended} is {self.constant('b', CONTINUE)}: continue")
        if "return" in ends:
            value = f"{ended}[0]" if self.is_function else ended
            self.line(f"if {ended} is not None: return {value}")

    def ended_sure(self, body: Sequence[tree.Statement]) -> set[str] | None:
        """The variables that have a value where a body has ended; None where it never does."""
        leaves = (tree.Break, tree.Continue, tree.Raise, tree.Return)
        return None if body and isinstance(body[-1], leaves) else set(self.sure)

    # --- loops ------------------------------------------------------------------------------------

    def may_loop(self, node: tree.For | tree.While) -> bool:
        """Whether the iterations of a loop are not compiled in another way."""
        interpreter = self.compiler.interpreter
        hot = interpreter.hot_loops.get(id(node))
        if hot is None:
            return interpreter.make_hot_loop is None
        return bool(hot.is_refused)

    def begin_loop(self, node: tree.For, values: str) -> None:
        """Write what is done where a loop begins."""
        hot = self.compiler.interpreter.hot_loops.get(id(node))
        if hot is not None:
            count = self.constant("k", partial(_count, hot))
            self.line(f"{count}({values})")
        called = evaluated(node)
        if not called:
            return
        self.names["values"] = self.compiler.values
        held = ["PARENT: values"]
        heads = dict.fromkeys(head for each in called for head in _heads(each.function))
        if not self.kept.isdisjoint(heads):
            self.has_variables = True
            held = ["**variables"]
        for name in heads:
            owner = self.owner(name, self.scope)[0]
            own = None if owner is None or name in self.kept else self.variable(name, owner)
            if own in self.sure:
                held.append(f"{self.constant('n', name)}: {own}")
        check = self.constant("k", partial(check_evaluations, self.compiler, called))
        self.line(f"if state.modules and state.grad_enabled: {check}({{{', '.join(held)}}})")

    @contextmanager
    def loop(
        self, node: tree.For | tree.While, place: str, leaving: str = "break"
    ) -> HostIterator[None]:
        """Write the body of a loop."""
        outer = self.compiler.loop
        self.compiler.loop = outer or node
        self._loops.append((place, leaving))
        try:
            yield
        finally:
            self._loops.pop()
            self.compiler.loop = outer

    @property
    def loop_place(self) -> str:
        """Where the next iteration of the innermost loop begins."""
        return self._loops[-1][0]

    @property
    def leaving(self) -> str:
        """The statements that leave it."""
        return self._loops[-1][1] if self._loops else f"return {self.constant('b', BREAK)}"

    @property
    def is_in_loop(self) -> bool:
        """Whether the statement stands in a loop that is written."""
        return bool(self._loops)

    # --- closures of nodes ------------------------------------------------------------------------

    def _closure_of(self, node: Any, scope: Scope) -> Callable[..., Any]:
        if scope is not self.scope:
            raise _Inside
        self.has_variables = True
        self.wanted |= names_in(node, scope)
        compiler, loop = self.compiler, self.compiler.loop

        def make() -> Callable[..., Any]:
            outer, compiler.loop = compiler.loop, loop
            try:
                return compiler.expression(node, scope)
            finally:
                compiler.loop = outer

        return make

    def later(self, make: Callable[[], Callable[..., Any]]) -> str:
        """The name of a function that is made when it is first called: most never are."""
        name = f"k{len(self.names)}"
        self.names[name] = Later(self.names, name, make)
        return name

    def over(
        self,
        node: tree.Syntax,
        scope: Scope,
        operands: Sequence[tree.Expression],
        values: Sequence[str],
    ) -> str:
        """The call of a node's closure over operands that have been evaluated."""
        make = partial(self.closure_over, node, scope, operands)
        return f"{self.later(make)}({', '.join(values)})"

    def closure_over(
        self, node: tree.Syntax, scope: Scope, operands: Sequence[tree.Expression]
    ) -> Callable[..., Any]:
        """A node's closure as a function of operands."""
        return of_values(HANDLERS[type(node)](self.over_operands(operands), node, scope))

    def over_operands(self, operands: Sequence[tree.Expression]) -> OverOperands:
        """What compiles closures over operands."""
        return OverOperands(self.compiler, operands)

    # --- variables --------------------------------------------------------------------------------

    def variable(self, name: str, owner: Scope) -> str:
        """The host's variable for one of the function, or of a comprehension in it."""
        key = id(owner), name
        known = self._own.get(key)
        if known is None:
            known = self._own[key] = f"v{len(self._own)}"
            self._owners.append(owner)
        return known

    @property
    def variables(self) -> list[str]:
        """All of them."""
        return [*self._own.values()]

    def owner(self, name: str, scope: Scope) -> tuple[Scope | None, int]:
        """The scope within the body where a name lives, and the distance from the function; None
        for one outside, where the distance is -1 for a name of the program.
        """
        distance = scope.distance(name)
        if distance is None:
            return None, -1
        at: Scope | None = scope
        for _ in range(distance):
            assert at is not None
            at = at.parent
        if any(at is each for each in self.scopes):
            return at, 0
        inner = scope
        while inner is not self.scope:
            assert inner.parent is not None
            inner, distance = inner.parent, distance - 1
        return None, distance


class Later:
    """A function that is made when it is first called."""

    __slots__ = ("make", "name", "names")

    def __init__(self, names: dict[str, Any], name: str, make: Callable[[], Any]) -> None:
        self.names, self.name, self.make = names, name, make

    def __call__(self, *values: Any) -> Any:
        run = self.names[self.name] = self.make()
        return run(*values)


def of_values(run: Callable[..., Any]) -> Callable[..., Any]:
    """A closure over operands as a function of them."""
    return lambda *values: run(dict(enumerated(values)))


def enumerated(values: Sequence[Any]) -> Iterable[tuple[str, Any]]:
    """Operands by their numbers, as closures over operands find them."""
    return zip(_NUMBERS, values)  # noqa: B905  as many as there are


_NUMBERS = [*map(str, range(256))]


class _Inside(Exception):
    """A closure is wanted inside a comprehension, which is then one itself."""


@contextmanager
def inside(writer: Writer, scope: Scope) -> HostIterator[None]:
    """Write a comprehension with its scope."""
    writer.scopes.append(scope)
    try:
        yield
    finally:
        writer.scopes.pop()


def attempted(writer: Writer, write: Callable[[], str], instead: Callable[[], Any]) -> Any:
    """What one function writes, or, where it needs the closure of a node that has no variables
    there, another.
    """
    lines, sure = len(writer.lines), set(writer.sure)
    indent, nested = writer._indent, writer._nested
    scopes = list(writer.scopes)
    try:
        return write()
    except _Inside:
        del writer.lines[lines:]
        writer.sure, writer.scopes = sure, scopes
        writer._indent, writer._nested = indent, nested
    return instead()


def _heads(node: tree.Expression) -> HostIterator[str]:
    """The name that a dotted name begins with."""
    while isinstance(node, tree.Attribute):
        node = node.value
    if isinstance(node, tree.Name):
        yield node.name


def _count(hot: Any, values: Any) -> None:
    """A loop that is not compiled begins: it knows how many iterations were not."""
    if type(values) is Iterator and values.kind in ("enumerate", "zip"):
        lengths = [length_of(each) for each in values.values if type(each) in _COUNTED]
        if len(lengths) == len(values.values):
            hot.interpreted_count += min(lengths)
    elif type(values) in _COUNTED:
        hot.interpreted_count += length_of(values)


_COUNTED = frozenset({range, list, tuple})


def names_in(nodes: Any, scope: Scope) -> set[str]:
    """The names of a function that the closures of nodes may read or bind."""
    found: set[str] = set()
    for each in tree.nodes_of(nodes):
        if isinstance(each, tree.Name):
            found.add(each.name)
            if each.name in _ALL_NAMES:
                return set(scope.bound)
            if each.name == "super":
                found.add(scope.first_parameter)
        elif _is_annotated(each):
            return set(scope.bound)
        elif isinstance(each, tree.Global):
            found.update(each.names)
        found.update(bound_by(each))
    return found & scope.bound


def _is_annotated(node: tree.Syntax) -> bool:
    """Whether a node has annotations, whose texts are evaluated where it stands."""
    return bool(getattr(node, "annotation", "") or getattr(node, "returns", ""))
