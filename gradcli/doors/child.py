"""`python -m gradcli.doors.child`: answers one request, JSON in and JSON out.

A process of its own is what limits of time and memory hold in, and what ends with its call.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradcli.doors.bounded import MOST_BYTES, bounded, cut
from gradcli.doors.python import program, questions
from gradcli.doors.python.host import naming_arguments
from gradcli.doors.python.questions import Answer
from gradcli.doors.python.session import Session
from gradcli.errors import GradcliError
from gradcli.running.process.interruption import remove_temporary
from gradcli.show.diagnostics.human import diagnostic
from gradcli.show.diagnostics.json import error_object

_ASK: dict[str, Any] = {
    "run": program.run,
    "explain": questions.explain,
    "derive": questions.derive,
    "blame": questions.blame,
    "check": questions.check,
}


_SERVERS = re.compile(r"`max_(elements|memory)=")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request: `text` and `data`, or `error`."""
    if request["file"] is not None:
        with suppress(OSError):  # of an editor's text that has no file yet
            os.chdir(os.path.dirname(request["file"]))
    within = request["within"]
    if within is None:
        return _answer(request, request["program"])
    recording = within.get("recording")
    program = request["program"] if recording is None else Path(recording)
    explained = _answer(request, program)
    explained["text"] = _for_agents(explained["text"])
    if "error" in explained and explained.get("data") is not None:
        explained["data"]["help"] = _for_agents(explained["data"]["help"] or "") or None
    return bounded(explained, within.get("elements"))


def _for_agents(text: str) -> str:
    """A text that names what a call of an agent has: of limits, those that are the server's."""
    return _SERVERS.sub(r"`gradcli mcp --max-\1 ", naming_arguments(text))


def _answer(request: dict[str, Any], program_or_path: str | Path) -> dict[str, Any]:
    named = dict(request["named"])
    operands = program_or_path, request["inputs"]
    try:
        if request["ask"] == "values":
            return _values(request["program"], named, request["file"])
        if request["ask"] == "why":
            explained: Any = questions.why(named.pop("question"), *operands, **named)
        else:
            explained = _ASK[request["ask"]](*operands, **named)
    except GradcliError as error:
        return {"text": diagnostic(error), "data": error_object(error), "error": error.code}
    except (TypeError, ValueError) as error:
        return {"text": str(error), "error": type(error).__name__}
    if isinstance(explained, Answer):
        return {"text": explained.text, "data": {"passed": explained.passed, **explained.data}}
    text = cut(explained.printed, MOST_BYTES // 2) + cut(repr(explained), MOST_BYTES // 4)
    text += "".join(
        f"\n{name}.grad = None: {why}" for name, why in explained.missing.items() if why
    )
    return {"text": text, "data": explained.to_dict()}


def _values(text: str, settings: dict[str, Any], path: str) -> dict[str, Any]:
    """What each name of a program holds when it has run, on one line, and its gradient."""
    session = Session(**settings)
    session.stand_at(path)
    result = session.run(text)
    grads = dict(result.grads)
    if result.name is not None and not grads:
        with suppress(GradcliError):  # several elements, or no graph
            grads = session.grad(result.name)
    shown = {name: str(array) for name, array in grads.items()}
    names = {
        name: {"kind": kind, "value": value, "grad": shown.get(name)}
        for name, kind, value in session.described()
    }
    return {"text": result.printed, "data": {"names": names}}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # nothing but the answer may come into the pipe
    json.dump(answer(json.load(sys.stdin)), pipe)
    pipe.flush()
    remove_temporary()
    os._exit(0)
