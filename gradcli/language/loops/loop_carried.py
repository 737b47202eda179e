"""Which loops may be traced.

Only those whose rounds are all alike whatever the values are, and whose effects are all known: they
name the results of pure functions, run backward passes, and update parameters in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradcli.language import tree
from gradcli.language.loops.expressions import (
    COMPARISONS,
    CREATING,
    PURE,
    Allowed,
    is_pure,
    names_in,
    parts,
    reads_gradient,
)
from gradcli.language.tree.base import Expression, Statement
from gradcli.language.tree.scopes import target_names

IN_PLACE = {"add_": "+", "sub_": "-", "mul_": "*", "div_": "/"}
"""The methods that update as an operator does."""

_FOUR = frozenset(IN_PLACE.values())
_OF_COUNTS = _FOUR | {"//", "%"}


class Admitted(NamedTuple):
    """How the rounds of a loop are run.

    Attributes:
        tests: of the `if`s in the body that go by numbers from outside: where one holds, the round
            is an ordinary one.
        prepared: statements that give the round its data, and run ahead of it in the ordinary way.
        rest: the others.
        given: the names of what those and the loop itself give the round.
        bound: the names that the round binds otherwise.
        rebound: those of them that are no updates, which leave a tensor the one it was.
        tested: the names that decide whether there is another round, which are numbers.
        seen: whether the program may look at what a round left that is not the last one.
    """

    tests: list[Expression]
    prepared: list[tree.Assign]
    rest: list[Statement]
    given: frozenset[str]
    bound: frozenset[str]
    rebound: frozenset[str]
    tested: frozenset[str]
    seen: bool


def admit(loop: tree.For | tree.While) -> Admitted | None:
    """How the rounds of a loop are run if one is traced; None where none may be, as far as the
    syntax tells.
    """
    tested: set[str] = set()
    if isinstance(loop, tree.While):
        if not _is_plain(loop.test):
            return None
        tested = names_in(loop.test)
    elif not isinstance(loop.target, (tree.Name, tree.Tuple)):
        return None
    walk = _Walk(loop)
    if not walk.block(loop.body, outermost=True) or not walk.acted:
        return None
    rest = [node for node in loop.body if node not in walk.prepared]
    given = walk.given | walk.numbers
    bound = frozenset(_bound_by(rest, updates=True))
    if given & bound:
        return None
    rebound = frozenset(_bound_by(rest, updates=False))
    seen = isinstance(loop, tree.While) or any(isinstance(node, tree.If) for node in rest)
    return Admitted(walk.tests, walk.prepared, rest, given, bound, rebound, bound & tested, seen)


def _bound_by(body: Sequence[Statement], updates: bool) -> Iterator[str]:
    for node in body:
        if isinstance(node, tree.Assign):
            for target in node.targets:
                yield from target_names(target)
        elif isinstance(node, tree.AugmentedAssign) and updates:
            yield from target_names(node.target)
        elif isinstance(node, (tree.For, tree.With)):
            if isinstance(node, tree.For):
                yield from target_names(node.target)
            yield from _bound_by(node.body, updates)


def _targets_of(loop: tree.For | tree.While) -> Iterator[str]:
    """The names that a loop gives values."""
    if isinstance(loop, tree.For):
        yield from target_names(loop.target)


def _numbers_of(loop: tree.For | tree.While) -> Iterator[str]:
    """The names of numbers among those that a loop gives values; items of a list are data."""
    if isinstance(loop, tree.While) or not isinstance(loop.iterable, tree.Call):
        return
    function = loop.iterable.function.span.text
    if function == "enumerate" and isinstance(loop.target, tree.Tuple):
        yield from target_names(loop.target.elements[0])
    elif function != "zip":
        yield from target_names(loop.target)


class _Walk:
    """A walk through a body in the order in which it runs.

    Attributes:
        bound: the names that the body binds.
        carried: those that begin a round with the value of the one before.
        numbers: the names that the loop gives values, in most loops one that counts the rounds.
        assigned: those of the bound ones that have their value of this round.
        prepared: the statements that give the round its data.
        given: the names that they bind.
        tests: those of `if`s that are known before a round begins.
        acted: whether there was a backward pass, or the like, so far; forgetting gradients is not.
    """

    def __init__(self, loop: tree.For | tree.While) -> None:
        self.bound = frozenset(_bound_by(loop.body, updates=True))
        self.carried = self.bound - frozenset(_bound_by(loop.body, updates=False))
        targets = frozenset(_targets_of(loop))
        self.numbers = frozenset(_numbers_of(loop))
        self.assigned: set[str] = set()
        self.prepared: list[tree.Assign] = []
        self.given = targets - self.numbers
        self.tests: list[Expression] = []
        self.acted = False

    def block(self, body: Sequence[Statement], outermost: bool = False) -> bool:
        return all(self.statement(statement, outermost) for statement in body)

    def statement(self, node: Statement, outermost: bool) -> bool:
        if isinstance(node, tree.Assign):
            return (outermost and self._prepares(node)) or self._assign(node)
        if isinstance(node, tree.AugmentedAssign):
            if _is_data(node.target):
                self.acted = True
                return (
                    node.operator in _FOUR
                    and self.expression(node.target)
                    and self.expression(node.value)
                )
            return (
                isinstance(node.target, tree.Name)
                and node.operator in _FOUR
                and self.expression(node.target)
                and (self.expression(node.value) or self._is_number(node.value))
            )
        if isinstance(node, tree.ExpressionStatement):
            return self._call(node)
        if isinstance(node, tree.With):
            self.acted = True
            return len(node.items) == 1 and _is_no_grad(*node.items[0]) and self.block(node.body)
        if isinstance(node, tree.For):
            if not isinstance(node.target, tree.Name) or node.orelse:
                return False
            if not (self._are_names(node.iterable) or self._is_range(node.iterable)):
                return False
            self.assigned.add(node.target.name)
            return self.block(node.body)
        if isinstance(node, tree.If):
            return outermost and self._if(node)
        return isinstance(node, tree.Pass)

    def _assign(self, node: tree.Assign) -> bool:
        if len(node.targets) != 1:
            return False
        (target,) = node.targets
        if isinstance(target, tree.Attribute):
            return (
                target.name == "grad"
                and isinstance(target.value, tree.Name)
                and self.expression(target.value)
                and isinstance(node.value, tree.Constant)
                and node.value.value is None
            )
        call = grad_call(node.value)
        if call is not None:
            self.acted = True
            admitted = self._differentiates(call)
            self.assigned.update(target_names(target))
            return admitted and isinstance(target, (tree.Name, tree.Tuple))
        if not isinstance(target, tree.Name):
            return False
        if not self.expression(node.value) and not self._is_number(node.value):
            return False
        self.assigned.add(target.name)
        return True

    def _differentiates(self, call: tree.Call) -> bool:
        """`torch.autograd.grad(loss, x)`, of an output and inputs that have names; with
        `create_graph=True` of any output, and with a seed.
        """
        given = {each.name or number: each.value for number, each in enumerate(call.arguments)}
        if any(each.kind for each in call.arguments) or not {0, 1} <= given.keys():
            return False
        output, inputs = given.pop(0), given.pop(1)
        if not self._are_names(inputs):
            return False
        if not records_graph(call):
            return not given and isinstance(output, tree.Name) and output.name in self.assigned
        seed = given.pop("grad_outputs", given.pop(2, None))
        del given["create_graph"]
        return not given and self.expression(output) and (seed is None or self._is_seed(seed))

    def _is_seed(self, node: Expression) -> bool:
        """An expression that computes a seed, or `torch.ones_like(u)`."""
        return is_pure(node, Allowed(self._knows, PURE | {"ones_like"}))

    def _prepares(self, node: tree.Assign) -> bool:
        """Whether a statement gives the round its data: it depends on the number of the round, or
        on chance, and on nothing that a round does.
        """
        names = {name for target in node.targets for name in target_names(target)}
        if self.acted or len(node.targets) != 1 or not names:
            return False
        if not is_pure(node.value, Allowed(self._is_ready, PURE | CREATING)):
            return False
        if reads_gradient(node.value):
            return False
        if self.expression(node.value) and not self._selects(node.value):
            return False
        if isinstance(node.targets[0], (tree.Attribute, tree.Subscript)):
            return False
        self.prepared.append(node)
        self.given |= names
        if self._is_number(node.value):
            self.numbers |= names
        return True

    def _is_ready(self, name: str) -> bool:
        """Whether a name has its value before the round begins."""
        return name in self.numbers or name in self.given or name not in self.bound

    def _selects(self, node: Expression) -> bool:
        """Whether an expression has an index that is given to the round."""
        if isinstance(node, tree.Subscript) and names_in(node.index) & self.given:
            return True
        return any(map(self._selects, parts(node)))

    def _call(self, node: tree.ExpressionStatement) -> bool:
        """`loss.backward()`, `optimizer.step()`, `losses.append(loss.item())`."""
        call = node.value
        if not isinstance(call, tree.Call) or not isinstance(call.function, tree.Attribute):
            return False
        receiver = call.function.value
        if call.function.name == "zero_" and isinstance(receiver, tree.Attribute):
            return (
                receiver.name == "grad"
                and isinstance(receiver.value, tree.Name)
                and self.expression(receiver.value)
                and not call.arguments
            )
        if call.function.name in IN_PLACE and (
            isinstance(receiver, tree.Name) or _is_data(receiver)
        ):
            self.acted = True
            return (
                len(call.arguments) == 1
                and not (call.arguments[0].kind or call.arguments[0].name)
                and self.expression(receiver)
                and self.expression(call.arguments[0].value)
            )
        if not isinstance(receiver, tree.Name):
            return False
        if call.function.name in ("step", "zero_grad"):
            self.acted = self.acted or call.function.name == "step"
            return receiver.name not in self.bound and not call.arguments
        if call.function.name == "append":
            (value,) = [a.value for a in call.arguments] if len(call.arguments) == 1 else [call]
            return receiver.name not in self.bound and self._is_number(value)
        self.acted = True
        backward = call.function.name == "backward"
        return backward and receiver.name in self.assigned and not call.arguments

    def _is_number(self, node: Expression) -> bool:
        """Whether an expression computes a number: `total + loss.item() / 2`."""
        if isinstance(node, tree.Name):
            return node.name not in self.numbers or not self.acted
        if isinstance(node, tree.Constant):
            return type(node.value) in (int, float)
        if isinstance(node, tree.Call):
            return self._is_item(node) or self._is_size(node)
        if isinstance(node, tree.Binary):
            if any(symbol not in _FOUR for symbol, _ in node.rest):
                return False
        elif not isinstance(node, tree.Unary) or node.operator != "-":
            return False
        return all(map(self._is_number, parts(node)))

    def _is_item(self, node: tree.Call) -> bool:
        """`loss.item()` or `float(loss)`."""
        if isinstance(node.function, tree.Attribute):
            if node.function.name != "item" or node.arguments:
                return False
            return self.expression(node.function.value)
        of = self._argument_of(node, "float")
        return of is not None and self.expression(of)

    def _is_size(self, node: tree.Call) -> bool:
        """`abs` of a number."""
        of = self._argument_of(node, "abs")
        return of is not None and self._is_number(of)

    def _argument_of(self, node: tree.Call, name: str) -> Expression | None:
        """What a builtin function of one argument is called with, None for another call."""
        function, arguments = node.function, node.arguments
        if not isinstance(function, tree.Name) or function.name != name or name in self.bound:
            return None
        if len(arguments) != 1 or arguments[0].kind or arguments[0].name:
            return None
        return arguments[0].value

    def _is_range(self, node: Expression) -> bool:
        """`range` of numbers that are the same in every round."""
        return (
            isinstance(node, tree.Call)
            and isinstance(node.function, tree.Name)
            and node.function.name == "range"
            and "range" not in self.bound
            and all(self._counts(argument.value) for argument in node.arguments)
            and not names_in(node) & (self.numbers | self.given)
        )

    def _are_names(self, node: Expression) -> bool:
        """A name, or a list or tuple of names."""
        named = node.elements if isinstance(node, (tree.List, tree.Tuple)) else [node]
        return all(isinstance(each, tree.Name) and self.expression(each) for each in named)

    def expression(self, node: Expression) -> bool:
        return is_pure(node, Allowed(self._knows))

    def _knows(self, name: str) -> bool:
        """Whether a name can be read: it has its value of this round, or always the same."""
        if name in self.numbers:
            return False
        return (
            name not in self.bound
            or name in self.assigned
            or name in self.carried
            or name in self.given
        )

    def _if(self, node: tree.If) -> bool:
        """An `if` that decides by the number of the round, or by what a round computes, whether to
        do something more, or to leave the loop.
        """
        if len(node.branches) != 1 or node.orelse:
            return False
        test = node.branches[0][0]
        if self._counts(test):
            self.tests.append(test)
            return True
        return self._decides(test)

    def _decides(self, node: Expression) -> bool:
        """Whether an expression is true or false by numbers and tensors of the round."""
        if isinstance(node, tree.Logical) or (
            isinstance(node, tree.Unary) and node.operator == "not"
        ):
            return all(map(self._decides, parts(node)))
        if isinstance(node, tree.Comparison) and all(map(self._is_number, parts(node))):
            return len(node.rest) == 1 and node.rest[0][0] in COMPARISONS
        return self.expression(node)

    def _counts(self, node: Expression) -> bool:
        """Whether an expression is made of numbers and names that the body does not bind."""
        return _is_plain(node) and not names_in(node) & self.bound


def _is_plain(node: Expression) -> bool:
    """Whether an expression is made of numbers and names."""
    if isinstance(node, tree.Name):
        return True
    if isinstance(node, tree.Constant):
        return type(node.value) in (int, bool, float)
    if isinstance(node, (tree.Binary, tree.Comparison)):
        if isinstance(node, tree.Binary) and any(s not in _OF_COUNTS for s, _ in node.rest):
            return False
    elif not isinstance(node, (tree.Unary, tree.Logical)):
        return False
    return all(map(_is_plain, parts(node)))


def _is_data(node: Expression) -> bool:
    """`p.data`."""
    return (
        isinstance(node, tree.Attribute)
        and node.name == "data"
        and isinstance(node.value, tree.Name)
    )


def grad_call(node: Expression) -> tree.Call | None:
    """The call in `torch.autograd.grad(…)` and in `torch.autograd.grad(…)[0]`, None for others."""
    if isinstance(node, tree.Subscript):
        first = isinstance(node.index, tree.Constant) and node.index.value == 0
        return grad_call(node.value) if first else None
    if (
        isinstance(node, tree.Call)
        and isinstance(node.function, tree.Attribute)
        and node.function.name == "grad"
        and isinstance(node.function.value, tree.Attribute)
        and node.function.value.name == "autograd"
    ):
        return node
    return None


def records_graph(call: tree.Call) -> bool:
    """Whether a call says `create_graph=True`."""
    return any(
        each.name == "create_graph"
        and isinstance(each.value, tree.Constant)
        and each.value.value is True
        for each in call.arguments
    )


def _is_no_grad(context: Expression, target: Expression | None) -> bool:
    return (
        target is None
        and isinstance(context, tree.Call)
        and not context.arguments
        and isinstance(context.function, tree.Attribute)
        and context.function.name == "no_grad"
        and isinstance(context.function.value, tree.Name)
    )
