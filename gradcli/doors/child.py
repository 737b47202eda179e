"""`python -m gradcli.doors.child`: answers one request, JSON in and JSON out.

A process of its own is what limits of time and memory hold in, and what ends with its call.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from contextlib import suppress
from typing import Any

from gradcli.doors.python import program, questions
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


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request: `text` and `data`, or `error`."""
    named = dict(request["named"])
    given = request["program"], request["inputs"]
    try:
        if request["ask"] == "values":
            return _values(request["program"], named)
        if request["ask"] == "why":
            found: Any = questions.why(named.pop("question"), *given, **named)
        else:
            found = _ASK[request["ask"]](*given, **named)
    except GradcliError as error:
        return {"text": diagnostic(error), "data": error_object(error), "error": error.code}
    except (TypeError, ValueError) as error:
        return {"text": str(error), "error": type(error).__name__}
    if isinstance(found, Answer):
        return {"text": found.text, "data": {"passed": found.passed, **found.data}}
    text = found.printed + repr(found)
    text += "".join(f"\n{name}.grad = None: {why}" for name, why in found.missing.items() if why)
    return {"text": text, "data": found.to_dict()}


def _values(text: str, settings: dict[str, Any]) -> dict[str, Any]:
    """What each name of a program holds when it has run, on one line, and its gradient."""
    session = Session(**settings)
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
