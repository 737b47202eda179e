"""What a recorder keeps: every operation, every backward step, and little when little is asked."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from gradcli.autograd.recording.recorder import Accumulation, Arrival, Recorder, Step
from gradcli.autograd.recording.trace_recorder import TraceRecorder
from gradcli.session import Session

PROGRAM = """\
x = tensor([1., 2.], requires_grad=True)
def f(t):
    return t.detach() * 2
with no_grad():
    u = x * 3
k = x.argmax()
y = (x * x + f(x)).sum()
"""


def recorded(program: str, record: str = "all") -> tuple[Session, Recorder]:
    session = Session(record=record)
    for _ in session.run(program, "program"):
        pass
    recorder = session.state.recorder
    assert isinstance(recorder, Recorder)
    return session, recorder


def test_operations_outside_the_graph_are_recorded() -> None:
    _, recorder = recorded(PROGRAM)
    assert isinstance(recorder, TraceRecorder)
    names = [call.op.name for call in recorder.calls]
    assert names.count("mul") == 3
    assert "argmax" in names
    inside = next(each for each in recorder.calls if each.stack)
    assert inside.stack[0][0] == "f"
    assert inside.span is not None
    assert inside.span.text == "t.detach() * 2"
    assert inside.arguments["other"] == 2
    assert inside.output.array.tolist() == [2, 4]
    assert inside.output.grad_fn is None


def test_steps_of_a_backward_pass() -> None:
    session, recorder = recorded(PROGRAM + "y.backward()\ny = x.sum()\ny.backward()")
    assert recorder.events is not None
    kinds = [type(event) for event in recorder.events]
    assert kinds == [Step, Step, Step, Accumulation, Arrival, Step, Arrival]
    accumulation, arrival = recorder.events[3:5]
    assert isinstance(accumulation, Accumulation)
    assert accumulation.new.tolist() == [2, 4]
    assert isinstance(arrival, Arrival)
    assert arrival.old is None
    last = recorder.events[-1]
    assert isinstance(last, Arrival)
    assert (last.old.tolist(), last.incoming.tolist(), last.new.tolist()) == (
        [2, 4], [1, 1], [3, 5],
    )  # fmt: skip
    # What was kept is nobody else's memory.
    session.values["x"].grad.array[...] = 0
    assert last.new.tolist() == [3, 5]


@pytest.mark.parametrize("start", ["tensor(3.)", "tensor([3.])"])
def test_recorded_graphs_of_gradients(start: str) -> None:
    program = f"x = {start}.requires_grad_()\ny = x ** 3\ny.backward(create_graph=True)"
    _, recorder = recorded(f"{program}\ny = x * x\ny.backward(create_graph=True)")
    arrivals = [event for event in recorder.events or () if isinstance(event, Arrival)]
    assert [np.ravel(arrival.new).tolist() for arrival in arrivals] == [[27], [33]]
    assert arrivals[1].old is not None


def test_a_picture_of_the_graph_keeps_nothing_alive() -> None:
    session, recorder = recorded("x = ones(3, requires_grad=True)\ny = x + 5", "graph")
    assert not isinstance(recorder, TraceRecorder)
    assert recorder.events is None
    node = session.values["y"].grad_fn
    assert recorder.constants[node] == {1: 5}
    gone = weakref.ref(node)
    del node, session.values["y"]
    gc.collect()
    assert gone() is None
    assert len(recorder.constants) == 0


def test_nobody_records_unasked() -> None:
    session = Session()
    list(session.run("x = ones(3)", "program"))
    assert session.state.recorder is None
