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
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.compiler.assignment import unpacked
from gradcli.language.compiler.names import name_store
from gradcli.language.compiler.operand_labels import label_operands
from gradcli.language.functions.generators import Running
from gradcli.language.objects.attributes import set_attribute
from gradcli.language.objects.classes.descriptors import computes
from gradcli.language.objects.iteration import Iterator, iterate
from gradcli.language.objects.subscripts import set_item
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.syntax import Expression, Statement
from gradcli.loops.holes import HOLES, Frame
from gradcli.loops.kinds import is_of_library, module_class, walk_class
from gradcli.loops.locations import Attribute, Item
from gradcli.loops.symbols import SETTINGS, Symbol, concrete, is_symbolic
from gradcli.loops.walk.expressions import EXPRESSIONS
from gradcli.loops.walk.reading import Reader, described
from gradcli.loops.walk.statements import STATEMENTS
from gradcli.trace.ir import Inline, Value

_ITEM = Inline("{0}.item()", "item", raises=False)


class Capture(Reader):
    """Walks one iteration."""

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

    def computes(self) -> bool:
        """Whether the iteration does anything with tensors: compiling speeds up nothing else."""
        instructions = self.builder.trace.instructions
        return any(value.array is not None for each in instructions for value in each.made)

    def block(self, body: Sequence[Statement], frame: Frame) -> Any:
        """Run statements in a row."""
        for node in body:
            handler = STATEMENTS.get(type(node))
            if self.broken is None and handler is None:
                self.refuse(f"`{_word(node)}` is not recorded", span=node.span)
            if self.broken is not None or handler is None:
                signal = self.plain(self.compiler.statement, node, frame)
            else:
                signal = handler(self, node, frame)
            if signal is not None:
                return signal
        return None

    def value(self, node: Expression, frame: Frame) -> Any:
        """What an expression gives, with symbols where it varies."""
        handler = EXPRESSIONS.get(type(node))
        if self.broken is None and handler is None:
            self.refuse(f"`{_word(node)}` is not recorded", span=node.span)
        if self.broken is not None or handler is None:
            return self.plain(self.compiler.expression, node, frame)
        return handler(self, node, frame)

    def plain(self, compiled: Callable[..., Any], node: Any, frame: Frame) -> Any:
        """What the interpreter makes of a statement or an expression. It is compiled once: a loop
        that runs again and again in the rest of an iteration may become a hot one.
        """
        run = self._plain.get(id(node))
        if run is None:
            run = self._plain[id(node)] = compiled(node, frame.scope)
        return run(frame.variables)

    def evaluate(self, node: Expression, operands: Sequence[Any]) -> Any:
        """What an expression with holes gives for the operands that go there: what varies in them
        is guarded, since nobody else records it.
        """
        return self.recorded(node, [self.exact(each) for each in operands])

    def moved(self, node: Expression, operands: Sequence[Any]) -> Any:
        """The same of an expression that moves values about and looks at none."""
        return self.recorded(node, [self.exact(each, looks=False) for each in operands])

    def recorded(self, node: Expression, operands: Sequence[Any]) -> Any:
        """The same of an expression whose caller records what varies in its operands."""
        values = {str(number): concrete(each) for number, each in enumerate(operands)}
        return self.compiler.expression(node, HOLES)(values)

    def heard(self, node: Expression, operands: Sequence[Any]) -> Any:
        """The same of an expression that hands numbers on to an op, which the recorder hears; a
        number that no instruction takes is guarded.
        """
        since = self.builder.count
        value = self.recorded(node, operands)
        self.expect_untaken(operands, since)
        return value

    def expect_untaken(self, given: Sequence[Any], since: int) -> None:
        """Guard the numbers that no instruction since that one takes."""
        new = self.builder.trace.instructions[since:]
        taken = {value for each in new for value in each.reads}
        for each in given:
            if type(each) is Symbol and each.value not in taken:
                self.exact(each)

    def check_shown(self, value: Any) -> None:
        """End recording where an object is written out: what it shows may change."""
        kind = type(value)
        if kind in (list, tuple):
            for each in value:
                self.check_shown(each)
        elif kind is dict:
            for each in value.values():
                self.check_shown(each)
        elif kind is not Symbol and kind is not Tensor and not isinstance(value, _SHOWN):
            self.refuse(f"{described(value)} is written out")

    def unheard(self, node: Expression, operands: Sequence[Any]) -> Any:
        """What an expression recorded as one call gives: the numbers it takes are its own."""
        taken, self.recorder.taken = self.recorder.taken, []
        try:
            return self.recorded(node, operands)
        finally:
            self.recorder.taken = taken

    def computed(
        self, function: Any, operands: Sequence[Any], now: Any, raises: bool = True
    ) -> Any:
        """What a host function gives for operands that vary."""
        given: list[Any] = []
        texts = [self.attempt(self.builder.written, each, given) for each in operands]
        if self.broken is not None:
            return now
        op = Inline(f"{{{len(given)}}}({', '.join(texts)})", raises=raises)
        return self.either(now, self.builder.compute, op, [*given, function], now, type(now) is str)

    def truth(self, value: Any) -> bool:
        """Whether a value is true, checked with a side exit where that may vary."""
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
        self.builder.exit_unless(
            "{0}" if holds else "not {0}", [value], "a test comes out otherwise"
        )

    def _check_array(self, array: Any, holds: bool) -> None:
        number = self.builder.compute(_ITEM, [self.builder.value_of(array)], array.item(), True)
        self._check(number.value, holds)

    def items(self, values: Any) -> HostIterator[Any]:
        """What a loop draws from."""
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
        return self._constants(iterate(self.exact(values)))

    def check_drawn(self, values: Any) -> None:
        """Refuse what no loop inside the iteration may draw from, such as a DataLoader."""
        drawn = type(values) in _DRAWN or type(values) is walk_class()
        if not drawn or type(getattr(values, "source", None)) is Running:
            self.refuse(
                f"a loop over {described(values)} inside the iteration",
                "the inner loop is compiled on its own",
            )

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
            try:
                self._set_part(owner, at, value)
            except GradcliError as error:
                label_operands(error, ((target.value, owner), (target.index, concrete(at))), "[]=")
                raise
        else:
            self.refuse("a target that is not recorded", span=target.span)

    def _set_part(self, owner: Any, at: Any, value: Any) -> None:
        if type(owner) is Tensor and (type(at) is Symbol or _is_filled(owner, at, value)):
            self._set_element(owner, at, value)
        else:
            self.put(owner, self.exact(at), value, set_item)

    def _store_name(self, name: str, value: Any, frame: Frame, assigned: bool) -> None:
        holder = self.holder(name, frame)
        store = name_store(self.compiler, name, frame.scope, assigned)
        store(frame.variables, concrete(value))
        if id(holder) in self.local:
            if is_symbolic(value):
                self.symbols[id(holder), name] = value
            else:
                self.symbols.pop((id(holder), name), None)
            return
        self._note(self.place_of(holder, name), value)

    def _unpack(
        self, target: tree.Tuple | tree.List, value: Any, frame: Frame, assigned: bool
    ) -> None:
        stars = any(isinstance(each, tree.Starred) for each in target.elements)
        if stars:
            self.refuse("`*` in a target", span=target.span)
        self.state.place = target.span
        if type(value) is list:
            self.rely_on(value)
            known = self.either(value, self.builder.parts_of, value)
            value = tuple([self._part(each) for each in known])
        if type(value) is tuple and len(value) == len(target.elements) and not stars:
            parts = value
        else:
            values = unpacked(self.state, target, self.exact(value, looks=False))
            parts = tuple([self._part(each) for each in values])
        for element, part in zip(target.elements, parts, strict=True):
            inner = element.value if isinstance(element, tree.Starred) else element
            self.store(inner, part, frame, assigned)

    def _part(self, value: Any) -> Any:
        value = self.builder.known(value)
        if type(value) is Tensor and not self.builder.has(value):
            return self.constant(value)
        return value

    def _set_element(self, owner: Tensor, at: Symbol | Tensor, value: Any) -> None:
        """Set what a tensor has at a position that varies, or where a mask is true."""
        muted, self.recorder.muted = self.recorder.muted, True
        try:
            set_item(owner, concrete(at), concrete(value))
        finally:
            self.recorder.muted = muted
        self.attempt(self.recorder.write_at, owner, at, value)

    def put(self, owner: Any, at: Any, value: Any, put: Callable[..., Any]) -> None:
        """Set an attribute or an item."""
        if type(owner) is Tensor and put is set_attribute:
            self._set_tensor_attribute(owner, at, self.exact(value))
            return
        if type(owner) is Tensor:
            since = self.builder.count
            put(owner, at, concrete(value))
            self.expect_untaken([value], since)
            return
        if self.is_local(owner):
            value = self.exact(value, looks=False)
        elif put is set_attribute and is_of_library(owner):
            value = self.exact(value)
        new = concrete(value)
        cls = getattr(type(owner), "language_class", None)
        if put is set_attribute and cls is not None and computes(cls.find(at)):
            self.refuse(f"the property `{at}` is set")
        if put is set_attribute and hasattr(type(owner), "language_sets"):
            self.refuse("an attribute is set by the program's own `__setattr__`")
        put(owner, at, new)
        if self.is_local(owner):
            return
        if put is set_attribute:
            self._note(Attribute(owner, at), value)
        elif type(owner) in (list, dict) and type(at) in (int, str):
            if id(owner) in self.guard.contents:
                self.refuse("a list or dict is gone through that the iteration changes")
            self._note(Item(owner, at), value)
            if "params" in owner:  # an optimizer reads it in its next step
                self.attempt(self._set_now, owner, at, value)
        else:
            self.refuse(f"an item of {described(owner)} is set")

    def _set_now(self, owner: dict[str, Any], at: str, value: Any) -> None:
        """Record that an item of a dict is set, where it stands."""
        operands: list[Any] = []
        text = self.builder.written(value, operands)
        op = Inline(f"{{{len(operands)}}}[{{{len(operands) + 1}}}] = {text}", "set_item")
        self.builder.effect(op, [*operands, owner, at], state=())

    def _set_tensor_attribute(self, owner: Tensor, name: str, new: Any) -> None:
        if name == "grad" and new is None:
            self.attempt(self.gradients.forget, owner)
        elif _is_unchanged(owner, name, new) or (name == "requires_grad" and self._is_own(owner)):
            pass
        elif name == "data":
            self.refuse(
                "`.data` of a tensor is replaced", "change it in place: `w.data -= lr * w.grad`"
            )
        else:
            self.refuse(f"`.{name}` of a tensor is set")
        set_attribute(owner, name, new)

    def _is_own(self, tensor: Tensor) -> bool:
        """Whether the iteration made a tensor, and was not given it."""
        builder = self.builder
        return self.outside.is_made(tensor) and builder.of(tensor) not in builder.trace.inputs


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
    return (name == "grad" and new is owner.grad) or (
        name == "requires_grad" and new is owner.requires_grad
    )


def _word(node: Any) -> str:
    return type(node).__name__.lower()


_SHOWN = (*SETTINGS, type)
"""What is written out in the same way in every iteration."""

_DRAWN = frozenset(
    {range, Iterator, str, set, Tensor} | {type({}.keys()), type({}.values()), type({}.items())}
)
"""What a loop inside the iteration may draw from, beside lists, tuples, dicts and modules."""
