"""Flat programs of a trace: instructions in a row, whose functions of arrays are written down as
steps on fixed memory, become one call.

Nothing is defined a second time: each function is called once with arrays that write down what
NumPy does, and what was written down has to give the same bits as the function for other values,
before it serves. Where something does not hold that a program relies on, its instructions run as
they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.flat.planned import planned
from gradcli.arrays.flat.recorded import (
    NotFlat,
    ReadAttribute,
    Recorded,
    Tape,
    call,
    each_into,
    into,
    plain,
    recorded_in,
    target,
)
from gradcli.arrays.layout.strides import copied_as_it_lies
from gradcli.arrays.native import dispatch
from gradcli.arrays.threads import on_one_thread
from gradcli.state import active
from gradcli.trace.codegen import Code
from gradcli.trace.ir import (
    Effect,
    Inline,
    Instruction,
    Kernel,
    Operand,
    SideExit,
    Trace,
    Value,
    kind_of,
    same_bits,
    values_in,
)
from gradcli.trace.passes import FREE, kept_values

if TYPE_CHECKING:
    from gradcli.arrays.random.generator import Generator

LARGEST = 1 << 19
"""Bytes of the largest array that a step reads or writes: beyond it a call of NumPy's costs little
beside what it does, and arrays that take each other's memory stay in the processor's caches.
"""

_LEAST = 2
"""Instructions of the shortest program."""

_TRIES = 3
"""Times that a function is compared with what was written down of it, with other values."""

_EFFECTS = {Effect.WRITES, Effect.CHECKS}
_TESTS = ("same", "nonzero")
"""Steps that look at values, by which a function may take another way."""

_NAME = "flat"
"""The name of the kernels that are flat programs."""

_SHOWN = (bool, int, float, str, type(None))


def flattened(trace: Trace, generators: Sequence[Generator] = ()) -> Trace:
    """A trace whose instructions run as flat programs where they can.

    Args:
        generators: those that it draws from.
    """
    if dispatch.core() is None:
        return trace
    trace = trace.copy(instructions=_numbers_first(trace))
    code = Code(trace)
    wanted = _Wanted(trace)
    constants = set(trace.constants)
    body: list[Instruction] = []
    compared: set[Any] = set()
    segment = _Segment(constants, compared, generators)
    with _unchanged(trace, generators):
        for number, instruction in enumerate(trace.instructions):
            if segment.add(instruction):
                continue
            body += segment.close(wanted, number, code)
            segment = _Segment(constants, compared, generators)
            if not segment.add(instruction):
                body.append(instruction)
        body += segment.close(wanted, len(trace.instructions), code)
    trace.instructions = body
    return trace


def let_large_go(trace: Trace) -> None:
    """Forget recorded arrays that are too large for a flat program: many iterations may run before
    one is made. What is left of each are its dtype and its shape.
    """
    outside = {id(value) for value in (*trace.constants, *trace.inputs)}
    for instruction in (*trace.prologue, *trace.instructions, *trace.epilogue):
        for value in instruction.results:
            array = value.array
            if id(value) in outside or type(array) is not np.ndarray or array.nbytes <= LARGEST:
                continue
            value.array = np.broadcast_to(array.dtype.type(0), array.shape)


Rounds = Callable[[int, Any, str], tuple[int, Any, BaseException | None]]
"""What runs many times, as `native/program.h` says: how often at most, and an attribute that ends
it. It returns how many runs came to their end, what the last one left, and what ended the next.
"""


def rounds_of(trace: Trace, namespace: Mapping[str, Any]) -> Rounds | None:
    """Runs of a trace in one call, where a run is one flat program of what is the same in all.

    Args:
        namespace: of the trace's functions, with what its prologue has made.
    """
    if len(trace.instructions) != 1:
        return None
    (instruction,) = trace.instructions
    is_flat = isinstance(instruction.op, Kernel) and instruction.op.name == _NAME
    if not (is_flat and trace.lasting.issuperset(instruction.reads)):
        return None
    outputs, kept = instruction.results, kept_values(trace)
    if set(outputs) != set(kept):
        return None
    names = [*map(Code(trace).name, instruction.reads)]
    places = [outputs.index(value) for value in kept]
    rounds = instruction.op.function.rounds

    def run(most: int, owner: Any, attribute: str) -> tuple[int, Any, BaseException | None]:
        given = tuple([namespace[name] for name in names])
        done, left, failure = rounds(most, owner, attribute, given)
        return done, tuple([left[place] for place in places]) if done else None, failure

    return run


def _numbers_first(trace: Trace) -> list[Instruction]:
    """The instructions, with what is computed of numbers alone, and checks of them, in front of the
    arrays where nothing has an effect before.
    """
    numbers: set[Any] = set()
    first: list[Instruction] = []
    others: list[Instruction] = []
    for place, each in enumerate(trace.instructions):
        if set(each.effects) - {Effect.CHECKS, Effect.RANDOM}:
            return [*first, *others, *trace.instructions[place:]]
        is_number = isinstance(each.op, Inline) and each.op is not FREE and each.op.flat is None
        if (
            is_number
            and all(value.array is None for value in each.results)
            and numbers.issuperset(each.reads)
        ):
            numbers.update(each.results)
            first.append(each)
        else:
            others.append(each)
    return first + others


class _Wanted:
    """Which values are read from a place in a trace on."""

    def __init__(self, trace: Trace) -> None:
        self.last: dict[Value, int] = {}
        for number, each in enumerate(trace.instructions):
            if each.op is not FREE:
                self.last.update(dict.fromkeys(each.reads, number))
        self.kept = set(kept_values(trace))

    def computes(self, value: Value, number: int) -> bool:
        """Whether an instruction, from that of a number on, reads a value."""
        return self.last.get(value, -1) >= number

    def after(self, value: Value, number: int) -> bool:
        """Whether anything reads it from there on."""
        return value in self.kept or self.computes(value, number)


@contextmanager
def _unchanged(trace: Trace, generators: Sequence[Generator]) -> Iterator[None]:
    """Leave constants, generators and counts as they were, and what functions warn of unsaid."""
    stands = [each.snapshot() for each in generators]
    counts = active.state.sequence_nr, active.state.steps.left, active.state.steps.charged
    effects = [each.effects.get(Effect.WRITES, ()) for each in trace.instructions]
    written = {value for values in effects for value in values}
    arrays = {id(each.array): each.array for each in written if type(each.array) is np.ndarray}
    for instruction in trace.instructions:
        if isinstance(instruction.op, Inline) and instruction.op.flat is not None:
            for each in instruction.inputs:
                if type(each) is dict:  # what an optimizer remembers
                    found = [getattr(value, "array", None) for value in each.values()]
                    arrays.update({id(a): a for a in found if type(a) is np.ndarray})
    before = [(array, array.copy()) for array in arrays.values() if array.flags.writeable]
    emit, active.state.emit = active.state.emit, _refuse_to_warn
    try:
        yield
    finally:
        active.state.emit = emit
        active.state.sequence_nr, active.state.steps.left, active.state.steps.charged = counts
        for each, stand in zip(generators, stands, strict=True):
            each.restore(stand)
        for array, values in before:
            array[...] = values


def _refuse_to_warn(event: object) -> None:
    raise NotFlat("a function warns")


class _Segment:
    """Instructions in a row that one program does.

    Attributes:
        compared: the functions, with the kinds of their operands, whose steps were found to be
            theirs.
    """

    def __init__(
        self, constants: set[Value], compared: set[Any], generators: Sequence[Generator]
    ) -> None:
        self.constants = constants
        self.generators = generators
        self.compared = compared
        self.instructions: list[Instruction] = []
        self.tape = Tape()
        self.kernels = partial(_kernel_on_tape, self.tape)
        self.known: dict[Value, Any] = {}  # what is recorded of them
        self.inputs: list[Value] = []

    def add(self, instruction: Instruction) -> bool:
        """Write down what an instruction does; False where no step is for it."""
        if instruction.op is FREE:
            self.instructions.append(instruction)
            return True
        for plainly in (False, True):
            self.tape.plainly = plainly
            if self._record(self._write_down, instruction):
                self.instructions.append(instruction)
                return True
        if self._record(self._write_call, instruction):
            self.instructions.append(instruction)
            return True
        return False

    def _record(self, write: Callable[[Instruction], None], instruction: Instruction) -> bool:
        tape = self.tape
        steps, inputs, known = len(tape.steps), len(self.inputs), len(self.known)
        changed = tape.changed
        try:
            write(instruction)
        except (Exception, SideExit):  # whatever it does with an array that it was not made for
            del tape.steps[steps:], self.inputs[inputs:]
            while len(self.known) > known:
                self.known.popitem()  # the last one
            tape.changed = changed
            return False
        for value in instruction.results:
            self._take_place(value)
        return True

    def _take_place(self, value: Value) -> None:
        """Let what the tape has of a value be its recorded array, of which one is enough."""
        known, array = self.known.get(value), value.array
        if type(known) is not Recorded or type(array) is not np.ndarray:
            return
        if known.array.dtype is array.dtype and known.array.strides == array.strides:
            value.array = known.array

    def _write_down(self, instruction: Instruction) -> None:
        op, start = instruction.op, len(self.tape.steps)
        if isinstance(op, Inline):
            if op.flat is None:
                raise NotFlat(op.name)
            with dispatch.replaced(self.kernels):
                made = op.flat(self.tape, *map(self._operand, instruction.inputs))
            if instruction.outputs:
                self.known.update(dict.fromkeys(instruction.results, made))
            elif made is not None:
                function, operands = made
                _compare(function, operands, [], self.tape.steps[start:])
            return
        function = op.function if isinstance(op, Kernel) else op
        function = getattr(function, "unchecked", function)
        effects = set(instruction.effects)
        if effects == {Effect.RANDOM}:
            operands = [self._operand(each) for each in instruction.inputs]
            drawn = None if self.tape.plainly else self._draw_in_steps(function, operands)
            if drawn is None:
                drawn = self.tape.draw(function, *operands)
            self._keep(instruction, drawn)
            return
        written = instruction.effects.get(Effect.WRITES, ())
        if effects - _EFFECTS or not self.constants.issuperset(written):
            raise NotFlat("an effect")
        if written:
            self.tape.changes()
        # `out`, memory that an operand does not need any more, is left out: steps have their own.
        operands = [self._operand(each) for each in instruction.inputs]
        with dispatch.replaced(self.kernels), on_one_thread():
            result = function(*operands)
        if isinstance(result, (np.ndarray, np.generic)) and not [*recorded_in(operands)]:
            result = self.tape.filled(result)  # what is made of nothing is the same in every run
        results = self._keep(instruction, result)
        kinds = (function, self.tape.plainly, _kinds_of(operands, {}))
        if kinds not in self.compared:
            steps = self.tape.steps[start:]
            _compare(function, operands, results, steps)
            if not any(each[0] in _TESTS for each in steps):  # the steps follow from the kinds
                self.compared.add(kinds)

    def _draw_in_steps(self, function: Any, operands: Sequence[Any]) -> Recorded | None:
        """What a function that draws random numbers gives, where kernels draw them and functions
        of arrays do the rest; else None.
        """
        steps, draw = len(self.tape.steps), getattr(function, "array_of", function)
        try:
            with dispatch.replaced(self.kernels), on_one_thread():
                drawn = draw(*operands)
        except Exception:  # whatever it does with an array that it was not made for
            drawn = None
        if type(drawn) is Recorded:
            for name, generator in active.state.generators.items():
                self.tape.relies_on("equal", active.state.generators, name, generator)
            return drawn
        del self.tape.steps[steps:]
        return None

    def _write_call(self, instruction: Instruction) -> None:
        """Write down a function of arrays as one step that calls it: one that is worth several
        threads, or computes in memory of its own.
        """
        op = instruction.op
        if not isinstance(op, Kernel) or op.raises or instruction.effects or self.tape.changed:
            raise NotFlat(op)
        operands = [self._operand(each) for each in instruction.inputs]
        if any(isinstance(each.array, np.generic) for each in instruction.reads):
            raise NotFlat("a number of an array's type")
        given = plain(operands)
        result = op.function(*given)
        parts = result if op.several else [result]
        made = [self._copied(each, given) for each in parts]
        outs = [None if each is None else each.array for each in made]
        step = (
            each_into(outs, op.function, *given)
            if op.several
            else into(outs[0], op.function, *given)
        )
        self.tape.steps.append(step)
        self._keep(instruction, made if op.several else made[0])

    def _copied(self, part: Any, operands: Sequence[Any]) -> Recorded | None:
        """Memory for a result of a function that is called in every run."""
        if part is None:
            return None
        if isinstance(part, np.generic):
            part = np.asarray(part)
        if type(part) is not np.ndarray or part.nbytes > LARGEST or _shares(part, operands):
            raise NotFlat("a result that is lazy, large or a view")
        return self.tape.record(part.copy("K"))

    def _keep(self, instruction: Instruction, result: Any) -> list[Recorded]:
        """Take the results of an instruction for known; the arrays among them."""
        if not instruction.outputs:
            return []
        parts = (
            result if isinstance(instruction.op, Kernel) and instruction.op.several else [result]
        )
        for value, part in zip(instruction.outputs, parts, strict=True):
            if value is not None:
                self.known[value] = self._checked(value, part)
        return list(recorded_in(parts))

    def _checked(self, value: Value, part: Any) -> Any:
        """What a value is on the tape: an array, or an index of arrays."""
        if isinstance(part, tuple) and value.shape is None:
            return part
        if type(part) is not Recorded:
            raise NotFlat("a result that nobody recorded")
        if value.array is None or not _lies_like(part.array, value.array):
            raise NotFlat("a result of another layout")
        return part

    def _operand(self, operand: Operand) -> Any:
        if type(operand) in (list, tuple) and any(True for _ in values_in(operand)):
            return type(operand)([self._operand(each) for each in operand])
        if not isinstance(operand, Value):
            return operand
        if operand in self.constants and isinstance(operand.array, np.generic):
            return operand.array
        if operand not in self.known:
            self.known[operand] = self.tape.record(self._memory(operand))
        return self.known[operand]

    def _memory(self, value: Value) -> Any:
        array = value.array
        if array is None or not isinstance(array, (np.ndarray, np.generic)):
            raise NotFlat("no array")
        if value in self.constants:
            return array
        spans = zip(array.shape, array.strides, strict=True)
        span = sum((size - 1) * stride for size, stride in spans) + array.itemsize
        large = max(span, array.nbytes) > LARGEST
        if not array.size or min(array.strides, default=0) < 0 or large:
            raise NotFlat("an argument that is empty, large or turned round")
        memory = np.ndarray(array.shape, array.dtype, bytearray(span), 0, array.strides)
        memory[...] = array
        self.inputs.append(value)
        return memory

    # --- the program ------------------------------------------------------------------------------

    def close(self, wanted: _Wanted, end: int, code: Code) -> list[Instruction]:
        """The instructions, which end at a number, as a call of a program, and what cannot be in
        it.
        """
        computing = [each for each in self.instructions if each.op is not FREE]
        if len(computing) < _LEAST or not self.tape.steps:
            return self.instructions
        made = {value: each for each in computing for value in each.results}
        read = [value for value in made if type(self.known.get(value)) is ReadAttribute]
        before = [made[value] for value in read if wanted.computes(value, end)]
        leaving, again = self._leaving(
            [value for value in made if value not in read and wanted.after(value, end)], made
        )
        if leaving is None or self._reads_what_it_writes():
            return self.instructions
        head = f"otherwise({', '.join(map(code.name, self.inputs))})"
        body = chain(code.statements(computing), [f"return {code.tuple_of(leaving)}"])
        otherwise = code.function_later(head, body, "compiled loop")
        memory = [self.known[value].array for value in self.inputs]
        read_again = {value for each in again for value in each.reads}
        shown = [
            value
            for value in leaving
            if value not in read_again
            and not wanted.computes(value, end)
            and _is_copied(value.array)
        ]
        arrays = [self.known[value].array for value in leaving]
        self.known.clear()  # and with it what is not kept, as soon as it is planned
        for value in made.keys() - {*leaving, *read_again}:
            if not wanted.after(value, end):
                value.array = None
        steps, are_anew = planned(self.tape.steps, self.tape.own, arrays + memory)
        takers: list[Any] = [
            _turns(array, value.array, is_anew) if value in shown else _taker(array, value)
            for value, array, is_anew in zip(leaving, arrays, are_anew, strict=False)
        ]
        first, undo = self.tape.relied, None
        if self.tape.draws:
            standing = _Standing(self.generators)
            first, undo = [call(standing.note), *first], standing.restore
        try:
            program = dispatch.core().Program(
                chain(first, steps), tuple(memory), tuple(takers), otherwise, undo
            )
        except (ValueError, TypeError, BufferError):
            return self.instructions
        kernel = Kernel(_NAME, program, bool(leaving))
        freed = [
            each for each in self.instructions if each.op is FREE and each.inputs[0] not in made
        ]
        outputs = [_shown(code.trace, each) if each in shown else each for each in leaving]
        return [*before, Instruction(kernel, tuple(self.inputs), outputs), *again, *freed]

    def _reads_what_it_writes(self) -> bool:
        """Whether an argument, which is copied, lies in memory that is written to."""
        written = [v.array for i in self.instructions for v in i.effects.get(Effect.WRITES, ())]
        read = [value.array for value in self.inputs]
        return any(np.may_share_memory(one, other) for one in written for other in read)

    def _leaving(
        self, wanted: Sequence[Value], made: dict[Value, Instruction]
    ) -> tuple[list[Value] | None, list[Instruction]]:
        """The values that a program returns, in memory of their own, and the instructions that make
        views of them, or of what is outside, again; None for the values where that cannot be.
        """
        outside = [each.array for value, each in self.known.items() if value not in made]
        leaving: list[Value] = []
        again: list[Instruction] = []
        queue = list(wanted)
        while queue:
            value = queue.pop(0)
            if value in leaving or any(value in each.results for each in again):
                continue
            if type(self.known[value]) is Recorded:
                array = self.known[value].array
                others = [*outside, *[self.known[each].array for each in leaving]]
                if not any(np.may_share_memory(array, each) for each in others):
                    leaving.append(value)
                    continue
            instruction = made[value]  # of a view: else it would read what was written since
            if instruction.effects or isinstance(instruction.op, Inline):
                return None, []
            again.append(instruction)
            queue += [each for each in instruction.reads if each in made]
        order = {each: number for number, each in enumerate(self.instructions)}
        return leaving, sorted(again, key=order.__getitem__)


class _Standing:
    """Where generators stood when a program began."""

    def __init__(self, generators: Sequence[Generator]) -> None:
        self.generators = generators
        self.noted: list[Any] = []

    def note(self) -> None:
        self.noted = [each.snapshot() for each in self.generators]

    def restore(self) -> None:
        for each, snapshot in zip(self.generators, self.noted, strict=True):
            each.restore(snapshot)


def _turns(array: Any, like: Any, is_anew: bool) -> tuple[Any, ...]:
    """An array, and two like another, which take its elements by turns: what one run has left
    stands until the run after the next one. Where steps make it anew, itself and another one.
    """
    if is_anew and _lies_like(array, like):
        return array, np.array(like)
    return array, np.array(like), np.array(like)


def _shown(trace: Trace, value: Value) -> Value:
    """The value of which the epilogue of a trace makes another, that nothing overwrites."""
    left = trace.value_of(value.array)
    copied = Inline("{0}[()]" if isinstance(value.array, np.generic) else "{0}.copy('K')")
    trace.epilogue.insert(0, Instruction(copied, (left,), (value,)))
    return left


def _taker(array: Any, value: Value) -> Callable[[], Any]:
    """What gives a value of its own of an array that the next run overwrites."""
    if isinstance(value.array, np.generic):
        return partial(array.__getitem__, ())
    if _is_copied(value.array):
        return partial(array.copy, "K")
    # Dimensions of one element have strides that a copy forgets.
    lying = np.lib.stride_tricks.as_strided(array, array.shape, value.array.strides)
    return partial(copied_as_it_lies, lying)


def _is_copied(array: Any) -> bool:
    """Whether a copy lies in memory as the array does."""
    return bool(np.array(array, order="K").strides == array.strides)


_DRAWS = {"mersenne_words", "mersenne_uniform"}
"""The kernels that draw random numbers."""


def _kernel_on_tape(tape: Tape, name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    signature = dispatch.letters(name)

    def run(*arguments: Any) -> Any:
        if name in _DRAWS:
            kernel(*arguments)
            tape.steps.append(("kernel", name, *arguments))
            tape.draws = True
            return tape.record(arguments[-1])
        if Recorded not in map(type, arguments):  # it is part of another step, or of a constant
            kernel(*arguments)
            return None
        given = [
            target(each) if letter.isupper() and each is not None else plain(each)
            for letter, each in zip(signature, arguments, strict=True)
        ]
        kernel(*given)
        tape.steps.append(("kernel", name, *given))
        return None

    return run


# --- the comparison -------------------------------------------------------------------------------


def _compare(
    function: Callable[..., Any],
    operands: Sequence[Any],
    results: Sequence[Recorded],
    steps: Sequence[Any],
) -> None:
    """Raise NotFlat unless steps give what a function gives, to the bit, for other values."""
    arrays = [each.array for each in recorded_in(operands)]
    arrays = list({id(each): each for each in arrays}.values())
    if any(each.nbytes > LARGEST for each in (*arrays, *[each.array for each in results])):
        raise NotFlat("a large array")
    if not (steps or any(map(_is_single_integer, arrays))):
        return  # a view, or an operand
    steps = [each for each in steps if each[0] not in ("advance", "count")]
    program = dispatch.core().Program(tuple(steps), (), (), _missed)
    before = [each.copy() for each in arrays]
    left = [(each.array, each.array.copy()) for each in results if each.array.flags.writeable]
    given = plain(operands)
    served = 0
    try:
        for number in range(_TRIES):
            changed = [_other_values(each, number) for each in before]
            _set(arrays, changed)
            try:
                made = function(*given)
            except Exception:  # an integer has become one that it does not take
                if not number:
                    raise
                continue
            parts = made if isinstance(made, (tuple, list)) else [made]
            parts = [each for each in parts if each is not None and type(each) is not slice]
            expected = [np.array(each) for each in parts[: len(results)]]
            after = [each.copy() for each in arrays]
            _set(arrays, changed)
            if program() is not None:
                served += 1
                _check_same([each.array for each in results] + arrays, expected + after)
    finally:
        for array, values in left:  # what is made of it is to fit what else is made of the operands
            array[...] = values
        _set(arrays, before)
    if not served:
        raise NotFlat("a value decides for every try")


def _kinds_of(operands: Sequence[Any], met: dict[int, int]) -> tuple[Any, ...]:
    """What the steps of a call follow from: how its arrays lie, which of them are one, settings."""
    kinds: list[Any] = []
    for each in operands:
        if type(each) is Recorded:
            kinds.append((met.setdefault(id(each), len(met)), *kind_of(each.array)))
        elif isinstance(each, (list, tuple)):
            kinds.append(_kinds_of(each, met))
        else:
            kinds.append((type(each), repr(each) if type(each) in _SHOWN else id(each)))
    return tuple(kinds)


def _missed() -> None:
    """What a program that is compared does where something does not hold."""


def _other_values(array: Any, number: int) -> Any:
    """Values of the signs of an array's; in the last try another single integer too, by which views
    may have been cut. Other integers and bools stay.
    """
    if not (array.flags.writeable and number):
        return array
    if _is_single_integer(array) and number == _TRIES - 1:
        return array // 2  # a position that is there as well
    if array.dtype.kind != "f":
        return array
    places = np.arange(array.size, dtype=array.dtype).reshape(array.shape)
    return array * (1 + np.sin(places * number) / 2)


def _is_single_integer(array: Any) -> bool:
    return bool(array.dtype.kind == "i" and array.size == 1)


def _set(arrays: Sequence[Any], values: Sequence[Any]) -> None:
    for array, each in zip(arrays, values, strict=True):
        if array.flags.writeable:
            array[...] = each


def _check_same(arrays: Sequence[Any], expected: Sequence[Any]) -> None:
    for one, other in zip(arrays, expected, strict=True):
        if one.dtype is not other.dtype or one.shape != other.shape:
            raise NotFlat("another shape or dtype")
        if not same_bits(np.ascontiguousarray(one), np.ascontiguousarray(other)):
            raise NotFlat("other bits")


def _shares(array: Any, operands: Any) -> bool:
    """Whether an array may lie in the memory of any in a list, and lists in it."""
    if isinstance(operands, (list, tuple)):
        return any(_shares(array, each) for each in operands)
    return isinstance(operands, np.ndarray) and np.may_share_memory(array, operands)


def _lies_like(array: Any, other: Any) -> bool:
    """Whether arrays are of one dtype and shape, with elements as far apart."""
    pairs = zip(array.shape, array.strides, other.strides, strict=False)
    return bool(
        array.dtype is other.dtype
        and array.shape == other.shape
        and all(size < 2 or one == another for size, one, another in pairs)
    )
