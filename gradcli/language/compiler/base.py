"""Compiles the syntax tree to closures: each expression and each statement becomes a Python
function of the variables.

What can be decided once is decided here: where a name lives, which operator it is, how many
arguments there are. A compiled expression returns its value; a compiled statement returns how it
ends the block around it (`tree/control_flow.py`). Before anything that can fail or make a
node, a closure notes its span in the state.

The other files of this folder hold one handler per class of nodes, which registers itself with
`@compiles(tree.Name)`. They import this file, and the interpreter imports them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Iterator as HostIterator
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gradcli.errors import BY_OPERANDS, BY_TENSORS, GradcliError
from gradcli.language.compiler import recipes
from gradcli.language.objects.iteration import Iterator, drawing, enter, iterate
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run, control_flow
from gradcli.language.tree.scopes import Scope, Variables

if TYPE_CHECKING:
    from gradcli.errors import Span
    from gradcli.language.native.nodes import Nodes
    from gradcli.language.objects.attributes import Module
    from gradcli.limits import Steps
    from gradcli.state import State

OPERATORS = (
    *("<", "<=", "==", "!=", ">", ">="),
    *("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", ">>", "<<", "@"),
)
"""The binary operators, at the number that nodes have for each."""

NUMBER_OF = {symbol: number for number, symbol in enumerate(OPERATORS)}

Evaluate = Callable[[Variables], Any]
"""A compiled expression."""

Store = Callable[[Variables, Any], None]
"""Binds a target to a value."""

HANDLERS: dict[type[tree.Syntax], Callable[[Compiler, Any, Scope], Evaluate | Run]] = {}
"""What compiles the nodes of each class: `@compiles` fills it."""

STORES: dict[type[tree.Syntax], Callable[[Compiler, Any, Scope, bool], Store]] = {}
"""What compiles the targets of each class: `@binds` fills it."""

Body = TypeVar("Body")
Handler = TypeVar("Handler", bound=Callable[..., Evaluate | Run])
Binder = TypeVar("Binder", bound=Callable[..., Store])


def compiles(*nodes: type[tree.Syntax]) -> Callable[[Handler], Handler]:
    """Register the function below as the one that compiles nodes of these classes."""

    def register(handler: Handler) -> Handler:
        for node in nodes:
            HANDLERS[node] = handler
        return handler

    return register


def binds(*targets: type[tree.Syntax]) -> Callable[[Binder], Binder]:
    """Register the function below as the one that compiles targets of these classes."""

    def register(binder: Binder) -> Binder:
        for target in targets:
            STORES[target] = binder
        return binder

    return register


def label_operands(
    error: GradcliError, operands: Iterable[tuple[tree.Expression, Any]], operation: str
) -> None:
    """Label the operands of an operation that failed with what they are, where the code of its
    error is one that they explain; an error with a span was raised by an inner operation.
    """
    if error.span is not None or error.labels or error.code not in _EXPLAINED:
        return
    operands = list(operands)
    if error.code not in BY_OPERANDS and _UNSHOWN.issuperset(type(value) for _, value in operands):
        return  # an error over numbers and texts, that a program may well expect
    from gradcli.language.compiler import operand_labels  # lazy: start-up

    operand_labels.label_operands(error, operands, operation)


_EXPLAINED = BY_TENSORS | BY_OPERANDS

_UNSHOWN = frozenset({bool, float, int, str})
"""The types of values that explain no error but that of a wrong type."""


class Between(Enum):
    """What may run between two iterations, as the next value is drawn or the test is made."""

    NOTHING = "nothing"
    COUNTED = "code of the program, which counts as steps"
    ANYTHING = "what leaves no sign that it ran"


RunAlike = Callable[[Variables, Any, Callable[[Variables, Any], None]], Any]
"""What draws values and runs their iterations as long as they are like the last one: with the
iterator, and what binds a value. It returns how the last of them ended.
"""

Iterations = tuple[Run, Callable[[Variables], None], RunAlike | None]
"""What runs the iterations of a loop, what is called when it has ended, in whichever way, and what
may run several.
"""


class HotLoop(Protocol):
    """A loop whose iterations may run as compiled code (`gradcli/loops`).

    Attributes:
        interpreted_count: how many of them were interpreted.
    """

    interpreted_count: int

    @property
    def is_refused(self) -> bool:
        """Whether all its iterations are interpreted from now on."""
        raise NotImplementedError

    def begin(
        self,
        variables: Variables,
        length: Callable[[], int] | None,
        between: Between,
        done: int = 0,
    ) -> Iterations | None:
        """The loop begins, with so many iterations done: what runs the others; None to interpret
        them all.
        """


class Predefined(Protocol):
    """The library, as `gradcli/library/namespace.py` has it; the session hands it on.

    Attributes:
        BUILTINS: the built-in functions and classes by their names.
        BEFORE_FILES: the modules that a file beside the script does not stand in for.
        INSTEAD: for modules that stay outside of the language, what to write in their place.
        MODULES: those of the language, by their dotted names.
    """

    BUILTINS: dict[str, Any]
    BEFORE_FILES: frozenset[str]
    INSTEAD: dict[str, str]
    MODULES: dict[str, Module]

    def table_of(self, name: str) -> dict[str, Any] | None:
        """The table that defines a name which the program does not assign; None for no such."""

    def unknown_name(self, name: str, values: dict[str, Any], span: Span) -> GradcliError:
        """The error of an undefined name, with the one that was likely meant."""
        raise NotImplementedError

    def module(self, name: str) -> Module:
        """A module by its dotted name; raises E103 for one that the language does not have."""
        raise NotImplementedError

    def imported(self, module: Module, name: str) -> Any:
        """What `from module import name` binds; raises E103 for what there is not."""


class Running(Protocol):
    """The interpreter, as what is compiled for it sees it; `Interpreter` says what each is."""

    state: State
    predefined: Predefined
    values: dict[str, Any]
    overrides: dict[str, Callable[[Any], Any]]
    last_assigned: str | None
    handled: list[GradcliError]
    hot_loops: dict[int, Any]
    timed_loops: dict[int, Any]
    steps: Steps
    provenance: Any
    long_loops: Any
    statement_ended: Callable[[int], None] | None
    depth: int
    make_hot_loop: MakeHotLoop | None
    nodes: Nodes | None
    compiler: Compiler

    def module_beside(self, name: str) -> Module | None:
        """The module of a file beside the script."""

    def write_body(
        self,
        compiler: Compiler,
        signature: Any,
        defaults: list[str],
        body: list[tree.Statement],
        scope: Scope,
    ) -> Callable[..., Any] | None:
        """The body of a hot function as a function of the host's."""

    def write_list(
        self, compiler: Compiler, node: tree.Comprehension, scope: Scope
    ) -> Callable[..., list[Any]] | None:
        """A hot list comprehension as a function of the variables and an iterator."""

    def write_block(
        self, compiler: Compiler, body: list[tree.Statement], scope: Scope
    ) -> Run | None:
        """The body of a hot loop as a function of the variables."""


def teach(nodes: Nodes) -> None:
    """Let nodes be made by the handlers and recipes of all classes of trees, once."""
    nodes.know_recipes(HANDLERS, recipes.VALUES, STORES, recipes.TARGETS, *recipes.OF_NAMES)


class Compiler:
    """Compiles for one interpreter, whose values and state the closures share.

    The handlers of control flow, displays and comprehensions come to what they do with a value by
    the methods below alone, which a compiler that also records what runs gives another meaning.

    Attributes:
        loop: the outermost loop around what is being compiled.
        nodes: what makes nodes in C; None where there are none, and in a compiler that sees what
            its closures do.
        package: the package of the file that is compiled, "" for none.
        predefined: the names and modules that the program finds.
        values: the names of the program, or of that file.
        in_try: whether a `try` around it has an `except`.
    """

    __slots__ = (
        "in_try",
        "interpreter",
        "loop",
        "nodes",
        "package",
        "predefined",
        "state",
        "steps",
        "values",
    )

    def __init__(self, interpreter: Running) -> None:
        self.interpreter = interpreter
        self.state = interpreter.state
        self.steps = interpreter.steps
        self.values = interpreter.values
        self.predefined = interpreter.predefined
        self.loop: tree.Statement | None = None
        self.in_try = False
        self.package = ""
        self.nodes = interpreter.nodes if type(self) is Compiler else None

    def alike(self, loop: tree.Statement | None, in_try: bool) -> Compiler:
        """Another for the same code, compiled later: with this loop and `try` around it."""
        other = Compiler(self.interpreter)
        other.values, other.package = self.values, self.package
        other.loop, other.in_try = loop, in_try
        return other

    def expression(self, node: tree.Expression, scope: Scope) -> Evaluate:
        """The closure of an expression, or its node."""
        if self.nodes is not None:
            return self.nodes.make(self, node, scope)
        return HANDLERS[type(node)](self, node, scope)

    def statement(self, node: tree.Statement, scope: Scope) -> Run:
        """The closure of a statement, or its node."""
        if self.nodes is not None:
            return self.nodes.make(self, node, scope)
        return HANDLERS[type(node)](self, node, scope)

    def store(self, target: tree.Expression, scope: Scope, assigned: bool = False) -> Store:
        """What binds a target to a value; see `name_store`."""
        if self.nodes is not None:
            return self.nodes.make_target(self, target, scope, assigned)
        return STORES[type(target)](self, target, scope, assigned)

    def test(self, node: tree.Expression, scope: Scope, place: Span | None) -> Evaluate:
        """The closure of what decides by being true or not, as the program stands at a place."""
        return self.expression(node, scope)

    def context(self, node: tree.Expression, scope: Scope) -> Evaluate:
        """The closure of what a `with` enters."""
        return self.expression(node, scope)

    def tried(self, body: Run) -> Run:
        """The body of a `try`."""
        return body

    truth: Callable[[Any], bool] = bool
    """Whether a value is true."""

    iterate: Callable[[Any], HostIterator[Any]] = staticmethod(iterate)
    """What a loop draws from."""

    drawing: Callable[..., Iterator] = staticmethod(drawing)
    """The iterator of a generator expression."""

    enter: Callable[[dict[Any, Any], Any, Any], None] = staticmethod(enter)
    """Enters a value into a dict that is being made."""

    binds_directly = True
    """Whether a variable of the running code may be bound without `store`, which is faster."""

    reads_directly = True
    """Whether a closure may read one by itself."""

    def block(self, body: Sequence[tree.Statement], scope: Scope) -> Run:
        """The closure of statements in a row, which looks for signals only where one can end it."""
        if self.nodes is not None:
            return self.nodes.make_statements(self, body, scope)
        ends = control_flow(body)
        plain = not ends and len(body) > 1 and type(self).statement is Compiler.statement
        statements = [
            # What an expression gives is not wanted, and is no end of a block.
            self.expression(statement.value, scope)
            if plain and isinstance(statement, tree.ExpressionStatement)
            else self.statement(statement, scope)
            for statement in body
        ]
        if len(statements) == 1:
            return statements[0]
        if not ends:

            def run(variables: Variables) -> None:
                for statement in statements:
                    statement(variables)

            return run

        def run_until_ended(variables: Variables) -> Any:
            for statement in statements:
                ended = statement(variables)
                if ended is not None:
                    return ended
            return None

        return run_until_ended

    def loop_body(self, loop: tree.For | tree.While, compile_block: Callable[[], Body]) -> Body:
        """What `compile_block` makes of a loop's body."""
        outer, self.loop = self.loop, self.loop or loop
        try:
            return compile_block()
        finally:
            self.loop = outer

    def hot_loop(
        self, loop: tree.For | tree.While, scope: Scope, body: Run, in_try: bool
    ) -> Callable[[], HotLoop | None]:
        """What gives, once a loop is hot, what may compile its iterations."""
        found: list[HotLoop | None] = []  # once: `functools.cache` takes as long as a whole loop

        def find() -> HotLoop | None:
            if not found:
                make = self.interpreter.make_hot_loop
                found.append(None if make is None else make(self, loop, scope, body, in_try))
            return found[0]

        return find


MakeHotLoop = Callable[[Compiler, tree.For | tree.While, Scope, Run, bool], HotLoop | None]
"""What makes the `HotLoop` of a loop and its body's closure, and of whether an `except` around it
may catch what it raises; None where it is not worth it.
"""
