"""The trace of a run, as text and as JSON."""

from __future__ import annotations

from functools import partial
from typing import Any

from gradcli.autograd.recording.trace_recorder import TraceRecorder
from gradcli.running.run import Run
from gradcli.show.answer import Answer
from gradcli.show.style import escaped
from gradcli.trace.ir import Effects, Instruction, Trace, Value
from gradcli.trace.printer import call_text, op_name, operand_text, text_of, type_text

SCHEMA = "gradcli.trace/1"


def trace_document(trace: Trace) -> dict[str, Any]:
    """A trace as a JSON object: the same facts as its text."""
    return {
        "schema": SCHEMA,
        "inputs": [_value_document(value) for value in trace.inputs],
        "constants": [_value_document(value) for value in trace.constants],
        "instructions": [_instruction_document(each) for each in trace.instructions],
        "outputs": [value.number for value in trace.outputs],
        "effects": _effects_document(trace.effects),
        "breaks": [
            {"code": each.code, "reason": each.reason, "hint": each.hint} for each in trace.breaks
        ],
    }


def _value_document(value: Value | None) -> dict[str, Any] | None:
    if value is None:
        return None
    return {
        "number": value.number,
        "type": type_text(value),
        "shape": None if value.shape is None else list(value.shape),
        "name": value.name,
    }


def _instruction_document(instruction: Instruction) -> dict[str, Any]:
    span = instruction.span
    return {
        "text": call_text(instruction),
        "op": op_name(instruction.op),
        "inputs": [operand_text(each) for each in instruction.inputs],
        "params": {name: operand_text(each) for name, each in instruction.params.items()},
        "outputs": [_value_document(each) for each in instruction.outputs],
        "source": None if span is None else span.text,
        "line": None if span is None else span.line,
        "column": None if span is None else span.column,
        "stack": [name for name, _ in instruction.stack],
        "effects": _effects_document(instruction.effects),
    }


def _effects_document(effects: Effects) -> dict[str, list[int]]:
    return {effect.value: [value.number for value in values] for effect, values in effects.items()}


def trace_of(run: Run) -> Answer:
    """What a run recorded, one instruction a line."""
    recorder = run.session.recorder
    assert isinstance(recorder, TraceRecorder)
    trace = recorder.named()
    return Answer(lambda _: f"{escaped(text_of(trace))}\n", partial(trace_document, trace))
