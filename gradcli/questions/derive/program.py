"""The gradient as a program: straight-line formulas for the gradient of each input.

The formulas are the steps of a backward pass that recorded its own graph, without those that do not
lead to a gradient. What is simplified leaves every bit as it is: factors of 1, terms of 0, double
signs, double transposes, copies, shapes that broadcasting brings about by itself; and what is
computed twice is computed once.

It begins with a recorded run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.dtypes import of_array
from gradcli.arrays.layout.meta import MetaArray
from gradcli.autograd.custom_function import FunctionCall
from gradcli.autograd.engine.backward import grad
from gradcli.autograd.recording.trace_recorder import UPDATE, TraceRecorder, source_of
from gradcli.autograd.recording.trace_recorder import Call as OpCall
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.questions.derive.simplify import Simplification
from gradcli.record import Record
from gradcli.recorded.result import Result
from gradcli.recorded.symbols.tree import (
    Call,
    Constant,
    Item,
    Name,
    Operation,
    Symbol,
    rebuilt,
    substituted,
    text_of,
)
from gradcli.recorded.written_instructions import (
    Unwritten,
    dtype_argument,
    read_at,
    shared_positions,
    written,
    written_at,
)
from gradcli.state import active
from gradcli.trace.ir import Value, values_in

_LONGEST = 60
"""A formula that would be longer than this is not put into another one."""

MANY = 100
"""With more formulas than this, sums keep lines of their own: what a loop adds up stays regular."""

_MOST_ELEMENTS = 1000
"""A constant of more elements is not written down."""


HasWordFor = Callable[[Symbol], bool]

IsValue = Callable[[str, Any], bool]


class Line(Record):
    """`name = formula`, and the array that it came to in the run.

    Attributes:
        dims: the texts of its sizes, where these have names.
    """

    name: str
    formula: Symbol
    array: Any
    dims: tuple[str, ...] = ()


class Derivation(Record):
    """Gradients as formulas.

    Attributes:
        inputs: the names that the formulas start from, with their values; `seed` is among them
            where a seed was given.
        shown: the lines without the cases in which a factor is 0 by convention.
        conventions: these cases, as conditions on the inputs.
        conditions: what the formulas hold for, "for x.sum() > 0"; empty where for all inputs.
        kind: "gradient", or "jacobian" or "hessian" where the lines are these matrices.
        fixed: the inputs that the program has no other values of: constants too long to be written
            down, draws and what they are drawn from.
        described: what inputs are that the program has no names for.
        paths: the path of each parameter of a module among them: `m_0_weight` is `m.0.weight`.
        sizes: for each name of a size the input, and the dimension of it, that has the size.
        standing: the arrays that stand in the formulas as they are, each with its tensor where it
            has one: those that no operation of the trace computes from the inputs.
    """

    inputs: dict[str, Any]
    lines: list[Line]
    gradients: dict[str, str]
    values: dict[str, Any]
    paths: dict[str, str] = {}  # noqa: RUF012  # never written to
    shown: list[Line] = []  # noqa: RUF012
    conventions: list[str] = []  # noqa: RUF012
    fixed: set[str] = set()  # noqa: RUF012
    described: dict[str, str] = {}  # noqa: RUF012
    kind: str = "gradient"
    conditions: list[str] = []  # noqa: RUF012
    sizes: dict[str, tuple[str, int]] = {}  # noqa: RUF012
    standing: list[tuple[Tensor | None, Any]] = []  # noqa: RUF012


def derivation(
    recorder: TraceRecorder,
    inputs: dict[str, Value],
    gradients: dict[str, Value],
    forward: int,
    has_word_for: HasWordFor | None = None,
    is_value: IsValue = lambda name, array: False,
) -> Derivation:
    """The formulas of gradients in a trace.

    Args:
        recorder: what recorded the run and a backward pass that recorded a graph.
        forward: how many values there were before the backward pass.
        has_word_for: whether a formula can be written where it goes; an op whose formula cannot
            is written step by step where its entry says how.
        is_value: whether a constant with a name is written as its value.

    Raises:
        GradcliError: E413 where an op on the way has no expression in the language.
    """
    return _Writer(recorder, inputs, forward, has_word_for, is_value).derivation(gradients)


def is_sum(formula: Symbol) -> bool:
    """Whether a formula adds up two others."""
    return isinstance(formula, Operation) and formula.operator == "+"


def without_expression(op: str) -> GradcliError:
    """The error of an op that formulas do not cover."""
    return GradcliError(
        "E413",
        f"there is no formula for {op}, which the gradient needs",
        help="`gradcli explain` shows its numbers",
    )


def _call_of(value: Value) -> OpCall | None:
    """The call that made a value, None for one that came from outside or from a backward pass."""
    return value.maker if isinstance(value.maker, OpCall) else None


def _operands_of(call: OpCall) -> dict[str, Any]:
    """The operands and arguments of a call."""
    return {**call.operands, "self": None} if call.op.scratch else call.operands


def _values_of(call: OpCall) -> list[Value]:
    """The values that a call reads."""
    return [source_of(value) for value in values_in(_operands_of(call).values())]


def _is_updated(value: Value) -> bool:
    """Whether a value is what became of another one by writes to its memory."""
    return value.maker is not None and value.maker.op is UPDATE


class _Writer:
    """One derivation being written."""

    def __init__(
        self,
        recorder: TraceRecorder,
        inputs: dict[str, Value],
        forward: int,
        has_word_for: HasWordFor | None,
        is_value: IsValue,
    ) -> None:
        self.recorder = recorder
        self.has_word_for = has_word_for
        self.is_value = is_value
        self.inputs = inputs
        self.forward = forward
        self.recorded = len(recorder.values)
        self.decomposed: dict[int, tuple[Any, ...]] = {}
        self.names = {value.number: name for name, value in inputs.items()}
        self.known: dict[int, Symbol] = {value.number: Name(n) for n, value in inputs.items()}
        self.formulas: dict[str, Symbol] = {}
        self.arrays: dict[str, Any] = {name: value.array for name, value in inputs.items()}
        self.simplification = Simplification(self.formulas, self.arrays)
        self.by_text: dict[str, str] = {}
        self.fixed: set[str] = set()
        self.described: dict[str, str] = {}
        self.alike: dict[int, Value] = {}
        self.varying: dict[int, bool] = {value.number: True for value in inputs.values()}
        self.standing: list[tuple[Tensor | None, Any]] = []
        self.noted: set[int] = set()
        self.numbers = {
            complex(each)
            for value in recorder.values[:forward]
            if isinstance(value.maker, OpCall)
            for each in value.maker.operands.values()
            if type(each) in (int, float, complex)
        }
        # What an op saves of a number has the dtype of the tensor beside it.
        self.numbers |= {complex(np.complex64(each)) for each in self.numbers}

    def derivation(self, gradients: dict[str, Value]) -> Derivation:
        for value in self._in_order([source_of(each) for each in gradients.values()]):
            self._write(value)
        self._note_standing([source_of(each) for each in gradients.values()], [])
        wanted = {name: self._symbol(value) for name, value in gradients.items()}
        return _Layout(self, wanted, gradients).derivation()

    # --- which values ----------------------------------------------------------------------------

    def _in_order(self, wanted: Sequence[Value]) -> list[Value]:
        """The values that others are computed from, and they themselves."""
        needed: set[int] = set()
        stack = list(wanted)
        while stack:
            value = stack.pop()
            if value.number not in needed and value.number not in self.known:
                needed.add(value.number)
                inner = self._of_forward(value)
                if inner is not None:
                    self.alike[value.number] = inner
                    stack.append(inner)
                    continue
                reads = self._reads(value)
                if reads:
                    stack += reads
                elif self.forward <= value.number < self.recorded:
                    alike = self._alike(value)
                    if alike is not None:
                        self.alike[value.number] = alike
                        stack.append(alike)
        return [self.recorder.values[number] for number in sorted(needed)]

    def _reads(self, value: Value) -> list[Value]:
        """The values that a value is computed from."""
        call = _call_of(value)
        if call is not None:
            return _values_of(call)
        if not _is_updated(value):
            return []
        assert value.maker is not None
        written = [new for _, new in self._writes(value) if isinstance(new, Value)]
        return [source_of(each) for each in (value.maker.inputs[0], *written)]

    def _writes(self, value: Value) -> list[tuple[Any, Any]]:
        """What was written to the memory of a value since it was last known: at which positions,
        and the value, array or number.
        """
        assert value.maker is not None
        before, tensor = value.maker.inputs[0], self.recorder.tensors[value.number]
        assert tensor is not None
        writes = []
        for write in self.recorder.writes:
            after = write.outputs[0]
            if after is not None and before.number < after.number < value.number:
                positions = shared_positions(write.tensor.array, tensor.array)
                if positions is not None:
                    writes.append((positions, write.inputs[-1]))
        return writes

    def _updated(self, value: Value) -> Symbol:
        """A value that views of it were written to, each write as a call that makes a new one."""
        assert value.maker is not None
        shape, before = value.array.shape, value.maker.inputs[0]
        formula, writes = self._symbol(before), self._writes(value)
        if not writes or before.array.shape != shape:
            formula = _laid_out(formula, before.array, value.array)
        for positions, new in writes:
            if isinstance(new, Value) and not isinstance(self._symbol(new), Constant):
                symbol = self._symbol(new)
                if new.array.shape != positions.shape:
                    symbol = Call("expand", (symbol, Constant(positions.shape)), True)
            else:
                number = new.array if isinstance(new, Value) else new
                full = np.broadcast_to(number, positions.shape).astype(value.array.dtype)
                literal = _literal(full)
                if literal is None:
                    whole = self.recorder.trace.value(full.shape, full.dtype, array=full)
                    literal = self._long(whole)
                symbol = literal
            formula = written_at(formula, symbol, positions, shape)
        return self._line(value, formula)

    def _of_forward(self, value: Value) -> Value | None:
        """What the `forward` of a custom function returned, for the output that it became; raises
        E413 where no op made it.
        """
        call = _call_of(value)
        if call is None or not isinstance(call.op, FunctionCall):
            return None
        for each in reversed(self.recorder.values[: value.number]):
            is_same = each.array.dtype == value.array.dtype and np.array_equal(
                each.array, value.array, equal_nan=value.array.dtype.kind in "fc"
            )
            if is_same and (_call_of(each) is not None or each in call.inputs):
                return each
        raise without_expression(call.op.name)

    def _alike(self, value: Value) -> Value | None:
        """The value of the forward pass that an op saved aside under another identity."""
        array = value.array
        if array.size < 2 or (array == array.reshape(-1)[0]).all():
            return None
        for each in self.recorder.values[: self.forward]:
            other = each.array
            if other is None:  # a tensor on meta
                continue
            if other.dtype == array.dtype and np.array_equal(other, array):
                return each
        return None

    def _write(self, value: Value) -> None:
        alike = self.alike.get(value.number)
        if alike is not None:
            self.known[value.number] = self.known[alike.number]
            self.varying[value.number] = self.varying[alike.number]
            return
        call = _call_of(value)
        varies = any(self.varying[v.number] for v in self._reads(value))
        self.varying[value.number] = varies
        aside = self.forward <= value.number < self.recorded
        if call is not None and "drawn" in call.operands:
            self._draw(call)
        if call is None and aside and not _is_updated(value) and not self._is_number(value):
            # What an op computed aside and saved depends on the inputs in a way that no rule says.
            raise without_expression(self._consumer(value))
        if not varies:
            self.known[value.number] = self._constant(value)
        elif call is not None:
            self.known[value.number] = self._formula(value, call)
            self._note_standing(_values_of(call), [call])
        else:
            self.known[value.number] = self._updated(value)

    def _note_standing(self, values: list[Value], calls: list[OpCall]) -> None:
        """Note what stands in formulas of these values and calls as it is: arrays that the calls
        take, and what values of the backward pass are computed from that no input changes.
        """
        while values:
            value = values.pop()
            symbol, made = self.known[value.number], _call_of(value)
            is_input = isinstance(symbol, Name) and symbol.name in self.inputs
            if self.varying[value.number] or is_input or value.number in self.noted:
                continue
            self.noted.add(value.number)
            self.standing.append((self.recorder.tensors[value.number], value.array))
            if made is not None and value.number >= self.forward:
                calls.append(made)
                values += _values_of(made)
        for each in calls:
            for operand in each.operands.values():
                parts = operand if isinstance(operand, (tuple, list)) else (operand,)
                self.standing += [(None, part) for part in parts if type(part) is np.ndarray]

    def _draw(self, call: OpCall) -> None:
        """Take what was drawn as an input, and note what it was drawn from."""
        drawn = source_of(call.operands["drawn"])
        self.varying[drawn.number] = True
        from_names = {self.names.get(each.number, "") for each in self._behind(_values_of(call))}
        name = self._input(drawn, "draw", f"what {call.op.name.lstrip('_')} drew")
        self.known[drawn.number] = Name(name)
        self.fixed |= from_names

    def _input(self, value: Value, wanted: str, description: str) -> str:
        """The name of a value that the formulas take from outside."""
        name = _free(wanted, self.arrays)
        self.arrays[name], self.inputs[name] = value.array, value
        self.described[name] = description
        self.fixed.add(name)
        return name

    def _behind(self, values: list[Value]) -> list[Value]:
        """Values and all that they are computed from."""
        values_behind: dict[int, Value] = {}
        while values:
            value = values.pop()
            if value.number not in values_behind:
                values_behind[value.number] = value
                values += self._reads(value)
        return list(values_behind.values())

    def _is_number(self, value: Value) -> bool:
        """Whether a value is a number of the program, or a count, or what a rule makes of shapes
        alone: zeros, ones, a unit matrix, positions, steps of halves.
        """
        array = value.array
        if not array.size:
            return False
        if array.ndim == 0:
            number = complex(array)
            return number in self.numbers or (not number.imag and number.real.is_integer())
        if array.dtype.kind == "i" or (array == 0).all() or (array == 1).all():
            return True
        steps = np.diff(array.reshape(-1))
        is_range = (steps == steps[:1]).all() and (array * 2 % 1 == 0).all()
        return _is_unit(array) or (array.ndim == 1 and bool(is_range))

    def _consumer(self, value: Value) -> str:
        for each in self.recorder.values:
            call = _call_of(each)
            if call is not None and any(v is value for v in _values_of(call)):
                return str(call.op.name)
        return "this"

    # --- one value -------------------------------------------------------------------------------

    def _formula(self, value: Value, call: OpCall) -> Symbol:
        symbols = {name: self._given(each) for name, each in _operands_of(call).items()}
        try:
            formula = written(call, symbols, call.outputs.index(value))
        except Unwritten:
            return self._decomposition(value, call)
        formula = self._sized(formula)
        if self.has_word_for and call.op.decomposition and not self.has_word_for(formula):
            return self._decomposition(value, call)
        return self._line(value, formula)

    def _line(self, value: Value, formula: Symbol) -> Symbol:
        """The name of a formula, or it itself where it is a name or a number."""
        formula = self.simplification.of(formula, value.array)
        if isinstance(formula, (Name, Constant)):
            return formula
        return self._named(value, formula, value.array)

    def _named(self, value: Value, formula: Symbol, array: Any) -> Name:
        """The name of a formula, one for all values that have it."""
        key = f"{array.dtype} {array.shape} {formula!r}"
        name = self.by_text.get(key)
        if name is None:
            name = f"_{value.number}"
            self.by_text[key] = name
            self.formulas[name] = formula
            self.arrays[name] = array
            self.names.setdefault(value.number, name)
        return Name(name)

    def _decomposition(self, value: Value, call: OpCall) -> Symbol:
        """The formula of an output of an op that other ops make up."""
        if id(call) not in self.decomposed:
            if call.op.decomposition is None:
                raise without_expression(call.op.name)
            operands = {name: self._tensors(each) for name, each in _operands_of(call).items()}
            outputs = call.op.decomposition(**operands)
            self.decomposed[id(call)] = (
                tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)
            )
        output = self.decomposed[id(call)][call.outputs.index(value)]
        result = source_of(self.recorder.find(output))
        assert result is not value
        for each in self._in_order([result]):
            self._write(each)
        return self._symbol(result)

    def _tensors(self, operand: Any) -> Any:
        """An operand as an op takes it."""
        if isinstance(operand, Value):
            return self.recorder.stand_in(source_of(operand))
        if isinstance(operand, (tuple, list)) and any(True for _ in values_in(operand)):
            return [self._tensors(each) for each in operand]
        return operand

    def _sized(self, formula: Symbol) -> Symbol:
        """A formula with numbers of elements counted."""
        parts = tuple(self._sized(part) for part in formula.parts)
        if isinstance(formula, Call) and formula.function == "numel":
            array = self.simplification.kind(parts[0])
            return formula if array is None else Constant(int(array.size))
        if isinstance(formula, Call) and formula.function == "max" and not formula.method:
            values = [part.value for part in parts if isinstance(part, Constant)]
            return Constant(max(values)) if len(values) == len(parts) > 1 else formula
        return rebuilt(formula, parts) if parts else formula

    def _given(self, operand: Any) -> Any:
        if isinstance(operand, Value):
            return self._symbol(operand)
        if isinstance(operand, (tuple, list)) and any(True for _ in values_in(operand)):
            return [_as_tensor(self._given(each), each) for each in operand]
        return operand

    def _symbol(self, value: Value) -> Symbol:
        return self.known[source_of(value).number]

    def _constant(self, value: Value) -> Symbol:
        """A value that no input changes: a number where all its elements are alike."""
        array = np.asarray(to_host(value.array))
        tensor = self.recorder.tensors[value.number]
        name = None if tensor is None else tensor.name
        if name and not name.isidentifier():
            name = identifier_of(name)
            self.fixed.add(name)
        elif name and self.is_value(name, array):
            name = None
        if _call_of(value) is None and name and name not in self.arrays:
            self.arrays[name] = array
            self.inputs[name] = value
            return Name(name)
        if array.ndim == 0 and array.dtype.kind not in "ib":
            return Constant(_plain(shortest(array)))
        literal = _literal(array)
        return self._long(value) if literal is None else self._named(value, literal, array)

    def _long(self, value: Value) -> Symbol:
        """A constant of many elements: an input, or the transpose of one."""
        for name in self.described:
            other = self.arrays[name]
            if other.dtype == value.array.dtype:
                if np.array_equal(other, value.array):
                    return Name(name)
                if other.ndim == 2 and np.array_equal(other.T, value.array):
                    return Call("t", (Name(name),), True)
        shape = tuple(value.array.shape)
        return Name(self._input(value, "c1", f"a constant of shape {shape}"))


def _laid_out(formula: Symbol, before: Any, after: Any) -> Symbol:
    """A value whose tensor was given another shape in place, or turned."""
    if np.array_equal(before, after, equal_nan=after.dtype.kind in "fc"):
        return formula
    if np.array_equal(before.reshape(-1), after.reshape(-1)):
        return Call("reshape", (formula, Constant(after.shape)), True)
    for dims in permutations(range(before.ndim)):
        if np.array_equal(before.transpose(dims), after):
            return Call("permute", (formula, *map(Constant, dims)), True)
    places = {number: place for place, number in enumerate(before.ravel().tolist())}
    if len(places) == before.size and places.keys() >= set(after.ravel().tolist()):
        # No two elements are alike, so that it shows which ones the view has.
        positions = [places[number] for number in after.ravel().tolist()]
        return read_at(formula, np.array(positions, np.int64).reshape(after.shape), before.shape)
    raise without_expression("a view in place")


def _one_hot(array: Any) -> Symbol | None:
    """Rows that are 0 but for one number, the same in all, as `number * F.one_hot(…)`."""
    if array.ndim != 2 or array.dtype != np.float32 or not array.size:
        return None
    where = array != 0
    number = array[where][:1]
    if (where.sum(1) != 1).any() or (array[where] != number).any() or number == 1:
        return None  # the factor makes the integers of `one_hot` floating numbers
    places = Call("tensor", (Constant(where.argmax(1).tolist()),))
    rows = Call("F.one_hot", (places, Constant(array.shape[1])))
    if len(array) == array.shape[1] and _is_unit(where):
        rows = Call("eye", (Constant(len(array)),))
    return Operation("*", Constant(shortest(number[0])), rows)


def _is_unit(array: Any) -> bool:
    """Whether an array is a unit matrix, or a batch of them."""
    return array.ndim > 1 and bool((array == np.eye(*array.shape[-2:])).all())


def is_pattern(array: Any) -> bool:
    """Whether an array has an expression shorter than its elements: zeros, ones, a unit matrix."""
    literal = _literal(array) if array.ndim else None
    return isinstance(literal, Call) and literal.function in ("zeros", "ones", "full", "eye")


def is_written(array: Any) -> bool:
    """Whether an array has an expression at all."""
    return _literal(array) is not None


def _as_tensor(symbol: Any, value: Any) -> Any:
    """A number in a list of tensors as one of them."""
    if not isinstance(symbol, Constant) or not isinstance(value, Value):
        return symbol
    kind = dtype_argument(of_array(np.asarray(value.array)).name)
    return Call("tensor", (Constant(float(symbol.value)), *kind))


def _literal(array: Any) -> Symbol | None:
    """An array as an expression: by its one number, as the unit matrix, or by its elements; None
    where these are too many.
    """
    kind = () if array.dtype.kind in "ib" else dtype_argument(of_array(array).name)
    flat = array.reshape(-1)
    if array.ndim and array.size and (flat == flat[0]).all():
        number = _plain(shortest(flat[0]))
        if array.dtype.kind == "f" and number in (0, 1):
            return Call("ones" if number else "zeros", (Constant(array.shape), *kind))
        if array.dtype.kind == "f" and isinstance(number, int):
            number = float(number)  # a whole number fills a tensor of integers
        return Call("full", (Constant(array.shape), Constant(number), *kind))
    if array.ndim == 2 and _is_unit(array):
        sizes = array.shape if array.shape[0] != array.shape[1] else array.shape[:1]
        return Call("eye", (*map(Constant, sizes), *kind))
    picked = _one_hot(array)
    if picked is not None:
        return picked
    if array.ndim == 1 and array.dtype.kind == "f" and (array == np.arange(array.size)).all():
        return Call("arange", (Constant(float(array.size)), *kind))
    if array.size > _MOST_ELEMENTS:
        return None
    return Call("tensor", (Constant(shortest(array)), *kind))


def shortest(array: Any) -> Any:
    """The numbers of an array with no more digits than its dtype needs, in lists of Python."""
    if array.dtype.kind in "fV" and array.dtype.itemsize < 8:
        if array.ndim:
            return [shortest(each) for each in array]
        return float(str(array[()]))
    return array.tolist()


def _plain(number: Any) -> Any:
    """A whole floating number as the integer that it is."""
    is_whole = type(number) is float and number.is_integer() and abs(number) < 1e6
    return int(number) if is_whole else number


def _qualified(symbol: Symbol, names: set[str]) -> Symbol:
    """A formula whose functions differ from names that are spelled like them."""
    parts = tuple(_qualified(part, names) for part in symbol.parts)
    if isinstance(symbol, Call) and not symbol.method and symbol.function in names:
        return Call(f"torch.{symbol.function}", parts)
    return rebuilt(symbol, parts) if parts else symbol


def identifier_of(path: str) -> str:
    """A name for what has a path, such as a parameter: `net_0_weight`, `params_w`."""
    return re.sub(r"\W+", "_", path.rstrip("]'"))


def _free(wanted: str, taken: Container[str]) -> str:
    """A name that is not taken: the one wanted, or one with the next number."""
    stem = wanted.rstrip("0123456789")
    name, number = wanted, int(wanted[len(stem) :] or 0) + 1
    while name in taken or name == "t":
        name = f"{stem}{number}"
        number += 1
    return name


def _is_plain(formula: Symbol) -> bool:
    """Whether a formula needs no line of its own however often it is used: a part of a name at one
    position, a case, or zeros.
    """
    if isinstance(formula, Item):
        index = formula.index.value if isinstance(formula.index, Constant) else None
        return isinstance(formula.value, Name) and type(index) is int
    if isinstance(formula, Operation) and formula.operator == "==":
        return all(isinstance(part, (Name, Constant)) for part in formula.parts)
    return isinstance(formula, Call) and formula.function == "zeros"


class _Layout:
    """From formulas to lines: which are put into others, and what the others are called."""

    def __init__(
        self, writer: _Writer, wanted: dict[str, Symbol], gradients: dict[str, Value]
    ) -> None:
        self.writer = writer
        self.wanted = wanted
        self.gradients = gradients
        self.taken = set(writer.inputs)

    def derivation(self) -> Derivation:
        formulas = self.writer.formulas
        uses = Counter(
            part.name for f in formulas.values() for part in f.walk() if isinstance(part, Name)
        )
        uses.update(symbol.name for symbol in self.wanted.values() if isinstance(symbol, Name))
        live = self._live()
        is_long = len(live) > MANY
        replaced: dict[str, Symbol] = {}
        lines: list[Line] = []
        final = {
            symbol.name: f"grad_{name}"
            for name, symbol in reversed(self.wanted.items())
            if isinstance(symbol, Name) and symbol.name in formulas
        }
        self.taken.update(final.values())
        for name, formula in formulas.items():
            if name not in live:
                continue
            formula = substituted(formula, replaced)
            program_name = self._program_name(name)
            short = len(repr(formula)) <= _LONGEST and not (is_long and is_sum(formula))
            once = uses[name] == 1 or _is_plain(formula)
            if once and name not in final and program_name is None and short:
                replaced[name] = formula
                continue
            called = final.get(name) or self._free(program_name or "t")
            replaced[name] = Name(called)
            lines.append(Line(called, formula, self.writer.arrays[name]))
        gradients: dict[str, str] = {}
        for name, symbol in self.wanted.items():
            symbol = substituted(symbol, replaced)
            if not (isinstance(symbol, Name) and symbol.name == f"grad_{name}"):
                called = self._free(f"grad_{name}")
                if isinstance(symbol, Constant):
                    kind = dtype_argument(of_array(self.gradients[name].array).name)
                    symbol = Call("tensor", (Constant(float(symbol.value)), *kind))
                lines.append(Line(called, symbol, self.gradients[name].array))
                symbol = Name(called)
            gradients[name] = symbol.name
        names = {*self.taken, *gradients.values()}
        for line in lines:
            line.formula = _qualified(line.formula, names)
        inputs = {name: value.array for name, value in self.writer.inputs.items()}
        used = {p.name for line in lines for p in line.formula.walk() if isinstance(p, Name)}
        used |= set(gradients.values()) | set(gradients)
        inputs = {name: array for name, array in inputs.items() if name in used}
        values = {name: value.array for name, value in self.gradients.items()}
        derived = Derivation(inputs, lines, gradients, values)
        derived.fixed = self.writer.fixed
        derived.standing = self.writer.standing
        derived.described = {n: text for n, text in self.writer.described.items() if n in used}
        return derived

    def _live(self) -> set[str]:
        """The formulas that lead to a gradient, after simplification."""
        live: set[str] = set()
        stack = list(self.wanted.values())
        while stack:
            for part in stack.pop().walk():
                if isinstance(part, Name) and part.name not in live:
                    live.add(part.name)
                    if part.name in self.writer.formulas:
                        stack.append(self.writer.formulas[part.name])
        return live

    def _program_name(self, name: str) -> str | None:
        """The variable that the program, or an op's steps, gave a value of its own."""
        if not name[1:].isdecimal():
            return None  # part of a formula
        value = self.writer.recorder.values[int(name[1:])]
        tensor = self.writer.recorder.tensors[value.number]
        is_of_backward = self.writer.forward <= value.number < self.writer.recorded
        if is_of_backward or _call_of(value) is None or tensor is None:
            return None
        called = tensor.name
        return called if called and called.isidentifier() else None

    def _free(self, wanted: str) -> str:
        """A name that nothing has yet."""
        name = _free(wanted, self.taken)
        self.taken.add(name)
        return name


# --- from a recorded run --------------------------------------------------------------------------


Program = Callable[..., dict[str, Any]]
"""Runs a program of the language on inputs and gives the arrays that its names hold: the text, the
inputs, the names that are wanted, and what hears of the array of each line.
"""

_CLOSE = {"float16": 1e-2, "bfloat16": 1e-1, "float64": 1e-9, "complex128": 1e-9}


_ROUNDINGS = 16
"""How many roundings of the largest number may be left of terms that cancel."""


def derive(
    result: Result,
    recorder: TraceRecorder,
    run: Program,
    has_word_for: HasWordFor | None = None,
    is_value: IsValue = lambda name, array: False,
) -> Derivation:
    """The formulas of the gradients of a result, checked by running them.

    Args:
        is_value: whether a constant with a name is written as its value, and is no input.
        has_word_for: whether a formula can be written where it goes, all where it is None.

    Raises:
        GradcliError: E413 where an op has no formula, or where the formulas give other numbers.
    """
    wanted = _wanted(result)
    if isinstance(result.output.array, MetaArray):
        raise GradcliError(
            "E413",
            "formulas are proved on numbers, and the output is a tensor on meta, which has none",
            help="make it on the CPU, or name another output: `--of NAME`",
        )
    forward = len(recorder.values)
    inputs = {name: source_of(recorder.find(tensor)) for name, tensor in wanted.items()}
    for name, value in inputs.items():
        if value.number >= forward and value.maker is not None and value.maker.op is UPDATE:
            raise _changed(f"`{name}` in place, after the output was computed from it")
    for name, tensor in _named(recorder).items():
        if not is_value(name, tensor.array):
            inputs.setdefault(name, source_of(recorder.find(tensor)))
    seed = result.seed
    if seed is not None:
        seed = Tensor(np.array(to_host(seed.array))[()])
        inputs["seed"] = source_of(recorder.find(seed))
        forward = max(forward, len(recorder.values))
    with _recording(recorder):
        try:
            tensors = list(wanted.values())
            computed = grad(result.output, tensors, seed, create_graph=True, allow_unused=True)
        except GradcliError as error:
            if error.code != "E404":
                error.notes += ("derive runs the backward pass once more, to record its graph",)
                raise
            raise _changed(f"a value in place that its gradient needs: {error.message}") from error
        gradients = {
            name: recorder.find(gradient)
            for name, gradient in zip(wanted, computed, strict=True)
            if gradient is not None
        }
        derived = derivation(recorder, inputs, gradients, forward, has_word_for, is_value)
    derived.paths = {name: path for path, name in _identifiers(result).items() if path != name}
    _check(derived, run)
    return derived


def _changed(what: str) -> GradcliError:
    return GradcliError(
        "E413",
        f"the program changed {what}",
        help="derive the gradient of a program that ends before the change, as before `opt.step()`",
    )


@contextmanager
def _recording(recorder: TraceRecorder) -> Iterator[None]:
    """Record all ops that run, with their arrays."""
    state = active.state
    before = state.recorder, state.lazy_from, recorder.keeps
    state.recorder, state.lazy_from, recorder.keeps = recorder, 1 << 62, False
    try:
        yield
    finally:
        state.recorder, state.lazy_from, recorder.keeps = before


def _wanted(result: Result) -> dict[str, Tensor]:
    """The inputs whose gradients are derived, by name."""
    names = _identifiers(result)
    wanted = {
        names[gradient.name]: gradient.tensor
        for gradient in result.gradients
        if gradient.name is not None and gradient.node is not None
    }
    if not wanted:
        raise GradcliError("E402", "no input with a name requires grad")
    return wanted


def _identifiers(result: Result) -> dict[str, str]:
    """A name for formulas of each input, that of a path without its dots and brackets."""
    identifiers: dict[str, str] = {}
    for gradient in result.gradients:
        if gradient.name is not None:
            name = identifier_of(gradient.name)
            while name in identifiers.values():
                name += "_"
            identifiers[gradient.name] = name
    return identifiers


def _named(recorder: TraceRecorder) -> dict[str, Tensor]:
    """The tensors with names that no instruction made: what the formulas may take from outside."""
    return {
        tensor.name: tensor
        for value, tensor in zip(recorder.values, recorder.tensors, strict=True)
        if value.maker is None and tensor is not None and tensor.name and tensor.name.isidentifier()
    }


def _check(derived: Derivation, run: Program) -> None:
    """Run the formulas, and raise E413 where they give other numbers than the engine."""
    program = "\n".join(f"{line.name} = {text_of(line.formula)}" for line in derived.lines)
    try:
        values, _ = run_formulas(run, program, derived.inputs, derived.gradients.values())
    except GradcliError as error:
        raise _disagreement(f"they cannot be run: {error.message}") from error
    steps = largest_of(line.array for line in derived.lines)
    for name, expected in derived.values.items():
        array = values.get(derived.gradients[name])
        close = _CLOSE.get(expected.dtype.name, 1e-4)
        if array is None or not agrees(array, expected, close, steps):
            raise _disagreement(f"that of {name} is another number than the engine's")


Largest = Mapping[np.dtype[Any], float]
"""The largest number in the arrays of each dtype."""


def largest_of(steps: Iterable[Any]) -> Largest:
    """The largest finite number in the steps of a program, of each floating dtype."""
    largest: dict[np.dtype[Any], float] = {}
    for each in steps:
        _enlarge(largest, each)
    return largest


def _enlarge(largest: dict[np.dtype[Any], float], array: Any) -> None:
    if array.dtype.kind in "fc":
        largest[array.dtype] = max(largest.get(array.dtype, 0.0), _largest(array))


def run_formulas(
    run: Program, program: str, inputs: dict[str, Any], wanted: Collection[str]
) -> tuple[dict[str, Any], Largest]:
    """Some of the arrays of a program of formulas, and the largest numbers of all."""
    largest: dict[np.dtype[Any], float] = {}
    values = run(program, inputs, set(wanted), partial(_enlarge, largest))
    return values, largest


def agrees(array: Any, expected: Any, close: float, steps: Largest) -> bool:
    """Whether two arrays are alike: to a part of the largest element, or to the rounding of the
    largest step on the way, which is left where terms cancel.
    """
    if array.shape != expected.shape:
        return False
    room = close * max(_largest(expected), 1e-30)
    if expected.dtype.kind in "fc":
        largest = steps.get(expected.dtype, 0.0)
        room = max(room, _ROUNDINGS * float(np.finfo(expected.dtype).eps) * largest)
    return bool(np.allclose(array, expected, rtol=close, atol=room, equal_nan=True))


def _largest(array: Any) -> float:
    return float(np.max(np.abs(array), initial=0.0, where=np.isfinite(array)))


def _disagreement(what: str) -> GradcliError:
    return GradcliError(
        "E413",
        f"the gradient's formulas were not confirmed: {what}",
        help="`gradcli explain` shows the numbers",
    )
