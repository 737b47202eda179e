"""Following a run: what every expression gave, and which values each one was made from.

A following compiler wraps the closures of expressions and assignments. Only explanations use it: a
program that nobody asks about is compiled without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.language import tree
from gradcli.language.compiler.base import Compiler
from gradcli.language.tree.scopes import Scope, Variables

if TYPE_CHECKING:
    from gradcli.language.compiler.base import Evaluate
    from gradcli.language.functions.control_flow import Run
    from gradcli.language.interpreter import Interpreter


class Evaluation:
    """One evaluation of an expression.

    Attributes:
        node: the expression.
        value: what it gave.
        parts: the evaluations inside it, those of a called function's body too.
        grad_enabled: whether gradients were on.
    """

    __slots__ = ("grad_enabled", "node", "parts", "value")

    def __init__(
        self, node: tree.Expression, value: Any, parts: list[Evaluation], grad_enabled: bool
    ) -> None:
        self.node = node
        self.value = value
        self.parts = parts
        self.grad_enabled = grad_enabled


class Followed:
    """What a run evaluated and assigned.

    Attributes:
        evaluations: every evaluation, in the order in which they ended.
        assignments: every assignment, in order, with the evaluation of its value.
    """

    __slots__ = ("assignments", "evaluations", "latest", "open")

    def __init__(self) -> None:
        self.evaluations: list[Evaluation] = []
        self.assignments: list[tuple[tree.Assign | tree.AugmentedAssign, Evaluation]] = []
        self.latest: dict[str, Evaluation] = {}
        self.open: list[list[Evaluation]] = [[]]

    def last_assignment(self, name: str) -> tree.Statement | None:
        """The statement that gave a name its value last."""
        for statement, _ in reversed(self.assignments):
            if name in _targets(statement):
                return statement
        return None


class FollowingCompiler(Compiler):
    """Compiles closures that tell `followed` what they gave."""

    __slots__ = ("followed",)

    def __init__(self, interpreter: Interpreter, followed: Followed) -> None:
        super().__init__(interpreter)
        self.followed = followed

    def expression(self, node: tree.Expression, scope: Scope) -> Evaluate:
        evaluate = super().expression(node, scope)
        if isinstance(node, (tree.Constant, tree.FormattedString, tree.Slice)):
            return evaluate
        followed, state, is_name = self.followed, self.state, type(node) is tree.Name
        direct = [] if is_name else [n for n in _operands(node) if type(n) is tree.Name]

        def evaluate_and_tell(variables: Variables) -> Any:
            parts: list[Evaluation] = []
            followed.open.append(parts)
            try:
                value = evaluate(variables)
            finally:
                followed.open.pop()
            # A closure may read the variables of its operands by itself.
            met = {part.node for part in parts}
            for name in direct:
                if name not in met and name.name in variables:
                    known = followed.latest.get(name.name)
                    read = Evaluation(name, variables[name.name], [], state.grad_enabled)
                    if known is not None and known.value is read.value:
                        read.parts.append(known)
                    parts.append(read)
            if is_name:
                known = followed.latest.get(node.name)  # type: ignore[attr-defined]
                if known is not None and known.value is value:
                    parts.append(known)
            ended = Evaluation(node, value, parts, state.grad_enabled)
            followed.evaluations.append(ended)
            followed.open[-1].append(ended)
            return value

        return evaluate_and_tell

    def statement(self, node: tree.Statement, scope: Scope) -> Run:
        run = super().statement(node, scope)
        if not isinstance(node, (tree.Assign, tree.AugmentedAssign)):
            return run
        followed, state = self.followed, self.state
        names = _targets(node)

        def run_and_tell(variables: Variables) -> Any:
            parts: list[Evaluation] = []
            followed.open.append(parts)
            try:
                signal = run(variables)
            finally:
                followed.open.pop()
            value = next((each for each in parts if each.node is node.value), None)
            if value is None or isinstance(node, tree.AugmentedAssign):
                value = Evaluation(node.value, None, parts, state.grad_enabled)
            for name in names:
                if value.value is None and name in variables:
                    value.value = variables[name]
                followed.latest[name] = value
            if isinstance(node, tree.AugmentedAssign):
                followed.evaluations.append(value)
            followed.assignments.append((node, value))
            return signal

        return run_and_tell


def _operands(node: tree.Expression) -> list[Any]:
    """The expressions right inside an operator."""
    if isinstance(node, (tree.Binary, tree.Comparison)):
        return [node.first, *(operand for _, operand in node.rest)]
    if isinstance(node, tree.Unary):
        return [node.operand]
    return []


def _targets(node: tree.Statement) -> list[str]:
    """The names that an assignment gives a value as they stand."""
    targets = node.targets if isinstance(node, tree.Assign) else []
    if isinstance(node, tree.AugmentedAssign):
        targets = [node.target]
    return [target.name for target in targets if isinstance(target, tree.Name)]
