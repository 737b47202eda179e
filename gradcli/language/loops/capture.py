"""What a trace sees of the program around the round: names, functions, and tensors from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.arrays.dtypes import DType
from gradcli.arrays.fusion.write_barrier import before_write
from gradcli.arrays.storage import Storage
from gradcli.autograd.tensor import Tensor
from gradcli.language import tree
from gradcli.language.compiler.names import is_direct
from gradcli.language.functions.calls import Function
from gradcli.language.library import namespace
from gradcli.language.loops.expressions import PURE, is_of, is_pure_body, parts
from gradcli.language.loops.guards import Guard
from gradcli.language.loops.loop_carried import Admitted
from gradcli.language.loops.modules import forward_functions, members_of, method_of, tensors_of
from gradcli.language.loops.optimizers import check_optimizer, parts_of
from gradcli.language.objects.attributes import Module as Namespace
from gradcli.language.tree.base import Expression
from gradcli.language.tree.scopes import Scope, Variables, target_names
from gradcli.nn.module import Module
from gradcli.trace.builder import TraceBuilder
from gradcli.trace.graph_break import GraphBreak
from gradcli.trace.ir import Inline, Value

if TYPE_CHECKING:
    from gradcli.language.compiler.base import Compiler

_PLAIN = frozenset({bool, int, float, str, type(None), Namespace, DType})
"""Types of what operations may be given beside tensors."""

COUNT_WRITES = Inline("{0}.version += {1}", "count_writes")
"""The version of a storage goes up."""


class Inside(NamedTuple):
    """A function of the program whose body is watched.

    Attributes:
        scope: the names that are its own.
        receiver: the name of what a method is called on, "" for another function.
        instance: that module.
    """

    scope: Scope
    receiver: str
    instance: Module | None


class Watch:
    """Finds what a round reads from outside: the guard watches it, and the text has a variable for
    each tensor.

    Attributes:
        bound: the names that the round binds.
        rebound: those of them that it gives other values.
        given: the names of what it is given.
        made: the arrays of the tensors that the round made so far, by the names that it gave them.
        inputs: the tensors that it was given by other names, which may be others in the next round.
        numbers: the names of numbers that are the same ones in every round.
    """

    def __init__(
        self,
        compiler: Compiler,
        scope: Scope,
        plan: Admitted,
        variables: Variables,
        text: TraceBuilder,
    ) -> None:
        self.compiler = compiler
        self.scope = scope
        self.variables = variables
        self.text = text
        self.guard = Guard(compiler.state, variables)
        self.bound = plan.bound
        self.rebound = plan.rebound
        self.given = plan.given
        self.made: dict[str, Value] = {}
        self.inputs: dict[str, Tensor] = {}
        self.numbers: set[str] = set()
        self._functions: list[tuple[Function, Module | None]] = []
        self._modules: list[Module] = []

    def read(self, node: Expression) -> Any:
        """The value of an expression of the round, which has no effect."""
        return self.compiler.expression(node, self.scope)(self.variables)

    def expression(self, node: Expression, inside: Inside | None = None) -> None:
        """Watch what an expression names, one of the round or of a function that it calls; raises
        GraphBreak where that may change.
        """
        if inside is not None and is_of(node, inside.receiver):
            self._attribute(node, inside)
            return
        if isinstance(node, tree.Call) and (
            isinstance(node.function, tree.Name)
            or (inside is not None and is_of(node.function, inside.receiver))
        ):
            if isinstance(node.function, tree.Name):
                self._callee(node.function, inside)
            elif inside is not None:
                self._method(node.function, inside)
            for argument in node.arguments:
                self.expression(argument.value, inside)
            return
        if isinstance(node, tree.Name):
            self._name(node, inside)
        for part in parts(node):
            self.expression(part, inside)

    def prepared(self, node: Expression) -> None:
        """Raise GraphBreak where what runs ahead of the round could have an effect on it."""
        if isinstance(node, tree.Call) and type(self.read(node.function)) is Function:
            raise GraphBreak(
                "B06", "what runs ahead of the iteration calls a function of the program"
            )
        for part in parts(node):
            self.prepared(part)

    def tensor(self, tensor: Tensor) -> Value:
        """The variable of a tensor that the round did not make."""
        if tensor.grad_fn is not None:
            raise GraphBreak("B06", "a tensor from outside the iteration was computed with a graph")
        self.guard.watch(tensor)
        return self.text.constant(tensor.array)

    def announce_write(self, target: Value) -> None:
        """Write what lets plans keep the values that are about to be overwritten."""
        announce = Inline("if {0}.sources: {1}({2})", "before_write")
        self.text.effect(announce, [self.guard.state, before_write, target], state=())

    def storage(self, tensor: Tensor) -> Storage:
        """The storage of a tensor that the round writes to."""
        storage = tensor.storage
        if type(storage) is not Storage or storage.mirrors is not None:
            raise GraphBreak("B06", "a write to a view of conjugates")
        self.guard.storages[tensor] = storage
        return storage

    def iterable(self, target: Expression, node: Expression, values: Any) -> None:
        """Watch what a loop inside the round goes through."""
        if type(values) is range:
            assert isinstance(node, tree.Call)
            self.numbers |= set(target_names(target))
            for argument in node.arguments:
                self.expression(argument.value)
        elif type(values) not in (list, tuple):
            raise GraphBreak("B06", "a loop over something that is no list, tuple or range")
        elif isinstance(node, tree.Name):
            self.known(node)
            self.guard.lists.append((values, tuple(values)))
        else:
            self.expression(node)

    def _name(self, node: tree.Name, inside: Inside | None) -> None:
        if inside is None:
            if node.name in self.made or node.name in self.inputs:
                return
            if node.name in self.given:
                self._input(node)
                return
        elif inside.scope.distance(node.name) is not None:
            if inside.scope.distance(node.name):
                raise GraphBreak("B06", "a name of a function around this one")
            return
        value = self.known(node, inside)
        if type(value) is Tensor:
            self.tensor(value)
        elif type(value) not in _PLAIN:
            raise GraphBreak("B06", "a name holds something that operations are not given")
        elif node.name in self.bound and node.name not in self.numbers:
            raise GraphBreak("B06", "a name that may hold another value in the next iteration")

    def _input(self, node: tree.Name) -> None:
        """Let the text read a tensor that this round was given."""
        value = self.read(node)
        if type(value) is not Tensor or value.requires_grad or not is_direct(node, self.scope):
            raise GraphBreak(
                "B06",
                "the iteration is given something that is no tensor, or one that requires grad",
            )
        self.inputs[node.name] = value
        self.text.load(Inline("{0}[{1}].array"), [self.variables, node.name], value.array)

    def known(self, node: tree.Name, inside: Inside | None = None) -> Any:
        """The value of a name from outside, which must stay what it is."""
        if inside is None:
            read, variables = self.compiler.expression(node, self.scope), self.variables
        else:
            read, variables = self.compiler.expression(node, Scope()), self.compiler.values
            if node.name in self.rebound:
                raise GraphBreak("B06", "a name that the iteration binds again")
        value = read(variables)
        if node.name not in self.rebound:
            self.guard.names[node.name, inside is None] = read, variables, value
        return value

    def _callee(self, node: tree.Name, inside: Inside | None) -> None:
        own = inside is not None and inside.scope.distance(node.name) is not None
        if own or node.name in self.bound:
            raise GraphBreak("B06", "a call of something that the iteration itself makes")
        value = self.known(node, inside)
        if type(value) is Function:
            self._function(value)
        elif isinstance(value, Module):
            self.module(value)
        elif node.name not in PURE or not _is_of_torch(node.name, value):
            raise GraphBreak("B06", "a call of something that may do more than compute")

    def optimizer(self, optimizer: Any) -> None:
        """Watch an optimizer that steps."""
        check_optimizer(optimizer)
        self.guard.rely_on(lambda: parts_of(optimizer))

    def module(self, module: Module) -> None:
        """Watch a module that is called: its tensors, settings, and what its `forward` names."""
        if module in self._modules:
            return
        self._modules.append(module)
        self.guard.rely_on(lambda: members_of(module))
        for tensor in tensors_of(module):
            self.tensor(tensor)
        for forward, each in forward_functions(module):
            self._function(forward, each)

    def _attribute(self, node: Expression, inside: Inside) -> None:
        """What a method reads of its receiver; `module` watches tensors and modules."""
        value = self._member(node, inside)
        if type(value) is not Tensor and type(value) not in _PLAIN:
            raise GraphBreak("B06", "a method reads something that is no tensor and no setting")

    def _method(self, node: Expression, inside: Inside) -> None:
        """What a method calls of its receiver: a module below it, or another method."""
        assert isinstance(node, tree.Attribute)
        owner = self._member(node.value, inside)
        if not isinstance(owner, Module):
            raise GraphBreak("B06", "a method of something that is no module")
        if node.name not in owner._modules:
            self._function(method_of(owner, node.name), owner)

    def _member(self, node: Expression, inside: Inside) -> Any:
        if isinstance(node, tree.Name):
            return inside.instance
        assert isinstance(node, tree.Attribute)
        owner = self._member(node.value, inside)
        for table in ("_modules", "_parameters", "_buffers", "_values"):
            found = getattr(owner, table, {})
            if node.name in found:
                return found[node.name]
        raise GraphBreak("B06", "a module has no such member")

    def _function(self, function: Function, instance: Module | None = None) -> None:
        """Watch what a function of the program names beside its own variables; for a method, with
        what it is called on.
        """
        if (function, instance) in self._functions:
            return
        self._functions.append((function, instance))
        receiver = "" if instance is None else function.signature.positional[0]
        if not is_pure_body(function.statements, receiver):
            raise GraphBreak("B06", "a function does more than compute")
        for value in function.defaults.values():
            if type(value) is Tensor:
                self.tensor(value)
        inside = Inside(function.scope, receiver, instance)
        for statement in function.statements:
            if isinstance(statement, (tree.Assign, tree.Return)) and statement.value:
                self.expression(statement.value, inside)


def _is_of_torch(name: str, value: Any) -> bool:
    """Whether a value is the function of that name of PyTorch's."""
    value = getattr(value, "__wrapped__", value)  # an op that is generated since
    return any(
        namespace.module(module).names.get(name) is value
        for module in ("torch", "torch.nn.functional")
    )
