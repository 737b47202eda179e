"""Capture: runs one iteration of a loop and records it.

A capture is a compiler whose closures also record what they run. The handlers of the interpreter's
compiler give control flow, displays and comprehensions, and come to tests, targets and iteration by
methods that a capture overrides. Names, attributes, items, operators and calls have handlers of its
own: what such an operation gives comes from the interpreter's closure of it, over operands that are
evaluated already; so values, errors and places are the interpreter's. Meanwhile ops, writes, draws
are heard by the recorder, and the capture records what is not the engine's: numbers, tests, names,
attributes, lists. Values from outside are guarded; a test becomes a check with a side exit. When
something cannot be recorded, the rest of the iteration runs in the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from collections.abc import Iterator as HostIterator
from functools import cache, partial
from typing import Any

from gradcli.autograd.modes import EnableGrad, InferenceMode, NoGrad, SetGradEnabled
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, Span
from gradcli.language.compiler.assignment import part_of
from gradcli.language.compiler.base import HANDLERS, STORES, Evaluate, Store, label_operands
from gradcli.language.compiler.names import name_store
from gradcli.language.functions.generators import is_generator
from gradcli.language.objects.attributes import set_attribute
from gradcli.language.objects.classes.user_classes import computes
from gradcli.language.objects.iteration import Iterator, drawing, enter, iterate
from gradcli.language.objects.operators import set_item
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.language.tree.syntax import Expression, Statement
from gradcli.loops.kinds import goes_by_fields, is_of_library, module_class, walk_class
from gradcli.loops.locations import Attribute, Item
from gradcli.loops.symbols import ALL_VIEWS, SETTINGS, Symbol, concrete, is_symbolic
from gradcli.loops.walk.reading import Drawn, Reader, described
from gradcli.trace.ir import Inline, Value, placeholder

RECORDED: dict[type[tree.Syntax], Callable[[Any, Any, Scope], Evaluate | Run | None]] = {}
"""What records the nodes of each class that the compiler's own handlers do not record: the files of
`walk` fill it, and `hot_loop` imports them.
"""

_ITEM = Inline("{0}.item()", "item", raises=False)


class Capture(Reader):
    """Compiles one iteration to closures that record it, and runs them.

    Attributes:
        ended: the signal that it ended with, perhaps with symbols.
    """

    ended: Any = None

    def run(self, body: Sequence[Statement]) -> Any:
        """Run the body of the loop once; returns the signal that it ended with."""
        run = self.block(body, self.scope)
        self.recorder.install()
        try:
            for name in self.plan.targets:
                self._expect(name)
            self.ended = run(self.variables)
        finally:
            self.recorder.remove()
            for function, own in self._bodies.items():
                function.enter_by(own)
        return concrete(self.ended)

    def computes(self) -> bool:
        """Whether the iteration does anything with tensors: compiling speeds up nothing else."""
        instructions = self.builder.trace.instructions
        return any(value.array is not None for each in instructions for value in each.results)

    # --- what the handlers of the compiler do with values -----------------------------------------

    binds_directly = False

    def expression(self, node: Expression, scope: Scope) -> Evaluate:
        return self._closure(node, scope, self.compiler.expression)

    def statement(self, node: Statement, scope: Scope) -> Run:
        return self._closure(node, scope, self.compiler.statement)

    def _closure(self, node: Any, scope: Scope, interpret: Callable[..., Any]) -> Any:
        """What records what a node does; what the interpreter runs, once recording has ended. That
        is compiled once: a loop that runs again and again may become a hot one.
        """
        kind = type(node)
        handler = HANDLERS[kind] if kind in _ALIKE else RECORDED.get(kind)
        record = None if handler is None else handler(self, node, scope)
        interpreted = cache(lambda: interpret(node, scope))

        def run(variables: Variables) -> Any:
            if record is not None and self.broken is None:
                return record(variables)
            if self.broken is None:
                self.refuse(f"`{kind.__name__.lower()}` is not recorded", span=node.span)
            return interpreted()(variables)

        return run

    def hot_loop(self, loop: Any, scope: Scope, body: Run, in_try: bool) -> Callable[[], None]:
        return lambda: None  # a loop in the iteration is part of it

    def test(self, node: Expression, scope: Scope, place: Span | None) -> Evaluate:
        evaluate = self.expression(node, scope)

        def test(variables: Variables) -> bool:
            value = evaluate(variables)
            self.state.place = place or self.state.place
            return self.truth(value)

        return test

    def context(self, node: Expression, scope: Scope) -> Evaluate:
        evaluate = self.expression(node, scope)

        def enter(variables: Variables) -> Any:
            value = concrete(evaluate(variables))
            if type(value) not in (NoGrad, EnableGrad, SetGradEnabled, InferenceMode):
                self.refuse("a context other than a grad mode", span=node.span)
            return value

        return enter

    def tried(self, body: Run) -> Run:
        def run(variables: Variables) -> Any:
            try:
                return body(variables)
            except BaseException:  # an iteration that fails is interpreted, with what handles it
                self.refuse("an error is raised inside of `try`")
                raise

        return run

    def enter(self, values: dict[Any, Any], key: Any, value: Any) -> None:
        key = self.exact(key)
        parts = self.either(values, self.builder.parts_of, values)
        enter(values, key, concrete(value))
        if parts is not values or self.is_lost(value):
            self.builder.know_parts(values, {**parts, key: value})

    def drawing(self, kind: str, source: HostIterator[Any], values: Any) -> Iterator:
        drawn = Drawn()
        iterator = drawing(kind, self._handed_on(source, drawn), concrete(values))
        self.generated[iterator] = drawn
        return iterator

    def _handed_on(self, source: HostIterator[Any], drawn: Drawn) -> Generator[Any, None, None]:
        for value in source:
            drawn.values.append(value)
            yield concrete(value) if drawn.is_recorded else self.exact(value, drawn.looks)

    # --- operations -------------------------------------------------------------------------------

    def evaluate(self, operation: Callable[..., Any], operands: Sequence[Any]) -> Any:
        """What an operation gives for its operands: what varies in them is guarded, since nobody
        else records it.
        """
        return operation(*[self.exact(each) for each in operands])

    def moved(self, operation: Callable[..., Any], operands: Sequence[Any]) -> Any:
        """The same of an operation that moves values about and looks at none."""
        return operation(*[self.exact(each, looks=False) for each in operands])

    def recorded(self, operation: Callable[..., Any], operands: Sequence[Any]) -> Any:
        """The same of an operation whose caller records what varies in its operands."""
        return operation(*map(concrete, operands))

    def heard(self, operation: Callable[..., Any], operands: Sequence[Any]) -> Any:
        """The same of an operation that hands numbers on to an op, which the recorder hears; a
        number that no instruction takes is guarded.
        """
        since = self.builder.count
        value = self.recorded(operation, operands)
        self.expect_untaken(operands, since)
        return value

    def expect_untaken(self, operands: Sequence[Any], since: int) -> None:
        """Guard the numbers that no instruction since that one takes."""
        new = self.builder.trace.instructions[since:]
        taken = {value for each in new for value in each.reads}
        for each in operands:
            if type(each) is Symbol and each.value not in taken:
                self.exact(each)

    def check_shown(self, value: Any) -> None:
        """End recording where an object is written out: what it shows may change."""
        kind = type(value)
        if kind in (list, tuple, dict):
            for each in value.values() if kind is dict else value:
                self.check_shown(each)
        elif kind is not Symbol and kind is not Tensor and not isinstance(value, _SHOWN):
            self.refuse(f"{described(value)} is written out")

    def unheard(self, operation: Callable[..., Any], operands: Sequence[Any]) -> Any:
        """What an operation recorded as one call gives: the numbers it takes are its own."""
        with self.recorder.taking():
            return self.recorded(operation, operands)

    def computed(
        self, function: Any, operands: Sequence[Any], now: Any, raises: bool = True
    ) -> Any:
        """What a host function gives for operands that vary."""
        written: list[Any] = []
        text = self.attempt(self.builder.written_call, written, function, operands)
        if text is None:
            return now
        op = Inline(text, raises=raises)
        return self.either(now, self.builder.compute, op, written, now, type(now) is str)

    def truth(self, value: Any) -> bool:
        """Whether a value is true, checked with a side exit where that may vary."""
        if type(value) is Symbol:
            holds = bool(value.now)
            self.attempt(self._check, value.value, holds)
            return holds
        if type(value) is Tensor:
            with self.recorder.taking() as taken:
                holds = bool(value)
            for array in taken:
                self.attempt(self._check_array, array, holds)
            return holds
        self.rely_on(value)
        return (type(value) is tuple and is_symbolic(value)) or bool(value)

    def _check(self, value: Value, holds: bool) -> None:
        self.builder.exit_unless(
            "{0}" if holds else "not {0}", [value], "a test comes out otherwise"
        )

    def _check_array(self, array: Any, holds: bool) -> None:
        number = self.builder.compute(_ITEM, [self.builder.value_of(array)], array.item(), True)
        self._check(number.value, holds)

    def iterate(self, values: Any) -> HostIterator[Any]:
        kind = type(values)
        if kind is tuple:
            return iter(values)
        if kind in (list, dict):
            self.rely_on(values)
            parts = self.attempt(self.builder.parts_of, values)
            if parts is not None and parts is not values:
                return iter(parts)
        elif isinstance(values, module_class()):
            self.rely_on_module(values)
        else:
            self.check_drawn(values)
            for drawn in self.generated_in([values]):
                drawn.looks = False
        # Whose values are handed on, as those of a list are that the iteration made.
        looks = kind not in ALL_VIEWS and not (kind is list and id(values) in self.local)
        return map(self.handed_out, iterate(self.exact(values, looks)))

    def check_drawn(self, values: Any) -> None:
        """Refuse what no loop inside the iteration may draw from, such as a DataLoader."""
        drawn = type(values) in _DRAWN or type(values) is walk_class()
        if not drawn or is_generator(values):
            self.refuse(
                f"a loop over {described(values)} inside the iteration",
                "the inner loop is compiled on its own",
            )

    def handed_out(self, value: Any) -> Any:
        """A value that the host took out of others: one of the iteration, or a constant."""
        if type(value) is tuple:
            parts = tuple([self.handed_out(each) for each in value])
            return parts if is_symbolic(parts) else value
        if type(value) is Tensor and self.builder.has(value):
            return value
        value = self.builder.known(value)
        return value if type(value) is Symbol else self.constant(value)

    def store(self, target: Expression, scope: Scope, assigned: bool = False) -> Store:
        if isinstance(target, tree.Name):
            return self._name_store(target.name, scope, assigned)
        if isinstance(target, (tree.Tuple, tree.List)):
            return self._unpacking(target, scope, assigned)
        assert isinstance(target, (tree.Attribute, tree.Subscript))
        evaluate = self.expression(target.value, scope)
        _, index, key = part_of(self, target, scope)

        def store(variables: Variables, value: Any) -> None:
            owner, at = evaluate(variables), key(variables)
            self.state.place = target.span
            if index is None:
                self.put(owner, at, value, set_attribute)
                return
            try:
                if type(owner) is Tensor and (type(at) is Symbol or _is_filled(owner, at, value)):
                    with self.recorder.mute():
                        set_item(owner, concrete(at), concrete(value))
                    self.attempt(self.recorder.write_at, owner, at, value)
                else:
                    self.put(owner, self.exact(at), value, set_item)
            except GradcliError as error:
                label_operands(error, ((target.value, owner), (index, concrete(at))), "[]=")
                raise

        return store

    def _name_store(self, name: str, scope: Scope, assigned: bool) -> Store:
        put = name_store(self.compiler, name, scope, assigned)

        def store(variables: Variables, value: Any) -> None:
            if scope.comprehension:
                self.local[id(variables)] = variables
            holder = self.holder(name, scope, variables)
            put(variables, concrete(value))
            note = self.remember if id(holder) in self.local else self.note
            note(self.place_of(holder, name), value)

        return store

    def _unpacking(self, target: tree.Tuple | tree.List, scope: Scope, assigned: bool) -> Store:
        unpack = STORES[type(target)](self, target, scope, assigned)
        plain = self.compiler.store(target, scope, assigned)
        has_star = any(isinstance(each, tree.Starred) for each in target.elements)

        def store(variables: Variables, value: Any) -> None:
            self.state.place = target.span
            if has_star:
                self.refuse("`*` in a target", span=target.span)
                plain(variables, concrete(value))
                return
            if type(value) is list:
                self.rely_on(value)
                value = [*map(self.handed_out, self.either(value, self.builder.parts_of, value))]
            elif type(value) is not tuple:
                value = self.exact(value, looks=False)
                if hasattr(type(value), "__iter__"):
                    value = map(self.handed_out, iterate(value))
            unpack(variables, value)

        return store

    def put(self, owner: Any, at: Any, value: Any, put: Callable[..., Any]) -> None:
        """Set an attribute or an item."""
        if type(owner) is Tensor and put is set_attribute:
            self._set_tensor_attribute(owner, at, self.exact(value))
            return
        if type(owner) is Tensor:
            self.heard(partial(put, owner, at), [value])
            return
        if self.is_local(owner):
            self.check_unkept(owner)
            if type(owner) is dict and put is set_item:
                self.enter(owner, at, value)
                return
            value = self.exact(value, looks=False)
        elif put is set_attribute and is_of_library(owner):
            value = self.exact(value)
        new = concrete(value)
        cls = getattr(type(owner), "language_class", None)
        if put is set_attribute and cls is not None and computes(cls.find(at)):
            self.refuse(f"the property `{at}` is set")
        if put is set_attribute and hasattr(type(owner), "language_sets"):
            self.refuse("an attribute is set by the program's own `__setattr__`")
        if goes_by_fields(owner) and at in owner.all_fields and at in owner.language_attributes:
            self.refuse(f"`.{at}` of {described(owner)} is set")
        if id(owner) in self.made:
            self.refuse("a function of the iteration, or a state of a module, is changed")
        put(owner, at, new)
        if self.is_local(owner):
            return
        if put is set_attribute:
            self.note(Attribute(owner, at), value)
        elif type(owner) in (list, dict) and type(at) in (int, str):
            if id(owner) in self.guard.contents:
                self.refuse("a list or dict is gone through that the iteration changes")
            if type(owner) is list:
                self.guard.rely_on(lambda: [-len(owner) <= at < len(owner)])
            self.note(Item(owner, at), value)
            if "params" in owner:  # an optimizer reads it in its next step
                self.attempt(self._set_now, owner, at, value)
        else:
            self.refuse(f"an item of {described(owner)} is set")

    def _set_now(self, owner: dict[str, Any], at: str, value: Any) -> None:
        """Record that an item of a dict is set, where it stands."""
        operands: list[Any] = []
        text = self.builder.written(value, operands)
        item = f"{placeholder(operands, owner)}[{placeholder(operands, at)}]"
        op = Inline(f"{item} = {text}", "set_item")
        self.builder.effect(op, operands, state=())

    def _set_tensor_attribute(self, owner: Tensor, name: str, new: Any) -> None:
        if name == "grad" and new is None:
            self.attempt(self.gradients.forget, owner)
        elif _is_unchanged(owner, name, new) or (name == "requires_grad" and self.is_own(owner)):
            pass
        elif name == "data" and self.is_own(owner) and self.is_own(new):
            pass  # it shows an array of the iteration's from here on
        elif name == "data":
            self.refuse(
                "`.data` of a tensor is replaced", "change it in place: `w.data -= lr * w.grad`"
            )
        else:
            self.refuse(f"`.{name}` of a tensor is set")
        set_attribute(owner, name, new)

    def is_own(self, tensor: Any) -> bool:
        """Whether a value is a tensor that the iteration made, and was not given."""
        builder = self.builder
        return (
            type(tensor) is Tensor
            and builder.is_of_iteration(tensor)
            and builder.of(tensor) not in builder.trace.inputs
        )


def _is_filled(owner: Tensor, at: Any, value: Any) -> bool:
    """Whether a number is put where a mask is true, into a tensor outside of all graphs."""
    return (
        type(at) is Tensor
        and at.array.dtype.kind == "b"
        and at.array.shape == owner.array.shape != ()
        and not owner.requires_grad
        and type(concrete(value)) in (int, float)
    )


def _is_unchanged(owner: Tensor, name: str, new: Any) -> bool:
    """Whether an attribute of a tensor is set to what it is."""
    if name == "data":
        return type(new) is Tensor and new.array is owner.array
    return name in ("grad", "requires_grad") and new is getattr(owner, name)


_ALIKE = frozenset(
    {tree.Break, tree.Conditional, tree.Constant, tree.Continue, tree.ExpressionStatement}
    | {tree.Global, tree.If, tree.Logical, tree.NamedExpression, tree.Pass, tree.Return, tree.Slice}
    | {tree.Try, tree.While, tree.With}
)
"""What the compiler's own handlers record: all that they do goes through methods of a capture."""

_SHOWN = (*SETTINGS, type)
"""What is written out in the same way in every iteration."""

_DRAWN = ALL_VIEWS | {range, Iterator, str, set, Tensor}
"""What a loop inside the iteration may draw from, beside lists, tuples, dicts and modules."""
