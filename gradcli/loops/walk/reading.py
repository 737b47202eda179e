"""What an iteration reads of the program around it: places, attributes, items, modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any

from gradcli.autograd.node import RemovableHandle
from gradcli.autograd.tensor import Tensor
from gradcli.errors import Span
from gradcli.language.compiler.base import Compiler
from gradcli.language.functions.calls import Function
from gradcli.language.objects.attributes import Module as Namespace
from gradcli.language.objects.attributes import attributes_of_tensor
from gradcli.language.objects.borders import SCALARS, is_array
from gradcli.language.objects.classes.user_classes import BoundMethod, Property, UserClass, computes
from gradcli.language.objects.iteration import Iterator
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import PARENT, Scope, Variables, has_yield, names_around
from gradcli.loops.gradients import Gradients
from gradcli.loops.guards import Guard, Input, is_new_leaf, is_same_value
from gradcli.loops.kinds import context_class, distribution_class, goes_by_fields, module_class
from gradcli.loops.locations import Attribute, Item, Location, LoopPlan, Name, Part, read_op
from gradcli.loops.recorder import Recorder
from gradcli.loops.symbols import (
    CHANGED,
    NUMBERS,
    Clock,
    IterationBuilder,
    Symbol,
    concrete,
    is_symbolic,
    of_older_graph,
)
from gradcli.trace.ir import GraphBreak, Inline, Operand, Value, kind_of, placeholder

if TYPE_CHECKING:
    from gradcli.library.torch.nn.module import Module


class Drawn:
    """What a generator expression gave.

    Attributes:
        is_recorded: whether whoever draws from it takes the values from here, and records them.
        looks: whether whoever draws from it looks at the values, and does not only hand them on.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.is_recorded = False
        self.looks = True


class Reader(Compiler):
    """Reads the values that an iteration takes from places which outlive it, and records the reads.

    Attributes:
        guard: what the iteration relies on.
        stored: what it binds or sets in places that outlive it, by place.
        carried: the places whose values are known to differ from iteration to iteration.
        loads: the places that are read again in every iteration.
        loaded: the place of each tensor among their values.
        generated: the items of generator expressions, with symbols.
        constants: the values that were read as constants, by place, to compare them later.
        lasting: the lists and dicts from outside that it has met, by their ids.
        made: the functions that it makes of constants alone, and the states of modules, each with
            what makes it anew, by their ids.
        pulls: the functions that hold its graphs, as `vjp` gives one, each with where it was made,
            by their ids.
        kept: the lists and dicts that it makes and that outlive it, each with what stands for it,
            by their ids.
        switched: the modules that it switches to training or evaluation before it asks which they
            are in, and what they were in.
        modes: those of them that it leaves switched.
        met: the places outside of it whose names it reads.
        clock: reads the clocks that it asks.
        hooked: the leaves that it has not made and registers hooks on, and the hooks they had.
        passed: what it passes to functions of the library, by their ids.
        unsteady: how often a side exit was taken because a number had changed, by the span of the
            expression that reads it.
    """

    def __init__(
        self,
        compiler: Compiler,
        scope: Scope,
        plan: LoopPlan,
        variables: Variables,
        carried: set[Any],
        unsteady: Mapping[tuple[int, int], int],
    ) -> None:
        super().__init__(compiler.interpreter)
        self.values = compiler.values
        self.unsteady = unsteady
        self.compiler = compiler
        self.plan = plan
        self.carried = carried
        self.scope = scope
        self.variables = variables
        self.guard = Guard(self.state)
        self.builder = IterationBuilder(self.guard)
        self.inputs: list[Input] = []
        self.gradients = Gradients(self.builder, carried, self.inputs)
        self.recorder = Recorder(self.gradients, self.end)
        self.stored: dict[Any, tuple[Location, Any]] = {}
        self.constants: dict[Any, Any] = {}
        self.loaded: dict[Value, Any] = {}
        self.lasting: dict[int, Any] = {}
        self.loads: set[Any] = set()
        self.grown: list[list[Any]] = []
        self.clock = Clock()
        self.met: dict[Any, Location] = {}
        self.hooked: dict[Tensor, list[Any]] = {}
        self.passed: dict[int, Any] = {}
        self.broken: GraphBreak | None = None
        self.since, self.hook_count = self.state.sequence_nr, self.state.hook_count
        # What belongs to this iteration alone: variables of calls, lists that it made.
        self.local: dict[int, Any] = {}
        self.symbols: dict[Any, Symbol] = {}
        self.generated: dict[Iterator, Drawn] = {}
        self.made: dict[int, tuple[Any, Callable[[Variables], Any]]] = {}
        self.pulls: dict[int, tuple[Any, Span | None]] = {}
        self.kept: dict[int, tuple[Any, Value]] = {}
        self.switched: dict[Module, bool] = {}
        self.modes: dict[Module, bool] = {}
        self._bodies: dict[Function, Run] = {}
        self._hooks: set[Function] = set()
        self._bound: dict[str, Any] | None = None
        self._passes_on = False
        self._returned: Any = None
        self._relied: set[int] = set()
        self._also: set[Any] = set()

    def end(self, graph_break: GraphBreak) -> None:
        """Recording ends here."""
        if self.broken is None:
            if graph_break.span is None:
                graph_break.span = self.state.place
            self.broken = graph_break
            self.recorder.muted = True
            self.recorder.remove()  # loops inside the rest of the iteration may be compiled

    def refuse(self, reason: str, hint: str | None = None, span: Span | None = None) -> None:
        """Recording ends, for a reason."""
        self.end(GraphBreak(reason, hint, span))

    def attempt(self, record: Callable[..., Any], *args: Any) -> Any:
        """Record something, unless recording has ended or ends with it: None then."""
        if self.broken is not None:
            return None
        self.builder.span, self.builder.stack = self.state.place, tuple(self.state.stack)
        try:
            return record(*args)
        except GraphBreak as graph_break:
            self.end(graph_break)
            return None

    def either(self, value: Any, record: Callable[..., Any], *args: Any) -> Any:
        """What is recorded for a value; the value itself where recording has ended."""
        result = self.attempt(record, *args)
        return value if result is None else result

    def walked(self, function: Function) -> None:
        """Walk a function's body whenever it is called in this iteration."""
        if function in self._bodies:
            return
        if has_yield(function.statements):
            self.refuse(f"the generator `{function.name}` inside the iteration")
            return
        if names_around(function.parent) is not self.compiler.values:
            self.refuse(f"`{function.name}` is a function of another file")
            return
        self._bodies[function] = own = function.body
        recorded = cache(lambda: self.block(function.statements, function.scope))

        def body(variables: Variables) -> Any:
            if self.broken is not None:
                return own(variables)
            self.local[id(variables)] = variables
            bound, self._bound = self._bound, None
            for name, value in (bound or {}).items():
                if type(value) is dict:  # of further keywords
                    self.exact(value, looks=False)
                else:
                    self.remember(Name(name, variables), value)
            signal = recorded()(variables)
            if signal is None:
                return None
            if bound is None and (function in self._hooks or not self._passes_on):
                return (self.exact(signal[0]),)  # the host looks at it
            self._returned = signal[0], concrete(signal[0])
            return (self._returned[1],)

        function.enter_by(body)

    def new_function(
        self, function: Function, make: Callable[[Variables], Any], variables: Variables
    ) -> Function:
        """A function that the iteration makes, with what makes it where these variables are."""
        self.walked(function)
        self.local[id(function)] = function
        if variables is self.variables:
            self.made[id(function)] = function, make
        return function

    def kept_text(
        self,
        value: Any,
        operands: list[Operand],
        written: Callable[[Any, list[Operand]], str],
    ) -> str:
        """The text of a list or dict that the iteration made and that outlives it, one object in
        however many places; or of a tuple. `written` gives the texts of the parts.
        """
        if type(value) is tuple:
            return f"({''.join([f'{written(each, operands)}, ' for each in value])})"
        if id(value) not in self.kept:
            own: list[Operand] = []
            parts = self.builder.parts_of(value)
            if type(value) is dict:
                items = [f"{placeholder(own, key)}: {written(parts[key], own)}, " for key in parts]
                text = "{{" + "".join(items) + "}}"
            else:
                text = f"[{''.join([f'{written(each, own)}, ' for each in parts])}]"
            self.kept[id(value)] = value, self.builder.make(Inline(text, raises=False), own)
        return placeholder(operands, self.kept[id(value)][1])

    def hold_pull(self, function: Any, span: Span) -> None:
        """A function that goes through a graph of the iteration, as `vjp` gives one."""
        self.local[id(function)] = function
        self.pulls[id(function)] = function, span

    def called(self, bound: dict[str, Any] | None, call: Callable[[], Any]) -> Any:
        """What a call gives that may run functions of the program, with these arguments; it hands
        on what they return.
        """
        return self.returned(self._handing_on(bound, call))

    def _handing_on(self, bound: dict[str, Any] | None, call: Callable[[], Any]) -> Any:
        self._bound, self._returned = bound, None
        before, self._passes_on = self._passes_on, True
        value = call()
        self._bound, self._passes_on = None, before
        return value

    def returned(self, value: Any) -> Any:
        """What a call gave, with the symbols that the function returned."""
        if self._returned is not None and self._returned[1] is value:
            return self._returned[0]
        if type(value) is Tensor and self.broken is None and not self.builder.has(value):
            self.refuse("a call gives a tensor that was not recorded")
        return self.builder.known(value)

    def is_lost(self, value: Any) -> bool:
        """Whether a value is a symbol that its number would not tell."""
        return is_symbolic(value) and not (type(value) is Symbol and type(value.now) is float)

    def exact(self, value: Any, looks: bool = True) -> Any:
        """The numbers, strings and indices in a value as they are now, for somebody who does not
        record what is done with them: they are guarded.

        Args:
            looks: whether they are looked at, and not only moved about: a float that is moved is
                known again by its identity.
        """
        symbols = self.attempt(self.builder.symbols_in, value, self.local)
        for symbol in dict.fromkeys(symbols or ()):
            if looks or self.is_lost(symbol):
                self._expect_value(symbol)
        return concrete(value)

    def _expect_value(self, symbol: Symbol) -> None:
        place = self.state.place
        if place is not None and self.unsteady.get((place.start, place.end), 0) >= _EXPECTED:
            self.refuse(CHANGED)
        self.attempt(self.builder.expect, symbol)

    def generated_in(self, arguments: Sequence[Any]) -> list[Drawn]:
        """The generator expressions among some arguments."""
        drawn = [self.generated.get(each) for each in arguments if type(each) is Iterator]
        return [each for each in drawn if each is not None]

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

    def place_of(self, holder: Variables, name: str) -> Location:
        return Name(name, None if holder is self.variables else holder)

    def holder(self, name: str, scope: Scope, holder: Variables) -> Variables:
        """The variables that hold a name, for code with a scope and variables."""
        distance = scope.distance(name)
        if distance is None:
            return self.values
        for _ in range(distance):
            if holder is self.variables:
                outer = holder[PARENT]
                self.guard.values["outer", id(outer)] = lambda variables: variables[PARENT], outer
            holder = holder[PARENT]
        return holder

    def _expect(self, name: str) -> None:
        """The loop gives a name a value in every iteration."""
        self.carried.add(self.place_of(self.holder(name, self.scope, self.variables), name).key)

    def read_place(self, place: Location, value: Any) -> Any:
        """A value that was read in a place which outlives the iteration."""
        symbol = self.symbol_at(place, value)
        if symbol is not None:
            return symbol
        if place.key in self.stored or self.broken is not None:
            return self.builder.known(value)
        if self._holds_older(value):
            if place.key in self.loads:
                return value
            self.carried.add(place.key)
        if place.key not in self.carried:
            own, name, *_ = place.key
            if type(value) in NUMBERS and own == "own" and name in self.plan.bound:
                self.carried.add(place.key)
                return self.read_place(place, value)
            self.constants[place.key] = value
            self.guard.values.setdefault(place.key, (place.read, value))
            return self.constant(value)
        loaded = self.attempt(self._load, place, value)
        return self.builder.known(value) if loaded is None else loaded

    def _holds_older(self, value: Any) -> bool:
        """Whether a value is, or holds, a tensor whose graph was made before the iteration."""
        if type(value) in (tuple, list):
            return all(type(e) is Tensor for e in value) and any(map(self._holds_older, value))
        node = value.grad_fn if type(value) is Tensor else None
        return node is not None and node.sequence_nr <= self.since

    def _load(self, place: Location, value: Any) -> Any:
        """Read a value that may differ from iteration to iteration."""
        self.loads.add(place.key)
        known = self.symbols.get(place.key)
        if known is not None:
            return known
        op, operands = read_op(place)
        if type(value) in NUMBERS:
            symbol = self.builder.input(op, operands, value)
            self.inputs.append(Input(place.read, (type(value),)))
            self.symbols[place.key] = symbol
            return symbol
        if type(value) is Tensor:
            self._give(value, op, operands, place.read)
            if value not in self.builder.older:
                self.loaded[self.builder.of(value)] = place.key
            return value
        if type(value) in (tuple, list) and all(type(each) is Tensor for each in value):
            for number, each in enumerate(value):
                item = Inline(f"{op.text}[{number}]")
                self._give(each, item, operands, Part(place, type(value), [], number).read)
            self.inputs.append(Input(place.read, (type(value), len(value))))
            return value
        if value is None or type(value) is str:
            self.guard.values[place.key] = place.read, value
            raise GraphBreak(f"what is read is {described(value)} here and another value later")
        raise GraphBreak(f"{described(value)} is another one in every iteration")

    def _give(
        self, tensor: Tensor, op: Inline, operands: Sequence[Any], read: Callable[..., Any]
    ) -> None:
        if self.builder.has(tensor):
            self._give_again(tensor, op, operands)
            return
        is_older = self._holds_older(tensor)
        if is_older and (tensor in self.builder.older or self.builder.knows(tensor.array)):
            raise of_older_graph()
        is_leaf = tensor.requires_grad and not is_older
        if is_leaf and not is_new_leaf(tensor):
            reason = "a tensor in a graph, or a leaf with a gradient, is another one each time"
            raise GraphBreak(reason, _IN_PLACE)
        self.builder.objects[tensor] = op, operands
        if is_leaf:
            self.gradients.new_leaves[tensor] = self.builder.read(op, operands)
        self.builder.load(Inline(f"{op.text}.array"), operands, tensor.array)
        if is_older:
            self.builder.remember(tensor)
            self.builder.older.add(tensor)
        self.inputs.append(Input(read, kind_of(tensor.array), is_leaf, is_older))

    def _give_again(self, tensor: Tensor, op: Inline, operands: Sequence[Any]) -> None:
        """Check that a tensor which was read from two places is one tensor in every iteration."""
        place = tensor, op.text, *map(id, operands)
        source = self.builder.objects.get(tensor)
        if place in self._also or (source is not None and source[0].text == op.text):
            return
        self._also.add(place)
        first = self.builder.object(op, operands)
        if source is not None:
            same: list[Any] = [first, self.builder.object(*source)]
        elif tensor in self.guard.tensors:
            same = [first, tensor]
        elif self.builder.is_constant(self.builder.of(tensor)) and not tensor.requires_grad:
            self.builder.exit_unless("{0}.array is {1}", [first, tensor.array], OTHER_TENSOR)
            return
        else:
            raise GraphBreak(OTHER_TENSOR)
        self.builder.exit_unless("{0} is {1}", same, OTHER_TENSOR)

    def note_passed(self, values: Any) -> None:
        """Some values are passed to a function of the library, which may change what they hold."""
        for each in values:
            kind = type(each)
            if kind is tuple or (kind in (list, dict) and id(each) in self.local):
                self.note_passed(each.values() if kind is dict else each)
            elif kind is Tensor or kind is Symbol or id(each) in self.local:
                continue
            elif kind is not Iterator or each not in self.generated:
                self.passed[id(each)] = each

    def constant(self, value: Any) -> Any:
        """A value from outside that stays what it is."""
        kind = type(value)
        if kind is Tensor:
            self.attempt(self._constant_tensor, value)
        elif is_array(value):
            self.refuse("an array of NumPy's is used", _AS_TENSOR)
        elif kind in SCALARS:
            self.refuse(
                "a number of NumPy's is used", "`float(x)` makes a number of Python's of it"
            )
        elif kind is tuple:
            for each in value:
                self.constant(each)
        elif kind in (list, dict):
            self.lasting[id(value)] = value
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

    def _constant_tensor(self, tensor: Tensor) -> None:
        """A tensor from outside that stays what it is, in a place of its own."""
        source = self.builder.objects.get(tensor)
        if source is not None and tensor not in self._also:
            self._also.add(tensor)
            current = self.builder.object(*source)
            self.builder.exit_unless("{0} is {1}", [current, tensor], OTHER_TENSOR)
        elif not self.builder.has(tensor) and tensor not in self.builder.older:
            self.builder.tensor(tensor)

    def is_local(self, owner: Any) -> bool:
        """Whether the iteration made an object: a list, an instance, the `ctx` of a function."""
        if isinstance(owner, context_class()):
            return not 0 < owner.sequence_nr <= self.since  # 0 until forward ends
        return id(owner) in self.local

    def read_attribute(self, owner: Any, name: str, read: Callable[[], Any]) -> Any:
        """`owner.name`."""
        kind = type(owner)
        if kind is Tensor:
            return self._tensor_attribute(owner, name, read)
        if kind is Namespace:
            self.guard.rely_on_contents(owner.assigned)
            return read()
        if kind is RemovableHandle and name == "id":
            self.refuse("the number of a hook is looked at")
        if self.is_local(owner):
            return self.builder.known(read())
        if isinstance(owner, distribution_class()):
            self.rely_on_fields(owner)
            value = read()
            if type(value) is Tensor and self.builder.has(value):
                return value
        cls = getattr(kind, "language_class", None)
        if cls is not None:
            self.walk_methods(cls)
        value = self._handing_on(None, read)
        if self._returned is not None or (cls is not None and computes(cls.find(name))):
            return self.returned(value)  # a property of the program's computed it, or `__getattr__`
        if isinstance(owner, module_class()) and name == "training":
            self.training(owner)
            return value
        place = Attribute(owner, name)
        if isinstance(value, BoundMethod) or callable(value):
            self.guard.values.setdefault(place.key, (place.read, value))
            return self.constant(value)
        return self.read_place(place, value)

    def _tensor_attribute(self, owner: Tensor, name: str, read: Callable[[], Any]) -> Any:
        if owner in self.builder.older and name in _OF_GRAPH:
            self.refuse("what a tensor has of a graph of an earlier iteration is looked at")
        before = self.recorder.write_count
        value = read()
        if name in attributes_of_tensor(owner):
            self.refuse(f"the program's own attribute `{name}` of a tensor is read")
        elif name == "grad" and owner.grad_fn is None and not self.builder.is_of_iteration(owner):
            self.attempt(self.gradients.read, owner)
        elif type(value) is Tensor or name in _METADATA or callable(value):
            pass
        elif name == "grad_fn":
            self.refuse("a node of the graph is looked at")
        else:
            self.refuse(f"`.{name}` of a tensor is read")
        assert before == self.recorder.write_count
        return value

    def training(self, module: Module) -> None:
        """Rely on whether a module is in training when an iteration begins, unless that has
        switched it already.
        """
        if module not in self.switched:
            self.guard.training.setdefault(module, module.training)

    def read_item(self, owner: Any, at: Any, read: Callable[[], Any]) -> Any:
        """`owner[at]` of anything but a tensor."""
        value = read()
        if id(owner) in self.local or type(owner) in (str, range):
            parts = self.attempt(self.builder.parts_of, owner)
            if parts is None or parts is owner:
                if type(owner) is list and type(at) is slice:
                    self.local[id(value)] = value
                return self.builder.known(value)
            return self.new_list(parts[at]) if type(at) is slice else parts[at]
        if isinstance(owner, tuple):
            return self.constant(value)
        if isinstance(owner, module_class()):
            self.rely_on_module(owner)
            return self.constant(value)
        if type(owner) is dict and type(at) is Tensor and at in self.guard.tensors:
            self.rely_on(owner)
            return self.constant(value)
        if type(owner) not in (list, dict) or type(at) not in (int, str):
            if type(owner) is list and type(at) is slice:
                self.rely_on(owner)
                self.local[id(value)] = value
                return value
            self.refuse(f"an item of {described(owner)} is read")
            return value
        if any(owner is each for each in self.grown):
            self.refuse("an item of a list that the iteration appends to is read")
        if type(owner) is dict and "params" in owner and type(value) in NUMBERS:
            # A schedule may set it behind the program's back.
            read_now = Inline("{0}[{1}]")
            return self.either(value, self.builder.behind, read_now, [owner, at], value)
        return self.read_place(Item(owner, at), value)

    def rely_on(self, values: Any, deep: bool = False) -> None:
        """Rely on what is in a list or dict from outside; `deep` where those in it are gone through
        too.
        """
        if type(values) not in (list, dict, set) or id(values) in self.local:
            return
        owners = [place.owner for place, _ in self.stored.values() if isinstance(place, Item)]
        if any(values is each for each in (*self.grown, *owners)):
            self.refuse("a list or dict is gone through that the iteration changes")
        if id(values) in self.guard.contents and not deep:
            return
        self.guard.rely_on_contents(values)
        if deep:
            for each in values.values() if type(values) is dict else values:
                self.rely_on(each, deep)

    def rely_on_module(self, module: Module) -> None:
        """Rely on what a module holds, and walk the functions of the program in it."""
        if id(module) in self._relied:
            return
        self._relied.add(id(module))
        for _, each in module.each_module():
            assert isinstance(each, module_class())
            self.training(each)
            self._rely_on_hooks(each)
            for table in (each._values, each._parameters, each._buffers, each._modules):
                self.guard.rely_on_contents(table)
                for value in table.values():
                    if type(value) is Tensor:
                        if not self._holds_older(value):
                            self.constant(value)
                    else:
                        for function in functions_in(value):
                            self.walked(function)
            self.walk_methods(getattr(type(each), "language_class", None))

    def _rely_on_hooks(self, module: Module) -> None:
        """Rely on the hooks of a module, and walk the functions that its calls, and the passes back
        through them, call.
        """
        hooks = module._hooks
        self.guard.rely_on(lambda: _hooks_of(module))
        if hooks is None:
            return
        called = [*hooks.forward_pre.values(), *hooks.forward.values()]
        called += (*hooks.backward_pre.values(), *hooks.backward.values())
        tables = [getattr(hooks, each) for each in type(hooks).__slots__]
        others = [each for each in tables if isinstance(each, dict)]
        if sum(map(len, others)) > len(called):
            self.refuse("a module has hooks of its state, or of its last node")
        for each in called:
            self.hook(each)

    def hook(self, called: Any) -> None:
        """Walk a hook whenever it is called in this iteration."""
        if type(called) not in (Function, BoundMethod):
            self.refuse("a hook is no function of the program", "`lambda g: …` calls another one")
        self.constant(called)
        self._hooks.update(functions_in(called))

    def rely_on_fields(self, value: Any) -> None:
        """Rely on what a distribution, a transform or the like from outside goes by, and on those
        inside it.
        """
        if type(value) is Tensor:
            self.constant(value)
        elif type(value) is dict or type(value) is list:
            self.guard.rely_on_contents(value)
            for each in value.values() if type(value) is dict else value:
                self.rely_on_fields(each)
        elif goes_by_fields(value) and id(value) not in self._relied and not self.is_local(value):
            self._relied.add(id(value))
            fields = vars(value)
            self.guard.rely_on_contents(fields)
            # What the program stored is guarded where it is read, and so are a module's members.
            apart = module_class().all_fields if isinstance(value, module_class()) else ()
            for name in value.all_fields.difference(apart, ["values"]):
                self.rely_on_fields(fields.get(name))

    def check_list(self, value: Any) -> None:
        """End recording where a list is about to change that is from outside, or kept."""
        if type(value) in (list, dict, set) and id(value) not in self.local:
            self.refuse("a list, dict or set from outside the iteration changes")
        self.check_unkept(value)

    def check_unkept(self, value: Any) -> None:
        """End recording where a list or dict is about to change that another one holds."""
        if id(value) in self.kept:
            self.refuse("a list or dict changes that the iteration has put into a list")

    def note(self, place: Location, value: Any) -> None:
        """A place that outlives the iteration holds a value now."""
        self.stored[place.key] = place, value
        self.remember(place, value)

    def remember(self, place: Location, value: Any) -> None:
        """A place holds a value now, perhaps one with symbols."""
        if is_symbolic(value):
            self.symbols[place.key] = value
        else:
            self.symbols.pop(place.key, None)

    def symbol_at(self, place: Location, value: Any) -> Any:
        """The symbol that stands for the value of a place; None if the value has changed since."""
        symbol = self.symbols.get(place.key)
        return symbol if symbol is not None and is_same_value(concrete(symbol), value) else None

    def new_list(self, values: list[Any]) -> list[Any]:
        """A list that the iteration makes."""
        new = [concrete(each) for each in values]
        self.local[id(new)] = new
        if any(map(self.is_lost, values)):
            self.builder.know_parts(new, values)
        return new


def _hooks_of(module: Module) -> list[Any]:
    """The hooks of a module, and what tells how each is called."""
    hooks = module._hooks
    if hooks is None:
        return [None]
    parts: list[Any] = [hooks]
    for name in type(hooks).__slots__:
        table = getattr(hooks, name)
        parts += (name, len(table), *table)
        parts += table.values() if isinstance(table, dict) else ()
    return parts


def described(value: Any) -> str:
    """A value in words: `a Tensor`."""
    kind = type(value).__name__
    return f"an {kind}" if kind[:1] in "aeiouAEIO" else f"a {kind}"


OTHER_TENSOR = "two places hold the same tensor in one iteration, and others in another"

_EXPECTED = 2
"""How often a number may be another one where it is taken for constant, before it is one that
varies.
"""

_AS_TENSOR = "`torch.from_numpy(array)` before the loop makes a tensor on its memory"
_IN_PLACE = (
    "change a leaf in place, `with torch.no_grad(): w -= lr * w.grad`;"
    " a loop over parameters is compiled with the loop around it"
)

_OF_GRAPH = frozenset({"grad", "is_leaf", "requires_grad", "retains_grad"})

_METADATA = frozenset(
    {"shape", "ndim", "dtype", "device", "requires_grad", "is_leaf", "itemsize", "nbytes"}
)
"""What can be read of a tensor and is no tensor, and goes by what is guarded of it."""


def functions_in(value: Any) -> list[Function]:
    """The functions of the program that a value calls when it is called."""
    if type(value) is Function:
        return [value]
    if type(value) is Property:
        return functions_in(value.fget)
    for name in ("function", "func"):
        if name in getattr(type(value), "__slots__", ()):
            return functions_in(getattr(value, name))
    cells = [each.cell_contents for each in getattr(value, "__closure__", None) or ()]
    called = [each for each in cells if type(each) in (Function, FunctionType)]
    return [function for each in called if each is not value for function in functions_in(each)]
