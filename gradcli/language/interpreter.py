"""Runs top-level statements, one at a time, and keeps the values of the program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.arrays.storage import keep_freed_memory
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, Source
from gradcli.language.compiler import assignment, names  # noqa: F401  each handler registers itself
from gradcli.language.compiler.base import Compiler, MakeHotLoop, Predefined, teach
from gradcli.language.compiler.expressions import (  # noqa: F401
    calling,
    displays,
    operations,
)
from gradcli.language.compiler.statements import (  # noqa: F401
    blocks,
    definitions,
    handling,
    lints,
)
from gradcli.language.functions.calls import Signature, locate
from gradcli.language.objects.attributes import Module
from gradcli.language.objects.exceptions import caught
from gradcli.language.parser.parser import parse_expression, parse_program
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import Scope
from gradcli.state import State

if TYPE_CHECKING:
    from gradcli.language.compiler.statements.short_loops import TimedLoop
    from gradcli.language.long_loops import LongLoops
    from gradcli.language.native.nodes import Nodes
    from gradcli.language.provenance import Provenance

_HOST_FRAMES = 20_000
"""The host's recursion limit while a program runs.

It leaves room for `DEEPEST_CALL` calls of the program, whose compiled code takes several frames
each. Those frames are not on the C stack; what is, `DEEPEST_HOST_CALL` bounds.
"""


_SEVERAL = 64
"""Statements from which on a program that repeats none is worth nodes in C: what they save there is
by then as much as it takes to load them.
"""

_PROGRAM = Scope()
"""The scope of what stands in no function."""

_REPEATING = ("for", "while", "def", "lambda", "class")
"""Words without one of which nothing in a program runs twice."""


def _repeats(node: tree.Expression | tree.Statement) -> bool:
    """Whether something in a statement may run more than once, as far as its words tell."""
    text = node.span.text
    return any(word in text for word in _REPEATING)


class Interpreter:
    """Runs a session's statements, while the session's state is the active one.

    Attributes:
        nodes: what makes nodes in C, from the first statement on that repeats code, or is one of
            several, or comes with such: to load it takes as long as some statements.
        make_hot_loop: makes what compiles a loop's iterations; while it is None, as until the
            session sets it, all loops are interpreted.
        predefined: the names and modules that programs find.
        overrides: what the next top-level assignment to a name stores, as a function of the value
            assigned.
        last_assigned: the name of the tensor that was assigned last at top level.
        handled: the errors whose `except` is running, innermost last.
        provenance: the value of every expression, None unless `record_provenance` was called.
        timed_loops: the loops of few iterations that compiling would not have paid for.
        long_loops: which iterations are recorded, None where nothing follows the loops.
        statement_ended: called after each statement, if `tell_of_statements` was called, with the
            `depth`: how many statements stand around it.
    """

    def __init__(self, state: State, emit: Callable[[Any], None], predefined: Predefined) -> None:
        self.state = state
        self.predefined = predefined
        state.emit = emit
        self.values: dict[str, Any] = {}
        state.values = self.values
        self.overrides: dict[str, Callable[[Any], Any]] = {}
        self.last_assigned: str | None = None
        self.handled: list[GradcliError] = state.library.setdefault("handled", [])
        self.hot_loops: dict[int, Any] = {}  # by the id of the loop's node
        self.timed_loops: dict[int, TimedLoop] = {}  # so too
        state.data_replaced = self._forget_graphs
        self.steps = state.steps
        self.provenance: Provenance | None = None
        self.long_loops: LongLoops | None = None
        self.statement_ended: Callable[[int], None] | None = None
        self.depth = 0
        self.make_hot_loop: MakeHotLoop | None = None
        self.modules: dict[str, Module] = {}
        self.nodes: Nodes | None = None
        self.compiler = Compiler(self)
        self._statements = 0
        keep_freed_memory()

    def execute(self, statement: tree.Statement) -> Any:
        """Run one top-level statement; returns the value of an expression, else None."""
        if isinstance(statement, tree.ExpressionStatement):
            value = self._run(statement.value)
            if self.statement_ended is not None:
                self.statement_ended(self.depth)
            return value
        self._run(statement)
        return None

    def expect(self, statements: Sequence[tree.Statement]) -> None:
        """These statements come, one after the other: whether nodes are worth it is known now."""
        if self._statements < _SEVERAL and (
            self._statements + len(statements) >= _SEVERAL
            or any(_repeats(each) for each in statements)
        ):
            self._load_nodes()

    def _load_nodes(self) -> None:
        self._statements = _SEVERAL
        from gradcli.language.native.nodes import load  # lazy: start-up

        self.nodes = load(self.predefined.BUILTINS)
        if self.nodes is not None:
            teach(self.nodes)
        if type(self.compiler) is Compiler:
            self.compiler.nodes = self.nodes

    def _count(self, node: tree.Expression | tree.Statement) -> None:
        self._statements += 1
        if self._statements >= _SEVERAL or _repeats(node):
            self._load_nodes()

    def _forget_graphs(self, leaf: Tensor) -> None:
        """A leaf has data of another shape: a graph that nothing else holds ends here."""
        for loop in self.hot_loops.values():
            loop.forget(leaf)

    def evaluate(self, source: Source) -> Any:
        """The value of a text that is one expression, such as that of `NAME=VALUE`."""
        return self._run(parse_expression(source))

    def write_body(
        self,
        compiler: Compiler,
        signature: Signature,
        defaults: list[str],
        body: list[tree.Statement],
        scope: Scope,
    ) -> Callable[..., Any] | None:
        """The body of a hot function as a function of the host's; None where that cannot be."""
        from gradcli.language.compiler.written.bodies import written  # lazy: start-up

        return written(compiler, signature, defaults, body, scope)

    def write_block(
        self, compiler: Compiler, body: list[tree.Statement], scope: Scope
    ) -> Run | None:
        """The body of a hot loop as a function of the variables; None where that cannot be."""
        from gradcli.language.compiler.written.bodies import written_block  # lazy: start-up

        return written_block(compiler, body, scope)

    def write_list(
        self, compiler: Compiler, node: tree.Comprehension, scope: Scope
    ) -> Callable[..., list[Any]] | None:
        """A hot list comprehension as a function of the variables and an iterator."""
        from gradcli.language.compiler.written.bodies import written_list  # lazy: start-up

        return written_list(compiler, node, scope)

    def module_beside(self, name: str) -> Module | None:
        """The module of a file beside the script, which runs when it is first imported, or of a
        folder of such files that the language has no module of the name of; None where there is
        none.

        Raises what `program_beside` raises, `SyntaxErrors`, and whatever ends its run.
        """
        known = self.modules.get(name)
        folder = self.state.library.get("folder")
        if known is not None or folder is None:
            return known
        from gradcli.arrays.files.gate import (  # lazy: start-up: one file is the rule
            is_folder_beside,
            program_beside,
        )

        parent, _, own = name.rpartition(".")
        outer = self.module_beside(parent) if parent else None
        known_here = name.partition(".")[0] in self.predefined.MODULES
        program = program_beside(folder, name, of_python=known_here)
        if program is None and (known_here or not is_folder_beside(folder, name)):
            return None
        module = self.modules[name] = Module(name, {"__name__": name}, is_file=True)
        if program is not None:
            path, text = program
            try:
                self._run_file(module, Source(path, text), path.endswith("__init__.py"))
            except BaseException:
                del self.modules[name]
                raise
        if outer is not None:  # a name that the folder's own file gives later takes its place
            outer.names[own] = module
        return module

    def _run_file(self, module: Module, source: Source, is_package: bool) -> None:
        compiler = type(self.compiler)(self)
        compiler.values = module.names
        compiler.package = module.name if is_package else module.name.rpartition(".")[0]
        stack = self.state.stack
        stack.append((f"<module {module.name}>", self.state.place))
        try:
            for statement in parse_program(source):
                if isinstance(statement, tree.Command):
                    raise GradcliError(
                        "E104",
                        f"`{statement.span.text}` is a line for the command line's sessions",
                        span=statement.span,
                    )
                compiler.statement(statement, _PROGRAM)(module.names)
        except GradcliError as error:
            raise locate(error, self.state) from error.__cause__
        finally:
            stack.pop()

    def _run(self, node: tree.Expression | tree.Statement) -> Any:
        state = self.state
        if self._statements < _SEVERAL:
            self._count(node)
        frames = sys.getrecursionlimit()
        sys.setrecursionlimit(max(frames, _HOST_FRAMES))
        try:
            if isinstance(node, tree.Statement):
                return self.compiler.statement(node, _PROGRAM)(self.values)
            return self.compiler.expression(node, _PROGRAM)(self.values)
        except GradcliError as error:
            locate(error, state)
            raise
        except Exception as error:
            raise locate(caught(error), state) from error
        finally:
            state.place = None
            state.stack.clear()
            sys.setrecursionlimit(frames)
