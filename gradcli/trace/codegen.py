"""Code generation: straight-line Python of a trace, and the names that it refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gradcli.trace.guards import Guard, Kind
from gradcli.trace.ir import Inline, Instruction, Kernel, Operand, Trace, Value
from gradcli.trace.passes import FREE, kept_values


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

    def function(self, head: str, body: Iterable[str], where: str) -> Callable[..., Any]:
        """The compiled function; `where` names it in tracebacks."""
        text = "\n    ".join([f"def {head}:", *body])
        exec(compile(text, f"<{where}>", "exec"), self.namespace)
        return self.namespace[head.partition("(")[0]]

    def statements(self, instructions: Iterable[Instruction]) -> Iterator[str]:
        """Instructions as lines of Python."""
        for instruction in instructions:
            yield from self._statement(instruction)

    def guarded(self, known: Iterable[Value], on_failure: str) -> Iterator[str]:
        """The instructions of the trace as lines of Python, each guard as soon as the values that
        it reads are known.

        Args:
            on_failure: the statement that leaves the function where a guard does not hold.
        """
        made_by = dict.fromkeys([*known, *self._constants], 0)
        for number, instruction in enumerate(self.trace.instructions, 1):
            made_by.update(dict.fromkeys(instruction.made, number))
        ready: dict[int, list[Guard]] = {}
        for guard in self.trace.guards:
            place = max([made_by[value] for value in guard.values], default=0)
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
        return f"{'c' if value in self._constants else 'v'}{value.number}"

    def share(self, value: Value, other: Value) -> None:
        """Give a value the name of another one that is not read after this one is made."""
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
        if operand is None or type(operand) in (bool, int):
            return repr(operand)
        if type(operand) is str and operand.isidentifier():
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
            found = guard.read.text.format(*inputs)
        else:
            found = f"{self.refer(guard.read)}({', '.join(inputs)})"
        if guard.expected is True or guard.expected is False:
            return f"not ({found})" if guard.expected else f"({found})"
        differs = "is not" if guard.kind is Kind.IDENTITY else "!="
        return f"{found} {differs} {self.refer(guard.expected)}"


def _is_idle(line: str) -> bool:
    """Whether a line assigns a name to itself."""
    name, sign, value = line.strip().partition(" = ")
    return bool(sign) and name == value


_PIECE = 100
"""Instructions in one function: Python's parser takes 5 KB a line, until the function ends."""


def _body(code: Code, trace: Trace, kept: list[Value], where: str) -> Iterable[str]:
    """The lines of one run: of a long trace, calls of functions of pieces, which hand values on as
    globals.
    """
    every = trace.instructions
    if len(every) <= 2 * _PIECE:
        return code.statements(every)
    pieces = [every[start : start + _PIECE] for start in range(0, len(every), _PIECE)]
    homes = {v: number for number, piece in enumerate(pieces) for each in piece for v in each.made}
    shared = set(kept)
    for number, piece in enumerate(pieces):
        shared.update(v for each in piece for v in each.reads if homes.get(v, number) != number)
    for number, piece in enumerate(pieces):
        bound = [value for each in piece for value in each.made if value in shared]
        bound += [value for each in piece if each.op is FREE for value in each.reads]
        names = ", ".join(dict.fromkeys(code.name(value) for value in bound if value in shared))
        head = [f"global {names}"] if names else []
        code.function(f"piece{number}()", [*head, *code.statements(piece)], where)
    return [f"piece{number}()" for number in range(len(pieces))]


Runs = tuple[Callable[[], Any], Callable[[], Any], Callable[[Any], Any]]
"""The prologue, the body and the epilogue, as functions."""


def functions_of(trace: Trace) -> Runs:
    """An array-level trace as three functions: the prologue, one run with its effects, and the
    outputs from what the run returned.
    """
    code, kept, where = Code(trace), kept_values(trace), "compiled loop"
    once = [code.name(value) for each in trace.prologue for value in each.made]
    returned = f"return {code.tuple_of(kept)}"
    begin = [f"global {', '.join(once)}"] if once else ["pass"]
    return (
        code.function("begin()", [*begin, *code.statements(trace.prologue)], where),
        code.function("run()", [*_body(code, trace, kept, where), returned], where),
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
