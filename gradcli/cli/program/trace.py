"""The trace of a run, as text and as JSON."""

from __future__ import annotations

from gradcli.autograd.recording.trace_recorder import TraceRecorder
from gradcli.cli.program.run import Run
from gradcli.render.answers.trace_json import trace_document
from gradcli.render.result_json import text
from gradcli.trace.printer import text_of


def trace_of(run: Run) -> str:
    """What a run recorded, one instruction a line, or as JSON where the options ask for it."""
    recorder = run.session.recorder
    assert isinstance(recorder, TraceRecorder)
    trace = recorder.named()
    return text(trace_document(trace)) if run.options.json else f"{text_of(trace)}\n"
