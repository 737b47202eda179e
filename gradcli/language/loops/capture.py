"""Capture: runs one iteration of a loop and records it.

The program's own syntax is walked, into the functions, methods and modules that it calls. What an
expression gives comes from the closure that the interpreter would run, over operands that the walk
has found; so values, errors and places are the interpreter's. Meanwhile ops, writes and draws are
heard by the recorder, and the walk records what is not the engine's: numbers, tests, names,
attributes, lists. Values from outside are guarded; a test becomes a check with a side exit. When
something cannot be recorded, the rest of the iteration runs in the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from collections.abc import Iterator as HostIterator
from typing import TYPE_CHECKING, Any

from gradcli.autograd.modes import GradMode
from gradcli.autograd.tensor import Tensor
from gradcli.errors import Span
from gradcli.language import tree
from gradcli.language.compiler.assignment import unpacked
from gradcli.language.compiler.displays import put
from gradcli.language.compiler.handling import within
from gradcli.language.compiler.names import name_store
from gradcli.language.compiler.operations import end_of_step
from gradcli.language.functions.calls import Function
from gradcli.language.functions.control_flow import BREAK, CONTINUE, Run
from gradcli.language.limits import enter_host_call, too_many_steps
from gradcli.language.loops.calls import call
from gradcli.language.loops.compiled import Input, SideExit
from gradcli.language.loops.gradients import Gradients
from gradcli.language.loops.guards import Guard, is_same_value
from gradcli.language.loops.locations import Attribute, Item, Location, OuterName, OwnName, read_op
from gradcli.language.loops.loop_carried import LoopPlan
from gradcli.language.loops.outside import Outside
from gradcli.language.loops.recorder import Recorder
from gradcli.language.loops.symbols import (
    NUMBERS,
    IterationBuilder,
    Symbol,
    concrete,
    holds_tensor,
    is_symbolic,
)
from gradcli.language.objects.attributes import Module as Namespace
from gradcli.language.objects.attributes import get_attribute, set_attribute
from gradcli.language.objects.descriptors import BoundMethod, Property
from gradcli.language.objects.instances import UserClass
from gradcli.language.objects.iteration import Iterator, drawing, iterate
from gradcli.language.objects.operators import HOST_OPERATORS, TENSOR_OPERATORS, augmented
from gradcli.language.objects.subscripts import get_item, set_item
from gradcli.language.tree.base import Expression, Statement
from gradcli.language.tree.scopes import PARENT, Scope, Variables, comprehension_scope
from gradcli.nn.module import Module
from gradcli.nn.traversal import Walk as ModuleWalk
from gradcli.optim.optimizer import Optimizer
from gradcli.trace.graph_break import GraphBreak
from gradcli.trace.guards import kind_of
from gradcli.trace.ir import Inline, Value

if TYPE_CHECKING:
    from gradcli.language.compiler.base import Compiler

_HOLES = Scope(Scope(), [str(number) for number in range(64)])
"""The scope of an expression whose operands have been found: they are called by numbers."""

_IF = Inline("if {0}: raise {1}", "exit_if")
_UNLESS = Inline("if not {0}: raise {1}", "exit_unless")
_ITEM = Inline("{0}.item()", "item")
_CONSTANT = (int, float, bool, str, type(None), complex)


class Frame:
    """Code that runs: the loop's own, or that of a function or comprehension.

    Attributes:
        scope: which names are its own.
        variables: their values.
    """

    __slots__ = ("scope", "variables")

    def __init__(self, scope: Scope, variables: Variables) -> None:
        self.scope = scope
        self.variables = variables


class Capture:
    """Walks one iteration.

    Attributes:
        builder: records instructions.
        guard: what the iteration relies on.
        inputs: what it is given.
        stored: what it binds or sets in places that outlive it, by place.
        grown: the lists that it appends to.
        carried: the places that are known to hold another value in every iteration.
        found: the constants that it read in places, to see whether they are carried after all.
        broken: why recording ended, None while it goes on.
        side_exits: how many checks may send an iteration back to the interpreter.
    """

    def __init__(
        self,
        compiler: Compiler,
        scope: Scope,
        plan: LoopPlan,
        variables: Variables,
        carried: set[Any],
    ) -> None:
        self.compiler = compiler
        self.state = compiler.state
        self.steps = compiler.steps
        self.plan = plan
        self.carried = carried
        self.frame = Frame(scope, variables)
        self.builder = IterationBuilder(self.state.defer_from)
        self.guard = Guard(self.state)
        self.outside = Outside(self.builder, self.guard)
        self.gradients = Gradients(self.builder, self.outside)
        self.recorder = Recorder(self.outside, self.gradients, self.end)
        self.inputs: list[Input] = []
        self.stored: dict[Any, tuple[Location, Any]] = {}
        self.found: dict[Any, Any] = {}
        self.optimizers: list[Optimizer] = []
        self.grown: list[list[Any]] = []
        self.called_as_is: list[Any] = []
        self.holes = _HOLES
        self.broken: GraphBreak | None = None
        self.side_exits = 0
        self.since = self.state.sequence_nr
        # What belongs to this iteration alone: variables of calls, lists that it made.
        self.local: dict[int, Any] = {}
        self._symbols: dict[Any, Symbol] = {}
        self._bodies: dict[Function, Run] = {}
        self._bound: dict[str, Any] | None = None
        self._returned: Any = None
        self._relied: set[int] = set()

    # --- running --------------------------------------------------------------------------------

    def run(self, body: Sequence[Statement]) -> Any:
        """Run the body of the loop once; returns the signal that it ended with."""
        self.recorder.install()
        try:
            for name in self.plan.targets:
                self._expect(name)
            signal = self.block(body, self.frame)
        finally:
            self.recorder.remove()
            for function, own in self._bodies.items():
                function.body = own
        return concrete(signal)

    def end(self, found: GraphBreak) -> None:
        """Recording ends here."""
        if self.broken is None:
            if found.span is None:
                found.span = self.state.place
            self.broken = found
            self.recorder.muted = True

    def refuse(self, reason: str, hint: str | None = None, span: Span | None = None) -> None:
        """Recording ends, for a reason."""
        self.end(GraphBreak("B06", reason, hint, span))

    def attempt(self, record: Callable[..., Any], *args: Any) -> Any:
        """Record something, unless recording has ended or ends with it: None then."""
        if self.broken is not None:
            return None
        self.builder.span, self.builder.stack = self.state.place, tuple(self.state.stack)
        try:
            return record(*args)
        except GraphBreak as found:
            self.end(found)
            return None

    def walked(self, function: Function) -> None:
        """Walk a function's body whenever it is called in this iteration."""
        if function in self._bodies:
            return
        self._bodies[function] = own = function.body

        def body(variables: Variables) -> Any:
            if self.broken is not None:
                return own(variables)
            self.local[id(variables)] = variables
            bound, self._bound = self._bound, None
            for name, value in (bound or {}).items():
                if is_symbolic(value):
                    self._symbols[id(variables), name] = value
            signal = self.block(function.statements, Frame(function.scope, variables))
            if signal is None:
                return None
            if bound is None and self._is_lost(signal[0]):
                self.refuse("a function that the host calls returns a number that varies")
            self._returned = signal[0], concrete(signal[0])
            return (self._returned[1],)

        function.body = body

    def called(
        self, function: Function | None, bound: dict[str, Any] | None, call: Callable[[], Any]
    ) -> Any:
        """What a call gives that may run functions of the program; `bound` has the arguments of
        the first.
        """
        self._bound = bound
        self._returned = None
        value = call()
        self._bound = None
        return self.returned(value)

    def returned(self, value: Any) -> Any:
        """What a call gave, with the symbols that the function returned."""
        if self._returned is not None and self._returned[1] is value:
            return self._returned[0]
        if type(value) is Tensor and self.broken is None:
            if not self.builder.has(value):
                self.refuse("a call gives a tensor that was not recorded")
        return self.builder.known(value)

    def _is_lost(self, value: Any) -> bool:
        """Whether a value is a symbol that its number would not tell."""
        return is_symbolic(value) and not (type(value) is Symbol and type(value.now) is float)

    def walk_methods(self, cls: Any) -> None:
        """Walk the bodies of a class's functions whenever they are called in this iteration."""
        if not isinstance(cls, UserClass) or id(cls) in self._relied:
            return
        self._relied.add(id(cls))
        for host in cls.host.__mro__:
            known = vars(host).get("language_class")
            if known is not None:
                self.guard.rely_on_contents(known.names)
                for value in known.names.values():
                    for function in functions_in(value):
                        self.walked(function)

    # --- statements -----------------------------------------------------------------------------

    def block(self, body: Sequence[Statement], frame: Frame) -> Any:
        """Run statements in a row."""
        for node in body:
            handler = _STATEMENTS.get(type(node))
            if self.broken is None and handler is None:
                self.refuse(f"`{_word(node)}` is not recorded", span=node.span)
            if self.broken is not None or handler is None:
                signal = self.compiler.statement(node, frame.scope)(frame.variables)
            else:
                signal = handler(self, node, frame)
            if signal is not None:
                return signal
        return None

    def _pass(self, node: Statement, frame: Frame) -> None:
        """`pass`, `global`, `nonlocal`."""

    def _expression_statement(self, node: tree.ExpressionStatement, frame: Frame) -> None:
        self.value(node.value, frame)

    def _assign(self, node: tree.Assign, frame: Frame) -> None:
        value = self.value(node.value, frame)
        if len(node.targets) == 1 and isinstance(node.targets[0], tree.Name):
            target = node.targets[0]
            if f"{target.name}.grad" in node.value.span.text:  # which the interpreter watches
                self._warn_of_leaf(node, target, value, frame)
        for target in node.targets:
            self.store(target, value, frame, assigned=True)

    def _warn_of_leaf(self, node: tree.Assign, target: tree.Name, value: Any, frame: Frame) -> None:
        old = self._holder(target.name, frame).get(target.name)
        if type(old) is Tensor and type(value) is Tensor and value.grad_fn is not None:
            self.refuse(
                f"`{target.name}` is replaced by a tensor with a graph",
                f"change the leaf itself: `with torch.no_grad(): {target.name} -= …`",
            )

    def _augment(self, node: tree.AugmentedAssign, frame: Frame) -> None:
        target = node.target
        if isinstance(target, tree.Name):
            self._augment_name(node, target, frame)
            return
        if isinstance(target, tree.Attribute):
            owner, at = self.value(target.value, frame), target.name
            get: Callable[..., Any] = get_attribute
            put: Callable[..., Any] = set_attribute
        else:
            assert isinstance(target, tree.Subscript)
            owner = self.value(target.value, frame)
            at = self.value(target.index, frame)
            get, put = get_item, set_item
        if is_symbolic(owner) or is_symbolic(at):
            self.refuse("an item at a place that varies is changed", span=node.span)
        owner, at = concrete(owner), concrete(at)
        self.state.place = target.span
        if isinstance(target, tree.Attribute):
            left = self.read_attribute(owner, at, lambda: get(owner, at))
        else:
            left = self.read_item(owner, at, lambda: get(owner, at))
        right = self.value(node.value, frame)
        self.state.place = node.span
        if type(left) is Symbol or type(right) is Symbol and type(left) is not Tensor:
            new = self.operate(node.operator, left, right, node.target, node.value, node.span)
        else:
            self.check_list(left)
            new = augmented(node.operator, concrete(left), concrete(right))
        self.put(owner, at, new, put)

    def _augment_name(self, node: tree.AugmentedAssign, target: tree.Name, frame: Frame) -> None:
        left = self.value(target, frame)
        right = self.value(node.value, frame)
        if type(left) is not Tensor and (type(left) is Symbol or type(right) is Symbol):
            new = self.operate(node.operator, left, right, target, node.value, node.span)
            self.store(target, new, frame, assigned=True)
            return
        self.check_list(left)
        scope = Scope(_HOLES, [target.name, "1"])
        values = {target.name: concrete(left), "1": concrete(right)}
        hole = tree.Name(node.value.span, "1")
        step = tree.AugmentedAssign(node.span, target, node.operator, hole)
        self.compiler.statement(step, scope)(values)
        self.store(target, values[target.name], frame, assigned=True)

    def check_list(self, value: Any) -> None:
        """End recording where a list from outside is about to change."""
        if type(value) in (list, dict, set) and id(value) not in self.local:
            self.refuse("a list, dict or set from outside the iteration changes")

    def _if(self, node: tree.If, frame: Frame) -> Any:
        for test, body in node.branches:
            value = self.value(test, frame)
            holds = self.truth(value)
            self.state.place = test.span
            if holds:
                return self.block(body, frame)
        return self.block(node.orelse, frame)

    def _for(self, node: tree.For, frame: Frame) -> Any:
        values = self.value(node.iterable, frame)
        self.state.place = node.iterable.span
        for value in self.items(values):
            self.steps.left -= 1
            if self.steps.left < 0:
                raise too_many_steps()
            self.store(node.target, value, frame)
            signal = self.block(node.body, frame)
            if signal is not None:
                if signal is BREAK:
                    return None
                if signal is not CONTINUE:
                    return signal
            self.state.place = node.iterable.span
        return self.block(node.orelse, frame)

    def _while(self, node: tree.While, frame: Frame) -> Any:
        while True:
            holds = self.truth(self.value(node.test, frame))
            self.state.place = node.test.span
            if not holds:
                return self.block(node.orelse, frame)
            self.steps.left -= 1
            if self.steps.left < 0:
                raise too_many_steps()
            signal = self.block(node.body, frame)
            if signal is not None:
                if signal is BREAK:
                    return None
                if signal is not CONTINUE:
                    return signal

    def _with(self, node: tree.With, frame: Frame) -> Any:
        run: Run = lambda variables: self.block(node.body, frame)  # noqa: E731
        for context, target in reversed(node.items):
            run = self._within(context, target, frame, run)
        return run(frame.variables)

    def _within(
        self, context: Expression, target: Expression | None, frame: Frame, body: Run
    ) -> Run:
        def enter(variables: Variables) -> Any:
            value = concrete(self.value(context, frame))
            if not isinstance(value, GradMode):
                self.refuse("a context other than a grad mode", span=context.span)
            return value

        store = None
        if target is not None:
            store = lambda variables, value: self.store(target, value, frame)  # noqa: E731
        return within(self.compiler, enter, context.span, store, body)

    def _return(self, node: tree.Return, frame: Frame) -> Any:
        return (None if node.value is None else self.value(node.value, frame),)

    def _break(self, node: Statement, frame: Frame) -> Any:
        if frame is self.frame:
            self.state.place = node.span
        return BREAK

    def _continue(self, node: Statement, frame: Frame) -> Any:
        return CONTINUE

    def _assert(self, node: tree.Assert, frame: Frame) -> None:
        value = self.value(node.test, frame)
        holds = self.truth(value)
        self.state.place = node.test.span
        if not holds:
            failing = tree.Assert(node.span, tree.Constant(node.test.span, False), node.message)
            self.compiler.statement(failing, frame.scope)(frame.variables)

    def _def(self, node: tree.Def, frame: Frame) -> None:
        self._check_defaults(node.parameters, node.span)
        if node.decorators:
            self.refuse("a decorated function is defined in the iteration", span=node.span)
        if frame is self.frame:
            self.refuse(
                "a function is defined in the iteration", "define it ahead of the loop", node.span
            )
        self.compiler.statement(node, frame.scope)(frame.variables)
        self._symbols.pop((id(frame.variables), node.name), None)

    def _check_defaults(self, parameters: tree.Parameters, span: Span) -> None:
        for each in parameters.parameters:
            if each.default is not None and not isinstance(each.default, tree.Constant):
                self.refuse("a function with computed defaults is made", span=span)

    def _delete(self, node: tree.Del, frame: Frame) -> None:
        for target in node.targets:
            own = isinstance(target, tree.Name) and frame.scope.distance(target.name) == 0
            if not own or frame is self.frame:
                self.refuse("a name or an item is deleted", span=node.span)
        self.compiler.statement(node, frame.scope)(frame.variables)

    # --- expressions ----------------------------------------------------------------------------

    def value(self, node: Expression, frame: Frame) -> Any:
        """What an expression gives, with symbols where it varies."""
        handler = _EXPRESSIONS.get(type(node))
        if self.broken is None and handler is None:
            self.refuse(f"`{_word(node)}` is not recorded", span=node.span)
        if self.broken is not None or handler is None:
            return self.compiler.expression(node, frame.scope)(frame.variables)
        return handler(self, node, frame)

    def evaluate(self, node: Expression, operands: Sequence[Any]) -> Any:
        """What an expression with holes gives for the operands that go there."""
        values = {str(number): concrete(each) for number, each in enumerate(operands)}
        return self.compiler.expression(node, _HOLES)(values)

    def _constant(self, node: tree.Constant, frame: Frame) -> Any:
        return node.value

    def _name(self, node: tree.Name, frame: Frame) -> Any:
        name = node.name
        value = self.compiler.expression(node, frame.scope)(frame.variables)
        holder = self._holder(name, frame)
        symbol = self._symbols.get((id(holder), name))
        if symbol is not None and is_same_value(concrete(symbol), value):
            return symbol
        if id(holder) in self.local:
            return self.builder.known(value)
        if name not in holder:  # of the language, or of torch
            read = self.compiler.expression(node, Scope())
            self.guard.values.setdefault(("global", name), (lambda variables: read({}), value))
            return value
        return self.read_place(self._place(holder, name), value)

    def _place(self, holder: Variables, name: str) -> Location:
        if holder is self.frame.variables:
            return OwnName(name)
        return OuterName(holder, name)

    def _holder(self, name: str, frame: Frame) -> Variables:
        """The variables that hold a name."""
        distance = frame.scope.distance(name)
        if distance is None:
            return self.compiler.values
        holder = frame.variables
        for _ in range(distance):
            if holder is self.frame.variables:
                outer = holder[PARENT]
                self.guard.values["outer", id(outer)] = lambda variables: variables[PARENT], outer
            holder = holder[PARENT]
        return holder

    def _expect(self, name: str) -> None:
        """The loop gives a name a value in every iteration."""
        scope = self.frame.scope
        if scope.distance(name) is None and not scope.is_program:
            self.refuse("the loop binds a global variable of the program")
        self.carried.add(OwnName(name).key)

    def read_place(self, place: Location, value: Any) -> Any:
        """A value that was read in a place which outlives the iteration."""
        if place.key in self.stored or self.broken is not None:
            return self.builder.known(value)
        if place.key not in self.carried:
            if type(value) in NUMBERS and isinstance(place, OwnName):
                bound = place.name in self.plan.bound
                if bound:
                    self.carried.add(place.key)
                    return self.read_place(place, value)
            self.found[place.key] = value
            self.guard.values.setdefault(place.key, (place.read, value))
            return self.constant(value)
        given = self.attempt(self._given, place, value)
        return self.builder.known(value) if given is None else given

    def _given(self, place: Location, value: Any) -> Any:
        """A value that the iteration is given."""
        known = self._symbols.get(place.key)
        if known is not None:
            return known
        op, operands = read_op(place)
        if type(value) in NUMBERS:
            symbol = self.builder.input(op, operands, value)
            self.inputs.append(Input(place.read, (type(value),)))
            place.store(self.frame.variables, symbol.now)
            self._remember(place, symbol)
            self._symbols[place.key] = symbol
            return symbol
        if type(value) is Tensor:
            self._give(value, Inline(f"{op.text}.array"), operands, place.read)
            return value
        if type(value) in (tuple, list) and all(type(each) is Tensor for each in value):
            for number, each in enumerate(value):
                text = Inline(f"{op.text}[{number}].array")
                self._give(each, text, operands, _item_of(place.read, number))
            size = len(value)
            self.inputs.append(Input(lambda variables: len(place.read(variables)) == size, (bool,)))
            return value
        if value is None or type(value) is str:
            self.guard.values[place.key] = place.read, value
            raise GraphBreak("B06", f"a place holds {_described(value)} in some iterations only")
        raise GraphBreak("B06", f"{_described(value)} is another one in every iteration")

    def _give(
        self, tensor: Tensor, op: Inline, operands: Sequence[Any], read: Callable[..., Any]
    ) -> None:
        if self.builder.has(tensor):
            return
        if tensor.requires_grad:
            raise GraphBreak(
                "B06",
                "a tensor that requires grad is another one in every iteration",
                "change a leaf in place: `with torch.no_grad(): w -= lr * w.grad`",
            )
        self.builder.load(op, operands, tensor.array)
        self.inputs.append(Input(read, kind_of(tensor.array)))

    def constant(self, value: Any) -> Any:
        """A value from outside that stays what it is."""
        kind = type(value)
        if kind is Tensor:
            if not self.builder.has(value):
                self.attempt(self.outside.tensor, value)
        elif kind is tuple:
            for each in value:
                self.constant(each)
        elif kind is Function:
            self.walked(value)
            for default in value.defaults.values():
                self.constant(default)
        elif kind is BoundMethod:
            self.constant(value.function)
        elif hasattr(kind, "language_class"):
            self.walk_methods(kind.language_class)
        elif isinstance(value, UserClass):
            self.walk_methods(value)
        return value

    def _attribute(self, node: tree.Attribute, frame: Frame) -> Any:
        owner = self.value(node.value, frame)
        if is_symbolic(owner):
            self.refuse("an attribute of a number is read", span=node.span)
        hole = tree.Attribute(node.span, _hole(node.value, 0), node.name, node.name_span)
        return self.read_attribute(owner, node.name, lambda: self.evaluate(hole, [owner]))

    def read_attribute(self, owner: Any, name: str, read: Callable[[], Any]) -> Any:
        """`owner.name`."""
        kind = type(owner)
        if kind is Tensor:
            return self._tensor_attribute(owner, name, read)
        if kind is Namespace:
            return read()
        if id(owner) in self.local:
            return self.builder.known(read())
        cls = getattr(kind, "language_class", None)
        if cls is not None:
            self.walk_methods(cls)
            if type(cls.find(name)) is Property:
                value = read()
                return self.returned(value)
        value = read()
        if isinstance(owner, Module) and name == "training":
            self.training(owner)
            return value
        place = Attribute(owner, name)
        symbol = self._symbols.get(place.key)
        if symbol is not None and is_same_value(concrete(symbol), value):
            return symbol
        if isinstance(value, BoundMethod) or callable(value):
            self.guard.values.setdefault(place.key, (place.read, value))
            return self.constant(value)
        return self.read_place(place, value)

    def _tensor_attribute(self, owner: Tensor, name: str, read: Callable[[], Any]) -> Any:
        before = self.recorder.writes
        value = read()
        if name == "grad" and owner.grad_fn is None and not self.outside.is_made(owner):
            self.attempt(self.gradients.read, owner)
        elif type(value) is Tensor or name in _METADATA or callable(value):
            pass
        elif name == "grad_fn":
            self.refuse("a node of the graph is looked at")
        else:
            self.refuse(f"`.{name}` of a tensor is read")
        assert before == self.recorder.writes
        return value

    def training(self, module: Module) -> None:
        """Rely on whether a module is in training when an iteration begins."""
        self.guard.training.setdefault(module, module.training)

    def _subscript(self, node: tree.Subscript, frame: Frame) -> Any:
        owner = self.value(node.value, frame)
        index = self.value(node.index, frame)
        hole = tree.Subscript(node.span, _hole(node.value, 0), _hole(node.index, 1))
        if type(owner) is Symbol:
            at = concrete(index)
            return self.computed(lambda of: get_item(of, at), [owner], owner.now[at])
        if type(owner) is tuple and type(index) is int and is_symbolic(owner):
            self.evaluate(hole, [owner, index])
            return owner[index]
        if type(concrete(owner)) is Tensor:
            if not (self.builder.varies(index) or holds_tensor(index)):
                return self.evaluate(hole, [owner, index])
            return self.heard_as_one(hole, [owner, index], get_item)
        if is_symbolic(index):
            return self._varying_item(hole, owner, index)
        at = concrete(index)
        return self.read_item(owner, at, lambda: self.evaluate(hole, [owner, at]))

    def _varying_item(self, hole: tree.Subscript, owner: Any, index: Any) -> Any:
        """An item of a list at a place that varies."""
        if type(owner) not in (list, tuple, range):
            self.refuse("an item at a place that varies", span=hole.span)
            return self.evaluate(hole, [owner, index])
        self.rely_on(owner)
        value = self.evaluate(hole, [owner, index])
        if type(value) is Tensor and not value.requires_grad:
            self.attempt(self._item_tensor, owner, index, value)
            return value
        if type(value) in (int, float):
            operands: list[Any] = []
            text = self.builder.written(index, operands)
            read = Inline(f"{{{len(operands)}}}({{{len(operands) + 1}}}, {text})")
            symbol = self.attempt(
                self.builder.compute, read, [*operands, get_item, owner], value, True
            )
            return value if symbol is None else symbol
        self.refuse("an item at a place that varies", span=hole.span)
        return value

    def _item_tensor(self, owner: Any, index: Symbol, value: Tensor) -> None:
        self.builder.forget(value.array)
        self.recorder.on_tensors(lambda at: owner[at], [index], {}, value)

    def heard_as_one(self, hole: Expression, operands: list[Any], function: Any) -> Any:
        """An expression of tensors and numbers that vary, recorded as one call with tensors."""
        muted, self.recorder.muted = self.recorder.muted, True
        try:
            value = self.evaluate(hole, operands)
        finally:
            self.recorder.muted = muted
        if type(value) is not Tensor or value.requires_grad:
            self.refuse("a number that varies takes part in an op of the graph", span=hole.span)
            return value
        self.attempt(self.recorder.on_tensors, function, operands, {}, value)
        return value

    def read_item(self, owner: Any, at: Any, read: Callable[[], Any]) -> Any:
        """`owner[at]` of anything but a tensor."""
        value = read()
        if id(owner) in self.local or type(owner) in (str, range):
            return self.builder.known(value)
        if isinstance(owner, tuple):
            return self.constant(value)
        if isinstance(owner, Module):
            self.rely_on_module(owner)
            return self.constant(value)
        if type(owner) not in (list, dict) or type(at) not in (int, str):
            if type(owner) is list and type(at) is slice:
                self.rely_on(owner)
                self.local[id(value)] = value
                return value
            self.refuse(f"an item of {_described(owner)} is read")
            return value
        if any(owner is each for each in self.grown):
            self.refuse("an item of a list that the iteration appends to is read")
        if type(owner) is dict and "params" in owner and type(value) in NUMBERS:
            # A schedule may set it behind the program's back.
            read_now = Inline("{0}[{1}]")
            symbol = self.attempt(self.builder.behind, read_now, [owner, at], value)
            return value if symbol is None else symbol
        place = Item(owner, at)
        symbol = self._symbols.get(place.key)
        if symbol is not None and is_same_value(concrete(symbol), value):
            return symbol
        return self.read_place(place, value)

    def rely_on(self, values: Any) -> None:
        """Rely on what is in a list or dict from outside."""
        if type(values) in (list, dict) and id(values) not in self.local:
            if any(values is each for each in self.grown):
                self.refuse("a list is gone through that the iteration appends to")
            self.guard.rely_on_contents(values)

    def rely_on_module(self, module: Module) -> None:
        """Rely on what a module holds, and walk the functions of the program in it."""
        if id(module) in self._relied:
            return
        self._relied.add(id(module))
        for _, each in module.each_module():
            assert isinstance(each, Module)
            self.training(each)
            if each._hooks is not None:
                self.refuse("a module has hooks")
            self.guard.rely_on(_hooks_of(each))
            for table in (each._values, each._parameters, each._buffers, each._modules):
                self.guard.rely_on_contents(table)
                for value in table.values():
                    if type(value) is Tensor:
                        self.constant(value)
                    else:
                        for function in functions_in(value):
                            self.walked(function)
            self.walk_methods(getattr(type(each), "language_class", None))

    # --- operators ------------------------------------------------------------------------------

    def _unary(self, node: tree.Unary, frame: Frame) -> Any:
        operand = self.value(node.operand, frame)
        hole = tree.Unary(node.span, node.operator, _hole(node.operand, 0))
        if type(node.operand) is tree.Constant:
            hole = node
        if node.operator == "not":
            holds = self.truth(operand) if type(operand) is not Symbol else None
            if holds is not None:
                self.state.place = node.span
                return not holds
        if type(operand) is not Symbol:
            return self.evaluate(hole, [operand])
        now = self.evaluate(hole, [operand])
        text = {"not": "(not {0})", "-": "(-{0})", "+": "(+{0})", "~": "(~{0})"}[node.operator]
        symbol = self.attempt(self.builder.compute, Inline(text), [operand.value], now)
        return now if symbol is None else symbol

    def _binary(self, node: tree.Binary, frame: Frame) -> Any:
        left = self.value(node.first, frame)
        left_node = node.first
        start, source = node.span.start, node.span.source
        for symbol, operand in node.rest:
            right = self.value(operand, frame)
            span = node.span
            if len(node.rest) > 1:
                end = end_of_step(source.text, operand.span.end, node.span.end)
                span = Span(source, start, end)
            left = self.operate(symbol, left, right, left_node, operand, span)
            left_node = tree.Binary(span, node.first, [])
        return left

    def operate(
        self,
        symbol: str,
        left: Any,
        right: Any,
        left_node: Expression,
        right_node: Expression,
        span: Span,
    ) -> Any:
        """One binary operator, or a comparison."""
        kind = tree.Comparison if symbol in _COMPARISONS else tree.Binary
        hole = kind(span, _hole(left_node, 0), [(symbol, _hole(right_node, 1))])
        if not (type(left) is Symbol or type(right) is Symbol):
            if is_symbolic(left) or is_symbolic(right):
                self.refuse("tuples of numbers that vary are compared or added", span=span)
            return self.evaluate(hole, [left, right])
        tensor = left if type(left) is Tensor else right if type(right) is Tensor else None
        if tensor is not None:
            return self._operate_on_tensor(symbol, left, right, tensor, hole)
        now = self.evaluate(hole, [left, right])
        if symbol in ("is", "is not"):
            return now  # the types of numbers are guarded
        operands: list[Any] = []
        first = self.builder.written(left, operands)
        second = self.builder.written(right, operands)
        if symbol in _PLAIN_OPERATORS and type(now) in NUMBERS:
            fails = symbol not in _SAFE_OPERATORS
            op = Inline(f"({first} {symbol} {second})")
        elif symbol in HOST_OPERATORS:
            fails = True
            op = Inline(f"{{{len(operands)}}}({first}, {second})")
            operands.append(HOST_OPERATORS[symbol])
        else:
            self.refuse(f"`{symbol}` of numbers that vary", span=span)
            return now
        made = self.attempt(self.builder.compute, op, operands, now, fails)
        return now if made is None else made

    def _operate_on_tensor(
        self, symbol: str, left: Any, right: Any, tensor: Tensor, hole: Expression
    ) -> Any:
        """An operator between a tensor and a number that varies."""
        number = left if type(left) is Symbol else right
        floating = tensor.array.dtype.kind == "f"
        if floating and type(number.now) is int and symbol in ("+", "-", "*", "/"):
            # The number takes the tensor's dtype either way.
            made = self.attempt(
                self.builder.compute, Inline("float({0})"), [number.value], float(number.now)
            )
            if made is not None:
                left, right = (made, right) if number is left else (left, made)
            return self.evaluate(hole, [left, right])
        if floating and type(number.now) is float and symbol in ("+", "-", "*", "/"):
            return self.evaluate(hole, [left, right])
        function = TENSOR_OPERATORS[symbol]
        return self.heard_as_one(hole, [left, right], function)

    def _comparison(self, node: tree.Comparison, frame: Frame) -> Any:
        left = self.value(node.first, frame)
        left_node = node.first
        result: Any = None
        for number, (symbol, operand) in enumerate(node.rest):
            if number and not self.truth(result):
                return result
            right = self.value(operand, frame)
            if symbol in ("in", "not in"):
                self.rely_on(right)
            result = self.operate(symbol, left, right, left_node, operand, node.span)
            left, left_node = right, operand
        return result

    def _logical(self, node: tree.Logical, frame: Frame) -> Any:
        stops_at = node.operator == "or"
        for operand in node.operands[:-1]:
            value = self.value(operand, frame)
            holds = self.truth(value)
            self.state.place = operand.span
            if holds is stops_at:
                return value
        return self.value(node.operands[-1], frame)

    def _conditional(self, node: tree.Conditional, frame: Frame) -> Any:
        holds = self.truth(self.value(node.test, frame))
        self.state.place = node.test.span
        return self.value(node.body if holds else node.orelse, frame)

    def truth(self, value: Any) -> bool:
        """Whether a value is true; where that may be otherwise in another iteration, this is a
        check with a side exit.
        """
        if type(value) is Symbol:
            holds = bool(value.now)
            self.attempt(self._check, value.value, holds)
            return holds
        if type(value) is Tensor:
            taken, self.recorder.taken = self.recorder.taken, []
            try:
                holds = bool(value)
                found = self.recorder.taken
            finally:
                self.recorder.taken = taken
            for array in found:
                self.attempt(self._check_array, array, holds)
            return holds
        self.rely_on(value)
        if any(map(is_symbolic, value)) if type(value) is tuple else False:
            return True
        return bool(value)

    def _check(self, value: Value, holds: bool) -> None:
        self.builder.check(_UNLESS if holds else _IF, [value, SideExit])
        self.side_exits += 1

    def _check_array(self, array: Any, holds: bool) -> None:
        number = self.builder.compute(_ITEM, [self.builder.value_of(array)], array.item(), True)
        self._check(number.value, holds)

    # --- displays -------------------------------------------------------------------------------

    def _tuple(self, node: tree.Tuple, frame: Frame) -> Any:
        if any(isinstance(each, tree.Starred) for each in node.elements):
            return self._starred(node, frame)
        return tuple([self.value(each, frame) for each in node.elements])

    def _list(self, node: tree.List, frame: Frame) -> Any:
        if any(isinstance(each, tree.Starred) for each in node.elements):
            return self._starred(node, frame)
        return self.made_list([self.value(each, frame) for each in node.elements], node.span)

    def _starred(self, node: tree.Tuple | tree.List, frame: Frame) -> Any:
        """A display with `*values`."""
        operands = []
        holes: list[Expression] = []
        for number, each in enumerate(node.elements):
            if isinstance(each, tree.Starred):
                value = self.value(each.value, frame)
                self.rely_on(value)
                holes.append(tree.Starred(each.span, _hole(each.value, number)))
            else:
                value = self.value(each, frame)
                holes.append(_hole(each, number))
            if self._is_lost(value):
                self.refuse("a display of numbers that vary", span=node.span)
            operands.append(value)
        value = self.evaluate(type(node)(node.span, holes), operands)
        for each in value:
            self.constant(each) if not is_symbolic(each) else None
        self.local[id(value)] = value
        return value

    def made_list(self, values: list[Any], span: Span) -> list[Any]:
        """A list that the iteration makes."""
        if any(map(self._is_lost, values)):
            self.refuse("integers or strings that vary are put into a list", span=span)
        made = [concrete(each) for each in values]
        self.local[id(made)] = made
        return made

    def _dict(self, node: tree.Dict, frame: Frame) -> Any:
        found: dict[Any, Any] = {}
        for key, value_node in node.items:
            if key is None:
                self.refuse("`**` in a display", span=node.span)
                return self.compiler.expression(node, frame.scope)(frame.variables)
            at = self.value(key, frame)
            value = self.value(value_node, frame)
            if is_symbolic(at) or self._is_lost(value):
                self.refuse("a dict of integers or strings that vary", span=node.span)
            self.state.place = value_node.span
            put(found, concrete(at), concrete(value))
        self.local[id(found)] = found
        return found

    def _slice(self, node: tree.Slice, frame: Frame) -> Any:
        parts = [
            None if part is None else self.value(part, frame)
            for part in (node.lower, node.upper, node.step)
        ]
        return slice(*parts)

    def _formatted(self, node: tree.FormattedString, frame: Frame) -> Any:
        operands: list[Any] = []
        holes = self._formatted_parts(node, operands, frame)
        now = self.evaluate(holes, operands)
        if not any(map(self.builder.varies, operands)):
            return now
        for each in operands:
            self.rely_on(each)
        write = self.compiler.expression(holes, _HOLES)
        return self.computed(lambda *given: write(_numbered(given)), operands, now)

    def _formatted_parts(
        self, node: tree.FormattedString, operands: list[Any], frame: Frame
    ) -> tree.FormattedString:
        parts: list[Any] = []
        for part in node.parts:
            if isinstance(part, str):
                parts.append(part)
                continue
            hole = _hole(part.value, len(operands))
            operands.append(self.value(part.value, frame))
            form = part.format
            if form is not None:
                form = self._formatted_parts(form, operands, frame)
            parts.append(tree.Replacement(part.span, hole, part.conversion, form, part.debug))
        return tree.FormattedString(node.span, parts)

    def computed(self, function: Any, operands: Sequence[Any], now: Any) -> Any:
        """What a function of the host computes from operands that vary, recorded as a call."""
        given: list[Any] = []
        texts = [self.attempt(self.builder.written, each, given) for each in operands]
        if self.broken is not None:
            return now
        op = Inline(f"{{{len(given)}}}({', '.join(texts)})")
        symbol = self.attempt(self.builder.compute, op, [*given, function], now, True)
        return now if symbol is None else symbol

    def _lambda(self, node: tree.Lambda, frame: Frame) -> Any:
        self._check_defaults(node.parameters, node.span)
        made = self.compiler.expression(node, frame.scope)(frame.variables)
        self.walked(made)
        return made

    def _named_expression(self, node: tree.NamedExpression, frame: Frame) -> Any:
        value = self.value(node.value, frame)
        self.store(node.name, value, frame, assigned=True)
        return value

    # --- comprehensions -------------------------------------------------------------------------

    def _comprehension(self, node: tree.Comprehension, frame: Frame) -> Any:
        inner = comprehension_scope(frame.scope, node.clauses)
        first = self.value(node.clauses[0].iterable, frame)
        self.state.place = node.clauses[0].iterable.span
        inside: Variables = {PARENT: frame.variables}
        self.local[id(inside)] = inside
        rounds = self._inner(node.clauses, 0, Frame(inner, inside), self.items(first))
        if node.kind == "generator":
            source = self._drawn(rounds, node.element)
            return drawing("generator", source, concrete(first))
        if node.kind == "list":
            found = [self.value(node.element, each) for each in rounds]
            return self.made_list(found, node.span)
        collected: dict[Any, Any] = {}
        for each in rounds:
            at = self.value(node.element, each)
            value = None if node.value is None else self.value(node.value, each)
            if is_symbolic(at) or self._is_lost(value):
                self.refuse("numbers that vary are put into a dict or set", span=node.span)
            self.state.place = node.span
            put(collected, concrete(at), concrete(value))
        made = set(collected) if node.kind == "set" else collected
        self.local[id(made)] = made
        return made

    def _inner(
        self,
        clauses: list[tree.ComprehensionFor],
        number: int,
        frame: Frame,
        values: HostIterator[Any],
    ) -> Generator[Frame, None, None]:
        clause = clauses[number]
        for value in values:
            self.steps.left -= 1
            if self.steps.left < 0:
                raise too_many_steps()
            self.store(clause.target, value, frame)
            if all(self.truth(self.value(each, frame)) for each in clause.conditions):
                if number + 1 == len(clauses):
                    yield frame
                else:
                    following = clauses[number + 1]
                    more = self.value(following.iterable, frame)
                    self.state.place = following.iterable.span
                    yield from self._inner(clauses, number + 1, frame, self.items(more))
            self.state.place = clause.iterable.span

    def _drawn(
        self, rounds: HostIterator[Frame], element: Expression
    ) -> Generator[Any, None, None]:
        while True:
            enter_host_call(self.steps)
            try:
                value = self.value(element, next(rounds))
            except StopIteration:
                return
            finally:
                self.steps.nested -= 1
            if is_symbolic(value):
                self.refuse(
                    "numbers that vary come out of a generator expression",
                    "a list comprehension: `sum([…])`",
                )
            yield concrete(value)

    # --- going through values -------------------------------------------------------------------

    def items(self, values: Any) -> HostIterator[Any]:
        """What a loop draws from."""
        kind = type(values)
        if kind is tuple:
            return iter(values)
        if kind in (list, dict):
            self.rely_on(values)
        elif isinstance(values, Module):
            self.rely_on_module(values)
        elif kind not in (range, Iterator, ModuleWalk, str, set) and kind not in _VIEWS:
            if type(values) is not Tensor:
                self.refuse(
                    f"a loop over {_described(values)} inside the iteration",
                    "the inner loop is compiled on its own",
                )
        return self._constants(iterate(concrete(values)))

    def _constants(self, values: HostIterator[Any]) -> Generator[Any, None, None]:
        for value in values:
            yield self._drawn_value(value)

    def _drawn_value(self, value: Any) -> Any:
        if type(value) is tuple:
            return tuple([self._drawn_value(each) for each in value])
        if type(value) is Tensor and self.builder.has(value):
            return value
        value = self.builder.known(value)
        return value if type(value) is Symbol else self.constant(value)

    # --- storing --------------------------------------------------------------------------------

    def store(self, target: Expression, value: Any, frame: Frame, assigned: bool = False) -> None:
        """Bind a target to a value."""
        if isinstance(target, tree.Name):
            self._store_name(target.name, value, frame, assigned)
        elif isinstance(target, (tree.Tuple, tree.List)):
            self._unpack(target, value, frame, assigned)
        elif isinstance(target, tree.Attribute):
            owner = self.value(target.value, frame)
            self.state.place = target.span
            self.put(owner, target.name, value, set_attribute)
        elif isinstance(target, tree.Subscript):
            owner = self.value(target.value, frame)
            at = self.value(target.index, frame)
            self.state.place = target.span
            if is_symbolic(at):
                self.refuse("an item is set at a place that varies", span=target.span)
            self.put(owner, concrete(at), value, set_item)
        else:
            self.refuse("a target that is not recorded", span=target.span)

    def _store_name(self, name: str, value: Any, frame: Frame, assigned: bool) -> None:
        holder = self._holder(name, frame)
        store = name_store(self.compiler, name, frame.scope, assigned)
        store(frame.variables, concrete(value))
        if id(holder) in self.local:
            if is_symbolic(value):
                self._symbols[id(holder), name] = value
            else:
                self._symbols.pop((id(holder), name), None)
            return
        self._note(self._place(holder, name), value)

    def _note(self, place: Location, value: Any) -> None:
        """A place that outlives the iteration holds a value now."""
        self.stored[place.key] = place, value
        self._remember(place, value)

    def _remember(self, place: Location, value: Any) -> None:
        key: Any = place.key
        if isinstance(place, OwnName):
            key = id(self.frame.variables), place.name
        elif isinstance(place, OuterName):
            key = id(place.holder), place.name
        if is_symbolic(value):
            self._symbols[key] = value
        else:
            self._symbols.pop(key, None)

    def _unpack(
        self, target: tree.Tuple | tree.List, value: Any, frame: Frame, assigned: bool
    ) -> None:
        stars = any(isinstance(each, tree.Starred) for each in target.elements)
        if stars:
            self.refuse("`*` in a target", span=target.span)
        self.state.place = target.span
        if type(value) is tuple and len(value) == len(target.elements) and not stars:
            parts = value
        else:
            if type(value) is list:
                self.rely_on(value)
            values = [each for each in unpacked(self.state, target, concrete(value))]
            parts = tuple([self._part(each) for each in values])
        for element, part in zip(target.elements, parts, strict=True):
            inner = element.value if isinstance(element, tree.Starred) else element
            self.store(inner, part, frame, assigned)

    def _part(self, value: Any) -> Any:
        value = self.builder.known(value)
        if type(value) is Tensor and not self.builder.has(value):
            return self.constant(value)
        return value

    def put(self, owner: Any, at: Any, value: Any, put: Callable[..., Any]) -> None:
        """Set an attribute or an item."""
        new = concrete(value)
        if type(owner) is Tensor and put is set_attribute:
            self._set_tensor_attribute(owner, at, new)
            return
        if type(owner) is Tensor:
            if is_symbolic(value) and type(value.now) is not float:
                self.refuse("a number that varies is written to a tensor")
            put(owner, at, new)
            return
        cls = getattr(type(owner), "language_class", None)
        if put is set_attribute and cls is not None and type(cls.find(at)) is Property:
            self.refuse(f"the property `{at}` is set")
        put(owner, at, new)
        if id(owner) in self.local:
            if self._is_lost(value):
                self.refuse("an integer or string that varies is put into a list or dict")
            return
        if put is set_attribute:
            self._note(Attribute(owner, at), value)
        elif type(owner) in (list, dict) and type(at) in (int, str):
            self._note(Item(owner, at), value)
        else:
            self.refuse(f"an item of {_described(owner)} is set")

    def _set_tensor_attribute(self, owner: Tensor, name: str, new: Any) -> None:
        if name == "grad" and new is None:
            self.attempt(self.gradients.forget, owner)
        elif name == "grad" and new is owner.grad:
            pass
        elif name == "data" and type(new) is Tensor and new.array is owner.array:
            pass
        elif name == "requires_grad" and new is owner.requires_grad:
            pass
        elif name == "data":
            self.refuse(
                "`.data` of a tensor is replaced", "change it in place: `w.data -= lr * w.grad`"
            )
        else:
            self.refuse(f"`.{name}` of a tensor is set")
        set_attribute(owner, name, new)


def functions_in(value: Any) -> list[Function]:
    """The functions of the program that a value calls when it is called."""
    if type(value) is Function:
        return [value]
    if type(value) is Property:
        return functions_in(value.fget)
    for name in ("function", "func"):
        if name in getattr(type(value), "__slots__", ()):
            return functions_in(getattr(value, name))
    cells = getattr(value, "__closure__", None) or ()
    return [each for cell in cells for each in functions_in(cell.cell_contents)]


def _hooks_of(module: Module) -> Callable[[], list[Any]]:
    return lambda: [module._hooks]


def _item_of(read: Callable[[Variables], Any], number: int) -> Callable[[Variables], Any]:
    return lambda variables: read(variables)[number]


def _hole(node: Expression, number: int) -> tree.Name:
    return tree.Name(node.span, str(number))


def _numbered(values: Sequence[Any]) -> Variables:
    return {str(number): value for number, value in enumerate(values)}


def _described(value: Any) -> str:
    kind = type(value).__name__
    return f"an {kind}" if kind[:1] in "aeiouAEIO" else f"a {kind}"


def _word(node: Any) -> str:
    return type(node).__name__.lower()


_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"})
_PLAIN_OPERATORS = frozenset({"+", "-", "/", "//", "%", "==", "!=", "<", "<=", ">", ">="})
_SAFE_OPERATORS = frozenset({"+", "-", "==", "!=", "<", "<=", ">", ">="})
_METADATA = frozenset(
    {"shape", "ndim", "dtype", "device", "requires_grad", "is_leaf", "itemsize", "nbytes"}
)
"""What can be read of a tensor and is no tensor, and goes by what is guarded of it."""

_VIEWS = frozenset({type({}.keys()), type({}.values()), type({}.items())})

_STATEMENTS: dict[type, Callable[[Capture, Any, Frame], Any]] = {
    tree.Assert: Capture._assert,
    tree.Assign: Capture._assign,
    tree.AugmentedAssign: Capture._augment,
    tree.Break: Capture._break,
    tree.Continue: Capture._continue,
    tree.Def: Capture._def,
    tree.Del: Capture._delete,
    tree.ExpressionStatement: Capture._expression_statement,
    tree.For: Capture._for,
    tree.Global: Capture._pass,
    tree.If: Capture._if,
    tree.Pass: Capture._pass,
    tree.Return: Capture._return,
    tree.While: Capture._while,
    tree.With: Capture._with,
}

_EXPRESSIONS: dict[type, Callable[[Capture, Any, Frame], Any]] = {
    tree.Attribute: Capture._attribute,
    tree.Binary: Capture._binary,
    tree.Call: call,
    tree.Comparison: Capture._comparison,
    tree.Comprehension: Capture._comprehension,
    tree.Conditional: Capture._conditional,
    tree.Constant: Capture._constant,
    tree.Dict: Capture._dict,
    tree.FormattedString: Capture._formatted,
    tree.Lambda: Capture._lambda,
    tree.List: Capture._list,
    tree.Logical: Capture._logical,
    tree.Name: Capture._name,
    tree.NamedExpression: Capture._named_expression,
    tree.Slice: Capture._slice,
    tree.Subscript: Capture._subscript,
    tree.Tuple: Capture._tuple,
    tree.Unary: Capture._unary,
}
