"""Running one program from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.doors.python.host import pass_on, raising
from gradcli.doors.python.questions import asked_of, host_of
from gradcli.doors.python.result import Result
from gradcli.errors import GradcliError
from gradcli.language.tree.syntax import Statement
from gradcli.questions.notes.error_notes import note_detachments
from gradcli.questions.one_shot import last_value
from gradcli.running.run import Run
from gradcli.running.source import Asked


def run(text: str, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> Result:
    """Run a program, differentiate its output, and give both with the graph.

    Args:
        text: the program, in the language that the command line takes.
        inputs: values by name, some of which the program may not use. Numbers, lists and arrays
            stand for themselves, floating ones as tensors that require grad; a text is read as
            behind `NAME=` on the command line, so `"@x.npy"` is a file; `"k:const"` keeps a
            Python value as it is.
        named: inputs, each of which the program has to use, and settings: `of` the output's name;
            `wrt` the inputs whose gradients are wanted, `seed` the gradient to start from; `dtype`,
            `device`, `manual_seed`, `no_compiled_loops=True` to interpret every loop; and the
            limits `timeout` in seconds, `max_memory`, `max_elements`, `max_steps`, `sandbox=True`
            for no files.

    Raises:
        GradcliError: the program is wrong, or met a limit: `code`, `message`, `span`, `help`.
        TypeError: an input is nothing that a program can have, or the program has no such name.
        ValueError: a setting has a value that it cannot have.
    """
    return _executed(asked_of("run", text, inputs, named), "graph")


def grad(
    text: str, inputs: Mapping[str, Any] | None = None, /, **named: Any
) -> dict[str, np.ndarray[Any, Any]]:
    """The gradients of a program's output as NumPy arrays by name; arguments as for `run`."""
    return _executed(asked_of("grad", text, inputs, named), "graph").grads


def _executed(asked: Asked, record: str) -> Result:
    """The result of one run."""
    host = host_of(asked)
    run = Run(host, asked.options, record)
    statements: Sequence[Statement] = ()
    with raising(host):
        try:
            with run.limited():
                statements = run.session.parse(asked.program.text(), asked.program.name)
                value = run.execute(statements, asked.arguments)
                with run.within_memory():
                    result = run.result(value)
        except GradcliError as error:
            note_detachments(error, run, statements, asked.arguments)
            raise
    printed, warned = host.taken()
    _, plain = last_value(run, statements, value)
    if record == "all":
        return Result(run, result, plain, printed, warned)
    pass_on(warned, 3)
    return Result(run, result, plain, printed, warned, lambda: _executed(asked, "all"))
