"""The trace of a run, as text and as JSON."""

from __future__ import annotations

from functools import partial

from gradcli.autograd.recording.trace_recorder import TraceRecorder
from gradcli.questions.explain.trace_json import trace_document
from gradcli.running.run import Run
from gradcli.show.answer import Answer
from gradcli.trace.printer import text_of


def trace_of(run: Run) -> Answer:
    """What a run recorded, one instruction a line."""
    recorder = run.session.recorder
    assert isinstance(recorder, TraceRecorder)
    trace = recorder.named()
    return Answer(lambda _: f"{text_of(trace)}\n", partial(trace_document, trace))
