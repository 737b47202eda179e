"""A traced round: it runs as every round does, and is written as straight-line Python meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.language import tree
from gradcli.language.compiler.assignment import target_store
from gradcli.language.compiler.handling import within
from gradcli.language.compiler.names import is_direct
from gradcli.language.limits import too_many_steps
from gradcli.language.loops.capture import COUNT_WRITES, Watch
from gradcli.language.loops.compiled import Departure, Written, kind_of
from gradcli.language.loops.gradients import Gradients
from gradcli.language.loops.loop_carried import IN_PLACE, Admitted, grad_call, records_graph
from gradcli.language.loops.lower_backward import holds_values, is_setting, write_backward
from gradcli.language.loops.lower_forward import operations_of, write_operations
from gradcli.language.loops.numbers import NUMBERS, Numbers
from gradcli.language.loops.optimizers import gradients_of, write_step
from gradcli.language.objects.iteration import iterate
from gradcli.language.objects.methods import METHODS
from gradcli.language.tree.base import Expression, Statement
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.ops.codegen.runtime import EVERYDAY, number_and_array
from gradcli.optim.optimizer import Optimizer
from gradcli.trace.builder import TraceBuilder
from gradcli.trace.codegen import functions_of
from gradcli.trace.graph_break import GraphBreak
from gradcli.trace.guards import same
from gradcli.trace.ir import Inline, Value
from gradcli.trace.passes import optimized

if TYPE_CHECKING:
    from gradcli.language.compiler.base import Compiler

_UFUNCS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


class Trace:
    """Runs one round of a loop and writes it.

    Attributes:
        guard: what must still hold for the text to be what a round does.
        text: what is written.
        gradients: what happens to those of leaves.
        numbers: what is made of numbers.
        updated: the parameters that the round writes to.
        named: the arrays of the tensors that the round names, by name.
        optimizers: those that step.
        counted: the names of numbers that the round binds.
        grown: the lists that it appends to.
        steps: what it counts as steps, beside itself.
        departed: whether the round did something that few do.
        result: what does the same as the round, None where text cannot say what it did.
    """

    def __init__(
        self, compiler: Compiler, scope: Scope, plan: Admitted, variables: Variables
    ) -> None:
        self.compiler = compiler
        self.scope = scope
        self.plan = plan
        self.variables = variables
        self.state = compiler.state
        self.text = TraceBuilder(self.state.defer_from)
        self.watch = Watch(compiler, scope, plan, variables, self.text)
        self.guard = self.watch.guard
        self.named = self.watch.made
        self.updated: list[Tensor] = []
        self.optimizers: list[Optimizer] = []
        self.counted: list[str] = []
        self.grown: list[list[Any]] = []
        self.steps = 0
        self.departed = False
        self.result: Written | None = None
        self._since = self.state.sequence_nr
        self.gradients = Gradients(self.text, self.watch)
        self.numbers = Numbers(self.text, self.watch)
        self._written = True
        self._has_run = False

    def run(self) -> Any:
        """Run the body once.

        Returns:
            The signal that it ended with, None for none.
        """
        left = self.compiler.steps.left
        try:
            for statement in self.plan.prepared:
                self.watch.prepared(statement.value)
        except GraphBreak:
            self._written = False
        signal = self._block(self.plan.rest)
        self.steps = left - self.compiler.steps.left
        if self._written and not self.departed:
            with suppress(GraphBreak):
                self.result = self._finished()
        return signal

    def _finished(self) -> Written:
        text = self.text
        if self.plan.tested & self.named.keys():
            raise GraphBreak("B06", "a test of the loop is of a tensor that the iteration makes")
        nodes = [self.variables[name].grad_fn for name in self.named]
        if self.plan.seen and any(holds_values(node, self._since) for node in nodes if node):
            raise GraphBreak("B06", "the graph of what the loop shows keeps values")
        self.gradients.finish(unseen=not (self.plan.tests or self.plan.prepared))
        made = self.state.sequence_nr - self._since
        text.effect(Inline("{0}.sequence_nr += {1}"), [self.state, made], state=())
        text.effect(Inline("{0}.left -= {1}"), [self.compiler.steps, self.steps], state=())
        self.guard.values = text.trace.guards
        updated = list(dict.fromkeys([*self.updated, *self.gradients.lasting]))
        looked_at = [
            each for one in text.trace.guards for each in one.inputs if not is_setting(each)
        ]
        if any(np.may_share_memory(t.array, each) for t in updated for each in looked_at):
            raise GraphBreak("B06", "a check reads what the iteration writes to")
        text.trace.outputs = [*self.named.values(), *self.gradients.unseen.values()]
        return Written(
            *functions_of(optimized(text.trace)),
            self.guard,
            {name: kind_of(tensor.array) for name, tensor in self.watch.inputs.items()},
            list(self.named),
            updated,
            [leaf for leaf in self.guard.gradients if leaf not in self.gradients.unseen],
            list(self.gradients.unseen),
            self.optimizers,
            self.counted,
            self.grown,
            self.steps,
            self._since,
        )

    # --- statements -----------------------------------------------------------------------------

    def _block(self, body: list[Statement]) -> Any:
        for statement in body:
            if isinstance(statement, tree.With):
                self._with(statement)
            elif isinstance(statement, tree.For):
                self._for(statement)
            elif isinstance(statement, tree.If):
                signal = self._if(statement)
                if signal is not None:
                    return signal
            else:
                self._statement(statement)
        return None

    def _if(self, node: tree.If) -> Any:
        """Run an `if`, and write that a round ends where its test holds: it is run again in the
        ordinary way. One that goes by what is known before a round does not hold.
        """
        ((test, body),) = node.branches
        if test in self.plan.tests:
            return None
        if self._written:
            recorded = self.text.trace.instructions
            after = recorded[-1] if recorded else None
            try:
                decision, read = self.numbers.test_of(test)
                departure = Inline(f"if {decision}: raise {{{len(read)}}}")
                self.text.check(departure, [*read, Departure], after)
            except GraphBreak:
                self._written = False
        holds = self.watch.read(test)
        self.state.place = test.span
        if not holds:
            return None
        self.departed = True
        return self.compiler.block(body, self.scope)(self.variables)

    def _statement(self, node: Statement) -> None:
        """Run a statement, and write it if everything before it could be written."""
        if not self._written:
            self.compiler.statement(node, self.scope)(self.variables)
            return
        self._has_run = False
        self.text.span, self.text.stack = node.span, ()
        try:
            _STATEMENTS[type(node)](self, node)
        except GraphBreak:
            self._written = False
            if not self._has_run:
                self.compiler.statement(node, self.scope)(self.variables)

    def _run(self, node: Statement) -> None:
        """Run a statement; what happens before may be done once more."""
        self._has_run = True
        self.compiler.statement(node, self.scope)(self.variables)

    def _with(self, node: tree.With) -> None:
        ((context, _),) = node.items
        enter = self.compiler.expression(context, self.scope)
        within(self.compiler, enter, context.span, None, lambda _: self._block(node.body))(
            self.variables
        )

    def _for(self, node: tree.For) -> None:
        """A loop inside; each of its rounds counts as a step."""
        steps, span = self.compiler.steps, node.iterable.span
        values = self.watch.read(node.iterable)
        self.state.place = span
        store = target_store(self.compiler, node.target, self.scope)
        try:
            self.watch.iterable(node.target, node.iterable, values)
        except GraphBreak:
            self._written = False
        for value in iterate(values):
            steps.left -= 1
            if steps.left < 0:
                raise too_many_steps()
            store(self.variables, value)
            self._block(node.body)
            self.state.place = span

    # --- names ----------------------------------------------------------------------------------

    def _assign(self, node: tree.Assign) -> None:
        (target,) = node.targets
        if isinstance(target, tree.Attribute):
            self._forget_gradient(node, target)
            return
        call = grad_call(node.value)
        if call is not None:
            self._differentiate(node, target, call)
            return
        assert isinstance(target, tree.Name)
        if self.numbers.gives_number(node.value):
            self._count(node, target, node.value)
            return
        self.watch.expression(node.value)
        write_operations(self.text, lambda: self._run(node))
        value = self.watch.read(target)
        if type(value) in NUMBERS and is_direct(target, self.scope):
            self.watch.numbers.add(target.name)  # which comes from a shape, as no item was read
        else:
            self._name(target, value)

    def _name(self, target: Expression, value: Any) -> None:
        """Note that a name is given to a tensor of the round."""
        if type(value) is not Tensor or not is_direct(target, self.scope):
            raise GraphBreak("B06", "a name is given to something that is no tensor")
        self.named[target.name] = self.text.value_of(value.array)

    def _update(self, node: tree.AugmentedAssign) -> None:
        """`p -= lr * p.grad` of a parameter where nothing is recorded, `p.data -= lr * p.grad`, or
        `total += number`.
        """
        if isinstance(node.target, tree.Attribute):
            assert isinstance(node.target.value, tree.Name)
            self._write_to(node, node.target.value, node.operator, node.value)
            return
        assert isinstance(node.target, tree.Name)
        tensor = self.watch.read(node.target)
        if type(tensor) in NUMBERS:
            whole = tree.Binary(node.span, node.target, [(node.operator, node.value)])
            self._count(node, node.target, whole)
            return
        if self.state.grad_enabled:
            raise GraphBreak("B06", "a write while gradients are recorded")
        self._write_to(node, node.target, node.operator, node.value)

    def _write_to(self, node: Statement, name: tree.Name, operator: str, value: Expression) -> None:
        """Run a statement that changes a tensor from outside in place, and write it."""
        tensor = self.watch.read(name)
        if type(tensor) is not Tensor or name.name in self.named:
            raise GraphBreak("B06", "a write to something that the iteration was not given")
        self.watch.expression(name)
        target = self.text.value_of(tensor.array)
        right = operations_of(self.text, self.watch, value)
        before = tensor.version
        self._run(node)
        writes = tensor.version - before  # none through `.data`
        self._write_update(operator, tensor, target, right)
        if writes:
            self.text.effect(COUNT_WRITES, [self.watch.storage(tensor), writes], state=())

    def _write_update(self, operator: str, tensor: Tensor, target: Value, right: Any) -> None:
        text, array = self.text, target.array
        if type(array) is not np.ndarray or array.dtype not in EVERYDAY:
            raise GraphBreak(
                "B04", "a write to an array that is not of float32 or float64 on the host"
            )
        if tensor.array is not array:
            raise GraphBreak("B06", "a tensor that is written to has another array by then")
        if type(right) is Tensor:
            if (
                np.may_share_memory(right.array, array)
                or right.array.dtype is not array.dtype
                or right.array.shape != array.shape
            ):
                raise GraphBreak(
                    "B06", "a write of another dtype or shape, or of overlapping memory"
                )
            step = text.value_of(right.array)
        else:
            mixed, _, step = number_and_array(array, right)
            if mixed:
                raise GraphBreak("B06", "a write of a number of another dtype")
        self.watch.announce_write(target)
        text.effect(_UFUNCS[operator], [target, step, target], writes=[target])
        self.updated.append(tensor)

    def _count(self, node: Statement, target: tree.Name, value: Expression) -> None:
        """Bind a number to a name."""
        number, read = self.numbers.text_of(value)
        before: Any = self.variables.get(target.name)
        self._run(node)
        after: Any = self.variables[target.name]
        if type(after) is not type(before) or (type(after) is int and "*" in number):
            raise GraphBreak("B06", "a product of integers grows without bounds")
        self.numbers.bind(target, number, read, after)
        self.counted.append(target.name)

    # --- calls ----------------------------------------------------------------------------------

    def _call(self, node: tree.ExpressionStatement) -> None:
        call = node.value
        assert isinstance(call, tree.Call)
        assert isinstance(call.function, tree.Attribute)
        if call.function.name == "append":
            assert isinstance(call.function.value, tree.Name)
            values = self.watch.known(call.function.value)
            if type(values) is not list:
                raise GraphBreak("B06", "an append to something that is no list")
            number, read = self.numbers.text_of(call.arguments[0].value)
            self._run(node)
            places = [METHODS[list]["append"], values]
            append = Inline(f"{{{len(read)}}}({{{len(read) + 1}}}, {number})")
            self.text.effect(append, [*read, *places], state=())
            self.grown.append(values)
        elif call.function.name in ("step", "zero_grad"):
            self._optimize(node, call.function)
        elif call.function.name in IN_PLACE:
            self._call_in_place(node, call, call.function)
        elif isinstance(call.function.value, tree.Attribute):
            self._call_on_gradient(node, call.function.value)
        else:
            self._backward(node, call.function.value)

    def _backward(self, node: tree.ExpressionStatement, of: Expression) -> None:
        """`loss.backward()`."""
        for leaf, gradient in self._derivatives(of).items():
            self.gradients.arrive(leaf, gradient)
        self._run(node)
        self.gradients.check_arrived()

    def _optimize(self, node: tree.ExpressionStatement, method: tree.Attribute) -> None:
        """`optimizer.zero_grad()`, `model.zero_grad()`, `optimizer.step()`."""
        assert isinstance(method.value, tree.Name)
        target = self.watch.known(method.value)
        if method.name == "zero_grad":
            for tensor in gradients_of(target):
                self.gradients.forget(tensor)
            self._run(node)
            return
        self.watch.optimizer(target)
        self.updated += write_step(self.gradients, target)
        self.optimizers.append(target)
        self._run(node)

    def _derivatives(self, of: Expression) -> dict[Tensor, Value]:
        """Write the backward pass from a tensor; the gradients of the leaves that it reaches."""
        tensor = self.watch.read(of)
        if type(tensor) is not Tensor or tensor.grad_fn is None or tensor.output_nr:
            raise GraphBreak("B06", "a backward pass from something that has no graph")
        seed = tensor.array.dtype.type(1)
        if type(tensor.array) is not type(seed):
            raise GraphBreak("B06", "a backward pass from more than one element")
        arrived = write_backward(self.text, tensor.grad_fn, seed, self._since)
        return {leaf.variable: gradient for leaf, gradient in arrived.items()}

    def _differentiate(self, node: tree.Assign, target: Expression, call: tree.Call) -> None:
        """`g, = torch.autograd.grad(loss, x)`."""
        names = target.elements if isinstance(target, tree.Tuple) else [target]
        if records_graph(call):
            for argument in call.arguments:
                self.watch.expression(argument.value)
            write_operations(self.text, lambda: self._run(node))
            for name in names:
                self._name(name, self.watch.read(name))
            return
        inputs = call.arguments[1].value
        self.watch.expression(inputs)
        derivatives = self._derivatives(call.arguments[0].value)
        self._run(node)
        leaves = self.watch.read(inputs)
        leaves = leaves if type(leaves) in (list, tuple) else [leaves]
        if node.value is not call:
            leaves = leaves[:1]
        for leaf, name in zip(leaves, names, strict=True):
            value, gradient = self.watch.read(name), derivatives.get(leaf)
            if type(value) is not Tensor or gradient is None:
                raise GraphBreak("B06", "a gradient of something that is no leaf")
            if not same(value.array, gradient.array):
                raise GraphBreak("B02", "a gradient gave other bits when it was computed again")
            self.text.stand_for(value.array, gradient)
            self._name(name, value)

    def _call_in_place(
        self, node: tree.ExpressionStatement, call: tree.Call, method: tree.Attribute
    ) -> None:
        """`p.sub_(lr * p.grad)`, `p.data.sub_(lr * p.grad)`."""
        of = method.value
        if isinstance(of, tree.Attribute):
            of = of.value
        elif self.state.grad_enabled:
            raise GraphBreak("B06", "a write while gradients are recorded")
        assert isinstance(of, tree.Name)
        self._write_to(node, of, IN_PLACE[method.name], call.arguments[0].value)

    def _call_on_gradient(self, node: tree.ExpressionStatement, of: tree.Attribute) -> None:
        """`p.grad.zero_()`."""
        self.watch.expression(of.value)
        leaf = self.watch.read(of.value)
        if type(leaf) is not Tensor:
            raise GraphBreak("B06", "the gradient of something that is no tensor")
        self._run(node)
        self.gradients.zero(leaf)

    def _forget_gradient(self, node: tree.Assign, target: tree.Attribute) -> None:
        """`p.grad = None`."""
        self.watch.expression(target.value)
        leaf = self.watch.read(target.value)
        if type(leaf) is not Tensor:
            raise GraphBreak("B06", "the gradient of something that is no tensor")
        self.gradients.forget(leaf)
        self._run(node)


_STATEMENTS: dict[type, Callable[[Trace, Any], None]] = {
    tree.Assign: Trace._assign,
    tree.AugmentedAssign: Trace._update,
    tree.ExpressionStatement: Trace._call,
    tree.Pass: lambda trace, node: None,
}
