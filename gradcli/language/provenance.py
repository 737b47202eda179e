"""Records the provenance of values: what every expression evaluated to, and from which values.

A `ProvenanceCompiler` wraps the closures of expressions and assignments. Only explanations use it:
every other program is compiled without it.
"""

from __future__ import annotations

from typing import Any

from gradcli.language.compiler.base import Evaluate, Running
from gradcli.language.long_loops import LongLoops, LoopCompiler
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.record import Record


class Evaluation(Record):
    """One evaluation of an expression.

    Attributes:
        parts: the evaluations inside it, those of a called function's body too.
        grad_enabled: whether gradients were on.
    """

    node: tree.Expression
    value: Any
    parts: list[Evaluation]
    grad_enabled: bool


class Provenance(LongLoops):
    """What a run evaluated, in the order in which it ended, and assigned."""

    def __init__(self) -> None:
        super().__init__()
        self.evaluations: list[Evaluation] = []
        self.assignments: list[tuple[tree.Assign | tree.AugmentedAssign, Evaluation]] = []
        self.latest: dict[str, Evaluation] = {}
        self.open: list[list[Evaluation]] = [[]]

    def first_assignment(self, name: str) -> tree.Statement | None:
        """The statement that assigned to a name first."""
        for statement, _ in self.assignments:
            if name in targets_of(statement):
                return statement
        return None

    def last_assignment(self, name: str) -> tree.Statement | None:
        """The statement that assigned to a name last."""
        for statement, _ in reversed(self.assignments):
            if name in targets_of(statement):
                return statement
        return None


def record_provenance(interpreter: Running) -> None:
    """Record the provenance of everything that the interpreter runs from now on."""
    interpreter.long_loops = interpreter.provenance = Provenance()
    interpreter.compiler = ProvenanceCompiler(interpreter)


class ProvenanceCompiler(LoopCompiler):
    """Compiles closures that record their values in `provenance`."""

    __slots__ = ("provenance",)

    def __init__(self, interpreter: Running) -> None:
        super().__init__(interpreter)
        assert interpreter.provenance is not None
        self.provenance: Provenance = interpreter.provenance

    def expression(self, node: tree.Expression, scope: Scope) -> Evaluate:
        evaluate = super().expression(node, scope)
        if isinstance(node, (tree.Constant, tree.FormattedString, tree.Slice)):
            return evaluate
        provenance, state, is_name = self.provenance, self.state, type(node) is tree.Name
        direct = [] if is_name else [n for n in _operands(node) if type(n) is tree.Name]

        def evaluate_and_record(variables: Variables) -> Any:
            if provenance.paused:
                return evaluate(variables)
            parts: list[Evaluation] = []
            provenance.open.append(parts)
            try:
                value = evaluate(variables)
            finally:
                provenance.open.pop()
            # A closure may read the variables of its operands by itself.
            met = {part.node for part in parts}
            for name in direct:
                if name not in met and name.name in variables:
                    known = provenance.latest.get(name.name)
                    read = Evaluation(name, variables[name.name], [], state.grad_enabled)
                    if known is not None and known.value is read.value:
                        read.parts.append(known)
                    parts.append(read)
            if is_name:
                known = provenance.latest.get(node.name)  # type: ignore[attr-defined]
                if known is not None and known.value is value:
                    parts.append(known)
            ended = Evaluation(node, value, parts, state.grad_enabled)
            provenance.evaluations.append(ended)
            provenance.open[-1].append(ended)
            return value

        return evaluate_and_record

    def statement(self, node: tree.Statement, scope: Scope) -> Run:
        run = super().statement(node, scope)
        if not isinstance(node, (tree.Assign, tree.AugmentedAssign)):
            return run
        provenance, state = self.provenance, self.state
        names = targets_of(node)

        def run_and_record(variables: Variables) -> Any:
            if provenance.paused:
                return run(variables)
            parts: list[Evaluation] = []
            provenance.open.append(parts)
            try:
                ended = run(variables)
            finally:
                provenance.open.pop()
            value = next((each for each in parts if each.node is node.value), None)
            if value is None or isinstance(node, tree.AugmentedAssign):
                value = Evaluation(node.value, None, parts, state.grad_enabled)
            for name in names:
                if value.value is None and name in variables:
                    value.value = variables[name]
                provenance.latest[name] = value
            if isinstance(node, tree.AugmentedAssign):
                provenance.evaluations.append(value)
            provenance.assignments.append((node, value))
            return ended

        return run_and_record


def _operands(node: tree.Expression) -> list[Any]:
    """The expressions right inside an operator."""
    if isinstance(node, (tree.Binary, tree.Comparison)):
        return [node.first, *(operand for _, operand in node.rest)]
    if isinstance(node, tree.Unary):
        return [node.operand]
    return []


def targets_of(node: tree.Statement) -> list[str]:
    """The plain names that an assignment binds."""
    targets = node.targets if isinstance(node, tree.Assign) else []
    if isinstance(node, tree.AugmentedAssign):
        targets = [node.target]
    return [target.name for target in targets if isinstance(target, tree.Name)]
