"""Code generation: straight-line Python of a trace, and the names that it refers to."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any
from zlib import compressobj, decompress

from gradcli.trace.ir import Guard, Inline, Instruction, Kernel, Kind, Operand, Trace, Value
from gradcli.trace.passes import FREE, kept_values

Piece = tuple[Callable[..., Any], list[Value], list[Value], list[Value]]
"""Some instructions as a function: with what it is called, what it returns, and what is not needed
any more once it has run.
"""


class Code:
    """Python code that is being generated.

    Attributes:
        namespace: the objects that it refers to by name: functions, settings, constants.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.namespace: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._shared: dict[Value, Value] = {}
        for value in trace.constants:
            self.namespace[f"c{value.number}"] = value.array
        self._constants = set(trace.constants)
        self._pieces: dict[tuple[str, ...], Callable[..., Any]] = {}
        self._local: dict[Value, str] | None = None

    def function(self, head: str, body: Iterable[str], where: str) -> Callable[..., Any]:
        """The compiled function; `where` names it in tracebacks."""
        return _function(self.namespace, head, body, where)

    def function_later(self, head: str, body: Iterable[str], where: str) -> Callable[..., Any]:
        """The same, compiled at its first call: Python's parser takes 5 KB a line, for nothing
        where it is never called.
        """
        namespace = self.namespace  # not `self`, which has the trace
        packing = compressobj(level=1)  # lines say much the same, each a few hundred bytes
        packed = [packing.compress(f"{line}\n".encode()) for line in body]
        text = b"".join([*packed, packing.flush()])
        compiled: list[Callable[..., Any]] = []

        def run(*given: Any) -> Any:
            if not compiled:
                *lines, _ = decompress(text).decode().split("\n")
                compiled.append(_function(namespace, head, lines, where))
            return compiled[0](*given)

        return run

    def statements(self, instructions: Iterable[Instruction]) -> Iterator[str]:
        """Instructions as lines of Python."""
        for instruction in instructions:
            yield from self._statement(instruction)

    def piece(self, instructions: Sequence[Instruction], wanted: set[Value], where: str) -> Piece:
        """Some instructions as a function: its arguments are the values they read from before, and
        it returns those of their results that are wanted. Instructions that differ in values alone
        share a function.
        """
        every_result = [value for each in instructions for value in each.results]
        self._local = {value: f"v{number}" for number, value in enumerate(every_result)}
        own = set(every_result)
        freed = [each for each in instructions if each.op is FREE and own.isdisjoint(each.reads)]
        lines = [*self.statements(each for each in instructions if each not in freed)]
        results = [value for value in dict.fromkeys(every_result) if value in wanted]
        lines.append(f"return {self.tuple_of(results)}")
        arguments = [value for value in self._local if value not in own]
        lines.insert(0, f"({', '.join(self._local[value] for value in arguments)})")
        self._local = None
        function = self._pieces.get(tuple(lines))
        if function is None:
            head = f"piece{len(self._pieces)}{lines[0]}"
            function = self._pieces[tuple(lines)] = self.function(head, lines[1:], where)
        return function, arguments, results, [value for each in freed for value in each.reads]

    def guarded(self, known: Iterable[Value], on_failure: str) -> Iterator[str]:
        """The instructions of the trace as lines of Python, each guard as soon as the values that
        it reads are known.

        Args:
            on_failure: the statement that leaves the function where a guard does not hold.
        """
        made_after = dict.fromkeys([*known, *self._constants], 0)
        for number, instruction in enumerate(self.trace.instructions, 1):
            made_after.update(dict.fromkeys(instruction.results, number))
        ready: dict[int, list[Guard]] = {}
        for guard in self.trace.guards:
            place = max([made_after[value] for value in guard.values], default=0)
            ready.setdefault(place, []).append(guard)
        for number in range(len(self.trace.instructions) + 1):
            if number:
                yield from self._statement(self.trace.instructions[number - 1])
            if number in ready:
                yield f"if {' or '.join(map(self._failure, ready[number]))}:"
                yield f"    {on_failure}"

    def name(self, value: Value | None) -> str:
        if value is None:
            return "_"
        while value in self._shared:
            value = self._shared[value]
        if self._local is not None:
            return self._local.setdefault(value, f"a{len(self._local)}")
        return f"{'c' if value in self._constants else 'v'}{value.number}"

    def share(self, value: Value, other: Value) -> None:
        """Let a value take over the variable of another that is not read any more."""
        self._shared[value] = other

    def tuple_of(self, values: Iterable[Value]) -> str:
        """Some values as a tuple."""
        return f"({''.join(f'{self.name(value)}, ' for value in values)})"

    def refer(self, operand: Operand) -> str:
        """The text of an operand: a literal where that is exact, else a name."""
        if isinstance(operand, Value):
            return self.name(operand)
        if type(operand) is list and any(isinstance(each, Value) for each in operand):
            return f"[{', '.join(map(self.refer, operand))}]"
        if type(operand) is tuple and any(isinstance(each, Value) for each in operand):
            return f"({''.join(f'{self.refer(each)}, ' for each in operand)})"
        if _is_literal(operand):
            return repr(operand)
        name = self._names.get(id(operand))
        if name is None:
            name = self._names[id(operand)] = f"k{len(self._names)}"
            self.namespace[name] = operand
        return name

    def _statement(self, instruction: Instruction) -> list[str]:
        op, inputs = instruction.op, [self.refer(each) for each in instruction.inputs]
        outputs = [self.name(each) for each in instruction.outputs]
        if isinstance(op, Inline):
            places = {f"out{number}": name for number, name in enumerate(outputs)}
            text = op.text.format(*inputs, **places)
            if op.binds or not outputs:
                return [line for line in text.split("\n") if not _is_idle(line)]
            several = False
        else:
            several = isinstance(op, Kernel) and op.several
            function = op.function if isinstance(op, Kernel) else op
            inputs += [self.refer(each) for each in instruction.params.values()]
            text = f"{self.refer(function)}({', '.join(inputs)})"
        if several:
            return [f"{''.join(f'{name}, ' for name in outputs)}= {text}"]
        return [f"{outputs[0]} = {text}" if outputs else text]

    def _failure(self, guard: Guard) -> str:
        """The condition that is true where a guard does not hold."""
        inputs = [self.refer(each) for each in guard.inputs]
        if isinstance(guard.read, Inline):
            read = guard.read.text.format(*inputs)
        else:
            read = f"{self.refer(guard.read)}({', '.join(inputs)})"
        if guard.expected is True or guard.expected is False:
            return f"not ({read})" if guard.expected else f"({read})"
        differs = "is not" if guard.kind is Kind.IDENTITY else "!="
        return f"{read} {differs} {self.refer(guard.expected)}"


def _function(
    namespace: dict[str, Any], head: str, body: Iterable[str], where: str
) -> Callable[..., Any]:
    text = "\n    ".join([f"def {head}:", *body])
    exec(compile(text, f"<{where}>", "exec"), namespace)
    return namespace[head.partition("(")[0]]


def _is_idle(line: str) -> bool:
    """Whether a line assigns a name to itself."""
    name, sign, value = line.strip().partition(" = ")
    return bool(sign) and name == value


def _is_literal(operand: Operand) -> bool:
    """Whether the text of a setting gives the setting."""
    kind = type(operand)
    if kind is tuple:
        return all(type(each) is int for each in operand)
    if kind is float:
        return math.isfinite(operand)
    return operand is None or kind in (bool, int) or (kind is str and operand.isidentifier())


_PIECE = 50
"""Instructions in one function: Python's parser takes 5 KB a line, until the function ends."""

_MUCH = 1 << 18
"""Bytes of an array that is freed at once, not when its piece has ended."""


_LONGEST_PERIOD = 200
"""Instructions of the longest part that is seen to repeat."""


def _cut(instructions: Sequence[Instruction]) -> Iterator[Sequence[Instruction]]:
    """Instructions in pieces: where some repeat, each repetition is cut in the same way."""
    begins = {*_repetitions(instructions), len(instructions)}
    start = 0
    for number, each in enumerate(instructions, 1):
        much = each.op is FREE and getattr(next(each.reads).array, "nbytes", 0) >= _MUCH
        if number in begins or number - start >= _PIECE or much:
            yield instructions[start:number]
            start = number


def _repetitions(instructions: Sequence[Instruction]) -> Iterator[int]:
    """Where each repetition of some instructions begins, and where the last one ends."""
    keys = [getattr(each.op, "function", each.op) for each in instructions]
    places: dict[Any, list[int]] = {}
    for number, key in enumerate(keys):
        places.setdefault(key, []).append(number)
    start = 0
    while start < len(keys):
        again = places[keys[start]]
        first = bisect_right(again, start)
        length, period = max(
            [
                (_alike(keys, start, place), place - start)
                for place in again[first : first + 16]
                if place - start <= _LONGEST_PERIOD
            ],
            default=(0, 1),
        )
        if length >= max(period, _PIECE // 2):
            count = length // period + 1
            together = -(-count // -(-count // max(_PIECE // period, 1)))
            yield from range(start, start + count * period, together * period)
            start += count * period
            yield start
        else:
            start += 1


def _alike(keys: list[Any], start: int, place: int) -> int:
    """How many keys from a place on are those from a start on."""
    length = 0
    while place + length < len(keys) and keys[start + length] is keys[place + length]:
        length += 1
    return length


def _in_pieces(code: Code, trace: Trace, kept: list[Value], where: str) -> Callable[[], Any]:
    """One run of a long trace: functions of its pieces, which hand values on in a list."""
    namespace, lasting = code.namespace, [*trace.lasting]
    names = [code.name(value) for value in lasting]
    places = {value: number for number, value in enumerate(lasting)}
    parts = list(_cut(trace.instructions))
    wanted = set(kept)
    for part in parts:
        own = {value for each in part for value in each.results}
        wanted.update(value for each in part for value in each.reads if value not in own)
    steps = []
    for part in parts:
        function, inputs, results, freed = code.piece(part, wanted, where)
        taken = _taker([places[each] for each in inputs])
        steps.append((function, taken, [places[value] for value in freed]))
        for value in results:
            places[value] = len(places)
    shown = _taker([places[value] for value in kept])

    def run() -> Any:
        values = [namespace[name] for name in names]
        for function, taken, freed in steps:
            values += function(*taken(values))
            for place in freed:
                values[place] = None
        return shown(values)

    return run


def _taker(places: list[int]) -> Callable[[list[Any]], Sequence[Any]]:
    """What takes the values at some places from a list."""
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1) if places else slice(0))


Runs = tuple[Callable[[], Any], Callable[[], Any], Callable[[Any], Any]]
"""The prologue, the body and the epilogue, as functions."""


def functions_of(trace: Trace) -> Runs:
    """An array-level trace as three functions: the prologue, one run with its effects, and the
    outputs from what the run returned.
    """
    code, kept, where = Code(trace), kept_values(trace), "compiled loop"
    once = [code.name(value) for each in trace.prologue for value in each.results]
    returned = f"return {code.tuple_of(kept)}"
    begin = [f"global {', '.join(once)}"] if once else ["pass"]
    return (
        code.function("begin()", [*begin, *code.statements(trace.prologue)], where),
        _in_pieces(code, trace, kept, where)
        if len(trace.instructions) > 2 * _PIECE
        else code.function("run()", [*code.statements(trace.instructions), returned], where),
        code.function(
            "finish(kept)",
            [
                f"{code.tuple_of(kept)} = kept",
                *code.statements(trace.epilogue),
                f"return {code.tuple_of(trace.outputs)}",
            ],
            where,
        ),
    )
