"""Running one program from Python, once or often."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from gradcli.doors.python.host import Host, pass_on, raising
from gradcli.doors.python.inputs import (
    SETTINGS,
    Settings,
    Text,
    arguments_of,
    check_used,
    names_in,
    options_of,
    split,
    text_of,
)
from gradcli.doors.python.questions import asked_of, host_of
from gradcli.doors.python.result import Result
from gradcli.errors import GradcliError
from gradcli.questions.notes.error_notes import note_detachments
from gradcli.questions.one_shot import last_value
from gradcli.running.run import Run
from gradcli.running.source import Asked, Program


def run(text: Text | Path, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> Result:
    """Run a program, differentiate its output, and give both with the graph.

    Args:
        text: the program, in the language that the command line takes; or a Python function whose
            source is one, with parameters that are inputs; or the `Path` of a program's file or of
            a recording.
        inputs: values by name, some of which the program may not use. Numbers, lists and arrays
            stand for themselves, floating ones as tensors that require grad, and so do the arrays
            in lists, tuples and dicts; a text is read as behind `NAME=` on the command line, so
            `"@x.npy"` is a file; `"k:const"` keeps a Python value as it is.
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
    text: Text | Path, inputs: Mapping[str, Any] | None = None, /, **named: Any
) -> dict[str, Any]:
    """The gradients of a program's output by name, NumPy arrays, or of an input that is a list,
    tuple or dict such a one of arrays; arguments as for `run`.
    """
    return _executed(asked_of("grad", text, inputs, named), "graph").grads


def compile(text: Text, /, **settings: Unpack[Settings]) -> Compiled:
    """Read a program once, to run it often.

    Args:
        text: the program, or a function, as for `run`.
        settings: those of `run`, which each call may give anew.

    Raises:
        SyntaxErrors: a GradcliError with all that is wrong with the text.
        TypeError: there is no such setting; ValueError: or it has a value that it cannot have.
    """
    return Compiled(text, settings)


class Compiled:
    """A program that was read once; each call is a run of its own.

    Attributes:
        text: the program.
        names: those that it uses: what inputs can be called.
    """

    def __init__(self, text: Text, settings: Settings) -> None:
        unknown = [name for name in settings if name not in SETTINGS]
        if unknown:
            raise TypeError(f"`{unknown[0]}` is none of {', '.join(SETTINGS)}")
        options_of(settings)
        self.text = text_of(text)
        self._settings = settings
        self._program = Program(self.text)
        with raising(Host()):
            self.names = frozenset(names_in(self._program.statements()))

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> Result:
        """Run the program; arguments and errors as for `run`."""
        return _executed(self._asked(inputs, named), "graph")

    def grad(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, Any]:
        """The gradients of the program's output, as `grad` gives them."""
        return _executed(self._asked(inputs, named), "graph").grads

    def _asked(self, inputs: Mapping[str, Any] | None, named: Mapping[str, Any]) -> Asked:
        values, settings = split(inputs, named)
        arguments = arguments_of(values)
        check_used(self.names, [each for each in arguments if each.name in named])
        options = options_of({**self._settings, **settings})
        return Asked(Host(), "run", self._program, arguments, options)

    def __repr__(self) -> str:
        return f"gradcli.compile({self.text!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Compiled, (self.text, self._settings)


def _executed(asked: Asked, record: str) -> Result:
    """The result of one run."""
    host = host_of(asked)
    run = Run(host, asked.options, record)
    statements = asked.program.statements()
    with raising(host):
        try:
            with run.limited():
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
