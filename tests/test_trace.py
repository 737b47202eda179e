"""The trace: what is recorded of arrays, as text, after each pass, and as Python."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli.errors import GradcliError, Source, Span
from gradcli.questions.explain.answer import trace_document
from gradcli.trace import passes
from gradcli.trace.builder import TraceBuilder
from gradcli.trace.codegen import Code, functions_of
from gradcli.trace.ir import (
    Effect,
    GraphBreak,
    Guard,
    Inline,
    Instruction,
    Kernel,
    Kind,
    Trace,
    Value,
    lines_of,
    same,
    text_of,
)
from tests.blocks import MANUAL

GIVEN: dict[str, Any] = {}
"""What the inputs of the traces below are loaded from."""

LOAD = Inline("{0}[{1}]", "load")


def array(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    count = int(np.prod(shape))
    return np.arange(1, count + 1, dtype=dtype).reshape(shape) / np.asarray(7, dtype)


def builder(least_lazy: int = 1 << 20) -> TraceBuilder:
    return TraceBuilder(least_lazy)


def loaded(text: TraceBuilder, name: str, value: Any) -> Value:
    GIVEN[name] = value
    return text.load(LOAD, [GIVEN, name], value)


def total(values: Any) -> Any:
    return values.sum()


def flipped(values: Any) -> Any:
    return values.T


# --- traces, as they are recorded and after a pass ------------------------------------------------


def unused(text: TraceBuilder) -> None:
    x = loaded(text, "x", array(2, 3))
    text.call(np.exp, [x])
    y = text.call(np.sin, [x])
    text.call(RAISES, [x, y])
    text.trace.outputs = [y]


def divide_exactly(values: Any, others: Any) -> Any:
    if not np.all(others):
        raise ZeroDivisionError
    return values / others


RAISES = Kernel("divide_exactly", divide_exactly)


def raising_behind(text: TraceBuilder) -> None:
    x, w = loaded(text, "x", array(3)), text.constant(array(3))
    text.effect(np.subtract, [w, x, w], writes=[w])
    text.trace.outputs = [text.call(RAISES, [x, text.call(np.exp, [x])]), text.call(np.sin, [x])]


def raising_of_what_was_written(text: TraceBuilder) -> None:
    x, w = loaded(text, "x", array(3)), text.constant(array(3))
    text.effect(np.subtract, [w, x, w], writes=[w])
    text.call(RAISES, [x, text.call(np.exp, [w])])
    text.trace.outputs = [x]


def raising_draw(text: TraceBuilder) -> None:
    x, w = loaded(text, "x", array(3)), text.constant(array(3))
    text.effect(np.subtract, [w, x, w], writes=[w])
    text.effect(Inline("()", "drop"), [], random=())
    text.trace.outputs = [text.call(np.sin, [x])]
    text.effect(RAISES, [x, x], checks=(), random=())


def raising_constant(text: TraceBuilder) -> None:
    w = text.constant(array(3))
    text.trace.outputs = [text.call(RAISES, [w, w])]


def unused_chain(text: TraceBuilder) -> None:
    x = loaded(text, "x", array(3))
    text.call(np.cos, [text.call(np.exp, [x])])
    text.trace.outputs = [text.call(np.sin, [x])]


def with_effect(text: TraceBuilder) -> None:
    x, w = loaded(text, "x", array(3)), text.constant(array(3))
    y = text.call(np.exp, [x])
    text.effect(np.subtract, [w, y, w], writes=[w])


def copied(text: TraceBuilder) -> None:
    x = text.constant(array(3))
    y = text.call(np.exp, [text.call(np.copy, [x])])
    text.trace.outputs = [y]


def copied_and_written(text: TraceBuilder) -> None:
    x = text.constant(array(3))
    y = text.call(np.copy, [x])
    text.effect(Inline("{0}.fill(0)"), [x], writes=[x])
    text.trace.outputs = [text.call(np.exp, [y])]


def copied_and_asked_for(text: TraceBuilder) -> None:
    text.trace.outputs = [text.call(np.copy, [text.constant(array(3))])]


def invariant(text: TraceBuilder) -> None:
    x, w = loaded(text, "x", array(3)), text.constant(array(3))
    scaled = text.call(np.sqrt, [text.call(np.exp, [w])])
    text.trace.outputs = [text.call(np.multiply, [x, scaled])]


def invariant_but_written(text: TraceBuilder) -> None:
    x, w = loaded(text, "x", array(3)), text.constant(array(3))
    y = text.call(np.multiply, [x, text.call(np.exp, [w])])
    text.effect(np.subtract, [w, y, w], writes=[w])


def shown_only(text: TraceBuilder) -> None:
    x, w = loaded(text, "x", array(3)), text.constant(array(3, dtype="float64"))
    y = text.call(np.exp, [x])
    z = text.call(np.sin, [y])
    text.effect(np.add, [w, text.call(np.cos, [y]), w], writes=[w])
    text.trace.outputs = [z]


def shown_of_what_is_written(text: TraceBuilder) -> None:
    w = text.constant(array(3))
    y = text.call(np.exp, [w])
    text.effect(np.subtract, [w, w, w], writes=[w])
    text.trace.outputs = [y]


def chain(text: TraceBuilder) -> None:
    x = loaded(text, "x", array(40, 40))
    y = text.call(np.sin, [text.call(np.exp, [x])])
    text.trace.outputs = [text.call(np.multiply, [y, 2.0])]


def chain_of_a_view(text: TraceBuilder) -> None:
    x = loaded(text, "x", array(40, 40))
    text.trace.outputs = [text.call(np.sin, [text.call(flipped, [x])])]


def small_chain(text: TraceBuilder) -> None:
    x = loaded(text, "x", array(4))
    text.trace.outputs = [text.call(np.sin, [text.call(np.exp, [x])])]


def read_twice(text: TraceBuilder) -> None:
    x = loaded(text, "x", array(40, 40))
    y = text.call(np.exp, [x])
    text.trace.outputs = [text.call(np.add, [text.call(np.sin, [y]), y])]


Case = tuple[Callable[[TraceBuilder], None], Callable[[Trace], Trace], str, str]

UNCHANGED = ""
"""What stands for a trace that a pass leaves as it was."""

CASES: dict[str, Case] = {
    "what nothing needs goes": (
        unused,
        passes.without_dead,
        """
inputs: %0: f32[2,3]
%0: f32[2,3] = load(dict, 'x')
%1: f32[2,3] = exp(%0)
%2: f32[2,3] = sin(%0)
%3: f32[2,3] = divide_exactly(%0, %2)
outputs: %2
""",
        """
inputs: %0: f32[2,3]
%0: f32[2,3] = load(dict, 'x')
%2: f32[2,3] = sin(%0)
%3: f32[2,3] = divide_exactly(%0, %2)
outputs: %2
""",
    ),
    "what may raise goes ahead of effects": (
        raising_behind,
        passes.raising_first,
        """
inputs: %0: f32[3]
constants: %1: f32[3]
%0: f32[3] = load(dict, 'x')
subtract(%1, %0, %1)   # writes(%1)
%2: f32[3] = exp(%0)
%3: f32[3] = divide_exactly(%0, %2)
%4: f32[3] = sin(%0)
outputs: %3, %4
effects: writes(%1)
""",
        """
inputs: %0: f32[3]
constants: %1: f32[3]
%0: f32[3] = load(dict, 'x')
%2: f32[3] = exp(%0)
%3: f32[3] = divide_exactly(%0, %2)
subtract(%1, %0, %1)   # writes(%1)
%4: f32[3] = sin(%0)
outputs: %3, %4
effects: writes(%1)
""",
    ),
    "what may raise stays behind what it reads": (
        raising_of_what_was_written,
        passes.raising_first,
        """
inputs: %0: f32[3]
constants: %1: f32[3]
%0: f32[3] = load(dict, 'x')
subtract(%1, %0, %1)   # writes(%1)
%2: f32[3] = exp(%1)
%3: f32[3] = divide_exactly(%0, %2)
outputs: %0
effects: writes(%1)
""",
        UNCHANGED,
    ),
    "draws keep their order": (
        raising_draw,
        passes.raising_first,
        """
inputs: %0: f32[3]
constants: %1: f32[3]
%0: f32[3] = load(dict, 'x')
subtract(%1, %0, %1)     # writes(%1)
drop()                   # random
%2: f32[3] = sin(%0)
divide_exactly(%0, %0)   # checks   random
outputs: %2
effects: writes(%1)  random  checks
""",
        """
inputs: %0: f32[3]
constants: %1: f32[3]
%0: f32[3] = load(dict, 'x')
drop()                   # random
divide_exactly(%0, %0)   # checks   random
subtract(%1, %0, %1)     # writes(%1)
%2: f32[3] = sin(%0)
outputs: %2
effects: random  checks  writes(%1)
""",
    ),
    "what may raise is computed in its place": (
        raising_constant,
        passes.optimized,
        """
constants: %0: f32[3]
%1: f32[3] = divide_exactly(%0, %0)
outputs: %1
""",
        UNCHANGED,
    ),
    "what only that needs goes too": (
        unused_chain,
        passes.without_dead,
        """
inputs: %0: f32[3]
%0: f32[3] = load(dict, 'x')
%1: f32[3] = exp(%0)
%2: f32[3] = cos(%1)
%3: f32[3] = sin(%0)
outputs: %3
""",
        """
inputs: %0: f32[3]
%0: f32[3] = load(dict, 'x')
%3: f32[3] = sin(%0)
outputs: %3
""",
    ),
    "what an effect needs stays": (
        with_effect,
        passes.without_dead,
        """
inputs: %0: f32[3]
constants: %1: f32[3]
%0: f32[3] = load(dict, 'x')
%2: f32[3] = exp(%0)
subtract(%1, %2, %1)   # writes(%1)
effects: writes(%1)
""",
        UNCHANGED,
    ),
    "a copy is its original": (
        copied,
        passes.without_copies,
        """
constants: %0: f32[3]
%1: f32[3] = copy(%0)
%2: f32[3] = exp(%1)
outputs: %2
""",
        """
constants: %0: f32[3]
%2: f32[3] = exp(%0)
outputs: %2
""",
    ),
    "a copy of what is written to stays": (
        copied_and_written,
        passes.without_copies,
        """
constants: %0: f32[3]
%1: f32[3] = copy(%0)
%0.fill(0)   # writes(%0)
%2: f32[3] = exp(%1)
outputs: %2
effects: writes(%0)
""",
        UNCHANGED,
    ),
    "a copy that is asked for stays": (
        copied_and_asked_for,
        passes.without_copies,
        """
constants: %0: f32[3]
%1: f32[3] = copy(%0)
outputs: %1
""",
        UNCHANGED,
    ),
    "what is the same in every run is computed once": (
        invariant,
        passes.invariants_out,
        """
inputs: %0: f32[3]
constants: %1: f32[3]
%0: f32[3] = load(dict, 'x')
%2: f32[3] = exp(%1)
%3: f32[3] = sqrt(%2)
%4: f32[3] = multiply(%0, %3)
outputs: %4
""",
        """
inputs: %0: f32[3]
constants: %1: f32[3]
once:
%2: f32[3] = exp(%1)
%3: f32[3] = sqrt(%2)
%0: f32[3] = load(dict, 'x')
%4: f32[3] = multiply(%0, %3)
outputs: %4
""",
    ),
    "what is computed from written memory is not": (
        invariant_but_written,
        passes.invariants_out,
        """
inputs: %0: f32[3]
constants: %1: f32[3]
%0: f32[3] = load(dict, 'x')
%2: f32[3] = exp(%1)
%3: f32[3] = multiply(%0, %2)
subtract(%1, %3, %1)   # writes(%1)
effects: writes(%1)
""",
        UNCHANGED,
    ),
    "what is only asked for is computed then": (
        shown_only,
        passes.outputs_late,
        """
inputs: %0: f32[3]
constants: %1: f64[3]
%0: f32[3] = load(dict, 'x')
%2: f32[3] = exp(%0)
%3: f32[3] = sin(%2)
%4: f32[3] = cos(%2)
add(%1, %4, %1)   # writes(%1)
outputs: %3
effects: writes(%1)
""",
        """
inputs: %0: f32[3]
constants: %1: f64[3]
%0: f32[3] = load(dict, 'x')
%2: f32[3] = exp(%0)
%4: f32[3] = cos(%2)
add(%1, %4, %1)   # writes(%1)
late:
%3: f32[3] = sin(%2)
outputs: %3
effects: writes(%1)
""",
    ),
    "but not from what is written to": (
        shown_of_what_is_written,
        passes.outputs_late,
        """
constants: %0: f32[3]
%1: f32[3] = exp(%0)
subtract(%0, %0, %0)   # writes(%0)
outputs: %1
effects: writes(%0)
""",
        UNCHANGED,
    ),
    "a result takes an operand's memory": (
        chain,
        passes.memory_reused,
        """
inputs: %0: f32[40,40]
%0: f32[40,40] = load(dict, 'x')
%1: f32[40,40] = exp(%0)
%2: f32[40,40] = sin(%1)
%3: f32[40,40] = multiply(%2, 2.0)
outputs: %3
""",
        """
inputs: %0: f32[40,40]
%0: f32[40,40] = load(dict, 'x')
%1: f32[40,40] = exp(%0)
free(%0)
%2: f32[40,40] = sin(%1, out=%1)
free(%1)
%3: f32[40,40] = multiply(%2, 2.0, out=%2)
free(%2)
outputs: %3
""",
    ),
    "but not that of an input, under whatever name": (
        chain_of_a_view,
        passes.memory_reused,
        """
inputs: %0: f32[40,40]
%0: f32[40,40] = load(dict, 'x')
%1: f32[40,40] = flipped(%0)
%2: f32[40,40] = sin(%1)
outputs: %2
""",
        """
inputs: %0: f32[40,40]
%0: f32[40,40] = load(dict, 'x')
%1: f32[40,40] = flipped(%0)
free(%0)
%2: f32[40,40] = sin(%1)
free(%1)
outputs: %2
""",
    ),
    "and not while it is read": (
        read_twice,
        passes.memory_reused,
        """
inputs: %0: f32[40,40]
%0: f32[40,40] = load(dict, 'x')
%1: f32[40,40] = exp(%0)
%2: f32[40,40] = sin(%1)
%3: f32[40,40] = add(%2, %1)
outputs: %3
""",
        """
inputs: %0: f32[40,40]
%0: f32[40,40] = load(dict, 'x')
%1: f32[40,40] = exp(%0)
free(%0)
%2: f32[40,40] = sin(%1)
%3: f32[40,40] = add(%2, %1, out=%2)
free(%2)
free(%1)
outputs: %3
""",
    ),
    "and small memory is left alone": (
        small_chain,
        passes.memory_reused,
        """
inputs: %0: f32[4]
%0: f32[4] = load(dict, 'x')
%1: f32[4] = exp(%0)
%2: f32[4] = sin(%1)
outputs: %2
""",
        UNCHANGED,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_pass(name: str) -> None:
    record, change, before, after = CASES[name]
    text = builder()
    record(text)
    assert text_of(text.trace) == before.strip()
    assert text_of(change(text.trace)) == (after or before).strip()
    assert text_of(text.trace) == before.strip(), "the pass changed the trace that it was given"


@pytest.mark.parametrize("name", CASES)
def test_every_pass_keeps_every_bit(name: str) -> None:
    """The functions of a trace give what was recorded, with all passes and without any, twice."""
    record = CASES[name][0]
    for change in (lambda trace: trace, passes.optimized):
        text = builder()
        record(text)
        recorded = [value.array.copy(order="K") for value in text.trace.outputs]
        moved = [(value.array, value.array.copy()) for value in text.trace.constants]
        given = {key: value.copy() for key, value in GIVEN.items()}
        begin, run, finish = functions_of(change(text.trace))
        begin()
        first = finish(run())
        assert all(map(same, recorded, first))
        for now, before in moved:
            now[...] = before
        assert all(map(same, first, finish(run())))
        assert all(same(GIVEN[key], value) for key, value in given.items()), "an input changed"


# --- what is recorded -----------------------------------------------------------------------------


def test_call_of_several_outputs() -> None:
    text = builder()
    x = text.constant(array(3))
    low, none, _ = text.call(lambda values: (values.min(), None, values.max()), [x])
    assert none is None
    (lonely,) = text.call(Kernel("alone", lambda values: (values + 1,)), [x])
    text.trace.outputs = [low, lonely]
    assert lines_of(text.trace)[1:3] == [
        "%1: f32[], _, %2: f32[] = <lambda>(%0)",
        "%3: f32[3] = alone(%0)",
    ]
    begin, run, finish = functions_of(passes.optimized(text.trace))
    begin()
    assert all(map(same, finish(run()), [low.array, lonely.array]))


def test_gradient_that_is_passed_on_is_no_instruction() -> None:
    text = builder()
    x = text.constant(array(3))
    assert text.call(lambda values: values, [x]) is x
    assert text.trace.instructions == []


@pytest.mark.parametrize(
    ("record", "stays"),
    [(raising_behind, False), (raising_of_what_was_written, True), (raising_draw, False)],
)
def test_what_raises_behind_effects(record: Callable[[TraceBuilder], None], stays: bool) -> None:
    text = builder()
    record(text)
    late = passes.raising_behind_effects(passes.raising_first(text.trace))
    assert (late is not None) is stays


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (lambda text: text.value_of(array(3)), "B01"),
        (lambda text: text.call(np.linalg.inv, [text.constant(array(3))]), "B02"),
        (lambda text: [text.call(np.exp, [text.constant(array(1))]) for _ in range(11_000)], "B03"),
        (lambda text: text.constant(np.ma.array(array(3))), "B04"),
        (lambda text: text.call(np.exp, [text.constant(array(1 << 10, 1 << 10))]), "B04"),
        (lambda text: text.constant(array(3).astype("float16")), "B04"),
    ],
)
def test_breaks(record: Callable[[TraceBuilder], Any], code: str) -> None:
    with pytest.raises(GraphBreak) as caught:
        record(builder())
    assert caught.value.code == code
    assert f"| `{code}` |" in (MANUAL / "speed.md").read_text()
    assert caught.value.reason


def test_instructions_know_their_place() -> None:
    text = builder()
    source = Source("net.py", "import torch\nloss = (w * x).sum()\n")
    text.span = Span(source, 21, 26)
    text.stack = (("MulBackward0", text.span),)
    text.call(np.exp, [text.constant(array(3))])
    assert lines_of(text.trace)[-1] == ("%1: f32[3] = exp(%0)   # w * x  net.py:2  in MulBackward0")


# --- guards ---------------------------------------------------------------------------------------


def test_guards() -> None:
    thing, values, modes = object(), [1, 2], {"grad": True}
    guards = {
        "is": Guard(Kind.IDENTITY, lambda: thing, thing),
        "are": Guard(Kind.IDENTITY, lambda: values, (values[0], values[1])),
        "mode": Guard(Kind.MODE, modes.get, True, inputs=["grad"]),
        "shape": Guard(Kind.VALUE, np.shape, (2,), inputs=[values]),
        "check": Guard(Kind.VALUE, modes.__getitem__, True, inputs=["grad"]),
    }

    def failing() -> list[str]:
        return [name for name, guard in guards.items() if not guard.holds()]

    assert failing() == []
    values[1] = 1
    assert failing() == ["are"]
    values.append(3)
    assert failing() == ["are", "shape"]
    modes["grad"] = False
    assert failing() == ["are", "mode", "shape", "check"]
    modes.clear()
    assert failing() == ["are", "mode", "shape", "check"]


def test_guard_that_fails_with_an_error_does_not_hold() -> None:
    def fail() -> None:
        raise GradcliError("E202", "out of range")

    assert not Guard(Kind.VALUE, fail, None).holds()


def test_guards_stand_where_their_values_are_known() -> None:
    trace = Trace()
    node = trace.value(None, "node")
    following = trace.value(None, "node")
    gradient = trace.value((3,), np.dtype("float32"))
    trace.inputs = [node]
    edges = Inline("{out0}, = {0}.edges")
    trace.add(Instruction(edges, [node], [following]))
    trace.add(Instruction(Inline("{0}.run()"), [following], [gradient]))
    kind = Inline("{0}.__class__")
    trace.guards = [
        Guard(Kind.IDENTITY, kind, float, inputs=[following]),
        Guard(Kind.IDENTITY, kind, int, inputs=[node]),
        Guard(Kind.VALUE, Inline("len({0}.edges)"), 1, inputs=[node]),
    ]
    code = Code(trace)
    assert list(code.guarded([node], "return None")) == [
        "if v0.__class__ is not k0 or len(v0.edges) != 1:",
        "    return None",
        "v1, = v0.edges",
        "if v1.__class__ is not k1:",
        "    return None",
        "v2 = v1.run()",
    ]
    assert lines_of(trace)[-3:] == [
        "guard: identity %1.__class__ is float",
        "guard: identity %0.__class__ is int",
        "guard: value len(%0.edges) == 1",
    ]


# --- print ----------------------------------------------------------------------------------------


def test_print() -> None:
    trace = Trace()
    source = Source("net.py", "loss = w * x\nw.add_(loss, alpha=2)\n")
    f32 = np.dtype("float32")
    w = trace.value((2, 3), f32, name="w", device="cuda:0")
    x = trace.value((), np.dtype("float64"), name="x")
    trace.inputs, trace.constants = [w], [x]
    loss = trace.value((2, 3), f32, name="loss")
    mul, add = Kernel("mul", np.multiply), Kernel("add_", np.add)
    trace.add(Instruction(mul, [w, x], [loss], span=Span(source, 7, 12)))
    stack = (("step", Span(source, 0, 4)),)
    written: dict[Effect, tuple[Value, ...]] = {Effect.WRITES: (w,), Effect.STATE: ()}
    place = Span(source, 13, 34)
    params = {"alpha": 2, "dims": (0,), "index": slice(None, 3)}
    trace.add(
        Instruction(add, [w, [loss, w]], params=params, span=place, stack=stack, effects=written)
    )
    trace.outputs = [loss]
    trace.breaks = [GraphBreak("a value came from elsewhere", "bind it first", place, code="B01")]
    assert (
        text_of(trace)
        == (
            """
inputs: %0: f32[2,3]@cuda:0 w
constants: %1: f64[] x
%2: f32[2,3] = mul(%0, %1)   # loss = w * x  net.py:1
add_(%0, [%2, %0], alpha=2, dims=(0,), index=:3:)   """
            """# w.add_(loss, alpha=2)  net.py:2  in step   writes(%0)   state
outputs: %2
effects: writes(%0)  state
break: B01 a value came from elsewhere  net.py:2; bind it first
"""
        ).strip()
    )
    data = trace_document(trace)
    assert data["instructions"][1]["effects"] == {"writes": [0], "state": []}
    assert data["instructions"][0]["outputs"] == [
        {"number": 2, "type": "f32[2,3]", "shape": [2, 3], "name": "loss"}
    ]


def test_a_function_that_is_never_called_takes_little_memory() -> None:
    """Another one serves in nearly every run; of a long trace it has thousands of lines."""
    lines = [f"value{number} = argument * {number / 7}" for number in range(4000)]
    tracemalloc.start()
    try:
        body = (line for line in [*lines, "return value3999"])
        function = Code(Trace()).function_later("later(argument)", body, "later")
        assert tracemalloc.get_traced_memory()[0] < 150_000
    finally:
        tracemalloc.stop()
    for _ in range(2):
        assert function(2.0) == 2.0 * (3999 / 7)
